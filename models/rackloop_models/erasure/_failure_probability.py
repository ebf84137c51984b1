"""The code and the replicas for a sector failure probability: eq. 1 and 3 of the paper on local erasure coding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from rackloop.errors import BadInput

TARGET = 1e-6
"""The probability that decoding fails which the paper's codes are made for."""
_LONGEST_CODEWORD = 65_536


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


def metadata_replicas(ph: float, target: float = TARGET) -> int:
    """The number of copies that a metadata sector needs (eq. 3: ``ph ** copies <= target``)."""
    require_probability("ph", ph)
    require_probability("ps", target)
    # By multiplication: the quotient of two logarithms is not a whole number where it should be.
    powers = takewhile(lambda copies: ph**copies > target * (1 + 1e-12), range(1, _LONGEST_CODEWORD))
    return 1 + sum(1 for _ in powers)


def require_probability(name: str, value: float) -> None:
    """Raises BadInput where ``value`` is not between 0 and 1."""
    if not 0 < value < 1:
        raise BadInput(f"{name}: expected a probability above 0 and below 1 such as 0.001, found {value:g}")


def _failures(codeword: int, ph: float, m: np.ndarray) -> np.ndarray:
    from scipy.special import bdtrc

    return np.asarray(bdtrc(m, codeword, ph), dtype=float)
