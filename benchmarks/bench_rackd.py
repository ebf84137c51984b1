"""rackd's port export beside nbdkit's memory plugin, the same fio job on both in one run, in random order.

Run with ``python benchmarks/bench_rackd.py [--json FILE] [--rounds N] [--runtime SECONDS]``. Needs fio, nbdkit and
a release build of native/. A ratio above 1 means rackd did more.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._bench import paired  # noqa: E402 - the checkout is no package
from rackloop.errors import ToolError  # noqa: E402
from tests.rackd_process import drive, running_rackd, small_rack  # noqa: E402

SIZE = 1 << 30
JOBS = {
    "4 KiB randread QD32 [IOPS]": ("randread", "4k", 32, "iops"),
    "4 KiB randwrite QD32 [IOPS]": ("randwrite", "4k", 32, "iops"),
    "4 KiB randread QD1 [IOPS]": ("randread", "4k", 1, "iops"),
    "1 MiB read QD4 [bytes/s]": ("read", "1m", 4, "bw_bytes"),
    "1 MiB write QD4 [bytes/s]": ("write", "1m", 4, "bw_bytes"),
}


def program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise ToolError(f"{name} is not installed: apt-get install {name}")
    return path


@contextmanager
def nbdkit(directory: Path) -> Iterator[str]:
    """The URI of a fresh memory disk."""
    path = directory / "nbdkit.sock"
    command = [program("nbdkit"), "--foreground", "--unix", str(path), "memory", str(SIZE)]
    with subprocess.Popen(command) as process:
        try:
            while not path.exists() and process.poll() is None:
                continue
            yield f"nbd+unix:///?socket={path}"
        finally:
            process.terminate()


def fio(uri: str, job: tuple[str, str, int, str], runtime_s: float) -> float:
    rw, block, depth, figure = job
    command = [program("fio"), "--name=bench", "--ioengine=nbd", f"--uri={uri}", f"--rw={rw}", f"--bs={block}"]
    command += [f"--iodepth={depth}", f"--size={SIZE}", "--time_based", f"--runtime={runtime_s}", "--randseed=7"]
    command += ["--continue_on_error=all", "--output-format=json", "--ramp_time=0.3"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result = json.loads(text[text.index("{") :])["jobs"][0]
    if result["total_err"]:
        raise ToolError(f"fio met {result['total_err']} errors on {uri}")
    return float(result["write" if "write" in rw else "read"][figure])


def filled(uri: str) -> None:
    """Write the whole disk once, so that reads find memory and not holes."""
    command = [
        program("fio"),
        "--name=fill",
        "--ioengine=nbd",
        f"--uri={uri}",
        "--rw=write",
        "--bs=1m",
        f"--size={SIZE}",
    ]
    subprocess.run([*command, "--iodepth=4"], check=True, capture_output=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runtime", type=float, default=2.0, metavar="SECONDS")
    options = parser.parse_args()
    config = small_rack() | {"drives": [drive(1, bytes=SIZE)], "map": [[1, 101]]}
    figures = {}
    with (
        tempfile.TemporaryDirectory(prefix="bench", dir="/tmp") as name,
        nbdkit(Path(name)) as other,
        running_rackd(Path(name), config) as rackd,
    ):
        ours = rackd.uri("srv1.p0")
        for uri in (ours, other):
            filled(uri)
        print(f"{'':30} {'rackd':>13} {'nbdkit':>13} {'ratio':>6}   lowest-highest")
        for label, job in JOBS.items():

            def on(uri: str, job: tuple[str, str, int, str] = job) -> Callable[[], float]:
                return lambda: fio(uri, job, options.runtime)

            found = paired(on(ours), on(other), options.rounds)
            figures[label] = found.as_dict()
            spread = f"{found.ratio_min:.2f}-{found.ratio_max:.2f}"
            print(f"{label:30} {found.a:13,.0f} {found.b:13,.0f} {found.ratio:6.2f}   {spread}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
