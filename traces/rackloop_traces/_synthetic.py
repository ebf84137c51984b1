"""Synthetic traces: seeded, streaming, with the statistics of a profile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from rackloop.errors import BadInput
from rackloop.seed import stream
from rackloop_traces._columns import Op, columns
from rackloop_traces._profile import BLOCK_BYTES, MADE_OPS, TraceProfile
from rackloop_traces._statistics_histogram import Ints
from rackloop_traces._synthetic_arrivals import Stretch, stretches
from rackloop_traces._synthetic_places import PlaceSource, touches

if TYPE_CHECKING:
    import polars

_INTERLEAVED_RUNS = 8
_MOST_REQUESTS = 2**40
_MOST_BINS = 2**32
_LONGEST_S = 2**33


class _OpQueue:
    """The requests of one kind, in the order of their runs; a run that a stretch cuts goes on in the next."""

    def __init__(self, source: PlaceSource, following: float, rng: np.random.Generator) -> None:
        self._source, self._following, self._rng = source, following, rng
        # Rows: offset, size, run, place in the run, group of interleaved runs.
        self._ready: Ints = np.zeros((5, 0), dtype=np.int64)
        self._runs, self._groups = 0, 0

    def take(self, n: int) -> Ints:
        """The next ``n`` requests, a column each."""
        pieces, have = [self._ready], self._ready.shape[1]
        while have < n:
            pieces.append(self._expanded())
            have += pieces[-1].shape[1]
        ready = np.concatenate(pieces, axis=1)
        self._ready = ready[:, n:]
        return ready[:, :n]

    def _expanded(self) -> Ints:
        runs = self._source.next()
        total = int(runs.requests.sum())
        run = np.repeat(np.arange(runs.requests.size), runs.requests)
        place = np.arange(total) - np.repeat(np.cumsum(runs.requests) - runs.requests, runs.requests)
        size = runs.size_bytes[run]
        group = self._grouped(runs.requests)
        rows = np.stack((runs.offset_bytes[run] + place * size, size, run + self._runs, place, group[run]))
        self._runs += runs.requests.size
        return rows

    def _grouped(self, requests: Ints) -> Ints:
        """The group of each run: alone, or with the next few, whose requests then alternate with its own."""
        per_group = _INTERLEAVED_RUNS
        padded = np.pad(requests, (0, -requests.size % per_group)).reshape(-1, per_group)
        longest = np.sort(padded, axis=1)[:, -2:]
        # When the others have ended, the longest run of a group goes on alone.
        alone = int((longest[:, 1] - longest[:, 0]).sum()) / max(1, int((requests - 1).sum()))
        together = self._rng.random(padded.shape[0]) * (1 - min(alone, 0.9)) < 1 - self._following
        in_group = np.arange(requests.size) % per_group
        opens = (in_group == 0) | ~np.repeat(together, per_group)[: requests.size]
        groups = self._groups + np.cumsum(opens)
        self._groups = int(groups[-1])
        return groups


def synthesize(profile: TraceProfile, seed: int, requests: int | None = None) -> Iterator[polars.DataFrame]:
    """Batches of the columns of :func:`rackloop_traces.columns` of a trace with the load of ``profile``.

    So many ``requests``, or as many as the profile's duration has. The first comes at time 0, times never fall, there
    is one volume, and no response times. The same profile, seed and number give the same trace, as long as numpy's
    generators stay the same. Memory does not grow with the length. Raises BadInput where nothing is to be made.
    """
    total = round(profile.count(profile.duration_s)) if requests is None else requests
    if not 0 < total <= _MOST_REQUESTS:
        raise BadInput(
            f"a trace has 1 to {_MOST_REQUESTS} requests, not {total}: give a longer duration or a higher rate"
        )
    bins = total / (profile.mean_rate * profile.bin_s)
    if bins > _MOST_BINS or bins * profile.bin_s >= _LONGEST_S:
        raise BadInput(
            f"{total} requests at {profile.mean_rate:.3g} per second take "
            f"{total / profile.mean_rate:.3g} s, too long for the rate's course: give a higher rate or fewer requests"
        )
    return _batches(profile, seed, total)


def _batches(profile: TraceProfile, seed: int, requests: int) -> Iterator[polars.DataFrame]:
    import polars

    queues = _queues(profile, seed, requests)
    rng = _generator(seed, "order")
    origin_ns: int | None = None
    for stretch in stretches(profile, requests, _generator(seed, "arrivals")):
        origin_ns = int(stretch.t_ns[0]) if origin_ns is None else origin_ns
        op, offset, size = _ordered(stretch, queues, rng)
        rows = {
            "t_ns": stretch.t_ns - origin_ns,
            "op": op.astype(np.uint8),
            "offset_bytes": offset,
            "size_bytes": size,
        }
        frame = polars.DataFrame(rows).with_columns(
            polars.lit("0").alias("volume"), polars.lit(None, dtype=polars.Int64).alias("response_ns")
        )
        yield frame.select(polars.col(name).cast(kind) for name, kind in columns().items())


def _generator(seed: int, *names: str) -> np.random.Generator:
    """The generator for a named stream under the seed."""
    return np.random.Generator(np.random.PCG64(stream(seed, "trace", *names).getrandbits(128)))


def _queues(profile: TraceProfile, seed: int, requests: int) -> dict[Op, _OpQueue]:
    """The kinds that the profile has. Reads and writes share the footprint by what they touch; trims lie over both."""
    rates = {op: sum(profile.rates[op]) for op in MADE_OPS}
    made = [op for op in MADE_OPS if rates[op] > 0]
    touched = {op: rates[op] * _mean_touches(op, profile) for op in made}
    data = sum(touched[op] for op in made if op is not Op.TRIM) or 1.0
    blocks = profile.footprint_bytes / BLOCK_BYTES
    spread = max(1.0, profile.extent_bytes / profile.footprint_bytes)
    queues, next_block = {}, 0
    for op in made:
        rng = _generator(seed, op.name.lower())
        source = PlaceSource(
            op,
            profile,
            requests=round(requests * rates[op] / sum(rates.values())),
            blocks=blocks * min(1.0, touched[op] / data),
            first_block=0 if op is Op.TRIM else next_block,
            spread=spread,
            rng=rng,
        )
        next_block = max(next_block, source.end_block)
        queues[op] = _OpQueue(source, profile.following, rng)
    return queues


def _mean_touches(op: Op, profile: TraceProfile) -> float:
    sizes = np.asarray([size for size, _ in profile.sizes[op]], dtype=np.int64)
    weights = [weight for _, weight in profile.sizes[op]]
    return float(np.average(touches(sizes, profile.shifts), weights=weights))


def _ordered(stretch: Stretch, queues: dict[Op, _OpQueue], rng: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """Kind, offset and size of each request of the stretch: groups of runs stand where their first request is due."""
    ops, rows, groups, due = [], [], 0, []
    for op, queue in queues.items():
        reached = stretch.reached[op]
        taken = queue.take(int(reached[-1]))
        if not taken.shape[1]:
            continue
        first, group = np.unique(taken[4], return_index=True)[1], taken[4] - taken[4, 0]
        bin_of_first = np.searchsorted(reached, first, side="right")
        due.append(bin_of_first + rng.random(first.size))
        rows.append(np.vstack((taken[:4], group + groups)))
        groups += first.size
        ops.append(np.full(taken.shape[1], op.value, dtype=np.int64))
    op_column, table = np.concatenate(ops), np.concatenate(rows, axis=1)
    rank = np.empty(groups, dtype=np.int64)
    rank[np.argsort(np.concatenate(due), kind="stable")] = np.arange(groups)
    order = np.lexsort((table[2], table[3], rank[table[4]]))
    return op_column[order], table[0, order], table[1, order]
