"""The same reads by trial: each group's failures are drawn, nothing is worked out."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rackloop.measurement import Distribution
from rackloop_models.tail_latency._distribution import Floats, LatencyPmf
from rackloop_models.tail_latency._reading import LocalErasure, Reading

_DRAWN_AT_ONCE = 1 << 22
_NANOSECOND = 1e-9


@dataclass(frozen=True)
class Agreement:
    """The largest distance of the distribution of trials from a model's, and how far chance would take it.

    ``bound`` is exceeded with a probability of at most one in a million where the trials follow the model
    (Dvoretzky, Kiefer and Wolfowitz's inequality with Massart's constant; it holds for discrete distributions too).
    """

    distance: float
    bound: float

    @property
    def is_given(self) -> bool:
        """Whether trials and model agree."""
        return self.distance <= self.bound


def trials_without_code(reading: Reading, trials: int, seed: int) -> Floats:
    """The latencies of so many reads in which the drive retries, in seconds."""
    failed = np.random.default_rng(seed).binomial(reading.sectors, reading.ph, trials)
    return np.asarray(failed * reading.retry_s + reading.sectors * reading.sector_s)


def trials_with_code(reading: Reading, erasure: LocalErasure, trials: int, seed: int) -> Floats:
    """The latencies of so many reads in which failed sectors are decoded, in seconds."""
    rng = np.random.default_rng(seed)
    whole, last = erasure.groups(reading.sectors)
    at_once = max(1, _DRAWN_AT_ONCE // (whole + 1))
    parts = [
        _some(reading, erasure, whole, last, min(at_once, trials - done), rng) for done in range(0, trials, at_once)
    ]
    return np.concatenate(parts) if parts else np.empty(0)


def agreement(trials: Floats, model: LatencyPmf) -> Agreement:
    """The agreement of trials with the distribution of the model."""
    n, drawn, at = trials.size, np.sort(trials), model.seconds
    # A trial and the model may come to the same latency by other roundings.
    up_to = np.searchsorted(drawn, at + 2 * _NANOSECOND, side="right") / n
    # Right before each latency as well: trials that are too short lie between two of the model's.
    before = at - 2 * _NANOSECOND
    below = np.searchsorted(drawn, before, side="right") / n
    distances = np.abs(up_to - model.cumulative(at)), np.abs(below - model.cumulative(before))
    distance = float(np.max(distances))
    return Agreement(distance, math.sqrt(math.log(2e6) / (2 * n)))


def distribution(trials: Floats) -> Distribution:
    """The trials as samples, in seconds, whose quantiles have intervals by order statistics."""
    return Distribution.of(np.round(trials, 9).tolist())


def _some(
    reading: Reading, erasure: LocalErasure, whole: int, last: int, trials: int, rng: np.random.Generator
) -> Floats:
    m, ph = erasure.m, reading.ph
    failed = rng.binomial(erasure.codeword, ph, (trials, whole))
    beyond = np.maximum(failed - m, 0)
    failing = np.count_nonzero(beyond, axis=1)
    of_user = rng.binomial(last, ph, trials)
    of_last = of_user + rng.binomial(m, ph, trials)
    # Redundancy that failed matters only to who reads it.
    reads_redundancy = (of_user > 0) | (failing > 0)
    missing = np.where(reads_redundancy, of_last, 0)
    decode_s = np.array([0.0, *(erasure.last_decode_s(count) for count in range(1, m + 1))])
    return np.asarray(
        reading.sector_s * (reading.sectors + (whole + reads_redundancy) * m)
        + failing * erasure.decode_s[-1]
        + decode_s[np.minimum(missing, m)]
        + (beyond.sum(axis=1) + np.maximum(missing - m, 0)) * reading.retry_s
    )
