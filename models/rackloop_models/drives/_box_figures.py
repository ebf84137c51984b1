"""The published figures of storage boxes, each found on the model by experiments of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from rackloop.abilities import Executor
from rackloop.clock import Deadline
from rackloop.errors import BadInput
from rackloop.lab import load_profile
from rackloop_models.drives._box import Box, BoxResult, Hardware, PhaseTimes
from rackloop_models.drives._box_profile import BoxFigure, BoxProfile
from rackloop_models.drives._measured import known
from rackloop_models.drives._shapes import Depth, Operation, Region
from rackloop_models.drives._simulation import DriveSim
from rackloop_models.drives._tenants import Tenant, TenantLoad
from rackloop_models.drives._trials import KIB, PREPARATIONS, REST, State, iops

SIZES_KIB = (4, 8, 16, 32, 64, 128, 256)
"""The sizes of unloaded requests."""
_SMALL_KIB = SIZES_KIB[:5]
# Divisible by all numbers of cores that are asked about, and 6 on each of four drives: some 128 requests a drive.
_TENANTS, _DEPTH = 24, 21
_LARGE_DEPTH = 4
IOPS = re.compile(r"(?P<kind>randread|seqwrite)\.iops\.cores(?P<cores>\d+)\.(?P<kib>\d+)KiB")
"""The name of a published rate by the number of cores."""
LATENCY = re.compile(r"randread\.latency\.average\.(?P<kib>\d+)KiB")
"""The name of a published unloaded latency."""
_SHARE = re.compile(r"randread\.drive\.share\.(?P<kib>\d+)KiB")
_ONE_CORE = re.compile(r"randread\.onecore\.share\.(?P<kib>\d+)KiB")
OPERATION_OF: dict[str, Operation] = {"randread": "read", "seqwrite": "write"}
"""The operation in the name of a published figure."""
_EXCESS = re.compile(r"randread\.excess\.(?P<kib>\d+)KiB")


@dataclass(frozen=True)
class BoxCheck:
    """A published figure of a box, and the model's."""

    published: BoxFigure
    model: float

    @property
    def deviation(self) -> float:
        """The deviation of the model from what was published, as a ratio of that; with its sign."""
        return self.model / self.published.value - 1

    @property
    def is_met(self) -> bool:
        """Whether the model is as near as the profile asks for."""
        return abs(self.deviation) <= self.published.within


def unloaded(name: str, hardware: Hardware, operation: Operation, block_bytes: int) -> Box:
    """One request at a time: random reads, or sequential writes."""
    load = TenantLoad(
        tenant=Tenant(name="alone"),
        pattern="random" if operation == "read" else "sequential",
        block_bytes=block_bytes,
        arrivals=Depth(1),
        read_percent=100.0 if operation == "read" else 0.0,
        drive=0,
    )
    return Box(name=name, hardware=hardware, tenants=(load,), seconds=0.1)


