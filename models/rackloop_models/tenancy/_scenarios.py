"""Scenarios of tenants that share one drive: which tenants, on a drive in which state."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from rackloop.errors import BadInput
from rackloop.units import format_quantity
from rackloop_models.drives import (
    Bursts,
    Depth,
    Pattern,
    Priority,
    Rate,
    Region,
    Slo,
    Tenant,
    TenantLoad,
    TraceReplay,
    WeightedOperation,
    WeightedSize,
)
from rackloop_oracles.fairness import Terms

Condition = Literal["clean", "fragmented"]
CONDITIONS: tuple[Condition, ...] = ("clean", "fragmented")
KIB = 1 << 10
UNIT_BYTES = 4 * KIB
"""The unit of regions: drives map so much at once, and what is not of whole units is read and written twice."""
_SECTOR_BYTES = 512


@dataclass(frozen=True, kw_only=True)
class TenantKind:
    """Tenants that are alike. A drive is shared out in equal regions, unless ``region_bytes`` says what each has.

    One of ``block_bytes``, ``sizes``, ``operations`` and ``trace`` says what they ask for; ``pattern`` and
    ``read_percent`` are of the first two. A trace without ``arrivals`` comes at its own times. Times are since the
    beginning of the warm-up.
    """

    name: str
    arrivals: Depth | Rate | None
    block_bytes: int | None = None
    sizes: tuple[WeightedSize, ...] | None = None
    operations: tuple[WeightedOperation, ...] | None = None
    trace: TraceReplay | None = None
    read_percent: float = 100.0
    pattern: Pattern = "random"
    region_bytes: int | None = None
    weight: float = 1.0
    slo: Slo | None = None
    priority: Priority = "medium"
    follows_credit: bool = False
    bursts: Bursts | None = None
    joins_s: float = 0.0
    leaves_s: float | None = None

    @property
    def largest_bytes(self) -> int:
        """The largest request; of a trace, whose requests are cut to fit, a sector."""
        of_sizes = [one.block_bytes for one in self.sizes or ()]
        of_operations = [one.block_bytes for one in self.operations or ()]
        return max([*of_sizes, *of_operations, self.block_bytes or _SECTOR_BYTES])

    @property
    def only_reads(self) -> bool:
        """Whether it never writes, as far as is known without reading a trace, and promises as much."""
        if self.slo is not None and self.slo.read_percent < 100.0:
            return False
        if self.operations is not None:
            return all(one.operation == "read" for one in self.operations)
        return self.trace is None and self.read_percent == 100.0

    def terms(self, scheduler: str, warm_up_s: float) -> Terms:
        """The terms on which it shares a drive through a scheduler of this kind, measured after a warm-up.

        Its demand is bounded unless it is a closed loop that is there, without pauses, for all that is measured. One
        that is bounded by its rate alone has a rate.
        """
        comes_and_goes = self.bursts is not None or self.joins_s > warm_up_s or self.leaves_s is not None
        is_bounded = comes_and_goes or not isinstance(self.arrivals, Depth)
        has_rate = isinstance(self.arrivals, Rate) and not comes_and_goes
        return Terms.through(scheduler, self.weight, is_bounded=is_bounded, has_rate=has_rate)

    def load(self, name: str, region: Region) -> TenantLoad:
        """The load of one tenant."""
        has_places = self.block_bytes is not None or self.sizes is not None
        return TenantLoad(
            tenant=Tenant(name=name, weight=self.weight, slo=self.slo, read_only=self.only_reads),
            pattern=self.pattern if has_places else None,
            block_bytes=self.block_bytes,
            sizes=self.sizes,
            operations=self.operations,
            trace=self.trace,
            arrivals=self.arrivals,
            read_percent=self.read_percent if has_places else None,
            region=region,
            priority=self.priority,
            follows_credit=self.follows_credit,
            bursts=self.bursts,
            joins_s=self.joins_s,
            disconnects_s=self.leaves_s,
        )


@dataclass(frozen=True)
class Scenario:
    """Tenants of some ``kinds`` in turns, on a drive in a ``condition``."""

    name: str
    condition: Condition
    kinds: tuple[TenantKind, ...]

    def kind_of(self, number: int) -> TenantKind:
        """The kind of a tenant, by its number."""
        return self.kinds[number % len(self.kinds)]

    def tenants(self, count: int, size_bytes: int) -> tuple[TenantLoad, ...]:
        """So many tenants on a drive of that size, each in a region of its own.

        Raises BadInput where they do not fit, or where a kind would have none.
        """
        self.require_tenants(count)
        kinds = [self.kind_of(number) for number in range(count)]
        regions = self._regions(kinds, size_bytes)
        seen: Counter[str] = Counter()
        loads = []
        for kind, region in zip(kinds, regions, strict=True):
            seen[kind.name] += 1
            loads.append(kind.load(f"{kind.name}-{seen[kind.name]}", region))
        return tuple(loads)

    def require_tenants(self, count: int) -> None:
        """Raise BadInput where a kind would have no tenant."""
        if count < len(self.kinds):
            raise BadInput(
                f"scenario {self.name}: {count} tenants are fewer than its {len(self.kinds)} kinds of tenants"
            )

    def require_times(self, whole_s: float) -> None:
        """Raise BadInput where a tenant would come or go after the end, or go before it comes."""
        for kind in self.kinds:
            end_s = whole_s if kind.leaves_s is None else kind.leaves_s
            if not kind.joins_s < end_s <= whole_s:
                raise BadInput(
                    f"scenario {self.name}: tenants of kind {kind.name} join at {kind.joins_s:g} s and leave at "
                    f"{end_s:g} s of {whole_s:g} s; let them join before they leave, or give more --seconds"
                )

    def _regions(self, kinds: list[TenantKind], size_bytes: int) -> list[Region]:
        given = sum(kind.region_bytes or 0 for kind in kinds)
        open_ended = sum(kind.region_bytes is None for kind in kinds)
        drive = format_quantity(size_bytes, "B")
        if given > size_bytes:
            raise BadInput(
                f"scenario {self.name}: the regions of its {len(kinds)} tenants are {format_quantity(given, 'B')} "
                f"together, and the drive has {drive}; give a larger --size, fewer --tenants, or smaller regions"
            )
        # Alike tenants are served alike only where their regions begin alike.
        largest = -(-max(kind.largest_bytes for kind in kinds) // UNIT_BYTES) * UNIT_BYTES
        each = (size_bytes - given) // max(open_ended, 1) // largest * largest
        regions, at = [], 0
        for kind in kinds:
            length = kind.region_bytes or each
            if length < kind.largest_bytes:
                raise BadInput(
                    f"scenario {self.name}: a drive of {drive} leaves each of {len(kinds)} tenants "
                    f"{format_quantity(length, 'B')}, less than one block of {format_quantity(kind.largest_bytes, 'B')}"
                )
            regions.append(Region(at, length))
            at += length
        return regions


def _reads(block_bytes: int, depth: int, name: str) -> TenantKind:
    return TenantKind(name=name, block_bytes=block_bytes, arrivals=Depth(depth))


def _writes(block_bytes: int, depth: int, name: str, pattern: Pattern) -> TenantKind:
    return TenantKind(name=name, block_bytes=block_bytes, arrivals=Depth(depth), read_percent=0.0, pattern=pattern)


_READ_4K = _reads(4 * KIB, 32, "read-4k")
_READ_128K = _reads(128 * KIB, 4, "read-128k")
_SEQUENTIAL_4K = _writes(4 * KIB, 32, "write-4k", "sequential")
_SEQUENTIAL_128K = _writes(128 * KIB, 4, "write-128k", "sequential")
_RANDOM_4K = _writes(4 * KIB, 32, "write-4k", "random")

SCENARIOS: tuple[Scenario, ...] = (
    Scenario("reads-4k", "clean", (_READ_4K,)),
    Scenario("reads-128k", "clean", (_READ_128K,)),
    Scenario("writes-128k", "clean", (_SEQUENTIAL_128K,)),
    Scenario("sizes", "clean", (_READ_4K, _READ_128K)),
    Scenario("kinds-4k", "clean", (_READ_4K, _SEQUENTIAL_4K)),
    Scenario("kinds-128k", "clean", (_READ_128K, _SEQUENTIAL_128K)),
    Scenario("reads-4k", "fragmented", (_READ_4K,)),
    Scenario("writes-4k", "fragmented", (_RANDOM_4K,)),
    Scenario("sizes", "fragmented", (_READ_4K, _READ_128K)),
    Scenario("kinds-4k", "fragmented", (_READ_4K, _RANDOM_4K)),
)
"""The scenarios that are run unless a file gives others: alike tenants for utilisation, mixes for fairness.

Writes to a clean drive are sequential, as those that made it so: at random they would fragment it within a second.
"""
