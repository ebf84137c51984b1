"""The tail latency of consecutive reads by the paper's equations 5 to 9, in the one reading that adds up to 1."""

from __future__ import annotations

import math

import numpy as np

from rackloop.errors import BadInput
from rackloop_models.erasure import decoding_failure
from rackloop_models.tail_latency._distribution import Floats, LatencyPmf
from rackloop_models.tail_latency._reading import LocalErasure, Reading

_NEGLIGIBLE = 1e-15
_MOST_FAILING_GROUPS = 40


def latency_without_code(reading: Reading) -> LatencyPmf:
    """Eq. 5: every sector that fails is retried."""
    low, masses, truncated = _binomial(reading.sectors, reading.ph)
    retries = low + np.arange(masses.size)
    seconds = np.asarray(retries * reading.retry_s + reading.sectors * reading.sector_s, dtype=np.float64)
    return LatencyPmf.of(seconds, masses, truncated)


def latency_with_code(reading: Reading, erasure: LocalErasure) -> LatencyPmf:
    """Eq. 6 to 9: sectors that fail are decoded, and retried only where a group has more than ``m`` of them.

    The four cases as they have to be read: case I is that no user sector of the last group fails, whatever its
    redundancy does; case II excludes that; the last group's binomial has all its k' + m sectors; j failing groups are
    any j of the l. Raises BadInput for a code so weak that dozens of groups fail in one read.
    """
    whole, last = erasure.groups(reading.sectors)
    fails = decoding_failure(erasure.codeword, erasure.m, reading.ph)
    counts = _failing_groups(whole, fails)
    outcomes = _LastGroup(reading, erasure, last)
    excess = _excess(erasure, reading.ph, fails)
    seconds, masses = [], []
    # The excess of j failing groups, by convolution: how many sectors are retried, and with what probability.
    retries = np.ones(1)
    for failing, probability in enumerate(counts):
        base_s = reading.sector_s * (reading.sectors + whole * erasure.m) + failing * erasure.decode_s[-1]
        times, chances = outcomes.alone() if failing == 0 else outcomes.with_others()
        grid = base_s + np.arange(retries.size)[:, None] * reading.retry_s + times
        seconds.append(grid.ravel())
        masses.append((probability * retries[:, None] * chances).ravel())
        retries = _trimmed(np.convolve(retries, excess))
    all_masses = np.concatenate(masses)
    return LatencyPmf.of(np.concatenate(seconds), all_masses, max(0.0, 1 - math.fsum(all_masses)))


class _LastGroup:
    """The share of the last group in the time of the stream, in seconds, and its probability."""

    def __init__(self, reading: Reading, erasure: LocalErasure, last: int) -> None:
        self._reading = reading
        self._erasure = erasure
        self._last = last
        self._sectors = last + erasure.m
        low, masses, _ = _binomial(self._sectors, reading.ph)
        # From 0 on, so that a place is a number of failures.
        self._failures = np.concatenate((np.zeros(low), masses))

    def alone(self) -> tuple[Floats, Floats]:
        """Cases I, II and IV with no other group failing."""
        m, ph = self._erasure.m, self._reading.ph
        none = math.exp(self._last * math.log1p(-ph))
        failures = np.arange(1, self._failures.size)
        # Of the ways to place e failures, those that put them all into the redundancy belong to case I.
        in_redundancy = np.array([math.comb(m, e) / math.comb(self._sectors, e) for e in failures.tolist()])
        chances = np.concatenate(((none,), self._failures[1:] * (1 - in_redundancy)))
        return np.concatenate(((0.0,), self._added_s(failures))), chances

    def with_others(self) -> tuple[Floats, Floats]:
        """Cases III and IV: another group fails, and the redundancy is read whether or not it is needed."""
        failures = np.arange(1, self._failures.size)
        read_s = self._reading.sector_s * self._erasure.m
        return np.concatenate(((read_s,), self._added_s(failures))), self._failures

    def _added_s(self, failures: np.ndarray) -> Floats:
        erasure, reading = self._erasure, self._reading
        decode = np.array([erasure.last_decode_s(count) for count in failures.tolist()], dtype=float)
        retried = np.maximum(failures - erasure.m, 0) * reading.retry_s
        return np.asarray(reading.sector_s * erasure.m + decode + retried, dtype=float)


def _failing_groups(groups: int, fails: float) -> Floats:
    """The probabilities that 0, 1, 2, ... of so many groups cannot be decoded."""
    from scipy.special import bdtrc
    from scipy.stats import binom

    left = bdtrc(np.arange(min(groups, _MOST_FAILING_GROUPS) + 1), groups, fails) if groups else np.zeros(1)
    enough = np.flatnonzero(left <= _NEGLIGIBLE)
    if not enough.size:
        raise BadInput(
            f"decoding fails with {fails:.2g} a group, so often that {_MOST_FAILING_GROUPS} of {groups} groups fail in "
            "one read; take more redundancy or a smaller ph"
        )
    return np.asarray(binom.pmf(np.arange(int(enough[0]) + 1), groups, fails), dtype=float)


def _excess(erasure: LocalErasure, ph: float, fails: float) -> Floats:
    """Of a group that fails: the probabilities of 0, 1, 2, ... failed sectors more than ``m``."""
    low, masses, _ = _binomial(erasure.codeword, ph, above=erasure.m)
    found = np.zeros(low - erasure.m + masses.size)
    found[low - erasure.m :] = masses / fails if fails > 0 else masses
    return found


def _trimmed(masses: Floats) -> Floats:
    """Without the end that is too rare to matter."""
    kept = np.flatnonzero(masses > _NEGLIGIBLE * 1e-3)
    return masses[: kept[-1] + 1] if kept.size else masses[:1]


def _binomial(sectors: int, ph: float, above: int = -1) -> tuple[int, Floats, float]:
    """The first number of failures that is not too rare to matter, the probabilities from there on, and of the rest.

    Only of numbers ``above`` one; what is too rare is then measured by what these have together.
    """
    from scipy.special import bdtr, bdtrc
    from scipy.stats import binom

    mean, deviation = sectors * ph, math.sqrt(sectors * ph)
    low = max(above + 1, 0, int(mean - 10 * deviation))
    high = min(sectors, max(int(mean + 12 * deviation) + 40, above + 40))
    masses = np.asarray(binom.pmf(np.arange(low, high + 1), sectors, ph), dtype=float)
    below = float(bdtr(low - 1, sectors, ph)) if low > max(above + 1, 0) else 0.0
    return low, masses, below + float(bdtrc(high, sectors, ph))
