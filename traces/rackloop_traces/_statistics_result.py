"""The statistics of a trace, as values that can be written as JSON and read back."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, Self, TypeAlias, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rackloop.errors import BadInput
from rackloop_traces._columns import Op

OpName: TypeAlias = Literal["read", "write", "trim", "flush"]
_Count: TypeAlias = Annotated[int, Field(ge=0, le=2**62)]
_Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]


def op_name(op: Op) -> OpName:
    """The name of a kind of request in statistics."""
    return cast("OpName", op.name.lower())


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class OpStatistics(_Part):
    """One kind of request: how many, and their sizes in bytes.

    ``sizes`` is (size, requests), ascending: exact for multiples of 512 up to 1 MiB, else within 0.1 %; within 6 %
    where there are more than 1024 different sizes. ``response_us`` are quantiles, None where the trace records none or
    all are 0.
    """

    requests: int = Field(ge=0)
    bytes: int = Field(ge=0)
    quantiles_bytes: dict[float, int]
    sizes: list[tuple[_Count, _Count]]
    response_us: dict[float, float] | None


class ScaleStatistics(_Part):
    """Arrivals counted in intervals of one length.

    ``dispersion`` is the index of dispersion for counts, variance over mean: 1 for a Poisson process at every length,
    growing with the length where load is bursty. ``pairs_together`` is the share of all pairs of requests that fall
    into the same interval.
    """

    interval_s: float = Field(gt=0)
    intervals: int = Field(gt=0)
    peak_requests: int
    dispersion: float
    pairs_together: float = Field(ge=0, le=1)


class Gaps(_Part):
    """Times between arrivals, in microseconds; quantiles within 0.1 %, the curve within 13 %.

    ``variation`` is the coefficient of variation, 1 for a Poisson process. ``curve_us`` is (time, share not longer).
    """

    n: int
    mean_us: float
    variation: float
    longest_us: float
    zero_share: float
    quantiles_us: dict[float, float]
    curve_us: list[tuple[float, float]]


class RateSeries(_Part):
    """Requests and bytes of each kind in consecutive bins of ``bin_s`` seconds, at most 4096."""

    bin_s: float = Field(gt=0)
    requests: dict[OpName, list[_Count]]
    bytes: dict[OpName, list[int]]

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        lengths = {len(self.requests.get(op, ())) for op in get_args(OpName)}
        if len(lengths) != 1 or lengths == {0}:
            raise ValueError("requests of every kind are in the same bins, at least one")
        return self


class Arrivals(_Part):
    """Statistics of arrivals. ``tick_us`` divides all times of the trace: its clock's resolution, or a multiple."""

    tick_us: float = Field(ge=0)
    peak_second_requests: int
    scales: list[ScaleStatistics]
    rate: RateSeries
    gaps: Gaps | None
    read_gaps: Gaps | None
    write_gaps: Gaps | None

    @model_validator(mode="after")
    def _ascends(self) -> Self:
        if any(left.interval_s >= right.interval_s for left, right in pairwise(self.scales)):
            raise ValueError("scales ascend")
        return self


class RunLengths(_Part):
    """Runs of requests of one volume that each begin where the one before ended; alone, a request is a run of one."""

    n: int
    mean_requests: float
    quantiles_requests: dict[float, int]


class Sequentiality(_Part):
    """Shares of requests that begin where the one before (following), or one of the last 32 (continuing), ended."""

    following_share: float = Field(ge=0, le=1)
    continuing_share: float = Field(ge=0, le=1)
    following_by_op: dict[OpName, float]
    continuing_by_op: dict[OpName, float]
    runs: RunLengths


class WorkingSet(_Part):
    """Distinct blocks touched in consecutive windows."""

    window_s: float
    distinct: list[int]


class Blocks(_Part):
    """Blocks that reads and writes touch.

    ``hot_shares`` is the share of touches that the busiest part of the blocks gets: 0.01 -> 0.15 says that the busiest
    1 % get 15 %. ``curve`` has the same as points. ``reuse_us`` are quantiles of the time between touches of a block,
    ``growth`` is (seconds, distinct blocks touched so far).
    """

    block_bytes: int
    distinct: _Count
    distinct_read: int
    distinct_written: int
    touches: int
    touched_once: int
    is_exact: bool
    standard_error: float
    requests_cut_short: int
    hot_shares: dict[float, float]
    curve: list[tuple[_Share, _Share]]
    reuse_us: dict[float, float]
    growth: list[tuple[float, int]]
    working_set: WorkingSet | None

    @model_validator(mode="after")
    def _climbs(self) -> Self:
        if any(right <= left or higher < lower for (left, lower), (right, higher) in pairwise(self.curve)):
            raise ValueError("the curve of locality climbs")
        return self


class Placement(_Part):
    """Statistics of offsets. ``shift_shares``: share of requests by (offset modulo 4 KiB) / 512, then of all others."""

    lowest_offset_bytes: int
    highest_end_bytes: _Count
    aligned_512_share: float
    aligned_4096_share: float
    shift_shares: list[_Share] = Field(min_length=9, max_length=9)


class Statistics(_Part):
    """All statistics of a trace. Flushes count in ``ops`` and ``arrivals`` alone: they have no offset."""

    schema_version: int = Field(default=1, ge=1, le=1)
    requests: int = Field(gt=0)
    duration_s: float = Field(ge=0)
    volumes: int
    out_of_order: int
    ops: dict[OpName, OpStatistics] = Field(min_length=4)
    arrivals: Arrivals
    sequentiality: Sequentiality
    placement: Placement
    blocks: Blocks
    doubts: list[str]

    @model_validator(mode="after")
    def _has_sizes(self) -> Self:
        for op in get_args(OpName):
            has_requests = any(self.arrivals.rate.requests[op])
            if has_requests and op != "flush" and not any(count for _, count in self.ops[op].sizes):
                raise ValueError(f"there are {op} requests and no sizes of them")
        return self


def read_statistics(path: Path) -> Statistics:
    """The statistics that ``rackloop trace stat --json`` or ``--out`` wrote to ``path``; raises BadInput for others."""
    try:
        return Statistics.model_validate_json(path.read_bytes())
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "its beginning"
        raise BadInput(
            f"{path} is not what `rackloop trace stat --json` writes: at {where}: {first['msg']}; "
            "write it anew from the trace"
        ) from None
