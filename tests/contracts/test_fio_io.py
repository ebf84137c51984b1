"""The fio driver against real fio, on files and on nbdkit."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from rackloop.abilities import Completed, WritableDrive
from rackloop.clock import Deadline
from rackloop.errors import BadInput, DeadlineExceeded, LabError, ToolError
from rackloop_drivers.block import DevicePath, NbdExport
from rackloop_drivers.host import LocalExecutor
from rackloop_drivers.workload import (
    Arrivals,
    BlockShare,
    Bursts,
    Fio,
    FioJob,
    FioResult,
    FioRun,
    ReadWrite,
    SteadyMetric,
    UntilSteady,
)
from tests.deadlines import CLOCK, soon
from tests.writable_drive import minted

pytestmark = [
    pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")
    for program in ("fio", "nbdkit")
]

MIB = 1 << 20


@pytest.fixture
def fio() -> Iterator[Fio]:
    with LocalExecutor(CLOCK) as executor:
        yield Fio(executor, CLOCK)


class OnceTooLate(LocalExecutor):
    """Does the first command that prints fio's report, and has no time left to say what it printed."""

    was_late = False

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        done = super().run(argv, deadline, stdin=stdin)
        if not self.was_late and any(word.endswith(".json") for word in argv):
            self.was_late = True
            raise DeadlineExceeded("the answer came too late")
        return done


class Counting(LocalExecutor):
    """Counts the commands that are run to their end."""

    commands = 0

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        self.commands += 1
        return super().run(argv, deadline, stdin=stdin)


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    path = tmp_path / "drive: 1"
    path.write_bytes(bytes(8 * MIB))
    return path


@pytest.fixture
def on_file(scratch: Path) -> DevicePath:
    return DevicePath(scratch)


Serve = Callable[..., NbdExport]
Mint = Callable[[NbdExport | DevicePath], WritableDrive]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start an nbdkit with these arguments; the longest path of a Unix socket is 107 bytes, so it is under /tmp."""
    with tempfile.TemporaryDirectory(prefix="fio-", dir="/tmp") as folder, LocalExecutor(CLOCK) as executor:
        servers = iter(range(9))

        def start(*arguments: str) -> NbdExport:
            socket = Path(folder) / f"{next(servers)}.sock"
            executor.start(("nbdkit", "--foreground", "--exit-with-parent", "--unix", str(socket), *arguments))
            deadline = soon()
            while not socket.exists():
                assert not deadline.is_over(), "nbdkit did not open its socket"
                CLOCK.sleep_until_ns(CLOCK.now_ns() + 5_000_000)
            return NbdExport(socket, "srv1: p0", 8 * MIB)

        yield start


@pytest.fixture
def writable() -> Iterator[Mint]:
    """The guard's permission to overwrite a device."""
    with ExitStack() as held:
        yield lambda device: held.enter_context(minted(device))


def once(job: FioJob) -> FioRun:
    return FioRun(jobs=(job,), seed=1)


def test_a_report_that_comes_too_late_is_asked_for_again(on_file: DevicePath) -> None:
    run = FioRun(jobs=(FioJob(name="once", device=on_file, rw=ReadWrite.READ, size_bytes=MIB),), seed=1)
    with OnceTooLate(CLOCK) as executor, Fio(executor, CLOCK).start(run, soon()) as running:
        with pytest.raises(DeadlineExceeded, match="came too late"):
            running.wait(soon())
        assert running.wait(soon()).jobs[0].io_bytes == MIB
        assert running.shell("ls", soon()).stdout == ""


def test_reads_go_once_over_the_region(fio: Fio, on_file: DevicePath) -> None:
    result = fio.run(once(FioJob(name="scan", device=on_file, rw=ReadWrite.READ, direct=False)), soon())
    transfer = result.job("scan").transfers["read"]
    assert (result.total_err, transfer.io_bytes, transfer.total_ios, transfer.latency_s.n) == (0, 8 * MIB, 2048, 2048)


def test_a_mix_has_ios_of_each_of_its_sizes(fio: Fio, on_file: DevicePath) -> None:
    mix = (BlockShare(4096, 50), BlockShare(65536, 50))
    job = FioJob(
        name="mix",
        device=on_file,
        rw=ReadWrite.RANDREAD,
        block_mix=mix,
        random_map=False,
        io_bytes=8 * MIB,
        direct=False,
    )
    transfer = fio.run(once(job), soon()).job("mix").transfers["read"]
    assert 0.3 < (transfer.io_bytes / transfer.total_ios - 4096) / (65536 - 4096) < 0.7


