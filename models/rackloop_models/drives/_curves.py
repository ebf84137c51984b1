"""The curves that show how a drive behaves: the standard ones of hard disks and of SSDs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from rackloop.lab import Profile, Published
from rackloop_models.drives._experiments import Load, Seek
from rackloop_models.drives._figures import closed_loop, inner_share, requests_for, state_for
from rackloop_models.drives._results import LoadResult, Result, SeekResult
from rackloop_models.drives._shapes import Depth, Operation, Passes, Pattern, Rate, Region, Requests, Seconds
from rackloop_models.drives._trials import (
    KIB,
    MIB,
    REST,
    Measurement,
    State,
    Trial,
    bytes_per_s,
    iops,
    loads,
    mean_latency_s,
    p99_latency_s,
    seeks,
)

Points = tuple[tuple[float, float], ...]

_HDD_DEPTHS = (1, 2, 4, 8, 16, 32)
_SSD_DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_SSD_BLOCKS = tuple(KIB << power for power in range(2, 11))
_DISTANCES = tuple((step / 24) ** 2 for step in range(25))
_POSITIONS = 32
_LOADS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
_READ_PERCENTS = (100.0, 95.0, 90.0, 80.0, 70.0, 50.0, 30.0, 10.0, 0.0)
_CACHE_S = 60.0
_SHINGLED_S = 1800.0
_CLIFF_PASSES = {State.NEW: 3.0, State.FILLED: 1.5}
_BLOCK_LINES: tuple[tuple[Pattern, Operation], ...] = (
    ("random", "read"),
    ("random", "write"),
    ("sequential", "read"),
    ("sequential", "write"),
)


@dataclass(frozen=True)
class Mark:
    """A published figure where it lies among the curves; one that is a mean over them all has no ``x``."""

    figure: str
    x: float | None
    y: float
    source: str


@dataclass(frozen=True)
class Curve:
    """Lines by what they are of, each with its points in SI base units, and the published figures among them."""

    name: str
    lines: Mapping[str, Points]
    marks: tuple[Mark, ...] = ()


Curves = tuple[Curve, ...]


def standard_curves(profile: Profile, size_bytes: int) -> tuple[Measurement[Curves], ...]:
    """The standard measurements of every drive of the profile's kind; none of an ideal one, which takes no time."""
    match profile.timing["kind"]:
        case "hdd":
            writes = (_shingled(),) if "smr" in profile.timing else (_write_cache(),)
            return (_by_depth(profile, _HDD_DEPTHS, ("read",)), _seek(profile), _zones(size_bytes), *writes)
        case "ssd":
            return (
                _by_depth(profile, _SSD_DEPTHS, ("read", "write")),
                _by_block(profile),
                _cliff(),
                _mix(profile),
            )
        case _:
            return ()


