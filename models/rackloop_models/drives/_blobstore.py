"""Blobstore experiments of drivesim, key for key: key-value stores of many clients on the drives of boxes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rackloop_models.drives._box import Hardware
from rackloop_models.drives._measured import Latency
from rackloop_models.drives._tenants import Tenant


@dataclass(frozen=True, kw_only=True)
class StoreClient:
    """A tenant of every drive with a database of so many ``records``, and ``depth`` operations under way.

    ``mix`` is the letter of one of YCSB's workloads, or shares of operations by name.
    """

    tenant: Tenant
    mix: str | Mapping[str, Any] = field(hash=False)
    records: int
    depth: int
    operation_us: float = 5.0


@dataclass(frozen=True, kw_only=True)
class BlobStore:
    """Clients whose blobs lie on the drives of ``boxes``; mappings have those keys that differ from the defaults."""

    name: str
    hardware: Hardware
    clients: tuple[StoreClient, ...]
    seconds: float
    scheduler: Mapping[str, Any] = field(default_factory=lambda: {"kind": "none"}, hash=False)
    boxes: int = 1
    warm_up_s: float = 0.0
    layout: Mapping[str, Any] = field(default_factory=dict, hash=False)
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    tree: Mapping[str, Any] = field(default_factory=dict, hash=False)
    kind: Literal["blobstore"] = "blobstore"


@dataclass(frozen=True)
class Operations:
    """Operations of a kind, and their latencies from start to answer."""

    count: int
    latency_ns: Latency | None


@dataclass(frozen=True)
class StoreClientResult:
    """A client's figures; ``reads_by_replica`` counts reads by the place of the replica that served them.

    Amplification is of bytes written for each byte put, before replication, and of blocks read for each lookup.
    """

    name: str
    operations: int
    operations_per_s: float
    errors: int
    gets: Operations
    puts: Operations
    scans: Operations
    read_modify_writes: Operations
    reads_by_replica: tuple[int, ...]
    reads_by_drive: tuple[int, ...]
    counters: dict[str, int]
    write_amplification: float | None
    read_amplification: float | None
    level_bytes: tuple[int, ...]
    failure: str | None


@dataclass(frozen=True)
class StoreDrive:
    """A drive, and the state of its scheduler at the end of the measured time."""

    in_box: int
    snapshot: dict[str, Any]


@dataclass(frozen=True)
class BlobStoreResult:
    """The figures of every client over ``seconds`` of virtual time, after ``load_s`` of loading and the warm-up."""

    kind: Literal["blobstore"]
    name: str
    scheduler: str
    load_s: float
    start_s: float
    seconds: float
    clients: tuple[StoreClientResult, ...]
    drives: tuple[StoreDrive, ...]
