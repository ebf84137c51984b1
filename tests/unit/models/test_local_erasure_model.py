"""A local erasure-coded store against a dictionary of bytes, whatever is done and whichever sectors fail."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rackloop.clock import VirtualClock
from rackloop.seed import stream
from rackloop_models.erasure import GF8, GF16
from rackloop_models.local_erasure import FileExists, Layout, LocalStore, NoSuchFile, ReadMode, UpdateMethod
from tests.unit.models.faulty_drive import FaultyDrive
from tests.unit.models.local_erasure_case import SECTOR, formatted

NAMES = st.sampled_from("abc")
PLACES = st.one_of(st.integers(0, 30 * SECTOR), st.integers(0, 30).map(lambda sector: sector * SECTOR))
LENGTHS = st.one_of(st.integers(0, 3 * SECTOR), st.integers(0, 25).map(lambda sectors: sectors * SECTOR))


class StoreMachine(RuleBasedStateMachine):
    """Sectors fail, softly or for good, as many of a group as it has redundancy: nothing may be lost of it.

    Synchronous writes leave groups unprotected, of which sectors may then fail softly only.
    """

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[str, bytearray] = {}
        self.drive: FaultyDrive
        self.store: LocalStore

    @initialize(
        shape=st.sampled_from([(1, 1), (3, 2), (8, 2), (8, 3)]),
        field=st.sampled_from([GF8, GF16]),
        cache_bytes=st.sampled_from([0, 20 * SECTOR, 1 << 20]),
        read_mode=st.sampled_from(ReadMode),
        update=st.sampled_from(UpdateMethod),
    )
    def begin(self, shape: tuple[int, int], field: object, **options: object) -> None:
        k, m = shape
        self.drive = formatted(Layout(k, m, GF8 if field == GF8 else GF16), files=4, size_bytes=2 << 20)
        self.options = options
        self.reopen()

    def reopen(self) -> None:
        self.store = LocalStore(self.drive, VirtualClock(), take_over=True, **self.options)  # type: ignore[arg-type]

    @rule(name=NAMES)
    def create(self, name: str) -> None:
        if name in self.model:
            with pytest.raises(FileExists):
                self.store.create(name)
        else:
            self.store.create(name)
            self.model[name] = bytearray()

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        if name in self.model:
            self.store.remove(name)
            del self.model[name]
        else:
            with pytest.raises(NoSuchFile):
                self.store.remove(name)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), new=NAMES)
    def rename(self, data: st.DataObject, new: str) -> None:
        old = data.draw(st.sampled_from(sorted(self.model)))
        self.store.rename(old, new)
        self.model[new] = self.model.pop(old)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), offset=PLACES, length=LENGTHS, seed=st.integers(0, 1 << 16), sync=st.booleans())
    def write(self, data: st.DataObject, offset: int, length: int, seed: int, sync: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        written = stream(seed).randbytes(length)
        self.drive.hard -= self.drive.hard if sync else set()
        self.store.open(name).write(offset, written, sync=sync)
        content = self.model[name]
        if written:
            content.extend(bytes(max(0, offset + length - len(content))))
            content[offset : offset + length] = written

    @precondition(lambda self: self.model)
    @rule(data=st.data(), size=PLACES)
    def truncate(self, data: st.DataObject, size: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        self.store.open(name).truncate(size)
        content = self.model[name]
        content[:] = content[:size].ljust(size, b"\0")

    @precondition(lambda self: self.model)
    @rule(data=st.data(), offset=PLACES, length=LENGTHS)
    def read(self, data: st.DataObject, offset: int, length: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        assert self.store.open(name).read(offset, length) == bytes(self.model[name][offset : offset + length])

    @rule()
    def flush(self) -> None:
        self.store.flush()

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def sync(self, data: st.DataObject) -> None:
        self.drive.hard.clear()
        self.store.open(data.draw(st.sampled_from(sorted(self.model)))).sync()

    @rule(groups=st.sampled_from([1, 2, None]))
    def protect(self, groups: int | None) -> None:
        self.store.protect(at_most_groups=groups)

    @rule(seed=st.integers(0, 1 << 16))
    def break_sectors(self, seed: int) -> None:
        """At most ``m`` of each group fail; for good only where all is protected."""
        chance = stream(seed)
        self.store.flush()
        self.drive.soft.clear()
        self.drive.hard.clear()
        layout = self.store.layout
        for name, content in self.model.items():
            for group in range(-(-len(content) // (layout.k * SECTOR))):
                sectors = [place // SECTOR for place in self.store.places(name, group)]
                lost = chance.sample(sectors, min(len(sectors), chance.randrange(layout.m + 1)))
                (self.drive.hard if chance.random() < 0.5 else self.drive.soft).update(lost)

    @rule(seed=st.integers(0, 1 << 16))
    def break_metadata(self, seed: int) -> None:
        """One replica of any metadata sector fails."""
        chance = stream(seed)
        for replicas in self.store.metadata_places():
            if chance.random() < 0.3:
                self.drive.soft.add(chance.choice(replicas) // SECTOR)

    @rule(closes=st.booleans())
    def open_again(self, closes: bool) -> None:
        if closes:
            self.store.close()
        else:
            self.drive.hard.clear()
            self.store.flush()
        self.reopen()

    @rule()
    def scrub(self) -> None:
        assert self.store.scrub().is_clean
        assert not self.drive.hard

    @invariant()
    def names_and_sizes_are_right(self) -> None:
        if hasattr(self, "store"):
            assert self.store.names() == sorted(self.model)
            assert all(self.store.stat(name).size_bytes == len(content) for name, content in self.model.items())

    def teardown(self) -> None:
        if hasattr(self, "store"):
            for name, content in self.model.items():
                assert self.store.open(name).read(0, len(content) + 1) == bytes(content)
            assert self.store.scrub().is_clean
            self.store.close()


StoreMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
TestStore = StoreMachine.TestCase
