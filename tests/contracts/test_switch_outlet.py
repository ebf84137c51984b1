"""The power of a switch that an outlet of the rack feeds: cut there, and given back with its map."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rackloop.abilities import PortState
from rackloop.data import data_path
from rackloop.errors import DescriptionError
from rackloop.faults import Faults, FaultSpec
from rackloop.lab import load_lab
from rackloop.safety.store import open_store
from rackloop.safety.undo import ActRecorder, Journal
from rackloop_labs.mock import MockBench
from tests.deadlines import CLOCK, soon
from tests.mock_rack import running_mock_bench

FABRIC = "fabric: {driver: flexfabric, ports: 160, control: {tcp: auto, serial: auto}}"


def described(folder: Path, outlet: str) -> Path:
    text = data_path("labs").joinpath("mock.yaml").read_text()
    assert FABRIC in text
    path = folder / "fed.yaml"
    fed = FABRIC.replace("ports: 160", f"ports: 160, outlet: {outlet}")
    path.write_text(text.replace(FABRIC, fed).replace("name: mock", "name: fed"))
    return path


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[MockBench]:
    with running_mock_bench(tmp_path, described(tmp_path, "pdu2/8")) as bench:
        yield bench


def test_its_outlet_takes_the_power_of_the_switch_and_its_map_comes_back(bench: MockBench, tmp_path: Path) -> None:
    store = open_store(tmp_path / "store.sqlite", CLOCK)
    journal, fabric = Journal(store), bench.equipment.fabric
    baseline = bench.lab.baseline_map()
    with Faults(bench.lab, bench.equipment, CLOCK, ActRecorder(bench.lab, journal, "run")) as faults:
        for kind, target in (("switch_power_loss", "switch"), ("power_loss", "pdu2/8")):
            with faults.injected(FaultSpec(kind, target)):
                assert bench.equipment.power["outlet:pdu2/8"].is_on(soon()) is False
                assert bench.rackd.request("power", soon(), target="switch")["on"] is False
            assert bench.rackd.request("power", soon(), target="switch")["on"] is True
            assert fabric.live_map(soon()).pairs == baseline
            assert fabric.port_states([1], soon()) == {1: PortState.UP}
    assert journal.standing(bench.lab.name) == []
    store.close()


@pytest.mark.parametrize(
    ("outlet", "said"),
    [
        ("pdu2/99", r"fabric\.outlet: pdu2 has outlets 1 to 8, found 99"),
        ("pdu9/1", r"fabric\.outlet: .*pdu9"),
        ("pdu2/1", r"outlet pdu2/1 already feeds|already feeds"),
        ("pdu2", r"fabric\.outlet: "),
    ],
)
def test_an_outlet_that_cannot_feed_it_is_told(tmp_path: Path, outlet: str, said: str) -> None:
    with pytest.raises(DescriptionError, match=said):
        load_lab(described(tmp_path, outlet))


def test_cables_have_no_power(tmp_path: Path) -> None:
    text = data_path("labs").joinpath("mock-direct.yaml").read_text()
    path = tmp_path / "direct.yaml"
    path.write_text(text.replace("fabric: {driver: static}", "fabric: {driver: static, outlet: pdu2/8}"))
    with pytest.raises(DescriptionError, match=r"fabric\.outlet: a static fabric has no switch; delete the key"):
        load_lab(path)
