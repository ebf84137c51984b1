"""A real RocksDB on a file system on the export of a storage switch: nbdfuse, ext4 by fuse2fs, rocksdict."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tests.deadlines import soon
from tests.storageswitch_process import running_switch

PROGRAMS = ("nbdfuse", "mkfs.ext4", "fuse2fs", "fusermount3")
RECORDS = 2000
WITHIN_S = 30.0


@contextmanager
def fuse(command: list[str], place: Path) -> Iterator[None]:
    """Run a FUSE server in the foreground, until the file system or file at ``place`` is there; unmount at the end."""
    with subprocess.Popen(command):
        is_there = soon(WITHIN_S).poll(lambda: _is_there(place), every_s=0.05)
        assert is_there, f"{command[0]} serves nothing"
        try:
            yield
        finally:
            subprocess.run(["fusermount3", "-u", str(place)], check=True)


def _is_there(place: Path) -> bool:
    return os.path.ismount(place) or (place.is_file() and place.stat().st_size > 0)


@pytest.mark.nightly
def test_a_real_rocksdb_reads_what_it_wrote(tmp_path: Path) -> None:
    rocksdict = pytest.importorskip("rocksdict", reason="RocksDB is not here: pip install rocksdict")
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip(f"no FUSE here: {', '.join(missing) or '/dev/fuse'}")
    device, folder = tmp_path / "device", tmp_path / "files"
    device.touch()
    folder.mkdir()
    config = {
        "schema": 1,
        "drive": {"kind": "memory", "bytes": 256 << 20},
        "scheduler": {"kind": "gimbal"},
        "tenants": [{"name": "a"}],
    }
    chance = np.random.default_rng(1)
    values = {key: chance.bytes(1000) for key in range(RECORDS)}
    with running_switch(config) as switch, fuse(["nbdfuse", str(device), switch.uri("a")], device):
        subprocess.run(["mkfs.ext4", "-q", "-F", "-O", "^has_journal", str(device)], check=True)
        with fuse(["fuse2fs", "-f", str(device), str(folder), "-o", "rw,fakeroot"], folder):
            store = rocksdict.Rdict(str(folder / "db"))
            for key, value in values.items():
                store[key] = value
            store.close()
            again = rocksdict.Rdict(str(folder / "db"))
            assert all(again[key] == value for key, value in values.items())
            again.close()
        (tenant,) = (one for one in switch.state()["tenants"] if one["name"] == "a")
    assert tenant["latency"]["write"]["drive_ns"]["n"] > 0, "it went through the switch"
