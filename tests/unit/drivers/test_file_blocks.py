"""Blocks in a file of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackloop_drivers.block.file_blocks import FileBlocks

SIZE = 8192


@pytest.mark.parametrize("before", [0, 100, SIZE, 3 * SIZE])
def test_a_file_is_grown_and_never_cut(tmp_path: Path, before: int) -> None:
    path = tmp_path / "drive"
    path.write_bytes(b"x" * before)
    with FileBlocks(path, SIZE) as blocks:
        assert blocks.size_bytes == SIZE
        assert blocks.read(0, SIZE) == b"x" * min(before, SIZE) + bytes(max(SIZE - before, 0))
        with pytest.raises(ValueError, match="not within"):
            blocks.read(SIZE, 1)
    assert path.stat().st_size == max(before, SIZE)
