"""rackprobe's conversations: waiting for drives, watching a mapping, reading between swaps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rackloop.errors import BadInput, DeadlineExceeded, LabError
from rackloop.native import find_binary
from rackloop_drivers.block import NbdExport
from rackloop_drivers.host import LocalExecutor
from rackloop_drivers.workload import SECTOR_BYTES, Expected, GaveUp, ProbeTarget, RackProbe, VerifiedRead
from tests.deadlines import CLOCK, soon
from tests.nbdkit_process import PauseControl, serving_unix
from tests.rackd_process import running_rackd, small_rack
from tests.writable_drive import minted

BYTES = 1 << 20
OLD, NEW = "RL000001", "RL000002"


def label(probe: RackProbe, export: NbdExport, serial: str, *, start_lba: int = 0, sectors: int = 1) -> None:
    with minted(export, serial) as drive:
        probe.write(drive, soon(), start_lba=start_lba, sectors=sectors)


@pytest.fixture
def export(tmp_path: Path) -> Iterator[NbdExport]:
    with serving_unix(tmp_path / "nbd.sock", ["memory", str(BYTES)]) as socket:
        yield NbdExport(socket, "", BYTES)


@pytest.fixture
def pausable(tmp_path: Path) -> Iterator[tuple[NbdExport, PauseControl]]:
    control = tmp_path / "pause.sock"
    arguments = ["--filter=pause", "memory", str(BYTES), f"pause-control={control}"]
    with serving_unix(tmp_path / "nbd.sock", arguments) as socket:
        yield NbdExport(socket, "", BYTES), PauseControl(control)


def test_an_arm_ends_with_the_first_read_of_the_expected_drive(probe: RackProbe, export: NbdExport) -> None:
    label(probe, export, OLD, start_lba=3)
    with probe.remap_session([ProbeTarget("p0", export.uri, lba=3)], soon()) as session:
        before_ns = CLOCK.now_ns()
        arm = session.arm("p0", Expected(NEW), soon())
        label(probe, export, NEW, start_lba=3)
        read = session.wait_verified(arm, soon())
    assert before_ns < read.armed_ns <= read.first_try_submit_ns <= read.submit_ns < read.t_ns < CLOCK.now_ns()
    assert read.reads == read.wrong_drive + read.verdicts["right"] == sum(read.verdicts.values())
    assert (read.verdicts["right"], read.errors, read.online_ns) == (1, 0, None)
    if read.wrong_drive:
        assert read.last_old_ns is not None
        assert read.gap_ns == read.t_ns - read.last_old_ns


def test_an_arm_that_is_not_served_says_what_came_instead(probe: RackProbe, export: NbdExport) -> None:
    label(probe, export, OLD)
    with probe.remap_session([ProbeTarget("p0", export.uri)], soon()) as session:
        given_up = session.wait(session.arm("p0", Expected(NEW), soon(), timeout_s=0.05), soon())
        assert isinstance(given_up, GaveUp)
        assert given_up.reads - given_up.verdicts["wrong_drive"] in {0, 1}, "one may be under way when the time is over"
        assert {offender.found_serial for offender in given_up.offenders} <= {OLD}
        arm = session.arm("p0", Expected(NEW), soon(), timeout_s=2)
        with pytest.raises(DeadlineExceeded, match=r"reads: \d+ wrong_drive"):
            session.wait_verified(arm, soon())


def test_many_targets_are_armed_at_once(probe: RackProbe, export: NbdExport) -> None:
    label(probe, export, OLD, sectors=4)
    targets = [ProbeTarget(f"p{lba}", export.uri, lba=lba) for lba in range(4)]
    with probe.remap_session(targets, soon()) as session:
        arms = {lba: session.arm(f"p{lba}", Expected(NEW), soon()) for lba in range(4)}
        for lba in (2, 0, 3, 1):
            began_ns = CLOCK.now_ns()
            label(probe, export, NEW, start_lba=lba)
            read = session.wait_verified(arms[lba], soon())
            assert read.id == arms[lba]
            assert read.t_ns > began_ns, "it ended with its own drive, not with another's"


def test_a_target_that_is_busy_or_unknown_is_refused_and_the_session_goes_on(
    probe: RackProbe, export: NbdExport
) -> None:
    with probe.remap_session([ProbeTarget("p0", export.uri)], soon()) as session:
        arm = session.arm("p0", Expected(NEW), soon())
        with pytest.raises(BadInput, match="p0 is armed already"):
            session.arm("p0", Expected(NEW), soon())
        with pytest.raises(BadInput, match='no target "p9"'):
            session.arm("p9", Expected(NEW), soon())
        with pytest.raises(BadInput, match="cannot be stamped"):
            session.arm("p0", Expected(""), soon())
        label(probe, export, NEW)
        session.wait_verified(arm, soon())
        with pytest.raises(BadInput, match=f"no arm {arm} to wait for"):
            session.wait(arm, soon())


def test_a_read_that_is_held_does_not_spoil_the_next_arm(
    probe: RackProbe, pausable: tuple[NbdExport, PauseControl]
) -> None:
    export, control = pausable
    label(probe, export, OLD)
    with probe.remap_session([ProbeTarget("p0", export.uri)], soon()) as session:
        control.pause()
        # On a busy machine the prober may get to its first read only when the time is over.
        given_up: VerifiedRead | GaveUp | None = None
        while given_up is None or not given_up.reads:
            given_up = session.wait(session.arm("p0", Expected(OLD), soon(), timeout_s=0.05), soon())
        assert isinstance(given_up, GaveUp)
        assert (given_up.reads, sum(given_up.verdicts.values())) == (1, 0)
        arm = session.arm("p0", Expected(OLD), soon())
        resumed_ns = CLOCK.now_ns()
        control.resume()
        read = session.wait_verified(arm, soon())
    assert read.reads == 1
    assert read.t_ns > resumed_ns


def test_a_device_may_come_after_its_arm(probe: RackProbe, tmp_path: Path) -> None:
    path = tmp_path / "nvme0n1"
    with probe.remap_session([ProbeTarget("p0", str(path))], soon()) as session:
        arm = session.arm("p0", Expected(NEW), soon())
        made = tmp_path / "made"
        made.write_bytes(bytes(SECTOR_BYTES))
        export = tmp_path / "nbd.sock"
        with serving_unix(export, ["file", str(made)]) as socket:
            label(probe, NbdExport(socket, "", SECTOR_BYTES), NEW)
        made.rename(path)
        read = session.wait_verified(arm, soon())
    assert read.verdicts["right"] == 1


def test_an_export_that_is_not_there_ends_the_session_before_it_begins(probe: RackProbe, tmp_path: Path) -> None:
    target = ProbeTarget("p0", f"nbd+unix:///x?socket={tmp_path}/none")
    with pytest.raises(LabError, match="No such file"):
        probe.remap_session([target], soon())


def test_a_remap_of_a_rack_is_stamped_after_the_truth(probe: RackProbe, tmp_path: Path) -> None:
    config = {**small_rack(), "map": [[1, 101]]}
    with running_rackd(tmp_path, config) as rackd:
        for number, serial in ((1, OLD), (2, NEW)):
            label(probe, NbdExport(rackd.nbd, f"drive.d0{number}", BYTES), serial)
        control = rackd.connect()
        port = ProbeTarget("srv1.p0", NbdExport(rackd.nbd, "srv1.p0", BYTES).uri)
        with control.subscribe() as truth, probe.remap_session([port], soon()) as session:
            first = session.arm("srv1.p0", Expected(OLD), soon())
            session.wait_verified(first, soon())
            arm = session.arm("srv1.p0", Expected(NEW), soon())
            generation = control.request("map", soon(), pairs=[[1, 102]], full=False)["generation"]
            read = session.wait_verified(arm, soon())
            record = truth.next_before(soon())
            while (record["event"], record.get("generation")) != ("online", generation):
                record = truth.next_before(soon())
        control.close()
    assert isinstance(read, VerifiedRead)
    assert read.t_ns > record["t_ns"]
    assert {name for name, count in read.verdicts.items() if count} <= {"right", "wrong_drive"}


def test_a_watch_counts_every_read_and_judges_it(probe: RackProbe, export: NbdExport) -> None:
    label(probe, export, OLD, sectors=8)
    label(probe, export, NEW, start_lba=2)
    with probe.watch(export, Expected(OLD), soon(), sectors=8, interval_s=0.05) as watch:
        while (interval := watch.next_interval(soon())) and interval.completed < 8:
            pass
        result = watch.result(soon())
        assert watch.next_interval(soon()) is None
    assert sum(interval.completed for interval in watch.intervals) <= result.completed == result.submitted
    assert (result.lost, result.errors) == (0, 0)
    assert result.bytes == result.completed * SECTOR_BYTES
    assert result.verdicts["right"] + result.verdicts["wrong_drive"] == result.completed
    assert {offender.lba for offender in result.offenders} == {2}
    assert result.latency_us().n == result.completed
    assert result.start_ns <= result.max_submit_ns < result.max_complete_ns <= result.t_ns
    assert result.max_us == pytest.approx((result.max_complete_ns - result.max_submit_ns) / 1000)


def test_a_watch_reads_the_sectors_that_are_no_whole_block(probe: RackProbe, export: NbdExport) -> None:
    label(probe, export, OLD, sectors=3)
    label(probe, export, NEW, start_lba=2)
    block_bytes = 2 * SECTOR_BYTES
    with probe.watch(export, Expected(OLD), soon(), sectors=3, block_bytes=block_bytes, interval_s=0.05) as watch:
        while (interval := watch.next_interval(soon())) and interval.completed < 4:
            pass
        result = watch.result(soon())
    shorter = result.completed // 2
    assert result.bytes == result.completed * block_bytes - shorter * SECTOR_BYTES
    assert result.verdicts["wrong_drive"] == shorter
    assert {offender.lba for offender in result.offenders} == {2}


def test_a_watch_ends_after_its_duration(probe: RackProbe, export: NbdExport) -> None:
    label(probe, export, OLD)
    with probe.watch(export, Expected(OLD), soon(), duration_s=0.05, pace_us=1000, spin=True) as watch:
        result = watch.result(soon(), stop=False)
    assert result.t_ns - result.start_ns >= 50_000_000
    assert result.completed <= 51


def test_a_watch_writes_new_generations_where_it_may(probe: RackProbe, export: NbdExport) -> None:
    expected = Expected(OLD, generation=10, seed=3)
    with (
        minted(export, OLD) as drive,
        probe.watch(export, expected, soon(), write_to=drive, sectors=2, interval_s=0.05) as watch,
    ):
        while (interval := watch.next_interval(soon())) and interval.completed < 8:
            pass
        result = watch.result(soon())
    assert result.verdicts["right"] * 2 + 1 >= result.completed >= 8
    (_, offender) = probe.verify(export, Expected(OLD, generation=1, seed=3), soon(), sectors=2).offenders
    assert offender.verdict == "newer"
    assert offender.found_generation is not None
    assert offender.found_generation > 10


def test_an_io_that_never_completes_is_lost(probe: RackProbe, pausable: tuple[NbdExport, PauseControl]) -> None:
    export, control = pausable
    label(probe, export, OLD)
    with probe.watch(export, Expected(OLD), soon(), interval_s=0.02, drain_s=0.02) as watch:
        control.pause()
        while (interval := watch.next_interval(soon())) and (interval.completed, interval.in_flight) != (0, 1):
            pass
        result = watch.result(soon())
    assert (result.lost, result.submitted - result.completed) == (1, 1)


def test_a_watch_whose_server_goes_away_is_the_targets_failure(probe: RackProbe, tmp_path: Path) -> None:
    with serving_unix(tmp_path / "nbd.sock", ["memory", str(BYTES)]) as socket:
        export = NbdExport(socket, "", BYTES)
        label(probe, export, OLD)
        watch = probe.watch(export, Expected(OLD), soon())
    with watch, pytest.raises(LabError, match=r"closed the connection|Connection reset|Broken pipe"):
        watch.result(soon(), stop=False)


def test_swaps_are_read_block_by_block(probe: RackProbe, export: NbdExport) -> None:
    label(probe, export, OLD, sectors=16)
    block = 4 * SECTOR_BYTES
    with probe.swap_session(export, Expected(OLD), soon(), reads=5, sectors=8, block_bytes=block) as session:
        first = session.read(soon())
        label(probe, export, NEW, sectors=16)
        session.proceed(Expected(NEW))
        second = session.read(soon())
        session.proceed(Expected(OLD))
        third = session.read(soon())
        result = session.result(soon())
    assert [read.lba for read in (first, second, third)] == [0, 4, 0]
    assert (first.verdicts["right"], second.verdicts["right"], third.verdicts["wrong_drive"]) == (4, 4, 4)
    assert first.submit_ns < first.t_ns < second.submit_ns
    assert (result.reads, result.errors, result.bytes) == (3, 0, 3 * block)
    assert (result.verdicts["right"], result.verdicts["wrong_drive"]) == (8, 4)


def test_swaps_are_read_where_the_caller_says(probe: RackProbe, export: NbdExport) -> None:
    label(probe, export, OLD, sectors=16)
    block = 4 * SECTOR_BYTES
    with probe.swap_session(
        export, Expected(OLD), soon(), reads=4, start_lba=4, sectors=12, block_bytes=block
    ) as session:
        reads = [session.read(soon())]
        for lba in (12, 7):
            session.proceed(lba=lba)
            reads.append(session.read(soon()))
        assert [read.lba for read in reads] == [4, 12, 7]
        assert all(read.verdicts["right"] == 4 for read in reads)
        for lba in (3, 13, 2**64 - 1):
            session.proceed(lba=lba)
            with pytest.raises(BadInput, match=f"a block of 4 sectors at {lba} is not in sectors 4 to 16"):
                session.read(soon())
        session.proceed()
        assert session.read(soon()).lba == 4


def test_swaps_are_read_as_long_as_the_caller_says(probe: RackProbe, export: NbdExport) -> None:
    label(probe, export, OLD, sectors=16)
    with probe.swap_session(
        export, Expected(OLD), soon(), reads=4, sectors=16, block_bytes=8 * SECTOR_BYTES
    ) as session:
        reads = [session.read(soon())]
        for sectors in (1, 5):
            session.proceed(lba=11, block_bytes=sectors * SECTOR_BYTES)
            reads.append(session.read(soon()))
        assert [read.verdicts["right"] for read in reads] == [8, 1, 5]
        for block_bytes in (0, SECTOR_BYTES + 512, 9 * SECTOR_BYTES):
            session.proceed(lba=0, block_bytes=block_bytes)
            with pytest.raises(BadInput, match=f"a block of {block_bytes} bytes is no multiple of 4096 up to --block"):
                session.read(soon())
        session.proceed(lba=12, block_bytes=5 * SECTOR_BYTES)
        with pytest.raises(BadInput, match="a block of 5 sectors at 12 is not in sectors 0 to 16"):
            session.read(soon())
        session.proceed(block_bytes=SECTOR_BYTES)
        with pytest.raises(BadInput, match="needs an lba"):
            session.read(soon())
        assert session.result(soon()).bytes == 14 * SECTOR_BYTES


def test_reads_that_are_told_at_once_keep_their_pauses_by_themselves(probe: RackProbe, export: NbdExport) -> None:
    label(probe, export, OLD, sectors=16)
    with probe.swap_session(export, Expected(OLD), soon(), reads=5, sectors=16) as session:
        for lba in (3, 9, 5):
            session.proceed(lba=lba, pause_s=0.01)
        session.proceed(lba=7)
        reads = [session.read(soon()) for _ in range(5)]
        assert [read.lba for read in reads] == [0, 3, 9, 5, 7]
        assert [read.due_ns for read in reads] == [None, *(read.t_ns + 10_000_000 for read in reads[:3]), None]
        assert [read.late_ns for read in (reads[0], reads[4])] == [0, 0]
        assert min(read.late_ns for read in reads) >= 0


def test_a_pause_that_is_too_long_is_refused(probe: RackProbe, export: NbdExport) -> None:
    label(probe, export, OLD)
    with probe.swap_session(export, Expected(OLD), soon(), reads=2) as session:
        session.read(soon())
        session.proceed(pause_s=11)
        with pytest.raises(BadInput, match="a pause of 11000000000 ns is longer than 10000000000 ns"):
            session.read(soon())


def test_a_swap_session_ends_by_itself_after_its_reads(probe: RackProbe, export: NbdExport) -> None:
    with probe.swap_session(export, Expected(OLD), soon(), reads=1) as session:
        assert session.read(soon()).verdicts["blank"] == 1
        assert session.result(soon()).reads == 1


def test_blocks_are_read_through_without_swaps(executor: LocalExecutor, probe: RackProbe, export: NbdExport) -> None:
    label(probe, export, OLD, sectors=8)
    argv = (str(find_binary("rackprobe")), "swap", export.probe_target(), *Expected(OLD).options())
    done = executor.run((*argv, "--reads=20", "--sectors=8", "--block=4KiB", "--no-swap"), soon())
    assert done.status == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert (result["reads"], result["verdicts"]["right"], result["bytes"]) == (20, 20, 20 * SECTOR_BYTES)
    assert result["elapsed_ns"] > 0
