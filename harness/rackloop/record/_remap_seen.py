"""The timeline of one remap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rackloop.errors import LabError

# How late a simulated PHY's training was seen delays no read, nor a kernel's unknown moment, nor what came behind it.
_HOLDS_UP_NOTHING = frozenset({"phy_up", "kernel", "mounted"})
_BY_SIMULATION = "rackd"


@dataclass(frozen=True)
class Stage:
    """One moment of a remap: when, on whose clock, and by how much the stamp may be off (ns)."""

    name: str
    at_ns: int
    clock: str
    error_ns: int


@dataclass(frozen=True)
class RemapSeen:
    """The timeline of one drive coming to one server port.

    Stages in order: ``commanded``, ``received``, ``executed``, ``phy_up``, ``link``, ``device``, ``online``, ``named``,
    ``answered``, ``verified``, ``mounted``; one not seen is absent. The error of each is what the measuring machine may
    have added since the stage before: the true time is in [time - error, time].
    """

    kind: ClassVar[str] = "remap.seen"
    test: str
    stack: str
    server: str
    port: str
    drive: str
    generation: int
    stages: Sequence[Stage]

    def at_ns(self, stage: str) -> int:
        """The time of a stage. Raises LabError where it was not seen."""
        if (seen := self._stage(stage)) is None:
            raise LabError(f"{self.server}.{self.port}: the stage {stage} of generation {self.generation} was not seen")
        return seen.at_ns

    @property
    def latency_s(self) -> float:
        """From the command to the switch to the first verified read."""
        return (self.at_ns("verified") - self.at_ns("commanded")) / 1e9

    @property
    def latency_error_s(self) -> float:
        """The measuring machine's share of the latency, at most."""
        return self._error_ns() / 1e9

    @property
    def attach_s(self) -> float:
        """From the switch's act to the first verified read."""
        return (self.at_ns("verified") - self.at_ns("executed")) / 1e9

    @property
    def attach_error_s(self) -> float:
        """The measuring machine's share of the attach, at most."""
        return self._error_ns(behind="executed") / 1e9

    @property
    def switch_s(self) -> float:
        """From the command to the switch to its act."""
        return (self.at_ns("executed") - self.at_ns("commanded")) / 1e9

    @property
    def switch_error_s(self) -> float:
        """The measuring machine's share of the switching, at most."""
        return (self._error_ns() - self._error_ns(behind="executed")) / 1e9

    @property
    def law_s(self) -> float | None:
        """The time that a simulation's law gave this attach, by the moments things were due; None of a real rack."""
        executed, online = self._stage("executed"), self._stage("online")
        if executed is None or online is None or online.clock != _BY_SIMULATION:
            return None
        return (online.at_ns - online.error_ns - executed.at_ns) / 1e9

    def _stage(self, name: str) -> Stage | None:
        return next((stage for stage in self.stages if stage.name == name), None)

    def _error_ns(self, *, behind: str | None = None) -> int:
        stages = [stage for stage in self.stages if behind is None or stage.at_ns > self.at_ns(behind)]
        return sum(stage.error_ns for stage in stages if _HOLDS_UP_NOTHING.isdisjoint((stage.name, stage.clock)))