def saturated(
    name: str, hardware: Hardware, operation: Operation, block_bytes: int, *, size_bytes: int, drives: int
) -> Box:
    """As many requests as the box takes: random reads, or sequential writes in regions of the tenants' own."""
    each = size_bytes // (_TENANTS // drives) // block_bytes * block_bytes
    loads = tuple(
        TenantLoad(
            tenant=Tenant(name=f"t{number}"),
            pattern="random" if operation == "read" else "sequential",
            block_bytes=block_bytes,
            arrivals=Depth(_DEPTH if block_bytes <= 4 * KIB else _LARGE_DEPTH),
            read_percent=100.0 if operation == "read" else 0.0,
            region=None if operation == "read" else Region(number // drives * each, each),
        )
        for number in range(_TENANTS)
    )
    return Box(name=name, hardware=hardware, tenants=loads, warm_up_s=0.02, seconds=0.06)


def all_unloaded(name: str, hardware: Hardware) -> Iterator[Box]:
    """One request at a time of each operation and size, each named ``NAME.OPERATION.KIB``."""
    for operation in OPERATION_OF.values():
        for kib in SIZES_KIB:
            yield unloaded(f"{name}.{operation}.{kib}", hardware, operation, kib * KIB)


def on_filled_drives(sim: DriveSim, boxes: Iterable[Box], deadline: Deadline) -> dict[str, BoxResult]:
    """The results of boxes by their names, which have their operation in them. Raises as :func:`box_checks`."""
    # Writes go last: they leave the drives otherwise than they were.
    in_order = sorted(boxes, key=lambda box: ".write." in box.name)
    results = sim.run((*PREPARATIONS[State.FILLED], REST, *in_order), deadline)
    return {result.name: result for result in results if isinstance(result, BoxResult)}


def phases_of(result: BoxResult, operation: Operation) -> PhaseTimes:
    """The phases of the requests of a box's only tenant. Raises ProtocolError where there were none."""
    (tenant,) = result.tenants
    return known(tenant.read_phases_ns if operation == "read" else tenant.write_phases_ns, result.name)


def box_checks(
    executor: Executor,
    profiles: Sequence[BoxProfile],
    deadline: Deadline,
    *,
    size_bytes: int,
    seed: int,
    beside: str = "x86-server",
    binary: str | None = None,
) -> dict[str, tuple[BoxCheck, ...]]:
    """Each published figure of boxes of the same drives, by the profile's name.

    Figures of excess are against the box ``beside``, one of them. Raises BadInput for a figure that nothing measures,
    for boxes whose drives differ, or where drivesim refuses something, ToolError where it fails, DeadlineExceeded.
    """
    if len({(one.drive, one.drives) for one in profiles}) != 1:
        raise BadInput(
            "boxes are held against each other with the same drives in them; give boxes of one kind of drive"
        )
    first = profiles[0]
    sim = DriveSim(
        executor, load_profile(first.drive), size_bytes=size_bytes, seed=seed, drives=first.drives, binary=binary
    )
    boxes = [box for one in profiles for box in _experiments(one, size_bytes)]
    found = on_filled_drives(sim, boxes, deadline)
    return {
        one.name: tuple(BoxCheck(entry, _value(entry.figure, one, beside, found)) for entry in one.published)
        for one in profiles
    }


def _experiments(profile: BoxProfile, size_bytes: int) -> list[Box]:
    boxes = list(all_unloaded(f"{profile.name}.unloaded", profile.hardware()))
    for entry in profile.published:
        if found := IOPS.fullmatch(entry.figure):
            cores = {int(found["cores"])}
            operation = OPERATION_OF[found["kind"]]
        elif found := _ONE_CORE.fullmatch(entry.figure):
            cores, operation = {1, profile.cores.count}, "read"
        else:
            continue
        kib = int(found["kib"])
        boxes += [
            saturated(
                _saturated_name(profile.name, operation, count, kib),
                profile.hardware(cores=count),
                operation,
                kib * KIB,
                size_bytes=size_bytes,
                drives=profile.drives,
            )
            for count in sorted(cores)
        ]
    return boxes


def _saturated_name(box: str, operation: Operation, cores: int, kib: int) -> str:
    return f"{box}.saturated.{operation}.{cores}.{kib}"


def _value(figure: str, profile: BoxProfile, beside: str, found: Mapping[str, BoxResult]) -> float:
    def phases(box: str, operation: Operation, kib: int) -> PhaseTimes:
        result = found.get(f"{box}.unloaded.{operation}.{kib}")
        if result is None:
            raise BadInput(f"box {profile.name}: nothing measures {figure!r} without {box!r} and {kib} KiB")
        return phases_of(result, operation)

    def excess(kib: int) -> float:
        return phases(profile.name, "read", kib).total / phases(beside, "read", kib).total - 1

    def rate(operation: Operation, cores: int, kib: int) -> float:
        return iops(found[_saturated_name(profile.name, operation, cores, kib)])

    if named := IOPS.fullmatch(figure):
        return rate(OPERATION_OF[named["kind"]], int(named["cores"]), int(named["kib"]))
    if named := LATENCY.fullmatch(figure):
        return phases(profile.name, "read", int(named["kib"])).total / 1e9
    if named := _SHARE.fullmatch(figure):
        times = phases(profile.name, "read", int(named["kib"]))
        return times.drive / times.total
    if named := _ONE_CORE.fullmatch(figure):
        kib = int(named["kib"])
        return rate("read", 1, kib) / rate("read", profile.cores.count, kib)
    if named := _EXCESS.fullmatch(figure):
        return excess(int(named["kib"]))
    if figure == "randread.excess.to64KiB":
        return fmean(excess(kib) for kib in _SMALL_KIB)
    if figure == "seqwrite.excess.latency.average":
        more_ns = [phases(profile.name, "write", kib).total - phases(beside, "write", kib).total for kib in SIZES_KIB]
        return fmean(more_ns) / 1e9
    raise BadInput(
        f"box {profile.name}: nothing measures the published figure {figure!r}; known: randread.latency.average.SIZE, "
        "randread.drive.share.SIZE, randread.onecore.share.SIZE, randread.excess.(SIZE|to64KiB), "
        "seqwrite.excess.latency.average, (randread|seqwrite).iops.coresN.SIZE"
    )
