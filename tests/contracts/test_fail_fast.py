"""Drives of a real rack are told to fail fast, and have their own setting back, whoever gives it to them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from rackloop.errors import BadInput, LabError, NotSupported
from rackloop_drivers.fail_fast import FAIL_FAST
from rackloop_fixtures.rack.abilities import RackAbilities
from rackloop_labs import open_lab
from rackloop_labs.bench_view import BenchInService
from rackloop_labs.lacking import refusal
from tests.deadlines import CLOCK, soon
from tests.described_rack import PLACES, Real, opened
from tests.mock_rack import MockRack

KEY = "fail_fast/test"
SETTINGS = {
    "ssd1": (("smartctl", "-l", "scterc"), "Read: Disabled", "Read:      2 (0.2 seconds)"),
    "fast1": (("nvme", "get-feature", "--feature-id=5"), "value:00000000", "value:0x00000002"),
    "sas1": (("sg_wr_mode", "--page=1"), "05 00 00 00", "05 00 00 c8"),
}
"""The tool that tells of the setting of a drive; what it says at first, and once the drive fails within 0.2 s."""

pytestmark = pytest.mark.usefixtures("own_machine")


@pytest.fixture
def real(direct_rack: MockRack, tmp_path: Path) -> Iterator[Real]:
    with opened(direct_rack, tmp_path) as real:
        yield real


def slot(name: str) -> str:
    return f"slot:{'/'.join(PLACES[name])}"


def setting(real: Real, name: str) -> str:
    tool, _, _ = SETTINGS[name]
    return real.says(name, *tool, real.node(name))


def told(real: Real, name: str, within_s: object = 0.2) -> None:
    real.equipment.breakable[slot(name)].break_as(KEY, {"kind": FAIL_FAST, "within_s": within_s}, soon())


@pytest.mark.parametrize("name", SETTINGS)
def test_heal_gives_a_drive_its_own_setting_back(real: Real, name: str) -> None:
    _, before, limited = SETTINGS[name]
    assert before in setting(real, name)
    told(real, name)
    assert limited in setting(real, name)
    assert real.equipment.breakable[slot(name)].standing(soon())[KEY]["kind"] == FAIL_FAST
    report = real.heal()
    assert (report.problems, len(report.undone)) == ((), 1)
    assert before in setting(real, name)
    assert real.heal().found_in_order


def test_a_setting_of_its_own_comes_back_and_not_the_default(real: Real) -> None:
    real.says("ssd1", "smartctl", "-l", "scterc,70,50", real.node("ssd1"))
    told(real, "ssd1")
    assert "Read:      2 (0.2 seconds)\n          Write:     50 (5.0 seconds)\n" in setting(real, "ssd1")
    real.equipment.breakable[slot("ssd1")].mend(KEY, soon())
    assert "Read:     70 (7.0 seconds)\n          Write:     50 (5.0 seconds)\n" in setting(real, "ssd1")
    real.says("ssd1", "smartctl", "-l", "scterc,0,0", real.node("ssd1"))


def test_a_drive_that_lost_its_power_has_nothing_to_be_given_back(real: Real, direct_rack: MockRack) -> None:
    told(real, "fast1")
    with direct_rack.rackd() as rackd:
        for on in (False, True):
            rackd.request("power", soon(), target="drive:fast1", on=on)
        soon().poll(lambda: rackd.request("identify", soon(), server="node1", port="p1")["drive"], every_s=0.05)
    assert real.equipment.breakable[slot("fast1")].standing(soon()) == {}
    assert real.heal().problems == ()


@pytest.mark.parametrize("within_s", [0, 61, "soon", None, True])
def test_a_time_that_makes_no_sense_is_bad_input(real: Real, within_s: object) -> None:
    with pytest.raises(BadInput, match=r"fail_fast takes within_s, in seconds, from 0\.001 to 60; not"):
        told(real, "ssd1", within_s)
    assert real.heal().found_in_order


def test_a_drive_that_left_keeps_what_it_was_told_and_is_named(real: Real) -> None:
    told(real, "ssd1")
    node = real.node("ssd1").removeprefix("/dev/")
    host = re.search(r"/(host\d+)/", real.says("ssd1", "readlink", "-f", f"/sys/block/{node}"))
    assert host
    real.says("ssd1", "sh", "-c", f"echo 1 >/sys/block/{node}/device/delete")
    soon().poll(lambda: "RL100001" not in real.says("ssd1", "lsblk", "-dno", "SERIAL"), every_s=0.05)
    with pytest.raises(LabError, match="node1"):
        real.equipment.breakable[slot("ssd1")].mend(KEY, soon())
    real.says("ssd1", "sh", "-c", f"echo - - - >/sys/class/scsi_host/{host[1]}/scan")
    soon().poll(lambda: "RL100001" in real.says("ssd1", "lsblk", "-dno", "SERIAL"), every_s=0.05)
    assert real.heal().problems == ()
    assert "Read: Disabled" in setting(real, "ssd1")


def rack_of(real: Real) -> RackAbilities:
    """The rack as a test has it, without what this takes no part in."""
    unused = cast("Any", None)
    return RackAbilities(BenchInService(real.bench), real.equipment, unused, unused, "a test", 1, unused)


def test_a_test_has_a_drive_fail_fast_for_a_while(real: Real) -> None:
    _, before, limited = SETTINGS["ssd1"]
    with rack_of(real).failing_fast("node1", "p0", within_s=0.2):
        assert limited in setting(real, "ssd1")
    assert before in setting(real, "ssd1")


def test_a_simulated_drive_is_told_with_each_read(real: Real, direct_rack: MockRack) -> None:
    with open_lab(direct_rack.lab, CLOCK, direct_rack.state, None) as bench:
        real.bench, real.equipment = bench, bench.equipment
        refused = pytest.raises(NotSupported, match=r"node1\.p0 has no setting .* with each read not to try again")
        with refused, rack_of(real).failing_fast("node1", "p0"):
            pass
    assert "told not to try again with each read" in str(refusal(direct_rack.lab, "drive.fail_fast"))
    assert refusal(real.lab, "drive.fail_fast") is None
