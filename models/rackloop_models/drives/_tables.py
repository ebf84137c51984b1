"""Tables of tenants' results: figures, distributions of latency and series, as Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import polars as pl

from rackloop.errors import BadInput
from rackloop_models.drives._box import BoxResult
from rackloop_models.drives._measured import Latency
from rackloop_models.drives._tenants import TenantResult, TenantsResult

TABLES = ("tenants.parquet", "histograms.parquet", "series.parquet")
"""The names of the files."""
_KEY = {"experiment": pl.String, "seed": pl.UInt64, "scheduler": pl.String, "tenant": pl.String}
_LATENCIES = {f"latency_{one.name}_ns": pl.Float64 if one.name == "mean" else pl.Int64 for one in fields(Latency)}
_TENANTS: dict[str, Any] = {
    **_KEY,
    "drive": pl.Int64,
    "operation": pl.String,
    "start_s": pl.Float64,
    "seconds": pl.Float64,
    "requests": pl.Int64,
    "bytes": pl.Int64,
    "iops": pl.Float64,
    "bytes_per_s": pl.Float64,
    **_LATENCIES,
    "errors": pl.Int64,
    "dropped": pl.Int64,
}
_HISTOGRAMS: dict[str, Any] = {**_KEY, "upper_ns": pl.Int64, "count": pl.Int64}
_SERIES: dict[str, Any] = {
    **_KEY,
    "at_s": pl.Float64,
    "interval_s": pl.Float64,
    "requests": pl.Int64,
    "bytes": pl.Int64,
    "mean_latency_ns": pl.Int64,
    "max_latency_ns": pl.Int64,
}


@dataclass(frozen=True)
class Recorded:
    """A result of tenants on drives of a seed."""

    seed: int
    result: TenantsResult | BoxResult


@dataclass(frozen=True)
class TenantTables:
    """The tables of many results, in order of experiment, seed and tenant.

    ``tenants`` has a row for all requests of a tenant and one each for its reads and writes; ``histograms`` one for
    each bucket of its latencies, where experiments have histograms; ``series`` one for each interval, where they have
    intervals, ``at_s`` being its end since the start of the measured time.
    """

    tenants: pl.DataFrame
    histograms: pl.DataFrame
    series: pl.DataFrame

    def write(self, out: Path) -> tuple[str, ...]:
        """Write the files into an existing folder; returns their names. Raises BadInput where one cannot be written."""
        for name, frame in zip(TABLES, (self.tenants, self.histograms, self.series), strict=True):
            try:
                frame.write_parquet(out / name)
            except OSError as error:
                raise BadInput(f"{out / name}: {error.strerror or error}") from error
        return TABLES


def tenant_tables(recorded: Sequence[Recorded]) -> TenantTables:
    """The tables of results, which may come in any order."""
    rows = [(one, tenant) for one in recorded for tenant in one.result.tenants]
    rows.sort(key=lambda row: (row[0].result.name, row[0].seed, row[0].result.start_s))
    return TenantTables(
        pl.DataFrame([row for pair in rows for row in _figures(*pair)], schema=_TENANTS),
        pl.DataFrame([row for pair in rows for row in _buckets(*pair)], schema=_HISTOGRAMS),
        pl.DataFrame([row for pair in rows for row in _intervals(*pair)], schema=_SERIES),
    )


def _key(one: Recorded, tenant: TenantResult) -> dict[str, Any]:
    return {
        "experiment": one.result.name,
        "seed": one.seed,
        "scheduler": one.result.scheduler,
        "tenant": tenant.name,
    }


def _figures(one: Recorded, tenant: TenantResult) -> Iterator[dict[str, Any]]:
    for operation, figures in (("all", tenant.total), ("read", tenant.reads), ("write", tenant.writes)):
        latency = {} if figures.latency_ns is None else asdict(figures.latency_ns)
        yield {
            **_key(one, tenant),
            "drive": getattr(tenant, "drive", 0),
            "operation": operation,
            "start_s": one.result.start_s,
            "seconds": one.result.seconds,
            "requests": figures.requests,
            "bytes": figures.bytes,
            "iops": figures.iops,
            "bytes_per_s": figures.bytes_per_s,
            **{name: latency.get(name.removeprefix("latency_").removesuffix("_ns")) for name in _LATENCIES},
            "errors": tenant.errors,
            "dropped": tenant.dropped,
        }


def _buckets(one: Recorded, tenant: TenantResult) -> Iterator[dict[str, Any]]:
    for upper_ns, count in tenant.latency_buckets or ():
        yield {**_key(one, tenant), "upper_ns": upper_ns, "count": count}


def _intervals(one: Recorded, tenant: TenantResult) -> Iterator[dict[str, Any]]:
    interval_s = tenant.interval_s or 0.0
    for number, interval in enumerate(tenant.intervals or (), 1):
        yield {
            **_key(one, tenant),
            "at_s": min(number * interval_s, one.result.seconds),
            "interval_s": interval_s,
            **asdict(interval),
        }
