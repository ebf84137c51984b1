"""Arrival times of a synthetic trace: the rate by the profile's bins, burstiness by a cascade below them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rackloop_traces._columns import Op
from rackloop_traces._profile import MADE_OPS, TraceProfile
from rackloop_traces._statistics_histogram import Ints

_FINEST_NS = 10_000.0
_AT_ONCE = 2**19
_BINS_AT_ONCE = 4096


@dataclass(frozen=True)
class Stretch:
    """Consecutive arrivals: their times, ascending, and how many of each kind have come by the end of each bin."""

    t_ns: Ints
    reached: dict[Op, Ints]


def stretches(profile: TraceProfile, requests: int, rng: np.random.Generator) -> Iterator[Stretch]:
    """The first ``requests`` arrivals under ``profile``, in stretches of some 500,000."""
    bins = len(profile.rates[Op.READ])
    rates = np.asarray([profile.rates[op] for op in MADE_OPS])
    left, first = requests, 0
    owed = np.zeros(len(MADE_OPS))
    while left:
        places = np.arange(first, first + _BINS_AT_ONCE) % bins
        # Whole requests, with what rounding owes carried on.
        sums = np.cumsum(rates[:, places] * profile.bin_s, axis=1) + owed[:, None]
        whole = np.floor(sums + 0.5)
        owed = sums[:, -1] - whole[:, -1]
        counts = np.diff(whole, axis=1, prepend=0).astype(np.int64)
        for part in _parts(counts.sum(axis=0)):
            width_ns = profile.bin_s * 1e9
            for stretch in _spread((first + part.start) * width_ns, width_ns, counts[:, part], profile, rng):
                yield stretch if stretch.t_ns.size <= left else _cut(stretch, left)
                left -= min(left, stretch.t_ns.size)
                if not left:
                    return
        first += _BINS_AT_ONCE


def _parts(totals: Ints) -> Iterator[slice]:
    """Runs of bins with not much more than what is handled at once."""
    reached = np.cumsum(totals)
    begin = 0
    while begin < totals.size:
        done = int(reached[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(reached, done + _AT_ONCE, side="right")))
        yield slice(begin, end)
        begin = end


def _cut(stretch: Stretch, left: int) -> Stretch:
    """The first ``left`` arrivals; where that is in the middle of a bin, its kinds keep their proportion."""
    totals = np.sum(list(stretch.reached.values()), axis=0)
    end = int(np.searchsorted(totals, left))
    before = int(totals[end - 1]) if end else 0
    share = (left - before) / (int(totals[end]) - before)
    reached, missing = {}, left
    for op, sums in stretch.reached.items():
        done = int(sums[end - 1]) if end else 0
        kept = min(done + round((int(sums[end]) - done) * share), missing)
        reached[op] = np.concatenate((sums[:end], [kept]))
        missing -= kept
    for op, sums in stretch.reached.items():
        more = min(missing, int(sums[end] - reached[op][-1]))
        reached[op][-1] += more
        missing -= more
    return Stretch(stretch.t_ns[:left], reached)


def _spread(
    start_ns: float, width_ns: float, counts: Ints, profile: TraceProfile, rng: np.random.Generator
) -> Iterator[Stretch]:
    """The arrivals of bins of one width, given by kind and bin. A bin that holds too many by itself is halved first."""
    totals = counts.sum(axis=0)
    if totals.size == 1 and int(totals[0]) > _AT_ONCE and width_ns > _FINEST_NS:
        share = _shares(profile, width_ns, 1, rng)[0]
        early = np.floor(counts * share + 0.5).astype(np.int64)
        yield from _spread(start_ns, width_ns / 2, early, profile, rng)
        yield from _spread(start_ns + width_ns / 2, width_ns / 2, counts - early, profile, rng)
        return
    times = _cascade(start_ns + np.arange(totals.size) * width_ns, totals, width_ns, profile, rng)
    if times.size:
        yield Stretch(times, {op: np.cumsum(counts[row]) for row, op in enumerate(MADE_OPS)})


def _cascade(
    starts_ns: NDArray[np.float64], counts: Ints, width_ns: float, profile: TraceProfile, rng: np.random.Generator
) -> Ints:
    """The times of ``counts`` arrivals in intervals of one width: halved again and again, each half getting its share.

    Which half gets the greater share is chance; lone arrivals, and intervals of 10 us, are not halved further.
    """
    done = []
    starts, left = starts_ns[counts > 0], counts[counts > 0]
    while starts.size:
        is_whole = left == 1 if width_ns > _FINEST_NS else np.ones(left.size, dtype=bool)
        settled = np.repeat(starts[is_whole], left[is_whole])
        done.append(settled + rng.random(settled.size) * width_ns)
        starts, left = starts[~is_whole], left[~is_whole]
        early = rng.binomial(left, _shares(profile, width_ns, left.size, rng))
        width_ns /= 2
        late = left - early
        starts = np.concatenate((starts[early > 0], starts[late > 0] + width_ns))
        left = np.concatenate((early[early > 0], late[late > 0]))
    return np.sort(np.concatenate(done)).astype(np.int64) if done else np.zeros(0, dtype=np.int64)


def _shares(profile: TraceProfile, width_ns: float, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """The shares of the first halves of ``n`` intervals of this width: the bias or the rest, by chance.

    The bias is that of the shortest interval known that is not shorter, or of the longest.
    """
    known = [bias for interval_s, bias in profile.biases if interval_s * 1e9 >= width_ns]
    bias = known[-1] if known else profile.biases[0][1]
    return np.where(rng.random(n) < 0.5, bias, 1 - bias)
