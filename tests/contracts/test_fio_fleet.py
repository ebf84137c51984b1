"""Several fios begun at one moment, on executors of this machine."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from rackloop.errors import BadInput, ToolError
from rackloop_drivers.block import DevicePath, NbdExport
from rackloop_drivers.host import LocalExecutor
from rackloop_drivers.workload import Fio, FioFleet, FioJob, FioRun, ReadWrite
from tests.deadlines import CLOCK, soon

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")

MIB = 1 << 20
HOSTS = ("srv1", "srv2", "srv3")


@pytest.fixture
def executors() -> Iterator[dict[str, LocalExecutor]]:
    with ExitStack() as stack:
        yield {host: stack.enter_context(LocalExecutor(CLOCK)) for host in HOSTS}


@pytest.fixture
def fleet(executors: dict[str, LocalExecutor]) -> FioFleet:
    return FioFleet({host: Fio(executor, CLOCK) for host, executor in executors.items()}, CLOCK)


@pytest.fixture
def read(tmp_path: Path) -> FioJob:
    path = tmp_path / "drive"
    path.write_bytes(bytes(8 * MIB))
    return FioJob(name="read", device=DevicePath(path), rw=ReadWrite.RANDREAD, numjobs=2, runtime_s=0.3, direct=False)


def run_of(job: FioJob) -> FioRun:
    return FioRun(jobs=(job, replace(job, name="other", numjobs=1)), seed=1, interval_s=0.1, status_s=0.1)


def test_every_host_begins_after_the_agreed_moment_and_says_by_how_much(fleet: FioFleet, read: FioJob) -> None:
    with fleet.start({host: run_of(read) for host in HOSTS}, soon()) as running:
        result = running.wait(soon())
    assert set(result.results) == set(HOSTS)
    assert all(of_host.total_err == 0 and of_host.job("read").iops > 0 for of_host in result.results.values())
    # A host's clock was known to one error when it was told the moment, and may be known better now.
    error_s = running.release_error_s + result.time_error_s
    assert all(began_s > -error_s for began_s in result.began_s.values())
    assert result.skew_s == max(result.began_s.values()) - min(result.began_s.values())
    series = result.results["srv1"].job("read").transfers["read"].throughput_bytes_per_s
    first_ns = result.results["srv1"].started_ns + series[0].t_s * 1e9
    assert first_ns > result.agreed_ns - error_s * 1e9, "the series are those of the I/O, not of the wait"


def test_nothing_is_left_where_the_fleet_ran(
    fleet: FioFleet, executors: dict[str, LocalExecutor], read: FioJob
) -> None:
    with fleet.start({host: run_of(read) for host in HOSTS}, soon()) as running:
        running.wait(soon())
    folder = Path(executors["srv1"].put_text("marker", "")).parent
    assert [entry.name for entry in folder.iterdir()] == ["marker"]


def test_one_file_is_brought_to_each_host(fleet: FioFleet, executors: dict[str, LocalExecutor], read: FioJob) -> None:
    brought: list[str] = []
    for executor in executors.values():
        executor.put_text = partial(_noted, executor.put_text, brought)  # type: ignore[method-assign]
    with fleet.start({host: run_of(read) for host in HOSTS}, soon()) as running:
        running.wait(soon())
    assert [Path(name).suffix for name in brought] == [".fio"] * len(HOSTS)


def _noted(put: Callable[[str, str], str], brought: list[str], name: str, text: str) -> str:
    brought.append(name)
    return put(name, text)


def test_a_fleet_can_be_followed_and_stopped(fleet: FioFleet, read: FioJob) -> None:
    endless = run_of(replace(read, runtime_s=3600))
    with fleet.start(dict.fromkeys(HOSTS, endless), soon()) as running:
        for fio in running.running.values():
            fio.wait_for_io(soon())
        seen: set[str] = set()
        while seen != set(HOSTS):
            reported = running.progress(soon())
            seen |= {host for host, reports in reported.items() if any(report.job("read").iops for report in reports)}
        result = running.stop(soon())
    assert all(of_host.job("read").io_bytes for of_host in result.results.values())


def test_one_host_that_cannot_start_fails_all_by_name(
    fleet: FioFleet, executors: dict[str, LocalExecutor], read: FioJob, tmp_path: Path
) -> None:
    nowhere = replace(read, device=NbdExport(tmp_path / "none", "", MIB))
    runs = {host: run_of(read) for host in HOSTS} | {"srv2": run_of(nowhere)}
    with pytest.raises(ToolError, match=r"^srv2: fio "):
        fleet.start(runs, soon())
    for host in HOSTS:
        left = executors[host].run(("pgrep", "-f", f"{Path(executors[host].put_text('m', '')).parent}"), soon())
        assert left.stdout == "", "no fio and no hold of this fleet runs any more"


def test_a_run_for_a_host_the_fleet_lacks_is_refused(fleet: FioFleet, read: FioJob) -> None:
    with pytest.raises(BadInput, match=r"a fleet of srv1, srv2, srv3 cannot run on srv9"):
        fleet.start({"srv9": run_of(read)}, soon())
    with pytest.raises(BadInput, match="at least one host"):
        FioFleet({}, CLOCK)
