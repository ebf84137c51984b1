"""The cells of a comparison: schedulers, and the client without one of its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rackloop_models.drives import BlobStore, Cores, Hardware, Link, StoreClient, Tenant

SMARTNIC = Hardware(
    cores=Cores(
        count=4,
        submission_us=0.5,
        completion_us=0.5,
        submission_us_per_kib=0.016,
        completion_us_per_kib=0.016,
    ),
    link=Link(mb_s=12_500.0, propagation_us=1.0),
)
"""A core for each of four drives, 100 Gb/s. Cost of an I/O: 1 us at 4 KiB and 5 us at 128 KiB (Gimbal, section 1)."""

TREE: Mapping[str, Any] = {
    "memtable_bytes": 1 << 20,
    "table_bytes": 1 << 20,
    "level_base_bytes": 4 << 20,
    "cache_bytes": 1 << 20,
}
"""RocksDB's defaults over 64, so that memory holds as small a share of a small database as of a real one."""

ABLATIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "limiter off": {"options": {"limiter": False}},
    "steering off": {"options": {"steering": "first"}},
    "both off": {"options": {"limiter": False, "steering": "first"}},
    "one replica": {"layout": {"replicas": 1}},
}
"""The client without one of its parts."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """Alike clients on one box; ``mix`` is the letter of one of YCSB's workloads."""

    mix: str
    clients: int
    records: int
    depth: int
    seconds: float
    warm_up_s: float


@dataclass(frozen=True)
class Cell:
    """A scheduler and a client: the whole one, or without a part (``ablation``)."""

    scheduler: str
    parameters: Mapping[str, Any] = field(hash=False)
    ablation: str | None = None

    @property
    def name(self) -> str:
        """The name of the cell."""
        return self.scheduler if self.ablation is None else f"{self.scheduler}, {self.ablation}"

    def experiment(self, setup: Setup, clients: int | None = None) -> BlobStore:
        """The experiment, of all clients or of some alone."""
        changes = ABLATIONS[self.ablation] if self.ablation else {}
        count = setup.clients if clients is None else clients
        return BlobStore(
            name=self.name,
            hardware=SMARTNIC,
            clients=tuple(
                StoreClient(
                    tenant=Tenant(name=f"client-{number + 1}"),
                    mix=setup.mix,
                    records=setup.records,
                    depth=setup.depth,
                )
                for number in range(count)
            ),
            scheduler=self.parameters,
            seconds=setup.seconds,
            warm_up_s=setup.warm_up_s,
            tree=TREE,
            **{key: dict(value) for key, value in changes.items()},  # type: ignore[arg-type]
        )


def cells(schedulers: Mapping[str, Mapping[str, Any]]) -> Sequence[Cell]:
    """The whole client with each scheduler, then, with Gimbal where it is among them, the client without each part."""
    whole = [Cell(name, parameters) for name, parameters in schedulers.items()]
    gimbal = [cell for cell in whole if cell.parameters["kind"] == "gimbal"][:1]
    return [*whole, *(Cell(cell.scheduler, cell.parameters, part) for cell in gimbal for part in ABLATIONS)]
