"""Replays through real fio: every request, once, at its place, near its time."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rackloop.data import data_path
from rackloop.errors import EXIT_BAD_INPUT, BadInput, GuardRefused, ProductFailed, ToolError
from rackloop_cli.main import main
from rackloop_drivers.block import DevicePath, NbdExport
from rackloop_drivers.host import LocalExecutor
from rackloop_drivers.host_clock import ClockUnknown
from rackloop_drivers.workload import Fio, FioReplay, Planned, ReplayResult, RunningReplay, Stretch, plan_requests
from rackloop_fixtures import find_trace
from rackloop_fixtures.rack.replays import at_the_drive
from rackloop_traces import Op, open_trace
from tests.deadlines import CLOCK, soon
from tests.nbdkit_process import serving_unix
from tests.rackd_process import running_rackd, small_rack
from tests.writable_drive import minted

pytestmark = [
    pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")
    for program in ("fio", "nbdkit")
]

MIB = 1 << 20
# Far from what a quiet machine does: tests run beside each other.
NEAR_S = 1.0
REAL_TRACE = Path(__file__).parents[3] / "shared" / "data" / "cloudphysics_vm.csv.gz"


@pytest.fixture
def export(executor: LocalExecutor) -> Iterator[NbdExport]:
    with tempfile.TemporaryDirectory(prefix="replay-", dir="/tmp") as folder:
        socket = Path(folder) / "nbd.sock"
        executor.start(("nbdkit", "--foreground", "--exit-with-parent", "--unix", str(socket), "memory", "64M"))
        deadline = soon()
        while not socket.exists():
            assert not deadline.is_over()
            CLOCK.sleep_until_ns(CLOCK.now_ns() + 10_000_000)
        yield NbdExport(socket, "", 64 * MIB)


def planned(count: int, gap_us: int, *, writes: bool = False, region_bytes: int = 64 * MIB) -> Planned:
    rows = [(n * gap_us * 1000, int(writes and n % 2), n * 8192, 4096) for n in range(count)]
    types = {"t_ns": pl.Int64, "op": pl.UInt8, "offset_bytes": pl.Int64, "size_bytes": pl.Int64}
    frame = pl.DataFrame(rows, schema=types, orient="row")
    return plan_requests([frame], Stretch(), region_bytes=region_bytes)


def replayed(executor: LocalExecutor, replay: FioReplay) -> ReplayResult:
    with RunningReplay(Fio(executor, CLOCK), replay, soon()) as running:
        return running.wait(soon())


def test_every_request_comes_once_and_near_its_time(executor: LocalExecutor, export: NbdExport) -> None:
    with minted(export) as drive:
        result = replayed(executor, FioReplay(device=drive, planned=planned(300, 2000, writes=True)))
    assert {side: transfer.total_ios for side, transfer in result.job.transfers.items()} == {"read": 150, "write": 150}
    assert result.job.total_err == 0
    lateness = result.lateness()
    assert (lateness.missing, lateness.unexpected) == (0, 0)
    assert lateness.late_s.quantile(0.5) < NEAR_S


def test_jobs_with_several_requests_each_keep_their_times(executor: LocalExecutor, export: NbdExport) -> None:
    result = replayed(executor, FioReplay(device=export, planned=planned(2000, 500)))
    lateness = result.lateness()
    assert (lateness.requests.height, lateness.missing, lateness.unexpected) == (2000, 0, 0)
    assert lateness.late_s.quantile(0.5) < NEAR_S


def test_a_file_is_replayed_onto_as_well(executor: LocalExecutor, tmp_path: Path) -> None:
    path = tmp_path / "drive"
    path.write_bytes(bytes(4 * MIB))
    with minted(DevicePath(path)) as drive:
        result = replayed(executor, FioReplay(device=drive, planned=planned(50, 1000, writes=True)))
    assert (result.job.transfers["read"].total_ios, result.job.transfers["write"].total_ios) == (25, 25)
    assert any(path.read_bytes())


@pytest.mark.parametrize(("start_ms", "factor"), [(0, 1), (800, 2), (2000, 5), (4100, 10)])
def test_a_replay_begins_later_where_fio_starts_slowly(
    export: NbdExport, tmp_path: Path, start_ms: int, factor: int
) -> None:
    replay = FioReplay(device=export, planned=planned(4, 1000))
    fio = tmp_path / "fio"
    fio.write_text(f"""#!/bin/sh\nsleep {(200 + start_ms) / 1000}\necho '"job_runtime" : 200'\n""")
    fio.chmod(0o700)
    (tmp_path / "r.feed").write_text(replay.files("r")["r.feed"])
    script = f"{replay.preparation('r')}\necho $said $(date +%s%N)"
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env={"PATH": path}, capture_output=True, text=True, check=True
    )
    due_us, *_, now_ns = done.stdout.split()
    lead_s = int(due_us) / 1e6 - int(now_ns) / 1e9
    assert (factor - 0.3) * replay.lead_s < lead_s < (factor + 1) * replay.lead_s


