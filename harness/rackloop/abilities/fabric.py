"""The circuit switch: its map, how it is changed, and what its ports see."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Protocol, cast, runtime_checkable

from rackloop.clock import Deadline
from rackloop.errors import NotSupported
from rackloop.portmap import Full, MapChange, PortMap


class PortState(StrEnum):
    """The state of a port, as the switch sees it."""

    UP = "UP"
    DOWN = "DOWN"
    TRAIN = "TRAIN"


@dataclass(frozen=True)
class BoxIdentity:
    """The identity that a piece of equipment reports (``*IDN?`` and its like)."""

    vendor: str
    model: str
    serial: str
    firmware: str


@dataclass(frozen=True)
class LiveMap:
    """The map a switch carries now and the generation that names it; every change adds one.

    A view that shows some ports only keeps the pairs of all the others in ``whole``.
    """

    generation: int
    pairs: PortMap
    whole: PortMap | None = field(default=None, compare=False, repr=False)

    def showing(self, pairs: PortMap) -> LiveMap:
        """The same map as a view that shows ``pairs`` only."""
        return LiveMap(self.generation, pairs, self.of_switch().pairs)

    def of_switch(self) -> LiveMap:
        """The same map with all its pairs."""
        return self if self.whole is None else LiveMap(self.generation, self.whole)

    def after(self, change: MapChange) -> LiveMap | None:
        """The map that stands once ``change`` was executed; None where a view replaced all that it shows."""
        if self.whole is None:
            return LiveMap(self.generation + 1, change.after(self.pairs))
        if isinstance(change, Full):
            return None
        return LiveMap(self.generation + 1, change.after(self.pairs), change.after(self.whole))


@dataclass(frozen=True)
class Applied:
    """A map change that was executed: the new generation, and the harness's stamps around the trigger.

    ``commanded_ns`` was taken just before the trigger was written, ``acknowledged_ns`` just after its
    acknowledgement was read, both on the driver's clock: the switch acted between the two. ``written_ns`` is when the
    whole trigger had been handed to the wire; None where the driver cannot say.
    """

    generation: int
    commanded_ns: int
    acknowledged_ns: int
    written_ns: int | None = None


@dataclass(frozen=True, eq=False)
class Staged:
    """A map change that waits in the switch for its trigger: good for one execution, at ``generation`` only."""

    change: MapChange
    generation: int


@runtime_checkable
class Fabric(Protocol):
    """The circuits of a switch. One controller at a time, by fencing token.

    ``on`` is the live map that a change was computed on, as ``live_map`` of the same object gave it: it is not read
    again, and the change is executed at its generation only; at any other it raises StaleGeneration.
    """

    def identify(self, deadline: Deadline) -> BoxIdentity: ...
    def port_count(self, deadline: Deadline) -> int: ...
    def live_map(self, deadline: Deadline) -> LiveMap: ...
    def apply(self, change: MapChange, deadline: Deadline, *, on: LiveMap | None = None) -> Applied: ...
    def port_states(self, ports: Collection[int], deadline: Deadline) -> dict[int, PortState]: ...
    def take_lock(self, token: int, deadline: Deadline) -> None: ...
    def release_lock(self, token: int, deadline: Deadline) -> None: ...
    def save_boot_map(self, deadline: Deadline) -> None: ...
    def boot_map(self, deadline: Deadline) -> PortMap: ...
    def close(self) -> None: ...


@runtime_checkable
class MapStager(Protocol):
    """A Fabric that takes the next change ahead, so that its execution costs one short command.

    ``stage`` has the switch load and check a change, and changes nothing of the live map. There is room for one: what
    is staged or applied later takes its place. ``trigger`` executes it, and returns once the switch has acted; a port
    that did not follow may be found by the next change only. Where the generation is another by then it raises
    StaleGeneration, where it is not what the switch has staged FabricError; nothing was done in either case.
    """

    def stage(self, change: MapChange, deadline: Deadline, *, on: LiveMap | None = None) -> Staged: ...
    def trigger(self, staged: Staged, deadline: Deadline) -> Applied: ...


def stager(fabric: Fabric) -> MapStager:
    """The same fabric, to stage changes with. Raises NotSupported where it takes none ahead."""
    if not _takes_maps_ahead(type(fabric)):
        raise NotSupported("this switch takes no map ahead of its execution")
    return cast(MapStager, fabric)


@cache
def _takes_maps_ahead(kind: type[Fabric]) -> bool:
    """Whether fabrics of this class can be staged with; looking through a class takes as long as the staging does."""
    return issubclass(kind, MapStager)
