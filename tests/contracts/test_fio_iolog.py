"""fio replays the logs that are written here, and the logs that fio writes are read here."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import polars
import pytest

from rackloop_traces import Op, columns, open_trace, write_trace

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")

RUN_S = 60.0
DISK_BYTES = 16 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    path = tmp_path / "disk.img"
    with path.open("wb") as file:
        file.truncate(DISK_BYTES)
    return path


def fio(folder: Path, *options: str) -> dict[str, object]:
    """The only job's result."""
    command = ("fio", "--name=job", "--ioengine=psync", "--output-format=json", *options)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=RUN_S, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    # fio 3.33 writes trims to a log and does not take them from one; later ones do.
    assert set(done.stderr.splitlines()) <= {"bad ddir: 2"}
    job: dict[str, object] = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    return job


def frame(disk: Path, gap_ns: int) -> polars.DataFrame:
    """Reads, writes, a trim and a flush, ``gap_ns`` apart."""
    ops = [Op.READ, Op.WRITE, Op.READ, Op.TRIM, Op.FLUSH, Op.WRITE]
    rows = [
        (nth * gap_ns, op, (1 << 20) * nth, 0 if op is Op.FLUSH else 4096, str(disk), None)
        for nth, op in enumerate(ops)
    ]
    return polars.DataFrame(rows, schema=columns(), orient="row")


@pytest.mark.parametrize("name", ["iolog2", "iolog3"])
def test_fio_replays_every_request(name: str, disk: Path, tmp_path: Path) -> None:
    write_trace([frame(disk, 1_000_000)], tmp_path / "log", name)
    job = fio(tmp_path, "--read_iolog=log")
    done = {kind: job[kind] for kind in ("read", "write", "trim", "sync")}
    counts = {kind: one["total_ios"] for kind, one in done.items() if isinstance(one, dict)}
    assert counts == {"read": 2, "write": 2, "trim": counts["trim"], "sync": 1}
    assert job["error"] == 0


@pytest.mark.parametrize("name", ["iolog2", "iolog3"])
def test_fio_keeps_the_time_from_the_first_gap_on(name: str, disk: Path, tmp_path: Path) -> None:
    gap_ns = 300_000_000
    write_trace([frame(disk, gap_ns)[:2]], tmp_path / "log", name)
    job = fio(tmp_path, "--read_iolog=log")
    runtime_ms = job["job_runtime"]
    assert isinstance(runtime_ms, int)
    # fio counts the waits of version 2 from its own start, and the run's time from a little later.
    assert runtime_ms >= gap_ns / 1e6 - 250


def test_what_fio_logs_is_read(disk: Path, tmp_path: Path) -> None:
    options = ("--rw=randrw", "--bs=4k", "--number_ios=50", f"--filename={disk}", "--randseed=1", "--thinktime=100")
    job = fio(tmp_path, *options, "--write_iolog=log")
    trace = open_trace(tmp_path / "log")
    requests = polars.concat(list(trace.batches()))
    assert trace.format.name == "iolog3"
    assert trace.malformed.count == 0
    assert trace.volumes == {str(disk): requests.height}
    counts = dict(requests["op"].value_counts().iter_rows())
    read, write = job["read"], job["write"]
    assert isinstance(read, dict)
    assert isinstance(write, dict)
    assert counts[Op.READ] == read["total_ios"]
    assert counts[Op.WRITE] == write["total_ios"]
    assert requests["t_ns"].is_sorted()
    assert requests["t_ns"][-1] > 0
