"""Threads that share a store: writers, readers, background redundancy and a scrub at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from rackloop.seed import stream
from rackloop_models.local_erasure import Layout, LocalStore, NoSuchFile
from tests.unit.models.local_erasure_case import SECTOR, formatted, is_protected, opened


def write_and_read(store: LocalStore, name: str) -> bytes:
    """Change a file at random; what it holds in the end, which was read after every change."""
    chance = stream(1, name)
    file, content = store.create(name), bytearray(60 * SECTOR)
    for _ in range(60):
        offset, length = chance.randrange(50 * SECTOR), chance.randrange(10 * SECTOR)
        content[offset : offset + length] = data = chance.randbytes(length)
        file.write(offset, data, sync=chance.random() < 0.3)
        size = file.size_bytes
        assert file.read(0, size) == bytes(content[:size])
    return bytes(content[: file.size_bytes])


@pytest.mark.parametrize("in_flight_bytes", [0, 1 << 20])
def test_threads_disturb_neither_each_other_nor_background_redundancy(in_flight_bytes: int) -> None:
    drive = formatted(Layout(8, 2))
    with opened(drive, cache_bytes=100_000, in_flight_bytes=in_flight_bytes) as store, ThreadPoolExecutor() as pool:
        writers = {name: pool.submit(write_and_read, store, name) for name in "abc"}
        while not all(writer.done() for writer in writers.values()):
            store.protect(at_most_groups=1)
            assert not store.scrub().mismatches
        for name, writer in writers.items():
            content = writer.result()
            assert store.open(name).read(0, len(content)) == content
        store.flush()
        for name in writers:
            assert all(is_protected(drive, store, group, name) for group in range(store.stat(name).groups))


@pytest.mark.parametrize("in_flight_bytes", [0, 1 << 20])
def test_a_removed_file_is_never_read_as_another(in_flight_bytes: int) -> None:
    drive = formatted(Layout(8, 2))
    with opened(drive, cache_bytes=0, in_flight_bytes=in_flight_bytes) as store, ThreadPoolExecutor() as pool:
        store.create("a").write(0, b"a" * (40 * SECTOR))
        store.flush()
        file = store.open("a")

        def read() -> set[bytes]:
            seen: set[bytes] = set()
            while True:
                try:
                    seen |= {bytes([byte]) for byte in set(file.read(0, 40 * SECTOR))}
                except NoSuchFile:
                    return seen

        readers = [pool.submit(read) for _ in range(3)]
        store.remove("a")
        store.create("b").write(0, b"b" * (200 * SECTOR))
        store.flush()
        assert all(reader.result() <= {b"a"} for reader in readers)