def test_an_open_loop_issues_no_more_than_is_due(fio: Fio, on_file: DevicePath) -> None:
    job = FioJob(
        name="open",
        device=on_file,
        rw=ReadWrite.RANDREAD,
        rate_iops=200,
        arrivals=Arrivals.POISSON,
        iodepth=32,
        runtime_s=1,
        direct=False,
    )
    done = fio.run(once(job), soon()).job("open")
    assert 0 < done.transfers["read"].total_ios < 400
    assert done.cpu_share >= 0


def test_bursts_have_pauses_in_which_there_is_no_io(fio: Fio, serve: Serve) -> None:
    device = serve("--filter=delay", "memory", str(8 * MIB), "delay-read=2ms")
    steady = FioJob(name="steady", device=device, rw=ReadWrite.RANDREAD, runtime_s=1)
    bursting = replace(steady, name="bursting", bursts=Bursts(on_s=0.05, off_s=0.45))
    # Three bursts at the most, of an I/O each two milliseconds: one of half a second has ten times as many.
    assert 0 < fio.run(once(bursting), soon()).job("bursting").transfers["read"].total_ios <= 3 * 26
    # Beside it the others are measured at the same time.
    beside = fio.run(FioRun(jobs=(bursting, steady), seed=1), soon())
    assert 0 < beside.job("bursting").transfers["read"].total_ios <= 3 * 26


def test_written_blocks_verify_until_one_is_damaged(
    fio: Fio, on_file: DevicePath, scratch: Path, writable: Mint
) -> None:
    drive = writable(on_file)
    written = fio.run(
        once(FioJob(name="v", device=drive, rw=ReadWrite.WRITE, verify="crc32c", seed=5, direct=False)), soon()
    )
    assert written.total_err == 0
    assert written.job("v").transfers["write"].io_bytes == written.job("v").transfers["read"].io_bytes == 8 * MIB
    check = once(FioJob(name="v", device=on_file, rw=ReadWrite.READ, verify="crc32c", seed=5, direct=False))
    whole = fio.run(check, soon())
    assert whole.total_err == whole.verify_err == 0
    with scratch.open("r+b") as file:
        file.seek(5 * 4096 + 100)
        file.write(b"damaged")
    damaged = fio.run(check, soon())
    assert damaged.total_err == damaged.verify_err == 1
    assert damaged.job("v").error_text == "Invalid or incomplete multibyte or wide character", "EILSEQ"


def test_permission_that_was_given_back_starts_no_write(
    fio: Fio, on_file: DevicePath, scratch: Path, writable: Mint
) -> None:
    drive = writable(on_file)
    job = FioJob(name="w", device=drive, rw=ReadWrite.WRITE, direct=False)
    drive.close()
    with pytest.raises(LabError, match="given back"):
        fio.run(once(job), soon())
    assert scratch.read_bytes() == bytes(8 * MIB)


def test_reading_never_makes_a_file(fio: Fio, on_file: DevicePath) -> None:
    job = FioJob(name="r", device=on_file, rw=ReadWrite.READ, size_bytes=MIB, direct=False)
    on_file.path.unlink()
    result = fio.run(once(job), soon())
    assert (result.total_err, result.jobs[0].error_text) == (1, "No such file or directory")
    assert not on_file.path.exists()


def test_threads_over_nbd_share_a_result(fio: Fio, serve: Serve) -> None:
    device = serve("memory", "8M")
    jobs = (
        FioJob(name="many", device=device, rw=ReadWrite.RANDREAD, iodepth=4, numjobs=3),
        FioJob(name="one", device=device, rw=ReadWrite.READ, size_bytes=MIB, offset_bytes=2 * MIB),
    )
    result = fio.run(FioRun(jobs=jobs, seed=3), soon())
    assert [(job.name, job.io_bytes) for job in result.jobs] == [("many", 24 * MIB), ("one", MIB)]
    assert result.total_err == 0


def test_mixed_io_has_both_directions(fio: Fio, serve: Serve, writable: Mint) -> None:
    drive = writable(serve("memory", "8M"))
    job = FioJob(name="mix", device=drive, rw=ReadWrite.RANDRW, iodepth=4, read_percent=70)
    transfers = fio.run(once(job), soon()).job("mix").transfers
    assert transfers["read"].io_bytes + transfers["write"].io_bytes == 8 * MIB
    assert 0.6 < transfers["read"].io_bytes / (8 * MIB) < 0.8


