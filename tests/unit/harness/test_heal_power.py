"""Whose power heal asks for where nothing had to be healed: everybody's but that of the servers that answered."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rackloop.clock import Deadline, VirtualClock
from rackloop.lab import load_lab
from rackloop.record.acts import RestorePower, TurnOff
from rackloop.safety import HealReport, heal
from rackloop.safety.store import open_store
from rackloop.safety.undo import Journal
from tests.unit.harness.sim_rack import LAB, SimOutlet, SimRack

PDUS = "pdus: {pdu1: {driver: redfish, outlets: 8}}\n"
OUTLET = "outlet: pdu1/1, "


class AskedOutlet(SimOutlet):
    """An outlet that says its name where it is asked."""

    def __init__(self, name: str, asked: list[str]) -> None:
        super().__init__()
        self._name = name
        self._asked = asked

    def is_on(self, deadline: Deadline) -> bool:
        self._asked.append(self._name)
        return super().is_on(deadline)


class Rack:
    """A rack whose first server is fed by an outlet of a PDU, and who was asked for their power."""

    def __init__(self, folder: Path) -> None:
        path = folder / "bench.yaml"
        path.write_text(LAB.replace("srv1: {ports", f"srv1: {{{OUTLET}ports").replace("drives:", f"{PDUS}drives:"))
        self.lab = load_lab(path)
        self.clock = VirtualClock()
        self.asked: list[str] = []
        names = ("server:srv1", "outlet:pdu1/1", "server:srv2", "drive:d01", "switch")
        self.outlets = {name: AskedOutlet(name, self.asked) for name in names}
        self.equipment = replace(SimRack(self.clock).equipment, power=self.outlets, switch_power=None)
        self.journal = Journal(open_store(folder / "store.sqlite", self.clock))

    def heal(self, answering: Collection[str], *, thorough: bool = False) -> HealReport:
        """Heal it, these servers having answered."""
        deadline = Deadline.after(self.clock, 10)
        return heal(
            self.lab,
            self.journal,
            self.equipment,
            self.clock,
            deadline,
            thorough=thorough,
            answering=lambda: answering,
        )


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[Rack]:
    rack = Rack(tmp_path)
    yield rack
    rack.journal.close()


def test_the_power_of_a_server_that_answers_is_not_asked_for(rack: Rack) -> None:
    report = rack.heal({"srv1"})
    assert report.found_in_order
    assert sorted(rack.asked) == ["drive:d01", "server:srv2", "switch"]


def test_a_server_that_does_not_answer_is_asked_for_and_named(rack: Rack) -> None:
    rack.outlets["server:srv2"].on = False
    report = rack.heal({"srv1"})
    assert not report.found_in_order
    (problem,) = report.problems
    assert problem.startswith("power port server:srv2 is off and no journal entry says why")


def test_who_answers_does_not_matter_to_a_heal_that_is_thorough(rack: Rack) -> None:
    assert rack.heal({"srv1", "srv2"}, thorough=True).is_healed
    assert sorted(rack.asked) == sorted(rack.outlets)


def test_after_something_had_to_be_healed_all_power_is_read_back(rack: Rack) -> None:
    rack.journal.intend(rack.lab.name, "run-1", "server:srv1", what=TurnOff(), inverse=[RestorePower(on=True)])
    report = rack.heal({"srv1", "srv2"})
    assert (report.is_healed, report.found_in_order) == (True, False)
    assert set(rack.asked) == set(rack.outlets)
