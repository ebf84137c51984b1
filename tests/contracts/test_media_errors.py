"""Sectors of real drives are made unreadable by the drives themselves, and given back what they held, by anybody."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rackloop.abilities import Completed, DriveIdentity, Host
from rackloop.abilities.blocks import IoFailed
from rackloop.clock import Deadline
from rackloop.contracts import breakable
from rackloop.errors import BadInput, FaultRefused, GuardRefused, LabError, NotSupported
from rackloop.faults import KINDS, Faults, FaultSpec
from rackloop.record.acts import BreakPart
from rackloop.safety.undo import ActRecorder
from rackloop_drivers.open_blocks import open_blocks
from rackloop_labs.live_check import live_check
from rackloop_labs.media_errors import RackMediaErrors
from rackloop_labs.offered import never_in, unsupported_in
from tests.deadlines import CLOCK, soon
from tests.described_rack import Real, opened
from tests.mock_rack import MockRack

KEY = "media/test"
FAULT = {"kind": "media_error", "lba": 64, "sectors": 8, "mode": "until_rewritten", "on": "read"}
OFFSET, LENGTH = 64 * 512, 8 * 512
BY_TOOL = {"ssd1": "hdparm --make-bad-sector", "fast1": "nvme write-uncor", "sas1": "sg_write_long --wr_uncor"}


pytestmark = pytest.mark.usefixtures("own_machine")


class Marked(Real):
    """The rack, whose drives have sectors that cannot be read."""

    def part(self, name: str) -> Any:
        return self.equipment.breakable[f"drive:{name}"]

    def read(self, name: str, offset: int = OFFSET, length: int = LENGTH) -> bytes | None:
        """What the server reads there; None where it cannot."""
        with open_blocks(self.drive(name)[1], CLOCK) as blocks:
            try:
                return blocks.read(offset, length)
            except IoFailed as error:
                if error.is_unreadable:
                    return None
                raise

    def write(self, name: str, offset: int, data: bytes) -> None:
        with self.writable(name) as writable, open_blocks(writable, CLOCK) as blocks:
            blocks.write(offset, data)


@pytest.fixture
def real(direct_rack: MockRack, tmp_path: Path) -> Iterator[Marked]:
    with opened(direct_rack, tmp_path) as real:
        yield Marked(real.bench, real.journal, real.held)


@pytest.mark.parametrize("clause", breakable.CONTRACT, ids=lambda clause: clause.__name__)
def test_a_drive_of_a_server(clause: Callable[[breakable.BreakableArm], None], real: Marked) -> None:
    part = real.bench.equipment.breakable["drive:fast1"]
    clause(breakable.BreakableArm(lambda: part, FAULT, lambda: real.read("fast1") is None))


@pytest.mark.parametrize("name", [*BY_TOOL, "hdd1"])
def test_heal_gives_sectors_back_what_they_held(real: Marked, name: str) -> None:
    held = os.urandom(3 * LENGTH)
    real.write(name, OFFSET - LENGTH, held)
    real.part(name).break_as(KEY, FAULT, soon())
    assert real.read(name) is None
    assert real.read(name, OFFSET - LENGTH) == held[:LENGTH]
    assert real.read(name, OFFSET + LENGTH) == held[2 * LENGTH :]
    [entry] = real.journal.standing(real.lab.name)
    assert isinstance(entry.what, BreakPart)
    report = real.heal()
    assert (report.problems, [entry.resource for entry in report.undone]) == ((), [f"drive:{name}"])
    assert real.read(name, OFFSET - LENGTH, 3 * LENGTH) == held
    assert real.heal().found_in_order


class FailsAt:
    """A server whose tool does nothing at one sector, as where its drive or the harness dies on the way."""

    def __init__(self, host: Host, words: str, status: int = 1) -> None:
        self._host, self._words, self._status = host, words, status

    def run(self, argv: Sequence[str], deadline: Deadline, **more: Any) -> Completed:
        if self._words in " ".join(argv):
            return Completed(tuple(argv), self._status, "", "Program aborted.\n")
        return self._host.run(argv, deadline, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)


def ssd1(real: Marked, hosts: Mapping[str, Any], seen: Callable[[], list[DriveIdentity]] | None = None) -> Any:
    """The drive ssd1 of the rack, at such servers, of which ``seen`` gives the drives; by default those they see."""
    parts = RackMediaErrors(real.lab, hosts, CLOCK, real.held, None, seen or real.bench.survey)
    return parts.breakable["drive:ssd1"]


def failing(real: Marked, words: str, status: int = 1) -> Any:
    """The drive ssd1 of the rack, at servers whose tools do nothing where they are told ``words``."""
    hosts = {name: FailsAt(real.bench.host(name), words, status) for name in real.lab.servers}
    return ssd1(real, hosts)


def test_one_that_was_marked_in_part_is_given_back_whole(real: Marked) -> None:
    held = os.urandom(2 * LENGTH)
    real.write("ssd1", OFFSET, held)
    part = failing(real, "f75")
    fault = {**FAULT, "sectors": 16}
    with pytest.raises(LabError, match=r"node1:.*--make-bad-sector f75 failed: Program aborted"):
        part.break_as(KEY, fault, soon())
    assert real.read("ssd1") is None
    # Whoever comes next asks the server for its notes.
    assert real.bench.equipment.breakable["drive:ssd1"].standing(soon()) == {KEY: fault}
    [problem] = real.heal().problems
    assert problem.startswith("drive:ssd1 has the fault media_error, which is not in the journal")
    real.bench.equipment.breakable["drive:ssd1"].mend(KEY, soon())
    assert real.read("ssd1", OFFSET, 2 * LENGTH) == held


def test_a_tool_that_says_it_succeeded_is_not_believed(real: Marked) -> None:
    """As hdparm does of a drive that aborts the command."""
    held = os.urandom(LENGTH)
    real.write("ssd1", OFFSET, held)
    with pytest.raises(LabError, match="the drive took `hdparm --make-bad-sector`, and still reads these sectors"):
        failing(real, "--make-bad-sector", status=0).break_as(KEY, FAULT, soon())
    part = real.bench.equipment.breakable["drive:ssd1"]
    assert part.standing(soon()) == {}
    part.mend(KEY, soon())
    assert real.read("ssd1") == held
    assert real.heal().found_in_order


class ActsAt:
    """A server that something happens on just before it is told ``words``, once."""

    def __init__(self, host: Host, words: str, act: Callable[[], None]) -> None:
        self._host, self._words, self._acts = host, words, [act]
        self.ran: list[str] = []

    def run(self, argv: Sequence[str], deadline: Deadline, **more: Any) -> Completed:
        self.ran.append(" ".join(argv))
        if self._acts and self._words in self.ran[-1]:
            self._acts.pop()()
        return self._host.run(argv, deadline, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)


@pytest.mark.parametrize(
    ("words", "marked"),
    [
        ("media%2Ftest.json", []),
        # The last sector of the first block: by then the second one was read once.
        ("--make-bad-sector f71", [f"f{sector}" for sector in range(64, 72)]),
    ],
    ids=["while the note is written", "while another block is marked"],
)
def test_what_was_written_since_the_note_is_not_marked_nor_is_anything_else(
    words: str, marked: list[str], real: Marked
) -> None:
    """Or its end would bring back what was there before, of a write that the drive has acknowledged."""
    old, new = os.urandom(2 * LENGTH), os.urandom(LENGTH)
    real.write("ssd1", OFFSET, old)
    with real.writable("ssd1") as writable, open_blocks(writable, CLOCK) as blocks:
        host = ActsAt(real.bench.host("node1"), words, lambda: blocks.write(OFFSET + LENGTH, new))
        part = ssd1(real, {**{name: real.bench.host(name) for name in real.lab.servers}, "node1": host})
        with pytest.raises(LabError, match=rf"{LENGTH} bytes at {OFFSET + LENGTH} were written while .* no sectors"):
            part.break_as(KEY, {**FAULT, "sectors": 16}, soon())
        assert blocks.read(OFFSET, 2 * LENGTH) == old[:LENGTH] + new
    assert [line.split()[-2] for line in host.ran if "--make-bad-sector" in line] == marked
    assert part.standing(soon()) == {}
    part.mend(KEY, soon())
    assert real.read("ssd1", OFFSET, 2 * LENGTH) == old[:LENGTH] + new
    assert real.heal().found_in_order


def test_what_was_written_meanwhile_stays(real: Marked) -> None:
    """A store goes on writing under the permission that it has."""
    old, new = os.urandom(4 * LENGTH), os.urandom(LENGTH)
    real.write("fast1", OFFSET, old)
    fault = {**FAULT, "sectors": 32}
    with real.writable("fast1") as writable, open_blocks(writable, CLOCK) as blocks:
        real.part("fast1").break_as(KEY, fault, soon())
        blocks.write(OFFSET + LENGTH, new)
        assert real.part("fast1").standing(soon()) == {KEY: fault}
        real.part("fast1").mend(KEY, soon())
        assert blocks.read(OFFSET, 4 * LENGTH) == old[:LENGTH] + new + old[2 * LENGTH :]


def test_sectors_that_were_all_written_are_mended_already(real: Marked) -> None:
    real.part("ssd1").break_as(KEY, FAULT, soon())
    real.write("ssd1", OFFSET, bytes(LENGTH))
    assert real.part("ssd1").standing(soon()) == {}
    assert real.heal().problems == ()
    assert real.read("ssd1") == bytes(LENGTH)


def test_faults_of_other_sectors_add_up_and_overlapping_ones_do_not(real: Marked) -> None:
    part, further = real.part("sas1"), {**FAULT, "lba": 128}
    part.break_as(KEY, FAULT, soon())
    part.break_as("media/2", further, soon())
    with pytest.raises(FaultRefused, match="sectors there cannot be read already"):
        part.break_as("media/3", {**FAULT, "lba": 56, "sectors": 16}, soon())
    part.mend(KEY, soon())
    assert part.standing(soon()) == {"media/2": further}
    assert (real.read("sas1") is None, real.read("sas1", 128 * 512)) == (False, None)
    part.mend("media/2", soon())
    assert real.heal().problems == ()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"lba": 1}, BadInput, "whole blocks of 4096 bytes: give lba and sectors that are multiples of 8"),
        ({"sectors": 3}, BadInput, "multiples of 8"),
        ({"sectors": 520}, BadInput, "media_error of ssd1: a real drive takes 512 sectors at most in one fault"),
        ({"mode": "once"}, NotSupported, "mode once, on read is for simulated drives"),
        ({"on": "both"}, NotSupported, "ssd1: a real drive's sectors .* on both is for simulated drives"),
    ],
)
def test_what_a_real_drive_cannot_be_told_is_said(
    real: Marked, given: Mapping[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        real.part("ssd1").break_as(KEY, {**FAULT, **given}, soon())
    assert real.read("ssd1") is not None
    assert real.heal().problems == ()


def test_a_drive_that_the_guard_refuses_is_not_marked(real: Marked) -> None:
    """As where the lease is over."""
    real.held.stop()
    with pytest.raises(GuardRefused, match="is over"):
        real.bench.equipment.breakable["drive:ssd1"].break_as(KEY, FAULT, soon())
    assert real.read("ssd1") is not None


def test_a_drive_that_another_server_sees_is_not_marked_and_is_mended(real: Marked) -> None:
    """The other may use it, of which its own server knows nothing."""
    held = os.urandom(LENGTH)
    real.write("ssd1", OFFSET, held)
    seen = real.bench.survey()
    part = ssd1(real, {name: real.bench.host(name) for name in real.lab.servers}, lambda: seen)
    part.break_as(KEY, FAULT, soon())
    seen += [one for one in seen if one.serial == real.lab.drives["ssd1"].serial]
    with pytest.raises(GuardRefused, match="2 drives on the bench share its serial or an identifier"):
        part.break_as("media/2", {**FAULT, "lba": 128}, soon())
    assert (real.read("ssd1"), real.read("ssd1", 128 * 512) is None) == (None, False)
    part.mend(KEY, soon())
    assert real.read("ssd1") == held


def test_a_drive_that_left_is_asked_for(real: Marked) -> None:
    held = os.urandom(LENGTH)
    real.write("ssd1", OFFSET, held)
    real.part("ssd1").break_as(KEY, FAULT, soon())
    real.says("ssd1", "sh", "-c", "echo 1 >/sys/block/sda/device/delete")
    soon().poll(lambda: "RL100001" not in real.says("ssd1", "lsblk", "-dno", "SERIAL"), every_s=0.05)
    assert KEY in real.part("ssd1").standing(soon())
    with pytest.raises(LabError, match=r"drive RL100001 \(ssd1\) has sectors .* plug it in there again"):
        real.part("ssd1").mend(KEY, soon())
    real.says("ssd1", "sh", "-c", "echo - - - >/sys/class/scsi_host/host0/scan")
    soon().poll(lambda: "RL100001" in real.says("ssd1", "lsblk", "-dno", "SERIAL"), every_s=0.05)
    assert real.heal().problems == ()
    assert real.read("ssd1") == held


def test_a_fault_of_a_test_ends_with_it(real: Marked) -> None:
    held = os.urandom(LENGTH)
    real.write("fast1", OFFSET, held)
    recorder = ActRecorder(real.lab, real.journal, "run", lease=real.held)
    with Faults(real.lab, real.bench.equipment, CLOCK, recorder) as faults:
        with faults.injected(FaultSpec("media_error", "fast1", {"lba": 64})):
            assert real.read("fast1") is None
        assert real.read("fast1") == held
    assert real.journal.standing(real.lab.name) == []


def test_what_a_rack_offers_is_known_before_it_is_touched(real: Marked, direct_rack: MockRack) -> None:
    unsupported = unsupported_in(real.lab)
    assert unsupported(FaultSpec("media_error", "fast1")) is None
    assert "is for simulated drives" in str(unsupported(FaultSpec("media_error", "fast1", {"mode": "once"})))
    assert unsupported_in(direct_rack.lab)(FaultSpec("media_error", "fast1", {"mode": "once"})) is None
    assert "can break drive:fast1 as corrupt" in str(unsupported(FaultSpec("corrupt", "fast1")))
    assert never_in(real.lab, KINDS["media_error"]) is None
    said = [str(attempt) for attempt in live_check(real.bench, soon(120)) if "media_error" in attempt.did]
    assert "node1.p0: could have a media_error by hdparm --make-bad-sector: ok" in said
    assert "node1.p1: could have a media_error by nvme write-uncor: ok" in said
    assert "node1.p2: could have a media_error by sg_write_long --wr_uncor: ok" in said
