"""Drives in memory that fail on demand and lose unflushed data at a power cut."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass, field

from rackloop.abilities.blocks import BLOCK_BYTES, IoFailed
from rackloop.clock import VirtualClock
from rackloop.errors import NotConnected
from rackloop.seed import Stream
from rackloop_models.rack_erasure import StripeCode, StripedStore, format_store, needed_bytes


class PowerCut(Exception):
    """Everything stops here."""


@dataclass
class Power:
    """Cuts the power of all drives at once after so many more writes and flushes; None for never."""

    left: int | None = None
    done: int = 0

    def used(self) -> None:
        self.done += 1
        if self.left is not None:
            if self.left <= 0:
                raise PowerCut
            self.left -= 1


@dataclass
class Drive:
    """A drive in memory. What is written may be lost until it is flushed, block by block."""

    size_bytes: int
    power: Power = field(default_factory=Power)
    is_dead: bool = False
    refuses_writes: bool = False
    refuses_writes_at: set[int] = field(default_factory=set)
    # So many more writes, then one that is done, and stays, and is said to have failed, as on a link that drops.
    drops_after: int | None = None
    unreadable: set[int] = field(default_factory=set)
    content: bytearray = field(init=False)
    reads: list[tuple[int, int]] = field(default_factory=list)
    writes: list[tuple[int, int]] = field(default_factory=list)
    clock: VirtualClock | None = None
    takes_s: float = 0.0
    _kept_back: dict[int, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.content = bytearray(self.size_bytes)

    def read(self, offset: int, length: int) -> bytes:
        if self.is_dead:
            raise NotConnected("the drive is dead")
        assert offset % BLOCK_BYTES == length % BLOCK_BYTES == 0
        assert offset + length <= self.size_bytes
        self.reads.append((offset, length))
        if self.clock is not None:
            self.clock.advance(self.takes_s)
        blocks = range(offset, offset + length, BLOCK_BYTES)
        if self.unreadable.intersection(blocks):
            raise IoFailed("the sector cannot be read", errno.EIO)
        return b"".join(self._kept_back.get(at, bytes(self.content[at : at + BLOCK_BYTES])) for at in blocks)

    def write(self, offset: int, data: bytes) -> None:
        if self.is_dead or self.refuses_writes or offset in self.refuses_writes_at:
            raise NotConnected("the drive is dead")
        assert offset % BLOCK_BYTES == len(data) % BLOCK_BYTES == 0
        assert offset + len(data) <= self.size_bytes
        self.power.used()
        self.writes.append((offset, len(data)))
        if self.drops_after is not None:
            self.drops_after -= 1
        for at in range(0, len(data), BLOCK_BYTES):
            self._kept_back[offset + at] = data[at : at + BLOCK_BYTES]
            self.unreadable.discard(offset + at)
        if self.drops_after == -1:
            self.drops_after = None
            self._keep(self._kept_back)
            self.is_dead = True
            raise NotConnected("the link dropped")

    def flush(self) -> None:
        if self.is_dead:
            raise NotConnected("the drive is dead")
        self.power.used()
        self._keep(self._kept_back)

    def lose_power(self, chance: Stream) -> None:
        """Any of what was not flushed is there, and any is not."""
        self._keep([at for at in self._kept_back if chance.random() < 0.5])

    def damage(self, offset: int, length: int) -> None:
        """Have bytes there that nobody wrote."""
        self._keep(self._kept_back)
        for at in range(offset, offset + length, BLOCK_BYTES):
            self.content[at + 20] ^= 0x55

    def _keep(self, blocks: Sequence[int] | dict[int, bytes]) -> None:
        for at in blocks:
            self.content[at : at + BLOCK_BYTES] = self._kept_back[at]
        self._kept_back = {}


@dataclass
class Case:
    """A store on drives, each at the server ``servers`` says."""

    code: StripeCode
    drives: dict[str, Drive]
    servers: dict[str, str]
    power: Power
    clock: VirtualClock = field(default_factory=VirtualClock)

    def open(self, *, without: Sequence[str] = (), workers: int = 1, trusting: bool = False) -> StripedStore:
        drives = {name: drive for name, drive in self.drives.items() if name not in without}
        return StripedStore(drives, self.clock, workers=workers, trusting=trusting)

    def cut_power(self, chance: Stream) -> None:
        self.power.left = None
        for drive in self.drives.values():
            drive.lose_power(chance)


def case(k: int, m: int, drives: int, *, places: int = 4, unit_bytes: int = BLOCK_BYTES, servers: int = 0) -> Case:
    """An empty store on so many drives, each at a server of its own unless there are fewer."""
    code = StripeCode(k, m, unit_bytes)
    power = Power()
    size = needed_bytes(code, places)
    names = [f"d{number}" for number in range(drives)]
    made = {name: Drive(size, power) for name in names}
    at = {name: f"s{number % (servers or drives)}" for number, name in enumerate(names)}
    format_store(made, code, servers=at, store_id=b"store of a test.", server_failures=0)
    return Case(code, made, at, power)
