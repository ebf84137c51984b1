"""Erasures of real drives are noted, told of while they last, and brought to an end by heal where nobody waits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rackloop.abilities import SanitizeMethod
from rackloop.errors import BadInput, LabError
from rackloop.record import ActAnnounced, ActLog, EventSink
from rackloop.record.acts import BreakPart
from rackloop_drivers.drive import ERASING
from rackloop_fixtures.subjects.characterize import DriveUnderTest
from tests.contracts.test_characterize_io import Written
from tests.deadlines import soon
from tests.described_rack import PLACES, Real, opened
from tests.mock_rack import MockRack

KEY = "erasing/test"

pytestmark = pytest.mark.usefixtures("own_machine")


class Erasing(Real):
    """The rack, whose drives erase themselves."""

    def note(self, name: str, method: SanitizeMethod, *, is_journalled: bool = True) -> str:
        """Have an erasure noted as one that begins is, and give its node: whoever waits for it dies now."""
        drive, _ = self.drive(name)
        with self.writable(name) as writable:
            erasing = drive.erasing(writable, method, soon())
        parts = (self.equipment if is_journalled else self.bench.equipment).breakable
        parts[f"slot:{'/'.join(PLACES[name])}"].break_as(KEY, erasing, soon())
        return erasing["node"]


@pytest.fixture
def real(direct_rack: MockRack, tmp_path: Path) -> Iterator[Erasing]:
    with opened(direct_rack, tmp_path) as real:
        yield Erasing(real.bench, real.journal, real.held)


def test_heal_takes_the_password_of_a_killed_erasure_from_a_locked_drive(real: Erasing, direct_rack: MockRack) -> None:
    node = real.note("hdd1", SanitizeMethod.OVERWRITE)
    real.says("hdd1", "hdparm", "--user-master", "u", "--security-set-pass", "rackloop", node)
    with direct_rack.rackd() as rackd:
        for on in (False, True):
            rackd.request("power", soon(), target="drive:hdd1", on=on)
        soon().poll(lambda: rackd.request("identify", soon(), server="node2", port="p1")["drive"], every_s=0.05)
    assert "\n\t\tenabled\n\t\tlocked\n" in real.says("hdd1", "hdparm", "-I", node)
    report = real.heal()
    assert (report.problems, [entry.resource for entry in report.undone]) == ((), ["slot:node2/p1"])
    assert "\n\tnot\tenabled\n\tnot\tlocked\n" in real.says("hdd1", "hdparm", "-I", node)
    assert real.heal().found_in_order


@pytest.mark.parametrize(
    ("name", "begin", "over"),
    [
        ("fast1", ("nvme", "sanitize", "--sanact=2"), ("nvme", "sanitize-log")),
        ("ssd1", ("hdparm", "--yes-i-know-what-i-am-doing", "--sanitize-block-erase"), ("hdparm", "--sanitize-status")),
        ("sas1", ("sg_sanitize", "--overwrite", "--zero", "--early", "--quick"), ("sg_requests", "--progress")),
    ],
)
def test_heal_waits_for_a_drive_that_still_erases_itself(
    real: Erasing, name: str, begin: tuple[str, ...], over: tuple[str, ...]
) -> None:
    node = real.note(name, SanitizeMethod.BLOCK_ERASE)
    real.says(name, *begin, node)
    assert real.heal().problems == ()
    said = real.says(name, *over, node)
    assert "rogress" not in said.replace("Sanitize Progress                      (SPROG) :  65535\n", "")
    assert real.journal.standing("real") == []


def test_an_erasure_is_ended_though_another_drive_was_left_to_erase_itself_in_its_place(real: Erasing) -> None:
    """As on a switch, which gave the server's port to another drive meanwhile."""
    with real.writable("ssd1") as writable:
        gone = real.drive("ssd1")[0].erasing(writable, SanitizeMethod.BLOCK_ERASE, soon())
    slot = real.bench.equipment.breakable["slot:node2/p1"]
    slot.break_as("erasing/gone", gone, soon())
    node = real.note("hdd1", SanitizeMethod.OVERWRITE, is_journalled=False)
    real.says("hdd1", "hdparm", "--user-master", "u", "--security-set-pass", "rackloop", node)
    slot.mend(KEY, soon())
    assert "\n\tnot\tenabled\n" in real.says("hdd1", "hdparm", "-I", node)
    assert slot.standing(soon()) == {"erasing/gone": gone}
    with pytest.raises(LabError, match="is gone: plug it in there again"):
        slot.mend("erasing/gone", soon())
    real.says("hdd1", "rm", "/var/lib/rackloop/faults/slot%3Anode2%2Fp1/erasing%2Fgone.json")


