"""The figures that data sheets publish, each with the experiments that find it out on a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from rackloop.errors import BadInput
from rackloop.lab import Profile
from rackloop.units import parse_size
from rackloop_models.drives._experiments import Load, Seek
from rackloop_models.drives._interference import INTERFERENCE
from rackloop_models.drives._results import Result
from rackloop_models.drives._shapes import Depth, Operation, Passes, Pattern, Region, Requests
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
    seeks,
)

# A seek is within 40 % of the mean, so that of so many is within 1 %.
_PAIRS = 8000
# Three of some 140 blocks are free after a rest: with 5 % of writes this is more than they hold.
_MIXED_PASSES = 0.6
_MINUTE_S = 60.0
_IOPS = re.compile(
    r"(?:rand(?P<clean>write\.clean)|(?P<pattern>rand|seq)(?P<what>read|write))"
    r"\.iops\.depth(?P<depth>\d+)\.(?P<block>\d+[KM]iB)"
)
_RANDOM_LATENCY = re.compile(r"rand(?P<what>read|write)\.latency\.average\.(?P<block>\d+[KM]iB)")


def figure(name: str, profile: Profile, size_bytes: int) -> Measurement[float]:
    """The measurement of a simulated drive of ``size_bytes`` for the figure of that name, in SI base units.

    Raises BadInput for a figure that drives of the profile's kind do not have. The timing parameters are good ones.
    """
    if found := _IOPS.fullmatch(name):
        depth, block_bytes = int(found["depth"]), _block_bytes(found["block"])
        if found["clean"]:
            return Measurement((_clean_writes(block_bytes, depth),), _only(iops))
        pattern: Pattern = "random" if found["pattern"] == "rand" else "sequential"
        return _iops(profile, pattern, _operation(found["what"]), depth, block_bytes)
    if found := _RANDOM_LATENCY.fullmatch(name):
        return _random_latency(profile, _operation(found["what"]), _block_bytes(found["block"]))
    named = _OF_DISKS if profile.is_rotational else _OF_SSDS
    if measurement := named.get(name):
        return measurement(profile, size_bytes)
    of_any = (
        "(rand|seq)(read|write).iops.depthN.SIZE",
        "randwrite.clean.iops.depthN.SIZE",
        "rand(read|write).latency.average.SIZE",
    )
    known = ", ".join([*of_any, *named])
    raise BadInput(f"profile {profile.name}: nothing measures the published figure {name!r}; known: {known}")


def _block_bytes(text: str) -> int:
    return parse_size(re.sub(r"(\d)([KM])", r"\1 \2", text))


def _operation(text: str) -> Operation:
    return "read" if text == "read" else "write"


def closed_loop(pattern: Pattern, what: Operation | float, block_bytes: int, depth: int, requests: int) -> Load:
    """Reads, writes, or a mix with so many percent of reads, all over the drive."""
    return Load(
        name=f"{pattern}.{what}.depth{depth}",
        pattern=pattern,
        read_percent={"read": 100.0, "write": 0.0}[what] if isinstance(what, str) else what,
        block_bytes=block_bytes,
        arrivals=Depth(depth),
        warm_up=Requests(requests // 5),
        until=Requests(requests),
    )


def state_for(profile: Profile, what: Operation) -> State:
    """The state that data sheets mean: reads of what was written, and writes in the steady state."""
    if profile.is_rotational:
        return State.NEW
    return State.FILLED if what == "read" else State.FRAGMENTED


def requests_for(profile: Profile) -> int:
    """Enough requests for a mean that is steady to a percent."""
    return 10_000 if profile.is_rotational else 100_000


def _iops(profile: Profile, pattern: Pattern, what: Operation, depth: int, block_bytes: int) -> Measurement[float]:
    load = closed_loop(pattern, what, block_bytes, depth, requests_for(profile))
    return Measurement((Trial(state_for(profile, what), (load,)),), _only(iops))


def _clean_writes(block_bytes: int, depth: int) -> Trial:
    """So few random writes that a drive which was filled in order has flash enough left for them."""
    load = Load(
        name=f"clean.depth{depth}",
        pattern="random",
        read_percent=0,
        block_bytes=block_bytes,
        arrivals=Depth(depth),
        warm_up=Passes(0.01),
        until=Passes(0.04),
    )
    return Trial(State.FILLED, (load,))


def _random_latency(profile: Profile, what: Operation, block_bytes: int) -> Measurement[float]:
    load = closed_loop("random", what, block_bytes, 1, requests_for(profile))
    return Measurement((Trial(state_for(profile, what), (load,)),), _only(mean_latency_s))


def _only(value: Callable[..., float]) -> Callable[[Sequence[Result]], float]:
    return lambda results: value(loads(results)[0])


def inner_share(profile: Profile) -> float:
    """The ratio of an innermost track's content to an outermost one's: at one speed, as their rates are."""
    return float(profile.timing["inner_mb_s"] / profile.timing["outer_mb_s"])


def _average_seek(operation: Operation) -> Callable[[Profile, int], Measurement[float]]:
    """The mean of seeks between any two cylinders, less what a request takes where the arm stays."""

    def measurement(profile: Profile, _size_bytes: int) -> Measurement[float]:
        share = inner_share(profile)
        stays = Seek(name="stays", operation=operation, distances=(0.0,), inner_share=share, pairs=20)
        moves = Seek(name="moves", operation=operation, inner_share=share, pairs=_PAIRS)
        return Measurement((Trial(State.NEW, (stays, moves)),), _moving_s)

    return measurement


def _moving_s(results: Sequence[Result]) -> float:
    stays, moves = seeks(results)
    return (moves.distances[0].positioning_ns - stays.distances[0].positioning_ns) / 1e9


def _track_seek(profile: Profile, size_bytes: int) -> Measurement[float]:
    """The quickest seek over some more than a cylinder and less than two: wherever it is, the arm moves by one or two.

    A cylinder holds what passes under each of its heads in a revolution; switching from one to the next, which the
    sustained rate includes, takes some of that time.
    """
    timing = profile.timing
    mean_rate = (timing["outer_mb_s"] + timing["inner_mb_s"]) / 2 * 1e6
    cylinder_bytes = timing["heads"] * mean_rate * _MINUTE_S / timing["rpm"]
    distances = (0.0, min(1.0, 1.5 * cylinder_bytes / size_bytes))
    seek = Seek(name="track", operation="read", distances=distances, inner_share=inner_share(profile), pairs=200)
    return Measurement((Trial(State.NEW, (seek,)),), _least_s)


def _least_s(results: Sequence[Result]) -> float:
    stays, moves = seeks(results)[0].distances
    return (moves.least_positioning_ns - stays.positioning_ns) / 1e9


def _full_seek(_profile: Profile, _size_bytes: int) -> Measurement[float]:
    seek = Seek(name="full", operation="read", distances=(0.0, 1.0), pairs=20)
    return Measurement((Trial(State.NEW, (seek,)),), _least_s)


def _rotation(_profile: Profile, _size_bytes: int) -> Measurement[float]:
    """Half of the revolution that is lost where a sector was just missed."""
    seek = Seek(name="missed", operation="read", pairs=20)
    return Measurement((Trial(State.NEW, (seek,)),), lambda results: seeks(results)[0].distances[0].revolution_ns / 2e9)


def _sequential_at(what: Operation, *, inner: bool = False) -> Callable[[Profile, int], Measurement[float]]:
    """A sixteenth of the drive, at its edge: the first half fills caches, and what is in flight at the end fits in."""

    def measurement(_profile: Profile, size_bytes: int) -> Measurement[float]:
        blocks = size_bytes // 16 // MIB
        length = blocks * MIB
        load = Load(
            name=f"sequential.{what}",
            pattern="sequential",
            read_percent=100 if what == "read" else 0,
            block_bytes=MIB,
            arrivals=Depth(4),
            region=Region(size_bytes - length if inner else 0, length),
            warm_up=Requests(blocks // 2),
            until=Requests(blocks // 4),
        )
        return Measurement((Trial(State.NEW, (load,)),), _only(bytes_per_s))

    return measurement


def _sequential(what: Operation) -> Callable[[Profile, int], Measurement[float]]:
    """Half of the drive, in the order it was filled in."""

    def measurement(_profile: Profile, size_bytes: int) -> Measurement[float]:
        block_bytes = 128 * KIB
        load = closed_loop("sequential", what, block_bytes, 32, size_bytes // block_bytes // 2)
        return Measurement((Trial(State.FILLED, (load,)),), _only(bytes_per_s))

    return measurement


def _fragmented_ratio(profile: Profile, _size_bytes: int) -> Measurement[float]:
    """Random writes to a fragmented drive against those to a clean one."""
    load = closed_loop("random", "write", 4 * KIB, 32, requests_for(profile))
    trials = (_clean_writes(4 * KIB, 32), Trial(State.FRAGMENTED, (load,)))

    def ratio(results: Sequence[Result]) -> float:
        clean, fragmented = loads(results)
        return bytes_per_s(fragmented) / bytes_per_s(clean)

    return Measurement(trials, ratio)


def _mixed_loss(profile: Profile, _size_bytes: int) -> Measurement[float]:
    """The share of all requests a second that is lost when one request in twenty becomes a write."""
    reads = closed_loop("random", "read", 4 * KIB, 128, requests_for(profile))
    mixed = Load(
        name="mixed",
        pattern="random",
        read_percent=95.0,
        block_bytes=4 * KIB,
        arrivals=Depth(128),
        # So many writes that the blocks which a rest has made free are full, whatever the size of the drive.
        warm_up=Passes(_MIXED_PASSES),
        until=Requests(3 * requests_for(profile)),
    )

    def loss(results: Sequence[Result]) -> float:
        alone, together = loads(results)
        return 1 - iops(together) / iops(alone)

    return Measurement((Trial(State.FRAGMENTED, (REST, reads, mixed)),), loss)


def _of_any(measurement: Callable[[], Measurement[float]]) -> Callable[[Profile, int], Measurement[float]]:
    return lambda _profile, _size_bytes: measurement()


_OF_DISKS: dict[str, Callable[[Profile, int], Measurement[float]]] = {
    "rotation.latency.average": _rotation,
    "seek.full": _full_seek,
    "seek.read.average": _average_seek("read"),
    "seek.track": _track_seek,
    "seek.write.average": _average_seek("write"),
    "sequential.read.inner": _sequential_at("read", inner=True),
    "sequential.read.outer": _sequential_at("read"),
    "sequential.write.outer": _sequential_at("write"),
}
_OF_SSDS: dict[str, Callable[[Profile, int], Measurement[float]]] = {
    "fragmented.write.ratio": _fragmented_ratio,
    "mixed5.iops.loss": _mixed_loss,
    "sequential.read": _sequential("read"),
    "sequential.write": _sequential("write"),
    **{name: _of_any(measurement) for name, measurement in INTERFERENCE.items()},
}
