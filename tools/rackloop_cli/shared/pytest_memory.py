"""Pytest's memory of the tests that failed, by which --lf and --ff choose, kept from run to run of a lab."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rackloop.lab import state_root

_KEPT_IN = "pytest"
# Pytest's own layout: values of its cache.
_VALUES = Path("v") / "cache"


class PytestMemory:
    """The memory of one session of pytest, in a folder of its own until it is to be kept.

    A session that was refused, or did nothing, leaves the machine as it was.
    """

    def __init__(self, kept: Path, folder: Path) -> None:
        self._kept = kept
        self._folder = folder

    @property
    def option(self) -> str:
        """The option of pytest that says where it is."""
        return f"-ocache_dir={self._folder}"

    def keep(self) -> None:
        """Have later sessions know it; where it cannot be written they know what those before have left."""
        with suppress(OSError):
            shutil.copytree(self._folder / _VALUES, self._kept / _VALUES, dirs_exist_ok=True)


@contextmanager
def pytest_memory(lab_name: str) -> Iterator[PytestMemory]:
    """The memory of earlier sessions on the lab of this name, for one more."""
    kept = state_root() / _KEPT_IN / lab_name
    with tempfile.TemporaryDirectory(prefix="rackloop-pytest-") as made:
        folder = Path(made) / "cache"
        with suppress(OSError):
            shutil.copytree(kept, folder)
        yield PytestMemory(kept, folder)
