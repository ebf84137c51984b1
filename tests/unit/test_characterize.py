"""What a test of a drive is given: the drive by its name, workloads, conditions, rounds until it is steady."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rackloop.clock import VirtualClock
from rackloop.errors import BadInput, LabError, NotSupported
from rackloop.lab import Lab, load_lab
from rackloop.measurement import PTS, Cause, Criteria, Distribution, MachineLoad, Verdict
from rackloop_drivers.workload import FioJob, FioJobResult, FioTransfer, ReadWrite
from rackloop_fixtures._characterize import (
    Patience,
    measured_bytes,
    measured_drives,
    place_of,
    region_of,
    require_whole,
)
from rackloop_fixtures._characterize_rounds import (
    BANDWIDTH,
    IOPS,
    LATENCY,
    Conditions,
    NeverSteady,
    Rounds,
    Saturation,
    Workload,
    latency_of,
    tracked_of,
)
from rackloop_fixtures._outcome import of_exception
from tests.unit.test_fio_job import Device

GIB = 1 << 30
WRITES = Workload(4096, 0)
PARAMETERS: dict[str, Any] = {
    "purge": True,
    "fills": 2,
    "seconds": 60.0,
    "round_bytes": 0,
    "most_rounds": 25,
    "excursion": 0.2,
    "slope": 0.1,
}


@pytest.fixture(scope="module")
def lab() -> Lab:
    return load_lab("mock")


def job(iops: float, latency_s: float = 1e-4) -> FioJobResult:
    latency = Distribution.from_bins({latency_s: 2, 3 * latency_s: 2})
    transfer = FioTransfer(
        io_bytes=4096 * 4,
        total_ios=4,
        runtime_s=1,
        bandwidth_bytes_per_s=4096 * iops,
        iops=iops,
        latency_s=latency,
        longest_us=3e6 * latency_s,
    )
    return FioJobResult("j", 0, 0, {"write": transfer})


def rounds_of(values: list[float], criteria: Criteria = PTS) -> Rounds:
    rounds = Rounds([WRITES], WRITES, IOPS, criteria)
    rounds.results[WRITES] += [job(value) for value in values]
    return rounds


def test_a_drive_is_found_by_its_name_and_the_first_scratch_drive_by_none(lab: Lab) -> None:
    assert place_of(lab, "d09") == ("d09", "srv1", "p2")
    assert place_of(lab, "") == ("d01", "srv1", "p0")
    assert measured_drives(lab, {"drive": "d12"}) == ["d12"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("d90", r"lab mock has no drive 'd90'; did you mean 'd\d+'\?"),
        ("d19", "drive d19 is in no server's baseline, so that no I/O reaches it; name one of d01, d02, "),
    ],
)
def test_a_drive_that_cannot_be_measured_is_refused(lab: Lab, name: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        measured_drives(lab, {"drive": name})


def test_the_first_drive_is_looked_for_past_expanders(lab: Lab) -> None:
    baseline = {"srv1": {"p0": next(iter(lab.expanders)), "p1": "d02"}}
    assert place_of(lab.model_copy(update={"baseline": baseline}), "") == ("d02", "srv1", "p1")


def test_a_lab_without_scratch_drives_has_none_to_offer(lab: Lab) -> None:
    kept = {name: drive.model_copy(update={"scratch": False}) for name, drive in lab.drives.items()}
    with pytest.raises(NotSupported, match="marked scratch: true"):
        place_of(lab.model_copy(update={"drives": kept}), "")


def test_a_drive_too_small_for_the_range_is_refused(lab: Lab) -> None:
    assert region_of(lab, "d08", 0) == measured_bytes(lab, {"drive": "d08", "active_range": 4 * GIB}) == 4 * GIB
    with pytest.raises(BadInput, match="drive d08 has 4 GiB, the test was given an active_range of 8 GiB"):
        measured_bytes(lab, {"drive": "d08", "active_range": 8 * GIB})


@pytest.mark.parametrize(
    ("workload", "rw", "reads"),
    [
        (Workload(4096, 100), ReadWrite.RANDREAD, None),
        (Workload(4096, 0), ReadWrite.RANDWRITE, None),
        (Workload(4096, 65), ReadWrite.RANDRW, 65),
        (Workload(4096, 100, is_random=False), ReadWrite.READ, None),
        (Workload(4096, 0, is_random=False), ReadWrite.WRITE, None),
        (Workload(4096, 5, is_random=False), ReadWrite.READWRITE, 5),
    ],
)
def test_a_workload_is_a_pattern_of_fio(workload: Workload, rw: ReadWrite, reads: int | None) -> None:
    assert workload.pattern == (rw, reads)


def test_a_workload_is_labelled_reads_before_writes() -> None:
    assert dict(Workload(512, 65, iodepth=8, threads=4).labels) == {"block": "512 B", "mix": "65/35"}
    assert Workload(512, 65, iodepth=8, threads=4).outstanding == 32


@pytest.mark.parametrize(
    "change", [{"block_bytes": 0}, {"block_bytes": 1000}, {"read_percent": 101}, {"iodepth": 0}, {"threads": 0}]
)
def test_a_workload_that_cannot_be_is_refused(change: dict[str, int]) -> None:
    with pytest.raises(BadInput, match="cannot be: a block is a multiple of 512 bytes"):
        replace(WRITES, **change)  # type: ignore[arg-type]


def test_the_workload_that_is_tracked_has_the_fewest_reads_and_a_block_near_4_kib() -> None:
    blocks = (512, 8192, 4096, 131072)
    assert tracked_of([Workload(block, reads) for reads in (100, 0, 50) for block in blocks]) == WRITES
    assert tracked_of([Workload(512, 65), Workload(8192, 65), Workload(4096, 95)]) == Workload(512, 65)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seconds": 0.0}, "a round takes more than 0 seconds"),
        ({"fills": -1}, "0 or more"),
        ({"slope": -0.1}, "0 or more"),
        ({"most_rounds": 4}, "most_rounds is 4: steady state is judged over 5"),
    ],
)
def test_conditions_that_cannot_be_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Conditions.of(PARAMETERS | change)


def test_conditions_are_the_specifications_and_say_how_long_they_take() -> None:
    conditions = Conditions.of(PARAMETERS | {"drive": "d01", "blocks": [4096]})
    assert conditions.criteria == PTS
    assert conditions.estimate_s(56, 480 * 10**9) == pytest.approx(1920 + 5 * 56 * 60.3)


def test_rounds_are_measured_in_the_steady_window() -> None:
    rounds = rounds_of([300.0, 200.0, 120.0, 100.0, 101.0, 99.0, 100.0, 102.0])
    window = rounds.steady()
    assert (window.first, window.last) == (4, 8)
    assert [found.iops for found in rounds.in_window(WRITES)] == [100.0, 101.0, 99.0, 100.0, 102.0]


def test_a_drive_that_is_never_steady_is_unknown_and_says_how_far_from_it_it_is() -> None:
    rounds = rounds_of([100.0, 200.0] * 12)
    assert rounds.window is None
    with pytest.raises(NeverSteady) as never:
        rounds.in_window(WRITES)
    outcome = of_exception(never.value)
    assert (outcome.verdict, outcome.cause) == (Verdict.UNKNOWN, Cause.PRODUCT)
    assert outcome.reason is not None
    assert outcome.reason.startswith(
        "no steady state in 24 rounds of 4 KiB at 0/100: rounds 20 to 24 range over 62.5% of their average"
    )


def test_a_machine_short_of_cores_is_why_a_simulated_drive_is_not_steady() -> None:
    unsteady = NeverSteady("no steady state in 24 rounds")
    quiet, busy = (MachineLoad(wall_s=60.0, wait_s=0.02, late_share=0.02, pressure=share) for share in (0.05, 0.4))
    assert unsteady.doubted(quiet) is unsteady
    told = of_exception(unsteady.doubted(busy))
    assert (told.verdict, told.cause) == (Verdict.UNKNOWN, Cause.HARNESS)
    assert "for 40.0% of the time some task waited for one" in str(told.reason)
    few = NeverSteady("4 rounds were measured", Cause.TEST)
    assert few.doubted(busy) is few


def test_quantities_follow_from_what_fio_did() -> None:
    done = job(1000.0)
    assert (IOPS.of(done), BANDWIDTH.of(done)) == (1000.0, 4096000.0)
    assert LATENCY.of(done) == latency_of(done).mean == pytest.approx(2e-4)


def test_steady_state_is_judged_by_something_that_is_measured() -> None:
    with pytest.raises(BadInput, match="not among what is measured"):
        Rounds([WRITES], Workload(8192, 0), IOPS, PTS)


def saturation(iops: list[float]) -> Saturation:
    return Saturation(iops, 2.0, 4096, 0.01, PTS)


def test_a_write_cliff_is_found_with_what_was_written_until_then() -> None:
    found = saturation([300.0] * 10 + [150.0, 80.0] + [50.0] * 8)
    assert found.fresh == 300
    assert found.steady.average == 50
    assert found.cliff_bytes == (10 * 300 + 150) * 2 * 4096


def test_a_drive_without_a_cliff_has_none() -> None:
    found = saturation([300.0] * 9)
    assert found.cliff_bytes is None
    assert found.steady.average == found.fresh


@pytest.mark.parametrize("iops", [[300.0] * 4, [300.0] * 8 + [100.0], [100.0, 900.0] * 6])
def test_writing_that_ends_before_the_drive_is_steady_says_nothing(iops: list[float]) -> None:
    with pytest.raises(NeverSteady):
        _ = saturation(iops).steady


def test_a_drive_is_steady_when_writing_ended_by_the_rounds_that_the_sentence_would_name() -> None:
    # The stretch before ended in rounds that the last window shares: the criterion refused it, the sentence did not.
    found = saturation([1000.0] * 74 + [900.0] * 5)
    assert found.spans[0].left == 76
    assert found.spans[-1].left is None
    assert (found.steady.first, found.steady.last) == (75, 79)


FILL = FioJob(
    name="fill",
    device=Device(),
    # What may be written needs the guard's permission; what is asked of a job is the same.
    rw=ReadWrite.READ,
    block_size_bytes=4096,
    size_bytes=1 << 20,
    io_bytes=2 << 20,
)


def test_a_fill_that_was_stopped_before_its_end_is_no_fill() -> None:
    done = job(1.0)
    with pytest.raises(LabError, match=r"drive d09: fill was stopped with 16 KiB of 2 MiB written after 86,400 s"):
        require_whole(FILL, done, "d09", "written", 86_400.0)
    require_whole(replace(FILL, io_bytes=4 * 4096), done, "d09", "written", 1.0)
    require_whole(replace(FILL, io_bytes=None, runtime_s=5.0), done, "d09", "written", 1.0)


def test_a_job_without_a_length_has_as_long_as_what_it_did_in_a_day_says() -> None:
    clock = VirtualClock()
    patience = Patience(clock, 86_400.0, 20 << 40)
    clock.advance(86_000)
    assert not patience.is_over(12 << 40)
    clock.advance(500)
    assert not patience.is_over(12 << 40)
    clock.advance(86_400 * 1.3)
    assert not patience.is_over(19 << 40)
    clock.advance(86_400 * 0.2)
    assert patience.is_over(19 << 40)


def test_a_job_that_did_nothing_for_a_day_is_not_waited_for() -> None:
    clock = VirtualClock()
    patience = Patience(clock, 86_400.0, 20 << 40)
    clock.advance(86_401)
    assert patience.is_over(0)