def load_curve(profile: Profile, most_iops: float) -> Measurement[Curves]:
    """Latency of random reads that come by themselves, up to nearly ``most_iops``."""
    offered = [
        Load(
            name=f"load.{share:g}",
            pattern="random",
            block_bytes=4 * KIB,
            arrivals=Rate(share * most_iops),
            warm_up=Requests(requests_for(profile) // 5),
            until=Requests(requests_for(profile)),
        )
        for share in _LOADS
    ]

    def curves(results: Sequence[Result]) -> Curves:
        found = loads(results)
        lines = {
            "mean": _points(found, iops, mean_latency_s),
            "99th percentile": _points(found, iops, p99_latency_s),
        }
        return (Curve("load", lines),)

    return Measurement((Trial(state_for(profile, "read"), tuple(offered)),), curves)


def marked(curve: Curve, published: Sequence[Published]) -> Curve:
    """The curve with those of the published figures that lie in its plane."""
    marks = tuple(
        Mark(entry.figure, place[1], entry.value, entry.source)
        for entry in published
        if (place := _place(entry.figure)) is not None and place[0] == curve.name
    )
    return replace(curve, marks=marks)


_PLACES: dict[str, tuple[str, float | None]] = {
    "seek.track": ("seek", 0.0),
    "seek.read.average": ("seek", None),
    "seek.write.average": ("seek", None),
    "seek.full": ("seek", 1.0),
    "sequential.read.outer": ("zones", 0.0),
    "sequential.read.inner": ("zones", 1.0),
    "randread.latency.average.4KiB": ("depth.latency", 1.0),
    "sequential.read": ("blocks", 128.0 * KIB),
    "sequential.write": ("blocks", 128.0 * KIB),
}
_AT_DEPTH = re.compile(r"rand(?:read|write)\.iops\.depth(\d+)\.4KiB")


def _place(figure: str) -> tuple[str, float | None] | None:
    if at_depth := _AT_DEPTH.fullmatch(figure):
        return "depth", float(at_depth[1])
    return _PLACES.get(figure)


def _points(found: Sequence[LoadResult], x: Callable[[LoadResult], float], y: Callable[[LoadResult], float]) -> Points:
    return tuple((x(result), y(result)) for result in found)


def _by_depth(profile: Profile, depths: Sequence[int], kinds: Sequence[Operation]) -> Measurement[Curves]:
    trials = tuple(
        Trial(
            state_for(profile, what),
            tuple(closed_loop("random", what, 4 * KIB, depth, requests_for(profile)) for depth in depths),
        )
        for what in kinds
    )

    def curves(results: Sequence[Result]) -> Curves:
        found = loads(results)
        by_kind = {what: found[at * len(depths) : (at + 1) * len(depths)] for at, what in enumerate(kinds)}
        depth = {
            _random(profile, what): tuple(zip(depths, map(iops, found_of_kind), strict=True))
            for what, found_of_kind in by_kind.items()
        }
        latency = {
            f"{_random(profile, what)}, {name}": tuple(zip(depths, map(value, found_of_kind), strict=True))
            for what, found_of_kind in by_kind.items()
            for name, value in (("mean", mean_latency_s), ("99th percentile", p99_latency_s))
        }
        return Curve("depth", depth), Curve("depth.latency", latency)

    return Measurement(trials, curves)


def _random(profile: Profile, what: Operation) -> str:
    """The name of random reads or writes: those of a drive in its steady state are sustained."""
    return f"sustained random {what}" if state_for(profile, what) is State.FRAGMENTED else f"random {what}"


def _seek(profile: Profile) -> Measurement[Curves]:
    """Seeks by distance. A shingled drive chooses itself where it writes: its writes show no seeks."""
    operations: tuple[Operation, ...] = ("read",) if "smr" in profile.timing else ("read", "write")
    share = inner_share(profile)
    experiments = tuple(
        Seek(name=f"seek.{operation}", operation=operation, distances=_DISTANCES, inner_share=share, pairs=50)
        for operation in operations
    )

    def curves(results: Sequence[Result]) -> Curves:
        return (Curve("seek", dict(zip(operations, map(_moves, seeks(results)), strict=True))),)

    return Measurement((Trial(State.NEW, experiments),), curves)


def _moves(result: SeekResult) -> Points:
    """Time of the arm over distance: what a request takes more than one where the arm stays."""
    stays_ns = result.distances[0].positioning_ns
    return tuple(
        (distance, (found.positioning_ns - stays_ns) / 1e9)
        for distance, found in zip(_DISTANCES[1:], result.distances[1:], strict=True)
    )


def _zones(size_bytes: int) -> Measurement[Curves]:
    """Sequential reads at places over the whole drive; the first quarter at each fills the track buffer."""
    length = size_bytes // 4 // _POSITIONS // MIB * MIB
    last = (size_bytes - length) // MIB
    offsets = [step * last // _POSITIONS * MIB for step in range(_POSITIONS + 1)]
    requests = length // MIB
    reads = [
        Load(
            name=f"zone.{number}",
            pattern="sequential",
            block_bytes=MIB,
            arrivals=Depth(4),
            region=Region(offset, length),
            warm_up=Requests(requests // 4),
            # What is in flight at the end lies in the region too.
            until=Requests(requests // 2),
        )
        for number, offset in enumerate(offsets)
    ]
    # While the arm reads ahead at one place, the first requests at the next may be served in any order.
    experiments = tuple(experiment for read in reads for experiment in (REST, read))

    def curves(results: Sequence[Result]) -> Curves:
        shares = [offset / offsets[-1] for offset in offsets]
        return (Curve("zones", {"read": tuple(zip(shares, map(bytes_per_s, loads(results)), strict=True))}),)

    return Measurement((Trial(State.NEW, experiments),), curves)


def _over_time(name: str, *, fua: bool = False, depth: int = 1, seconds: float, interval_s: float) -> Load:
    return Load(
        name=name,
        pattern="random",
        read_percent=0,
        block_bytes=4 * KIB,
        arrivals=Depth(depth),
        until=Seconds(seconds),
        interval_s=interval_s,
        fua=fua,
    )


def _rate_by_time(result: LoadResult) -> Points:
    interval_s = result.interval_s or 1.0
    return tuple(
        ((number + 0.5) * interval_s, interval.requests / interval_s)
        for number, interval in enumerate(result.intervals or ())
    )


def _write_cache() -> Measurement[Curves]:
    """Random writes one after the other, from an empty cache on, and the same without it."""
    trials = (
        Trial(State.NEW, (_over_time("cached", seconds=_CACHE_S, interval_s=1.0),)),
        Trial(State.NEW, (_over_time("fua", fua=True, seconds=_CACHE_S, interval_s=1.0),)),
    )

    def curves(results: Sequence[Result]) -> Curves:
        cached, fua = loads(results)
        lines = {"write cache": _rate_by_time(cached), "forced unit access": _rate_by_time(fua)}
        return (Curve("cache", lines),)

    return Measurement(trials, curves)


def _shingled() -> Measurement[Curves]:
    """Random writes that go on beyond what the media cache takes."""
    load = _over_time("shingled", depth=32, seconds=_SHINGLED_S, interval_s=10.0)

    def curves(results: Sequence[Result]) -> Curves:
        return (Curve("shingled", {"random write": _rate_by_time(loads(results)[0])}),)

    return Measurement((Trial(State.NEW, (load,)),), curves)


def _by_block(profile: Profile) -> Measurement[Curves]:
    """Bytes a second by block size."""
    trials = tuple(
        Trial(
            State.FILLED if pattern == "sequential" else state_for(profile, what),
            tuple(_blocks(profile, pattern, what, block_bytes) for block_bytes in _SSD_BLOCKS),
        )
        for pattern, what in _BLOCK_LINES
    )

    def curves(results: Sequence[Result]) -> Curves:
        rates = [bytes_per_s(result) for result in loads(results)]
        lines = {
            (_random(profile, what) if pattern == "random" else f"sequential {what}"): tuple(
                zip(_SSD_BLOCKS, rates[at * len(_SSD_BLOCKS) : (at + 1) * len(_SSD_BLOCKS)], strict=True)
            )
            for at, (pattern, what) in enumerate(_BLOCK_LINES)
        }
        return (Curve("blocks", lines),)

    return Measurement(trials, curves)


def _blocks(profile: Profile, pattern: Pattern, what: Operation, block_bytes: int) -> Load:
    """As many bytes for each block size as the usual number of requests of 4 KiB, and a thousand requests at least."""
    requests = max(1000, requests_for(profile) * 4 * KIB // block_bytes)
    return closed_loop(pattern, what, block_bytes, 32, requests)


def _cliff() -> Measurement[Curves]:
    """Random writes that go on until they have covered the drive several times."""
    trials = tuple(
        Trial(
            state,
            (
                Load(
                    name=f"cliff.{state.value}",
                    pattern="random",
                    read_percent=0,
                    block_bytes=4 * KIB,
                    arrivals=Depth(32),
                    until=Passes(passes),
                    interval_s=0.25,
                ),
            ),
        )
        for state, passes in _CLIFF_PASSES.items()
    )

    def curves(results: Sequence[Result]) -> Curves:
        lines = {
            f"{state.value} drive": _rate_by_passes(result, passes)
            for (state, passes), result in zip(_CLIFF_PASSES.items(), loads(results), strict=True)
        }
        return (Curve("cliff", lines),)

    return Measurement(trials, curves)


def _rate_by_passes(result: LoadResult, passes: float) -> Points:
    """Bytes a second over what has been written; the last interval is not a whole one."""
    written, found = 0, []
    for interval in (result.intervals or ())[:-1]:
        written += interval.bytes
        found.append((passes * written / result.total.bytes, interval.bytes / (result.interval_s or 1.0)))
    return tuple(found)


def _mix(profile: Profile) -> Measurement[Curves]:
    """Requests a second by the share of reads, on a fragmented drive."""
    experiments = tuple(
        closed_loop("random", percent, 4 * KIB, 128, requests_for(profile)) for percent in _READ_PERCENTS
    )

    def curves(results: Sequence[Result]) -> Curves:
        shares = [1 - percent / 100 for percent in _READ_PERCENTS]
        return (Curve("mix", {"all requests": tuple(zip(shares, map(iops, loads(results)), strict=True))}),)

    return Measurement((Trial(State.FRAGMENTED, (REST, *experiments)),), curves)
