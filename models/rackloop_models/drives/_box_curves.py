"""The curves of storage boxes: IOPS by the number of cores, and unloaded latency by the size of a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rackloop.abilities import Executor
from rackloop.clock import Deadline
from rackloop.errors import ProtocolError
from rackloop.lab import load_profile
from rackloop_models.drives._box import Box, BoxResult
from rackloop_models.drives._box_figures import IOPS, LATENCY, SIZES_KIB, saturated, unloaded
from rackloop_models.drives._box_profile import BoxProfile
from rackloop_models.drives._curves import Points
from rackloop_models.drives._shapes import Operation
from rackloop_models.drives._simulation import DriveSim
from rackloop_models.drives._trials import KIB, PREPARATIONS, REST, State

# Those by which the tenants of a saturated box can be divided.
_CORES = (1, 2, 3, 4, 6, 8)
_OPERATIONS: dict[Operation, str] = {"read": "random reads", "write": "sequential writes"}
_PUBLISHED = {"randread": "random reads", "seqwrite": "sequential writes"}
_SATURATED: tuple[tuple[Operation, int], ...] = (("read", 4), ("write", 4), ("read", 128))


@dataclass(frozen=True)
class BoxCurves:
    """The curves of a box, a line for each kind of request, and the published points of the same.

    ``iops`` is in requests a second by the number of cores, ``latency`` the mean in seconds by the size in KiB.
    """

    name: str
    like: str
    iops: Mapping[str, Points]
    latency: Mapping[str, Points]
    published_iops: Mapping[str, Points]
    published_latency: Mapping[str, Points]


def box_curves(
    executor: Executor,
    profiles: Sequence[BoxProfile],
    deadline: Deadline,
    *,
    size_bytes: int,
    seed: int,
    binary: str | None = None,
) -> tuple[BoxCurves, ...]:
    """The curves of each box, whose drives are filled once. Raises as :func:`box_checks`."""
    return tuple(_curves(executor, profile, deadline, size_bytes, seed, binary) for profile in profiles)


def _curves(
    executor: Executor, profile: BoxProfile, deadline: Deadline, size_bytes: int, seed: int, binary: str | None
) -> BoxCurves:
    sim = DriveSim(
        executor, load_profile(profile.drive), size_bytes=size_bytes, seed=seed, drives=profile.drives, binary=binary
    )
    boxes = [*_unloaded(profile), *_saturated(profile, size_bytes)]
    # Writes go last: they leave the drives otherwise than they were.
    boxes.sort(key=lambda box: ".write." in box.name)
    results = sim.run((*PREPARATIONS[State.FILLED], REST, *boxes), deadline)
    found = {result.name: result for result in results if isinstance(result, BoxResult)}
    return BoxCurves(
        profile.name,
        profile.like,
        {
            f"{_OPERATIONS[operation]} of {kib} KiB": tuple(
                (float(cores), _rate(found[_at_cores(operation, kib, cores)])) for cores in _cores(profile)
            )
            for operation, kib in _SATURATED
        },
        {
            word: tuple((float(kib), _latency_s(found[_alone(operation, kib)], operation)) for kib in SIZES_KIB)
            for operation, word in _OPERATIONS.items()
        },
        _published_iops(profile),
        _published_latency(profile),
    )


def _unloaded(profile: BoxProfile) -> Iterator[Box]:
    for operation in _OPERATIONS:
        for kib in SIZES_KIB:
            yield unloaded(_alone(operation, kib), profile.hardware(), operation, kib * KIB)


def _saturated(profile: BoxProfile, size_bytes: int) -> Iterator[Box]:
    for operation, kib in _SATURATED:
        for cores in _cores(profile):
            yield saturated(
                _at_cores(operation, kib, cores),
                profile.hardware(cores=cores),
                operation,
                kib * KIB,
                size_bytes=size_bytes,
                drives=profile.drives,
            )


def _cores(profile: BoxProfile) -> list[int]:
    """The numbers of cores up to those that the box has."""
    return [count for count in _CORES if count <= profile.cores.count]


def _alone(operation: Operation, kib: int) -> str:
    return f"alone.{operation}.{kib}"


def _at_cores(operation: Operation, kib: int, cores: int) -> str:
    return f"saturated.{operation}.{kib}.{cores}"


def _rate(result: BoxResult) -> float:
    if result.total.iops is None:
        raise ProtocolError(f"the experiment {result.name!r} took no time")
    return result.total.iops


def _latency_s(result: BoxResult, operation: Operation) -> float:
    (tenant,) = result.tenants
    times = tenant.read_phases_ns if operation == "read" else tenant.write_phases_ns
    if times is None:
        raise ProtocolError(f"the experiment {result.name!r} came to nothing")
    return times.total / 1e9


def _published_iops(profile: BoxProfile) -> dict[str, Points]:
    found: dict[str, Points] = {}
    for entry in profile.published:
        if named := IOPS.fullmatch(entry.figure):
            what = f"{_PUBLISHED[named['kind']]} of {named['kib']} KiB"
            found[what] = (*found.get(what, ()), (float(named["cores"]), entry.value))
    return found


def _published_latency(profile: BoxProfile) -> dict[str, Points]:
    points = [
        (float(named["kib"]), entry.value)
        for entry in profile.published
        if (named := LATENCY.fullmatch(entry.figure)) is not None
    ]
    return {_PUBLISHED["randread"]: tuple(points)} if points else {}