def test_a_trace_that_writes_needs_a_drive_the_guard_gave(export: NbdExport) -> None:
    with pytest.raises(GuardRefused, match="the trace writes"):
        FioReplay(device=export, planned=planned(2, 1, writes=True))


def test_flushes_are_replayed(executor: LocalExecutor, export: NbdExport) -> None:
    rows = [(n * 1_000_000, op, 0, 4096) for n, op in enumerate((Op.FLUSH, Op.WRITE, Op.FLUSH, Op.READ))]
    types = {"t_ns": pl.Int64, "op": pl.UInt8, "offset_bytes": pl.Int64, "size_bytes": pl.Int64}
    frame = pl.DataFrame(rows, schema=types, orient="row")
    with minted(export) as drive:
        plan = plan_requests([frame], Stretch(), region_bytes=MIB)
        result = replayed(executor, FioReplay(device=drive, planned=plan))
    assert result.job.total_err == 0
    assert set(result.job.transfers) == {"read", "write"}
    assert result.lateness().due == 2


def test_a_trace_that_begins_with_a_flush_is_not_late_by_its_first_gap(
    executor: LocalExecutor, export: NbdExport
) -> None:
    rows = [(0, Op.FLUSH, 0, 0), (600_000_000, Op.WRITE, 0, 4096)]
    types = {"t_ns": pl.Int64, "op": pl.UInt8, "offset_bytes": pl.Int64, "size_bytes": pl.Int64}
    plan = plan_requests([pl.DataFrame(rows, schema=types, orient="row")], Stretch(), region_bytes=MIB)
    with minted(export) as drive:
        lateness = replayed(executor, FioReplay(device=drive, planned=plan)).lateness()
    assert (lateness.due, lateness.missing) == (1, 0)


def test_a_first_request_that_fails_is_not_a_late_one(executor: LocalExecutor, tmp_path: Path) -> None:
    rows = [(0, Op.WRITE, 0, 4096), (600_000_000, Op.READ, 0, 4096)]
    types = {"t_ns": pl.Int64, "op": pl.UInt8, "offset_bytes": pl.Int64, "size_bytes": pl.Int64}
    plan = plan_requests([pl.DataFrame(rows, schema=types, orient="row")], Stretch(), region_bytes=MIB)
    failing = ("--filter=error", "memory", "64M", "error-pwrite-rate=100%")
    with serving_unix(tmp_path / "nbd", failing) as socket, minted(NbdExport(socket, "", 64 * MIB)) as drive:
        result = replayed(executor, FioReplay(device=drive, planned=plan))
    assert (result.job.total_err, result.requests.height) == (1, 1)


def test_a_drive_that_fails_every_request_is_the_products_failure(executor: LocalExecutor, tmp_path: Path) -> None:
    with serving_unix(tmp_path / "nbd", ("--filter=error", "memory", "64M", "error-pread-rate=100%")) as socket:
        export = NbdExport(socket, "", 64 * MIB)
        result = replayed(executor, FioReplay(device=export, planned=planned(5, 1000)))
    assert result.job.total_err == 5
    with pytest.raises(ProductFailed, match="5 requests failed and none completed: Input/output error"):
        result.lateness()


class ClockIsSet(LocalExecutor):
    """A machine whose wall clock is set forward while fio runs: it is read after that by a shell that stays."""

    def start(self, argv: Sequence[str]) -> Any:
        return super().start([word.replace("do date +%s%N", "do date -d '+3 seconds' +%s%N") for word in argv])