def test_failing_reads_are_counted_although_fio_succeeds(fio: Fio, serve: Serve) -> None:
    device = serve("--filter=error", "memory", "8M", "error-pread-rate=100%", "error=EIO")
    result = fio.run(once(FioJob(name="r", device=device, rw=ReadWrite.READ, size_bytes=MIB)), soon())
    assert (result.total_err, result.jobs[0].error_text) == (256, "Input/output error")
    assert result.failed[-1].value == 256


def test_writes_that_fail_are_no_blocks_that_do_not_verify(fio: Fio, serve: Serve, writable: Mint) -> None:
    drive = writable(serve("--filter=error", "memory", "8M", "error-pwrite-rate=20%", "error=EIO"))
    job = FioJob(name="w", device=drive, rw=ReadWrite.RANDWRITE, iodepth=4, verify="crc32c")
    result = fio.run(once(job), soon())
    assert result.total_err > 0
    assert result.verify_err == 0


def test_nobody_behind_the_socket_is_a_tool_error(fio: Fio) -> None:
    device = NbdExport(Path("/nonexistent/nbd.sock"), "srv1.p0", 8 * MIB)
    with pytest.raises(ToolError, match=r"gave up.*No such file or directory"):
        fio.run(once(FioJob(name="r", device=device, rw=ReadWrite.READ)), soon())


def background(device: NbdExport | DevicePath) -> FioRun:
    job = FioJob(name="bg", device=device, rw=ReadWrite.RANDREAD, iodepth=2, numjobs=2, runtime_s=300)
    return FioRun(jobs=(job,), seed=1, interval_s=0.1, status_s=0.1)


def test_fio_may_be_stopped_the_moment_it_was_started(fio: Fio, serve: Serve) -> None:
    with fio.start(background(serve("memory", "8M")), soon()) as running:
        assert running.stop(soon()).job("bg").total_err == 0


