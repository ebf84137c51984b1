"""The load of a fio job: when its I/Os are due, its pauses, and the sizes of its blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rackloop.errors import BadInput

_LEAST_BURST_S = 0.001
_LONGEST_BURST_S = 4000.0
# As many as fio's bssplit takes for one direction.
_MOST_SIZES = 64


class Arrivals(StrEnum):
    """fio's ``rate_process``: I/Os of a rate that are due at even distances, or at random."""

    LINEAR = "linear"
    POISSON = "poisson"


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