def test_an_erasure_that_no_entry_explains_is_reported_and_left_alone(real: Erasing) -> None:
    node = real.note("hdd1", SanitizeMethod.OVERWRITE, is_journalled=False)
    real.says("hdd1", "hdparm", "--user-master", "u", "--security-set-pass", "rackloop", node)
    [problem] = real.heal().problems
    assert problem.startswith("slot:node2/p1 has the fault erasing, which is not in the journal")
    real.bench.equipment.breakable["slot:node2/p1"].mend(KEY, soon())
    assert real.heal().found_in_order


def test_a_drive_that_left_while_it_erased_itself_is_asked_for(real: Erasing) -> None:
    real.note("ssd1", SanitizeMethod.BLOCK_ERASE)
    real.says("ssd1", "sh", "-c", "echo 1 >/sys/block/sda/device/delete")
    soon().poll(lambda: "RL100001" not in real.says("ssd1", "lsblk", "-dno", "SERIAL"), every_s=0.05)
    assert any("erased itself when it was left, and is gone: plug it in" in said for said in real.heal().problems)
    real.says("ssd1", "sh", "-c", "echo - - - >/sys/class/scsi_host/host0/scan")
    soon().poll(lambda: "RL100001" in real.says("ssd1", "lsblk", "-dno", "SERIAL"), every_s=0.05)
    assert real.heal().problems == ()
    assert real.journal.standing("real") == []


def test_an_erasure_is_not_begun_by_its_note(real: Erasing, direct_rack: MockRack) -> None:
    with pytest.raises(BadInput, match="erasing takes method, node and protocol"):
        real.equipment.breakable["slot:node1/p0"].break_as(KEY, {"kind": ERASING}, soon())
    with direct_rack.rackd() as rackd:
        before = rackd.request("drive_stats", soon(), drive="fast1")["sanitizes"]
        real.note("fast1", SanitizeMethod.BLOCK_ERASE)
        assert real.heal().problems == ()
        assert rackd.request("drive_stats", soon(), drive="fast1")["sanitizes"] == before


@pytest.mark.parametrize("name", ["fast1", "hdd1"])
def test_a_purge_says_how_far_it_is_and_leaves_nothing_noted(real: Erasing, name: str) -> None:
    said: list[str] = []
    record = Written()
    sink: EventSink = record
    with real.writable(name) as writable:
        drive = DriveUnderTest(
            real.bench,
            (name, *PLACES[name]),
            writable,
            1 << 20,
            1,
            sink,
            ActLog(sink),
            lambda done, total, what: said.append(f"{done} of {total} {what}"),
            real.equipment.breakable,
        )
        assert drive.purge() == ("block-erase" if name == "fast1" else "overwrite")
    assert said[-1] == "100 of 100 % erased"
    # How often it was asked depends on the machine.
    percents = [int(text.split()[0]) for text in said]
    assert percents == sorted(percents)
    assert [event.what["do"] for event in record.events if isinstance(event, ActAnnounced)] == ["sanitize"]
    [entry] = real.journal.standing("real")
    assert isinstance(entry.what, BreakPart)
    assert entry.what.fault["kind"] == ERASING
    assert real.bench.equipment.breakable[entry.resource].standing(soon()) == {}
    assert real.heal().problems == ()


def test_a_purge_that_fails_leaves_what_heal_needs(real: Erasing, direct_rack: MockRack) -> None:
    with real.writable("hdd1") as writable, direct_rack.rackd() as rackd:
        drive = DriveUnderTest(
            real.bench,
            ("hdd1", *PLACES["hdd1"]),
            writable,
            1 << 20,
            1,
            Written(),
            ActLog(Written()),
            lambda *_: None,
            real.equipment.breakable,
        )
        drive.inventory()
        fault = rackd.request("fault", soon(), drive="hdd1", fault={"kind": "hang"})
        with pytest.raises(LabError, match="`rackloop heal` takes it away"):
            drive.purge()
        rackd.request("clear_fault", soon(), fault_id=fault["fault_id"])
    assert real.heal().problems == ()
    assert "\n\tnot\tenabled\n" in real.says("hdd1", "hdparm", "-I", "/dev/disk/by-id/wwn-0x5000c500b0000004")
