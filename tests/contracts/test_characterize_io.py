"""A drive under test against real fio and nbdkit: purged, filled, measured, verified, and told apart when it fails."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from rackloop.abilities import DriveIdentity, SanitizeMethod, WritableDrive
from rackloop.clock import Deadline, RealClock
from rackloop.errors import NotSupported, ProductFailed
from rackloop.lab import Lab, load_lab
from rackloop.measurement import Criteria
from rackloop.record import ActAnnounced, ActDone, ActLog, DriveSeen, Event, RoundsMeasured
from rackloop_drivers.block import NbdExport
from rackloop_drivers.host import LocalExecutor
from rackloop_drivers.workload import FioJobResult
from rackloop_fixtures import BANDWIDTH, Conditions, DriveUnderTest, Quantity, Workload
from rackloop_labs import Bench
from tests.deadlines import CLOCK
from tests.nbdkit_process import serving_unix
from tests.writable_drive import minted

pytestmark = [
    pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")
    for program in ("fio", "nbdkit")
]

MIB = 1 << 20
# Not a whole number of the blocks that a trim is made of.
SIZE = 16 * MIB + 4096
# Whatever is measured counts as steady: a busy machine must not fail a test.
CONDITIONS = Conditions(purge=True, fills=2, seconds=0.05, round_bytes=0, most_rounds=6, excursion=100, slope=100)
WRITES, READS = Workload(4096, 0, iodepth=4), Workload(4096, 100, iodepth=4)


@dataclass
class Drive:
    """A drive that says who it is and cannot erase itself."""

    lab: Lab
    firmware: str = "RL10"

    def identify(self, deadline: Deadline) -> DriveIdentity:
        described = self.lab.drives["d01"]
        return DriveIdentity(
            described.model, described.serial, self.firmware, "sata", SIZE, {"wwn": "5000c500a0000001"}
        )

    def health(self, deadline: Deadline) -> dict[str, int]:
        return {"media_errors": 0}


@dataclass
class ErasingDrive(Drive):
    """A drive that erases itself: it remembers how often, and does nothing else."""

    erased: list[SanitizeMethod] = field(default_factory=list)

    def methods(self, deadline: Deadline) -> tuple[SanitizeMethod, ...]:
        return (SanitizeMethod.CRYPTO_ERASE, SanitizeMethod.BLOCK_ERASE)

    def sanitize(self, drive: WritableDrive, method: SanitizeMethod, deadline: Deadline) -> None:
        self.erased.append(method)


@dataclass
class OneDrive:
    """As much of a Bench as a drive under test asks for."""

    lab: Lab
    there: Drive
    run_by: LocalExecutor
    clock: RealClock = CLOCK

    def drive(self, server: str, port: str) -> Drive:
        return self.there

    def host(self, server: str) -> LocalExecutor:
        return self.run_by


@dataclass
class Written:
    """An EventSink that keeps what it is given."""

    events: list[Event] = field(default_factory=list)
    problem: str | None = None

    def write(self, event: Event, *, durable: bool = False) -> None:
        self.events.append(event)

    def close(self) -> None:
        pass


@contextmanager
def under_test(
    record: Written, *arguments: str, drive: type[Drive] = Drive, said: list[str] | None = None
) -> Iterator[tuple[DriveUnderTest, Drive]]:
    """A drive that nbdkit serves with these arguments."""
    lab = load_lab("mock")
    described = lab.drives["d01"].model_copy(update={"size": SIZE})
    lab = lab.model_copy(update={"drives": {**lab.drives, "d01": described}})
    there = drive(lab)
    acts = ActLog(record)
    acts.test = "c/t::t"

    def progress(done: int, total: int, what: str) -> None:
        if said is not None:
            said.append(f"{done} of {total} {what}")

    with (
        tempfile.TemporaryDirectory(prefix="dut-", dir="/tmp") as folder,
        serving_unix(Path(folder) / "nbd", arguments) as path,
        LocalExecutor(CLOCK) as executor,
        minted(NbdExport(path, "", SIZE), described.serial) as writable,
    ):
        bench = cast("Bench", OneDrive(lab, there, executor))
        yield DriveUnderTest(bench, ("d01", "srv1", "p0"), writable, SIZE, 1, record, acts, progress), there


def memory(*filters: str) -> Sequence[str]:
    return (*(f"--filter={name}" for name in filters), "memory", str(SIZE))


def acts(record: Written) -> list[tuple[str, str | None]]:
    """What was done to the drive, and how it ended."""
    announced = [event for event in record.events if isinstance(event, ActAnnounced)]
    ended = {event.act: event.error for event in record.events if isinstance(event, ActDone)}
    return [(act.what["do"], ended[act.act]) for act in announced]


def test_a_drive_that_cannot_erase_itself_is_trimmed_to_its_last_byte() -> None:
    record = Written()
    with under_test(record, *memory()) as (drive, _):
        written = drive.identify_sectors()
        assert drive.verify(written).is_right
        assert drive.purge() == "trim"
        found = drive.verify(written)
        assert found.verdicts["blank"] == found.sectors == SIZE // 4096
    assert acts(record) == [("trim", None)]


def test_sectors_are_never_written_twice_alike_so_that_a_write_that_is_lost_shows() -> None:
    with under_test(Written(), *memory()) as (drive, _):
        before = drive.identify_sectors()
        now = drive.identify_sectors()
        assert drive.verify(now).is_right
        assert drive.verify(before).verdicts["right"] == 0


def test_a_drive_that_can_erases_itself_as_it_likes_best() -> None:
    record = Written()
    with under_test(record, *memory(), drive=ErasingDrive) as (drive, there):
        assert isinstance(there, ErasingDrive)
        assert drive.purge() == "crypto-erase"
        assert there.erased == [SanitizeMethod.CRYPTO_ERASE]
    assert acts(record) == [("sanitize", None)]


def test_a_drive_that_can_neither_says_so() -> None:
    record = Written()
    refusing = (*memory("error"), "error=EINVAL", "error-trim-rate=100%")
    with under_test(record, *refusing) as (drive, _), pytest.raises(NotSupported, match="neither sanitize"):
        drive.purge()
    ((did, error),) = acts(record)
    assert did == "trim"
    assert error is not None


def test_rounds_are_measured_and_recorded_until_steady() -> None:
    record = Written()
    with under_test(record, *memory()) as (drive, _):
        drive.prepare(CONDITIONS)
        rounds = drive.rounds([READS, WRITES], CONDITIONS, tracked=WRITES, quantity=BANDWIDTH)
    assert rounds.steady().last == 5
    reads, writes = (event for event in record.events if isinstance(event, RoundsMeasured))
    assert (reads.labels["mix"], reads.criteria) == ("100/0", None)
    assert (writes.labels["mix"], writes.criteria) == ("0/100", {"rounds": 5, "excursion": 100, "slope": 100})
    assert list(writes.values) == rounds.values(WRITES)
    assert all(job.transfers.keys() == {"write"} for job in rounds.in_window(WRITES))


def test_rounds_of_so_many_bytes_end_with_them() -> None:
    by_bytes = Conditions(purge=False, fills=0, seconds=60, round_bytes=MIB, most_rounds=5, excursion=100, slope=100)
    with under_test(Written(), *memory()) as (drive, _):
        rounds = drive.rounds([WRITES], by_bytes, tracked=WRITES)
    assert [job.io_bytes for job in rounds.results[WRITES]] == [MIB] * 5


def test_rounds_end_when_there_were_too_many() -> None:
    never = Conditions(purge=False, fills=0, seconds=60, round_bytes=MIB, most_rounds=7, excursion=0, slope=0)
    measured: dict[int, FioJobResult] = {}

    def nth(job: FioJobResult) -> float:
        """Which round it was, which no five of them agree on; fio's own figures of so short a round may."""
        measured[id(job)] = job
        return list(measured).index(id(job))

    with under_test(Written(), *memory()) as (drive, _):
        rounds = drive.rounds([WRITES], never, tracked=WRITES, quantity=Quantity("round", "rounds", nth))
    assert rounds.window is None
    assert len(rounds.results[WRITES]) == 7


