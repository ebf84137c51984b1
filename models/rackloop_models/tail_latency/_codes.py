"""The codes that soft sector failure probabilities require: Table 1 and Fig. 4 of the paper."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from rackloop.errors import BadInput
from rackloop_models.erasure import TARGET, ChosenCode, choose_code, require_probability

SECTOR_BYTES = 4096
CODEWORDS = (255, 1023)
FAILURE_PROBABILITIES = (1e-4, 5e-4, 1e-3, 5e-3)
FIGURE_4_TARGET = 1e-8
_NONE_SUFFICES = -1


@dataclass(frozen=True)
class Redundancy:
    """The redundancy of codewords of one length for sectors failing with ``ph``, as a ratio of the user sectors."""

    ph: float
    codeword: int
    m: int

    @property
    def ratio(self) -> float:
        """Redundancy sectors for each user sector."""
        return self.m / (self.codeword - self.m)


@dataclass(frozen=True)
class RedundancyStep:
    """Codewords of ``shortest`` to ``longest`` sectors, all of which need ``m`` where sectors fail with ``ph``."""

    ph: float
    shortest: int
    longest: int
    m: int


def table_of_codes(
    codewords: Iterable[int] = CODEWORDS, phs: Sequence[float] = FAILURE_PROBABILITIES, target: float = TARGET
) -> tuple[ChosenCode, ...]:
    """Table 1: the codes of each length for each probability. Raises as :func:`choose_code`."""
    return tuple(choose_code(codeword, ph, target) for codeword in codewords for ph in phs)


def redundancy_by_length(
    codewords: Sequence[int], phs: Sequence[float] = FAILURE_PROBABILITIES, target: float = FIGURE_4_TARGET
) -> tuple[Redundancy, ...]:
    """Fig. 4: the redundancy of codewords by their length. Lengths at which no code suffices are left out."""
    found = []
    for ph in phs:
        for codeword in codewords:
            try:
                code = choose_code(codeword, ph, target)
            except BadInput:
                require_probability("ph", ph)
                require_probability("ps", target)
                continue
            found.append(Redundancy(ph, codeword, code.m))
    return tuple(found)


def redundancy_steps(
    shortest: int, longest: int, phs: Sequence[float] = FAILURE_PROBABILITIES, target: float = FIGURE_4_TARGET
) -> tuple[RedundancyStep, ...]:
    """Fig. 4 at every length: where the redundancy that codewords need goes up, which it does by whole sectors.

    A longer codeword never needs less, so that steps are found by bisection. Lengths at which no code suffices are left
    out. Raises BadInput as :func:`choose_code` does.
    """
    require_probability("ps", target)
    steps = []
    for ph in phs:
        require_probability("ph", ph)
        lengths = range(shortest, longest + 1)
        at = 0
        while at < len(lengths):
            m = _least_redundancy(lengths[at], ph, target)
            end = bisect_right(lengths, m, lo=at, key=partial(_least_redundancy, ph=ph, target=target))
            if m != _NONE_SUFFICES:
                steps.append(RedundancyStep(ph, lengths[at], lengths[end - 1], m))
            at = end
    return tuple(steps)


def _least_redundancy(codeword: int, ph: float, target: float) -> int:
    found = redundancy_by_length((codeword,), (ph,), target)
    return found[0].m if found else _NONE_SUFFICES
