"""A store that another process serves as a mounted folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rackloop.clock import RealClock
from rackloop_drivers.block import DevicePath, NbdExport
from rackloop_drivers.open_blocks import open_blocks
from rackloop_models.local_erasure import IN_FLIGHT_BYTES, LocalStore, StoreInUse, serve_files, unmount
from rackloop_models.local_erasure._mount import is_mounted
from tests.writable_drive import minted

STOP_S = 60.0
_READY = "ready"


@dataclass(frozen=True)
class ServedStore:
    """A store at ``folder``, and the process that serves it."""

    folder: Path
    process: subprocess.Popen[str]

    def end(self, how: signal.Signals = signal.SIGTERM) -> str:
        """Signal the process, and what it said until it ended well: a line for each error of the drive."""
        self.process.send_signal(how)
        return self.ended()

    def ended(self) -> str:
        """What the process said until it ended well."""
        out, err = self.process.communicate(timeout=STOP_S)
        assert self.process.returncode == 0, err
        assert "Traceback" not in err, err
        return out

    def kill(self) -> None:
        """Have it die, with the process of libfuse's that would unmount what it leaves."""
        (children,) = Path(f"/proc/{self.process.pid}/task").glob(f"{self.process.pid}/children")
        for child in children.read_text().split():
            os.kill(int(child), signal.SIGKILL)
        self.process.kill()
        self.process.communicate(timeout=STOP_S)


@contextmanager
def served(drive: Path | NbdExport, folder: Path, *, idle_s: float = 0.0) -> Iterator[ServedStore]:
    """The files of the store on ``drive``, which is a file or an export, at ``folder``, which is made."""
    folder.mkdir(exist_ok=True)
    target = [str(drive)] if isinstance(drive, Path) else [str(drive.server), drive.export, str(drive.size_bytes)]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.store_mount", str(folder), str(idle_s), *target],
        cwd=Path(__file__).parents[1],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parents[1])])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said = process.stdout.readline() if process.stdout else ""
        assert said.strip() == _READY, process.communicate()[1]
        yield ServedStore(folder, process)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate(timeout=STOP_S)
        if is_mounted(folder):
            unmount(folder)


def _main(folder: str, idle_s: str, *target: str) -> None:
    clock = RealClock()
    device = DevicePath(Path(target[0])) if len(target) == 1 else NbdExport(Path(target[0]), target[1], int(target[2]))
    try:
        with (
            minted(device) as permit,
            open_blocks(permit, clock) as blocks,
            LocalStore(blocks, clock, in_flight_bytes=IN_FLIGHT_BYTES) as store,
        ):
            serve_files(
                store,
                Path(folder),
                clock,
                idle_s=float(idle_s),
                on_ready=lambda: _say(_READY),
                on_trouble=_say,
            )
    except StoreInUse as error:
        _say(f"ended: {error}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _main(*sys.argv[1:])
