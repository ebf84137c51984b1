"""Scenarios of tenants that share one drive: which tenants, on a drive in which state."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from rackloop.errors import BadInput
from rackloop.units import format_quantity
from rackloop_models.drives import Depth, Pattern, Rate, Region, Slo, Tenant, TenantLoad

Condition = Literal["clean", "fragmented"]
CONDITIONS: tuple[Condition, ...] = ("clean", "fragmented")
KIB = 1 << 10


@dataclass(frozen=True, kw_only=True)
class TenantKind:
    """Tenants that are alike. A drive is shared out in equal regions, unless ``region_bytes`` says what each has."""

    name: str
    block_bytes: int
    arrivals: Depth | Rate
    read_percent: float = 100.0
    pattern: Pattern = "random"
    region_bytes: int | None = None
    weight: float = 1.0
    slo: Slo | None = None

    def load(self, name: str, region: Region) -> TenantLoad:
        """The load of one tenant."""
        only_reads = self.read_percent == 100.0 and (self.slo is None or self.slo.read_percent == 100.0)
        return TenantLoad(
            tenant=Tenant(name=name, weight=self.weight, slo=self.slo, read_only=only_reads),
            pattern=self.pattern,
            block_bytes=self.block_bytes,
            arrivals=self.arrivals,
            read_percent=self.read_percent,
            region=region,
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

    def _regions(self, kinds: list[TenantKind], size_bytes: int) -> list[Region]:
        given = sum(kind.region_bytes or 0 for kind in kinds)
        open_ended = sum(kind.region_bytes is None for kind in kinds)
        drive = format_quantity(size_bytes, "B")
        if given > size_bytes:
            raise BadInput(
                f"scenario {self.name}: the regions of its {len(kinds)} tenants are {format_quantity(given, 'B')} "
                f"together, and the drive has {drive}; give a larger --size, fewer --tenants, or smaller regions"
            )
        largest = max(kind.block_bytes for kind in kinds)
        each = (size_bytes - given) // max(open_ended, 1) // largest * largest
        regions, at = [], 0
        for kind in kinds:
            length = kind.region_bytes or each
            if length < kind.block_bytes:
                raise BadInput(
                    f"scenario {self.name}: a drive of {drive} leaves each of {len(kinds)} tenants "
                    f"{format_quantity(length, 'B')}, less than one block of {format_quantity(kind.block_bytes, 'B')}"
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
