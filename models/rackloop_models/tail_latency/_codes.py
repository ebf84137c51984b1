"""Which code a soft sector failure probability asks for: eq. 1 and 3, Table 1 and Fig. 4 of the paper."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

import numpy as np

from rackloop.errors import BadInput

SECTOR_BYTES = 4096
CODEWORDS = (255, 1023)
FAILURE_PROBABILITIES = (1e-4, 5e-4, 1e-3, 5e-3)
TARGET = 1e-6
"""The probability that decoding fails which the paper's codes are made for."""
FIGURE_4_TARGET = 1e-8
_LONGEST_CODEWORD = 65_536
_NONE_SUFFICES = -1


@dataclass(frozen=True)
class ChosenCode:
    """The code with the least redundancy for sectors that fail with ``ph``, and with what probability it fails.

    ``fails`` is that of ``m`` redundancy sectors, at most the target; ``fails_with_less`` that of ``m - 1``, above it.
    """

    ph: float
    target: float
    k: int
    m: int
    fails: float
    fails_with_less: float

    @property
    def codeword(self) -> int:
        """Sectors of a group."""
        return self.k + self.m

    @property
    def redundancy(self) -> float:
        """Redundancy sectors for each user sector of a whole group."""
        return self.m / self.k


@dataclass(frozen=True)
class Redundancy:
    """What codewords of one length need for sectors that fail with ``ph``, as a ratio of the user sectors."""

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


def decoding_failure(codeword: int, m: int, ph: float) -> float:
    """The probability that more than ``m`` of ``codeword`` sectors fail: the sum of eq. 1.

    By the incomplete beta function, which has all its digits where one minus the rest of the sum would have none.
    Raises BadInput for a probability that is not between 0 and 1.
    """
    require_probability("ph", ph)
    return float(_failures(codeword, ph, np.array([m]))[0])


def choose_code(codeword: int, ph: float, target: float = TARGET) -> ChosenCode:
    """The code of this length with the least redundancy that decoding fails with at most ``target``.

    Raises BadInput where no redundancy suffices, for probabilities that are not between 0 and 1 and a codeword that is
    not from 2 to 65,536 sectors.
    """
    require_probability("ph", ph)
    require_probability("ps", target)
    if not 2 <= codeword <= _LONGEST_CODEWORD:
        raise BadInput(f"a codeword has 2 to {_LONGEST_CODEWORD:,} sectors, found {codeword}")
    # A few standard deviations more than the mean will do; where they do not, all are looked at.
    for most in (int(codeword * ph + 20 * math.sqrt(codeword * ph) + 40), codeword - 1):
        fails = _failures(codeword, ph, np.arange(min(most, codeword - 1) + 1))
        enough = np.flatnonzero(fails <= target)
        if enough.size:
            m = int(enough[0])
            return ChosenCode(ph, target, codeword - m, m, float(fails[m]), float(fails[m - 1]) if m else 1.0)
    raise BadInput(
        f"no code of {codeword} sectors fails as rarely as {target:g} where a sector fails with {ph:g}; "
        "take longer codewords or a larger ps"
    )


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


def metadata_replicas(ph: float, target: float = TARGET) -> int:
    """How many copies of a metadata sector there have to be (eq. 3: ``ph ** copies <= target``)."""
    require_probability("ph", ph)
    require_probability("ps", target)
    # By multiplication: the quotient of two logarithms is not a whole number where it should be.
    powers = takewhile(lambda copies: ph**copies > target * (1 + 1e-12), range(1, _LONGEST_CODEWORD))
    return 1 + sum(1 for _ in powers)


def require_probability(name: str, value: float) -> None:
    """Raises BadInput where ``value`` is not between 0 and 1."""
    if not 0 < value < 1:
        raise BadInput(f"{name}: expected a probability above 0 and below 1 such as 0.001, found {value:g}")


def _least_redundancy(codeword: int, ph: float, target: float) -> int:
    found = redundancy_by_length((codeword,), (ph,), target)
    return found[0].m if found else _NONE_SUFFICES


def _failures(codeword: int, ph: float, m: np.ndarray) -> np.ndarray:
    from scipy.special import bdtrc

    return np.asarray(bdtrc(m, codeword, ph), dtype=float)
