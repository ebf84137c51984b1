"""Port maps of a circuit switch: which ports are joined, how a map changes, and what undoes the change."""

from __future__ import annotations

import binascii
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

Pair = tuple[int, int]


@dataclass(frozen=True)
class PortMap:
    """A set of disjoint port pairs, canonical: the lower port first, pairs ascending.

    Raises ``ValueError`` where a port is joined to itself or used twice.
    """

    pairs: tuple[Pair, ...] = ()
    _peer_of: dict[int, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        canonical = tuple(sorted([pair if pair[0] < pair[1] else (pair[1], pair[0]) for pair in self.pairs]))
        peer_of = dict(canonical)
        peer_of.update([(high, low) for low, high in canonical])
        if len(peer_of) < 2 * len(canonical):
            itself = [f"port {low} joined to itself" for low, high in canonical if low == high]
            twice = Counter(chain(*canonical)).most_common(1)[0][0]
            raise ValueError(itself[0] if itself else f"port {twice} used twice")
        object.__setattr__(self, "pairs", canonical)
        object.__setattr__(self, "_peer_of", peer_of)

    @classmethod
    def of(cls, pairs: Iterable[Pair]) -> PortMap:
        """The map with these pairs, in any order and orientation."""
        return cls(tuple(pairs))

    def __iter__(self) -> Iterator[Pair]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def peer_of(self, port: int) -> int | None:
        """The port joined to ``port``, or None."""
        return self._peer_of.get(port)

    def ports(self) -> frozenset[int]:
        """Every port that is joined to another."""
        return frozenset(self._peer_of)

    def without(self, ports: Iterable[int]) -> PortMap:
        """This map with every pair that touches ``ports`` taken away."""
        return PortMap(self._beside(frozenset(ports)))

    def joined(self, others: PortMap) -> PortMap:
        """This map with ``others`` joined; a former partner of a port in them is left open."""
        return PortMap((*self._beside(others._peer_of), *others.pairs))

    def _beside(self, gone: Container[int]) -> tuple[Pair, ...]:
        return tuple([pair for pair in self.pairs if pair[0] not in gone and pair[1] not in gone])

    def canonical_text(self) -> str:
        """The pair list the switch protocol writes and checksums: ``1!17,2!18``."""
        return ",".join(f"{low}!{high}" for low, high in self.pairs)

    def crc32(self) -> int:
        """CRC-32 (IEEE 802.3) of :meth:`canonical_text`, as the switch computes it."""
        return binascii.crc32(self.canonical_text().encode("ascii"))


@dataclass(frozen=True)
class Partial:
    """Join these pairs; a former partner of a port in them is left open, every other pair stays untouched."""

    pairs: PortMap

    def after(self, live: PortMap) -> PortMap:
        """The map that stands once this change was executed on ``live``."""
        return live.joined(self.pairs)


@dataclass(frozen=True)
class Full:
    """Replace the whole map; pairs that are in both maps stay untouched."""

    pairs: PortMap

    def after(self, live: PortMap) -> PortMap:  # noqa: ARG002 - same shape as its siblings
        """The map that stands once this change was executed."""
        return self.pairs


@dataclass(frozen=True)
class Open:
    """Unmap these ports; every other pair stays untouched."""

    ports: frozenset[int]

    def after(self, live: PortMap) -> PortMap:
        """The map that stands once this change was executed on ``live``."""
        return live.without(self.ports)


MapChange = Partial | Full | Open


def disturbed_ports(before: PortMap, after: PortMap) -> frozenset[int]:
    """The ports whose circuit differs between two maps: only their PHYs are dropped by the change."""
    return frozenset(port for pair in set(before.pairs).symmetric_difference(after.pairs) for port in pair)


def inverse(change: MapChange, live: PortMap) -> tuple[MapChange, ...]:
    """The changes that, made in order, give the ports ``change`` disturbs on ``live`` their circuits back."""
    disturbed = disturbed_ports(live, change.after(live))
    back = tuple(pair for pair in live if disturbed.intersection(pair))
    left_open = disturbed - {port for pair in back for port in pair}
    undo: list[MapChange] = []
    if left_open:
        undo.append(Open(left_open))
    if back:
        undo.append(Partial(PortMap(back)))
    return tuple(undo)