def test_a_signal_that_was_blocked_before_delays_no_stop(fio: Fio, serve: Serve) -> None:
    """A profiler that starts the harness does so, and all that the harness starts inherits it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH, signal.SIGTERM})
    try:
        with fio.start(background(serve("memory", "8M")), soon()) as running:
            running.wait_for_io(soon())
            assert running.stop(soon()).job("bg").total_err == 0
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_a_signal_waits_until_the_one_before_is_taken(fio: Fio, serve: Serve) -> None:
    """As on a host whose processors are wanted: another thread of fio would get it, and end."""
    with fio.start(background(serve("memory", "8M")), soon()) as running:
        running.wait_for_io(soon())
        stopped = 'kill -STOP "$2"; while grep -L "^State:.T" "/proc/$2/task"/*/status | grep -q .; do :; done'
        running.shell(f'{stopped}; kill -USR1 "$2"', soon())
        with pytest.raises(DeadlineExceeded):
            running.stop(Deadline.after(CLOCK, 0.2))
        pending = running.shell('grep -E "^ShdPnd:" "/proc/$2/status"; kill -CONT "$2"', soon()).stdout
        assert int(pending.split()[1], 16) == 1 << (signal.SIGUSR1 - 1), "nothing but what was pending before"
        assert running.stop(soon()).job("bg").io_bytes > 0


@pytest.mark.parametrize("status_s", [None, 0.1])
def test_io_flows_before_anything_is_done_to_it(fio: Fio, serve: Serve, status_s: float | None) -> None:
    run = replace(background(serve("memory", "8M")), status_s=status_s)
    with fio.start(run, soon()) as running:
        running.wait_for_io(soon())
        assert running.stop(soon()).job("bg").io_bytes > 0
        running.wait_for_io(soon())


def test_the_wait_for_io_is_one_command_for_each_report(serve: Serve) -> None:
    run = replace(background(serve("memory", "8M")), status_s=1.0)
    with Counting(CLOCK) as executor, Fio(executor, CLOCK).start(run, soon()) as running:
        before = executor.commands
        running.wait_for_io(soon())
        assert executor.commands - before <= 3, "the host itself waits for the report, which comes after a second"


def test_io_that_never_completes_is_said_in_time(fio: Fio, serve: Serve) -> None:
    with (
        fio.start(background(serve("--filter=delay", "memory", "8M", "rdelay=600")), soon()) as running,
        pytest.raises(DeadlineExceeded, match="fio did no I/O in time"),
    ):
        running.wait_for_io(Deadline.after(CLOCK, 1))


def test_io_in_the_background_reports_and_stops(fio: Fio, serve: Serve) -> None:
    with fio.start(background(serve("--filter=delay", "memory", "8M", "rdelay=5ms")), soon()) as running:
        seen: list[FioResult] = []
        deadline = soon()
        while len(seen) < 5:
            assert not deadline.is_over(), "fio reported no progress"
            seen += running.progress(deadline)
        with pytest.raises(DeadlineExceeded):
            running.wait(Deadline.after(CLOCK, 0.01))
        result = running.stop(soon())
    done = [report.job("bg").io_bytes for report in seen]
    assert done == sorted(done)
    assert done[0] < done[-1] <= result.job("bg").io_bytes
    transfer = result.job("bg").transfers["read"]
    assert transfer.latency_s.n == transfer.total_ios
    assert len(transfer.throughput_bytes_per_s) >= 3
    logged = [sample.value for sample in transfer.longest_s]
    assert max(logged) == pytest.approx(transfer.longest_us / 1e6, rel=1e-6)
    assert result.started_ns == running.started_ns
    # It may be known better once fio has ended.
    assert abs(result.started_ns - seen[0].started_ns) <= (seen[0].time_error_s + result.time_error_s) * 1e9
    ended_s = (CLOCK.now_ns() - result.started_ns) / 1e9
    assert all(0 < sample.t_s < ended_s + result.time_error_s for sample in transfer.longest_s)
    assert result.time_error_s > 0


def test_leaving_the_block_ends_the_io(fio: Fio, serve: Serve) -> None:
    with fio.start(background(serve("memory", "8M")), soon()) as running:
        pass
    with pytest.raises(ToolError, match="was killed by signal 9"):
        running.wait(soon())


def test_runs_at_the_same_time_do_not_mix(fio: Fio, serve: Serve) -> None:
    device = serve("memory", "8M")
    runs = [once(FioJob(name=f"n{n}", device=device, rw=ReadWrite.READ, size_bytes=n * MIB)) for n in (1, 2, 3)]
    started = [fio.start(run, soon()) for run in runs]
    results = [running.wait(soon()) for running in started]
    assert [(result.jobs[0].name, result.jobs[0].io_bytes) for result in results] == [
        ("n1", MIB),
        ("n2", 2 * MIB),
        ("n3", 3 * MIB),
    ]


def test_the_same_seed_reads_the_same_blocks(fio: Fio, on_file: DevicePath, scratch: Path, writable: Mint) -> None:
    drive = writable(on_file)

    def written(seed: int) -> bytes:
        scratch.write_bytes(bytes(8 * MIB))
        job = FioJob(name="w", device=drive, rw=ReadWrite.RANDWRITE, size_bytes=8 * MIB, direct=False)
        assert fio.run(FioRun(jobs=(job,), seed=seed), soon()).total_err == 0
        return scratch.read_bytes()

    assert written(1) == written(1)
    assert written(1) != written(2)


def test_a_job_ends_when_fio_finds_it_steady(fio: Fio, on_file: DevicePath) -> None:
    calm = UntilSteady(metric=SteadyMetric.IOPS, limit_percent=100, window_s=2)
    job = FioJob(
        name="calm", device=on_file, rw=ReadWrite.RANDREAD, runtime_s=40, rate_iops=500, until_steady=calm, direct=False
    )
    result = fio.run(once(job), soon()).job("calm")
    assert result.steady is not None
    assert result.steady.attained
    assert result.runtime_s < 40
    assert len(result.steady.iops) == len(result.steady.bandwidth_bytes_per_s) == 2


def test_any_quantile_comes_from_the_bins(fio: Fio, on_file: DevicePath) -> None:
    job = FioJob(name="scan", device=on_file, rw=ReadWrite.READ, direct=False)
    latency_s = fio.run(once(job), soon()).job("scan").transfers["read"].latency_s
    quantiles = [latency_s.quantile(q) for q in (0.001, 0.5, 0.937, 0.999, 0.9999)]
    assert quantiles == sorted(quantiles)
    assert 0 < quantiles[0] <= quantiles[-1] <= latency_s.maximum


def test_a_fio_that_is_killed_in_the_middle_says_so(fio: Fio, on_file: DevicePath) -> None:
    job = FioJob(name="long", device=on_file, rw=ReadWrite.RANDREAD, runtime_s=600, direct=False)
    with fio.start(once(job), soon()) as running:
        running.wait_for_io(soon())
        assert running.shell('kill -KILL "$2"', soon()).status == 0
        with pytest.raises(ToolError, match="was killed by signal 9"):
            running.wait(soon())


def test_a_drive_too_small_for_its_job_is_refused_before_fio_starts(on_file: DevicePath) -> None:
    with pytest.raises(BadInput, match="the region ends at byte 16777216, the device at 8388608"):
        FioJob(name="big", device=on_file, rw=ReadWrite.READ, size_bytes=16 * MIB)
