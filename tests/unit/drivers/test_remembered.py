"""Answers that are kept in a file, on a disk that takes nothing more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from rackloop.clock import RealClock
from rackloop_drivers.remembered import Remembered

KEEPS = """
import resource, signal, sys
from pathlib import Path
from rackloop.clock import RealClock
from rackloop_drivers.remembered import Remembered
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (8, 8))
Remembered(Path(sys.argv[1]), RealClock(), 60.0).keep("srv2", "an answer too long for it")
"""


def test_a_full_disk_leaves_what_was_kept_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    kept = Remembered(file, RealClock(), 60.0)
    kept.keep("srv1", ["an answer"])
    subprocess.run([sys.executable, "-c", KEEPS, str(file)], check=True)
    assert kept.recall("srv1") == ["an answer"]
    assert kept.recall("srv2") is None
    assert list(tmp_path.iterdir()) == [file]
