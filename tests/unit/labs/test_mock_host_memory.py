"""The folder in memory of a mock lab's servers: each lab clears away its own."""

from __future__ import annotations

import shutil
from pathlib import Path

from rackloop_labs.mock_hosts.hosts import clear, memory_of


def test_a_killed_labs_folder_is_cleared_and_that_of_the_lab_it_was_copied_from_is_not(tmp_path: Path) -> None:
    lab, copied = tmp_path / "lab", tmp_path / "copied"
    lab.mkdir()
    memory = memory_of(lab)
    shutil.copytree(lab, copied, symlinks=True)
    clear(copied)
    assert memory.is_dir()
    assert not (copied / "memory").is_symlink()
    clear(lab)
    assert not memory.exists()
    assert list(lab.iterdir()) == []