def test_a_fill_writes_the_region_so_many_times() -> None:
    said: list[str] = []
    # 128 blocks, four at a time, take over three seconds: there is something to say meanwhile.
    slow = (*memory("delay"), "--threads=4", "wdelay=100ms")
    with under_test(Written(), *slow, said=said) as (drive, _):
        drive.fill(1)
        drive.fill(0)
    assert said
    assert all(line.endswith(" of 16 MiB filled") for line in said)


def test_writing_without_a_pause_ends_in_time_and_has_a_series() -> None:
    record = Written()
    criteria = Criteria(excursion=100, slope=100)
    # On a busy machine the first intervals are late: there is time for far more than are asked for.
    with under_test(record, *memory("delay"), "delay-write=5ms") as (drive, _):
        found = drive.saturate(WRITES, overwrites=1e6, most_s=4, round_s=0.1, criteria=criteria)
    assert len(found.iops) >= 5
    assert found.steady.average > 0
    iops, longest = (event for event in record.events if isinstance(event, RoundsMeasured))
    assert (iops.name, list(iops.values)) == ("saturation.iops", list(found.iops))
    # fio writes the two logs by themselves: on a busy machine one may have an interval more than the other.
    assert longest.name == "saturation.longest"
    assert len(longest.values) >= 5
    # Nanoseconds in the one and microseconds in the other, made seconds: the last bit may differ.
    assert max(longest.values) <= found.longest_s * (1 + 1e-9)


def test_io_that_fails_is_the_drives_failure() -> None:
    with (
        under_test(Written(), *memory("error"), "error=EIO", "error-pwrite-rate=10%") as (drive, _),
        pytest.raises(ProductFailed, match=r"\d+ I/Os of drive d01 failed at rw=write, 128 KiB: Input/output error"),
    ):
        drive.fill(2)


def test_the_inventory_says_what_the_description_says_else() -> None:
    record = Written()
    with under_test(record, *memory()) as (drive, there):
        assert drive.inventory() == []
        there.firmware = "RL11"
        assert drive.inventory() == ["the firmware is described as RL10, the drive reports RL11"]
    first, second = (event for event in record.events if isinstance(event, DriveSeen))
    assert (first.drive, first.server, first.port, first.differs) == ("d01", "srv1", "p0", [])
    assert (second.firmware, second.identifiers) == ("RL11", {"wwn": "5000c500a0000001"})
    assert len(second.differs) == 1
