"""The load of a fio job: when its I/Os are due, its pauses, and the sizes of its blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import expm1

from rackloop.errors import BadInput

_LEAST_BURST_S = 0.001
_LONGEST_BURST_S = 4000.0
# As many as fio's bssplit takes for one direction.
_MOST_SIZES = 64
_SECOND_US = 1_000_000
# What a rate at random may differ from the one asked for: less than two runs of fio differ by.
_RATE_TOLERANCE = 0.01
# Up to here every rate is within that.
_SURELY_KEPT_IOPS = 20_000


class Arrivals(StrEnum):
    """fio's ``rate_process``: I/Os of a rate that are due at even distances, or at random."""

    LINEAR = "linear"
    POISSON = "poisson"


def poisson_rate(rate_iops: int) -> int:
    """The ``rate_iops`` with which fio comes nearest to so many I/Os a second at random."""
    next_gap_us = _SECOND_US // rate_iops + 1
    return min(rate_iops, max(1, _SECOND_US // next_gap_us), key=lambda rate: abs(_kept(rate) - rate_iops))


def poisson_kept_iops(rate_iops: int) -> float:
    """The I/Os a second at random that one thread of fio issues for a rate, while nothing holds them back."""
    return _kept(poisson_rate(rate_iops))


def poisson_problems(rate_iops: int) -> list[str]:
    """The problem with a rate at random that one thread of fio would not keep, as a part of a sentence."""
    kept = poisson_kept_iops(rate_iops)
    if abs(kept / rate_iops - 1) <= _RATE_TOLERANCE:
        return []
    said = f"{rate_iops:,} I/Os a second are due at random, and fio, whose gaps are whole microseconds, would come to"
    return [f"{said} {kept:,.0f}: it keeps up to {_SURELY_KEPT_IOPS:,} of a thread"]


def _kept(rate_iops: int) -> float:
    """The I/Os a second that fio issues at random for a ``rate_iops``, while nothing holds them back.

    It takes the mean gap in whole microseconds and rounds each gap that it draws down to whole ones (usec_for_io).
    """
    mean_gap_us = _SECOND_US // rate_iops
    return _SECOND_US * expm1(1 / mean_gap_us) if mean_gap_us else float("inf")


@dataclass(frozen=True, kw_only=True)
class Bursts:
    """I/O for ``on_s``, then none for ``off_s``, again and again; each thread for itself.

    I/Os that are outstanding at the end of a burst complete in the pause. Raises BadInput for what fio could not do.
    """

    on_s: float
    off_s: float

    def __post_init__(self) -> None:
        if not (_LEAST_BURST_S <= self.on_s <= _LONGEST_BURST_S and _LEAST_BURST_S <= self.off_s <= _LONGEST_BURST_S):
            raise BadInput(
                f"bursts of {self.on_s:g} s with pauses of {self.off_s:g} s: "
                f"both are {_LEAST_BURST_S:g} to {_LONGEST_BURST_S:g} s"
            )

    def options(self) -> dict[str, str]:
        """The options of a job's section."""
        return {"thinktime": f"{round(self.off_s * 1e6)}us", "thinktime_iotime": f"{round(self.on_s * 1e6)}us"}


@dataclass(frozen=True)
class BlockShare:
    """The I/Os of one size, and what part of all they are."""

    size_bytes: int
    percent: int


def block_mix_option(mix: Sequence[BlockShare]) -> str:
    """The mix as a ``bssplit`` of fio's."""
    return ":".join(f"{share.size_bytes}/{share.percent}" for share in mix)


def block_mix_problems(mix: Sequence[BlockShare]) -> list[str]:
    """The problems with a mix, as parts of a sentence."""
    problems = [
        f"a block of block_mix has {share.size_bytes} bytes, must have at least 512"
        for share in mix
        if share.size_bytes < 512
    ]
    sizes = [share.size_bytes for share in mix]
    if len(set(sizes)) < len(sizes) or len(sizes) > _MOST_SIZES:
        problems.append(f"block_mix has each size once, and at most {_MOST_SIZES} of them")
    total = sum(share.percent for share in mix)
    if mix and (total != 100 or min(share.percent for share in mix) < 1):
        problems.append(f"the shares of block_mix are 1 to 100 % and come to 100 %, not to {total} %")
    return problems
