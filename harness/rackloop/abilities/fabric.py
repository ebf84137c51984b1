"""The circuit switch: its map, how it is changed, and what its ports see."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

from rackloop.clock import Deadline
from rackloop.errors import NotSupported, StaleGeneration
from rackloop.portmap import MapChange, PortMap


class PortState(StrEnum):
    """What the switch sees on a port."""

    UP = "UP"
    DOWN = "DOWN"
    TRAIN = "TRAIN"


@dataclass(frozen=True)
class BoxIdentity:
    """Who a piece of equipment says it is (``*IDN?`` and its like)."""

    vendor: str
    model: str
    serial: str
    firmware: str


@dataclass(frozen=True)
class LiveMap:
    """The map a switch carries now and the generation that names it; every change adds one."""

    generation: int
    pairs: PortMap

    def require(self, generation: int | None) -> None:
        """Raise StaleGeneration, as a switch does, where a change was made for another ``generation`` than this."""
        if generation not in {None, self.generation}:
            raise StaleGeneration(
                f"the change was made for generation {generation}, the switch is at {self.generation}; "
                "read the live map again",
                code=-221,
            )


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
    """Says which port is joined to which. One controller at a time, by fencing token."""

    def identify(self, deadline: Deadline) -> BoxIdentity: ...
    def port_count(self, deadline: Deadline) -> int: ...
    def live_map(self, deadline: Deadline) -> LiveMap: ...
    def apply(self, change: MapChange, deadline: Deadline, *, if_generation: int | None = None) -> Applied: ...
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

    def stage(self, change: MapChange, deadline: Deadline, *, if_generation: int | None = None) -> Staged: ...
    def trigger(self, staged: Staged, deadline: Deadline) -> Applied: ...


def stager(fabric: Fabric) -> MapStager:
    """The same fabric, to stage changes with. Raises NotSupported where it takes none ahead."""
    if not isinstance(fabric, MapStager):
        raise NotSupported("this switch takes no map ahead of its execution")
    return fabric
