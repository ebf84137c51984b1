"""The shape of a store, and the places of every stripe's units on its drives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rackloop.abilities.blocks import BLOCK_BYTES
from rackloop.errors import BadInput
from rackloop.seed import stream

MOST_UNITS = 255
LARGEST_UNIT_BYTES = 16 << 20
LABEL_BYTES = 64 << 10
# Two labels in front, one at the very end of the drive.
TABLE_OFFSET = 2 * LABEL_BYTES
SLOTS = 2


@dataclass(frozen=True)
class StripeCode:
    """The code of an object: ``k`` data units and ``m`` redundancy units of ``unit_bytes``, each on its own drive.

    Raises BadInput: ``k`` or ``m`` below 1, more than 255 units, a unit that is not 4 KiB to 16 MiB in whole blocks.
    """

    k: int
    m: int
    unit_bytes: int = 256 << 10

    def __post_init__(self) -> None:
        if self.k < 1 or self.m < 1 or self.units > MOST_UNITS:
            raise BadInput(
                f"a stripe has at least 1 data unit and 1 redundancy unit, {MOST_UNITS} together at most; "
                f"found k = {self.k}, m = {self.m}"
            )
        if self.unit_bytes % BLOCK_BYTES or not BLOCK_BYTES <= self.unit_bytes <= LARGEST_UNIT_BYTES:
            raise BadInput(
                f"a unit is {BLOCK_BYTES} to {LARGEST_UNIT_BYTES} bytes in multiples of {BLOCK_BYTES}, "
                f"found {self.unit_bytes}"
            )

    @property
    def units(self) -> int:
        """The units of a stripe."""
        return self.k + self.m

    @property
    def object_bytes(self) -> int:
        """The most that an object holds."""
        return self.k * self.unit_bytes

    def stored_bytes(self, position: int, length: int) -> int:
        """The bytes of a unit on its drive when the object has ``length`` bytes; the rest of the unit is zeros."""
        share = length - position * self.unit_bytes if position < self.k else length
        share = min(max(share, 0), self.unit_bytes)
        return -(-share // BLOCK_BYTES) * BLOCK_BYTES


@dataclass(frozen=True)
class Unit:
    """The place of one unit: which drive, by number, and which of the drive's places for units."""

    drive: int
    place: int


@dataclass(frozen=True)
class Layout:
    """A code on drives: ``homes`` has for each drive, by number, the number of the server it was at first.

    Each drive has ``places`` for units. The stripes are spread over all drives (declustered): one after the other takes
    the drives that are used least, of equals those that ``seed`` says, no more of one server than must be; its units
    lie on them in an order that goes round by one from stripe to stripe. Same arguments, same layout.

    Raises BadInput where there are too few drives for a stripe.
    """

    code: StripeCode
    homes: tuple[int, ...]
    places: int
    seed: int = 0

    def __post_init__(self) -> None:
        if len(self.homes) < self.code.units:
            raise BadInput(
                f"a stripe of {self.code.k} + {self.code.m} units wants as many drives, found {len(self.homes)}"
            )
        if self.places < 1:
            raise BadInput(
                f"the drives have no room for a single unit of {self.code.unit_bytes} bytes: a drive needs "
                f"{needed_bytes(self.code, 1)} bytes at least"
            )

    @cached_property
    def most_at_a_server(self) -> int:
        """The most units of one stripe that lie at one server: 1 where there are servers enough."""
        at = [self.homes.count(server) for server in set(self.homes)]
        most = 1
        while sum(min(most, count) for count in at) < self.code.units:
            most += 1
        return most

    @cached_property
    def stripes(self) -> tuple[tuple[Unit, ...], ...]:
        """For each stripe its units in codeword order."""
        used = [0] * len(self.homes)
        chance = stream(self.seed, "stripes")
        stripes: list[tuple[Unit, ...]] = []
        while chosen := self._chosen(used, [chance.random() for _ in self.homes]):
            turn = len(stripes) % len(chosen)
            stripes.append(tuple(Unit(drive, used[drive]) for drive in (*chosen[turn:], *chosen[:turn])))
            for drive in chosen:
                used[drive] += 1
        return tuple(stripes)

    @cached_property
    def on_drive(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each drive, by number, the (stripe, position) of each of its places that is used."""
        found: list[list[tuple[int, int]]] = [[] for _ in self.homes]
        for number, units in enumerate(self.stripes):
            for position, unit in enumerate(units):
                found[unit.drive].append((number, position))
        return tuple(map(tuple, found))

    def server_failures_survived(self, servers: Sequence[object] | None = None) -> int:
        """The number of servers that may fail, whichever they are, with every object still readable.

        ``servers`` says for each drive, by number, where it is now; at first that is its home.
        """
        at = self.homes if servers is None else servers
        least = len(set(at))
        for units in self.stripes:
            here = [at[unit.drive] for unit in units]
            counts = sorted((here.count(server) for server in set(here)), reverse=True)
            survived = sum(1 for failed in range(1, len(counts) + 1) if sum(counts[:failed]) <= self.code.m)
            least = min(least, survived)
        return least

    def record_offset(self, place: int, slot: int) -> int:
        """The offset of a unit's record on a drive."""
        return TABLE_OFFSET + (place * SLOTS + slot) * BLOCK_BYTES

    def unit_offset(self, place: int, slot: int) -> int:
        """The offset of a unit on a drive: the block that says what it is, then its bytes."""
        units = TABLE_OFFSET + self.places * SLOTS * BLOCK_BYTES
        return units + (place * SLOTS + slot) * (BLOCK_BYTES + self.code.unit_bytes)

    def _chosen(self, used: Sequence[int], ties: Sequence[float]) -> list[int]:
        """The drives of the next stripe by number, none where there is no room for one."""
        at_server: dict[int, int] = {}
        chosen: list[int] = []
        for drive in sorted(range(len(self.homes)), key=lambda drive: (used[drive], ties[drive])):
            server = self.homes[drive]
            if used[drive] < self.places and at_server.get(server, 0) < self.most_at_a_server:
                at_server[server] = at_server.get(server, 0) + 1
                chosen.append(drive)
            if len(chosen) == self.code.units:
                return sorted(chosen)
        return []


def needed_bytes(code: StripeCode, places: int) -> int:
    """The size of a drive with so many places for units."""
    return TABLE_OFFSET + places * SLOTS * (2 * BLOCK_BYTES + code.unit_bytes) + LABEL_BYTES


def places_in(code: StripeCode, size_bytes: int) -> int:
    """The number of units that a drive of this size has places for."""
    return max(0, size_bytes - TABLE_OFFSET - LABEL_BYTES) // (SLOTS * (2 * BLOCK_BYTES + code.unit_bytes))


def laid_out(code: StripeCode, servers: Mapping[str, str], size_bytes: int, seed: int) -> Layout:
    """The layout of a code on drives of this size at these servers, drives numbered in the order given."""
    numbers = {server: number for number, server in enumerate(dict.fromkeys(servers.values()))}
    return Layout(code, tuple(numbers[server] for server in servers.values()), places_in(code, size_bytes), seed)