def test_a_replay_on_a_wall_clock_that_was_set_says_nothing_of_when(export: NbdExport) -> None:
    with ClockIsSet(CLOCK) as executor, pytest.raises(ClockUnknown, match=r"was set by about \d.\d+ s while fio ran"):
        replayed(executor, FioReplay(device=export, planned=planned(5, 1000)))


def test_a_server_that_is_gone_is_an_error(executor: LocalExecutor, tmp_path: Path) -> None:
    nowhere = NbdExport(tmp_path / "nbd.sock", "", MIB)
    with pytest.raises(ToolError, match="fio"):
        replayed(executor, FioReplay(device=nowhere, planned=planned(2, 1)))


def test_a_simulated_drive_says_when_each_request_came(executor: LocalExecutor, tmp_path: Path) -> None:
    with running_rackd(tmp_path, small_rack()) as rackd, minted(NbdExport(rackd.nbd, "drive.d01", 64 * MIB)) as drive:
        control = rackd.connect()
        control.record_io("d01", soon())
        plan = planned(200, 2000, writes=True)
        result = replayed(executor, FioReplay(device=drive, planned=plan))
        recorded = control.recorded_io("d01", soon())
        control.close()
    lateness = at_the_drive(plan, recorded, result.began_ns)
    assert (lateness.due, lateness.missing, lateness.unexpected) == (200, 0, 0)
    assert lateness.late_s.minimum == 0
    assert lateness.late_s.quantile(0.5) < NEAR_S
    # fio's own log tells the same to a millisecond and the time a request takes to reach the drive.
    by_fio = result.lateness()
    assert by_fio.late_s.quantile(0.5) == pytest.approx(lateness.late_s.quantile(0.5), abs=NEAR_S)


def test_a_shipped_trace_is_replayed(executor: LocalExecutor, export: NbdExport) -> None:
    stretch = Stretch(duration_s=1, fold=True)
    plan = plan_requests(open_trace(find_trace("demo")).batches(), stretch, region_bytes=64 * MIB)
    with minted(export) as drive:
        result = replayed(executor, FioReplay(device=drive, planned=plan))
    assert result.job.total_err == 0
    assert result.lateness().missing == 0


def test_a_trace_is_a_file_or_a_shipped_one(tmp_path: Path) -> None:
    assert find_trace("demo") == data_path("traces") / "demo.csv.gz"
    own = tmp_path / "demo"
    own.write_text("")
    assert find_trace(str(own)) == own
    with pytest.raises(BadInput, match=r"no trace 'demoo', .* did you mean 'demo'"):
        find_trace("demoo")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.csv"], "there is no trace 'nowhere.csv'"),
        (["demo", "--drive", "d99"], "lab mock has no drive 'd99'"),
        (["demo", "--speed", "0"], "expected a number from 1e-06 to 1000000, found '0'"),
        (["demo", "--from", "999"], "from 999 s on"),
        (["demo", "--volume", "other"], "no request of volume 'other'"),
        (["demo", "--for", "0"], "--for is 0.0: give another value, or leave it out"),
        (["demo", "--drive", ""], "an argument after --drive is empty"),
    ],
)
def test_what_cannot_be_replayed_is_said_before_anything_is_touched(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert main(["trace", "replay", *arguments, "--lab", "mock", "--out", str(out)]) == EXIT_BAD_INPUT
    assert words in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.skipif(not REAL_TRACE.exists(), reason=f"{REAL_TRACE.name} is not beside the checkout")
def test_a_stretch_of_the_real_trace_is_replayed(executor: LocalExecutor, export: NbdExport) -> None:
    stretch = Stretch(from_s=600, duration_s=600, speed=100, fold=True)
    plan = plan_requests(open_trace(REAL_TRACE).batches(), stretch, region_bytes=64 * MIB)
    with minted(export) as drive:
        result = replayed(executor, FioReplay(device=drive, planned=plan))
    assert result.job.total_err == 0
    lateness = result.lateness()
    assert (lateness.missing, lateness.unexpected) == (0, 0)
    assert lateness.due == plan.requests.height > 100
