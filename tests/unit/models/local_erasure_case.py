"""A local erasure-coded store on a drive with injectable bad sectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from rackloop.clock import VirtualClock
from rackloop_models.erasure import Code
from rackloop_models.local_erasure import Layout, LocalStore, format_drive
from tests.unit.models.faulty_drive import FaultyDrive

SECTOR = 4096
DRIVE_BYTES = 4 << 20
LAYOUT = Layout(8, 2, replicas=3)


def formatted(layout: Layout = LAYOUT, *, size_bytes: int = DRIVE_BYTES, files: int = 8) -> FaultyDrive:
    drive = FaultyDrive(size_bytes)
    format_drive(drive, layout, files=files)
    return drive


def opened(drive: FaultyDrive, **options: Any) -> LocalStore:
    """The store on a drive, which nothing has been asked of since."""
    store = LocalStore(drive, VirtualClock(), **options)
    drive.requests.clear()
    return store


def with_file(content: bytes, layout: Layout = LAYOUT, **options: Any) -> tuple[FaultyDrive, LocalStore]:
    """A store with a protected file ``a``, of which nothing is cached."""
    drive = formatted(layout)
    with LocalStore(drive, VirtualClock()) as store:
        store.create("a").write(0, content)
    return drive, opened(drive, **options)


def sectors_of(store: LocalStore, group: int, name: str = "a") -> list[int]:
    return [place // SECTOR for place in store.places(name, group)]


def pattern(sectors: int, seed: int = 1) -> bytes:
    """Bytes of which no two sectors are alike."""
    return np.random.default_rng(seed).bytes(sectors * SECTOR)


def on_drive(drive: FaultyDrive, sectors: list[int]) -> bytes:
    return b"".join(bytes(drive.memory.content[at * SECTOR : (at + 1) * SECTOR]) for at in sectors)


def is_protected(drive: FaultyDrive, store: LocalStore, group: int, name: str = "a") -> bool:
    """Whether the redundancy of a group, as it is on the drive, is that of its user sectors there."""
    layout = store.layout
    rows = np.frombuffer(on_drive(drive, sectors_of(store, group, name)), np.uint8).reshape(-1, SECTOR)
    expected = np.empty((layout.m, SECTOR), np.uint8)
    Code(layout.k, layout.m, layout.field).encode(rows[: -layout.m], expected)
    return bool((expected == rows[-layout.m :]).all())
