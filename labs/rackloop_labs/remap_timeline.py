"""The timeline of one drive coming to one server port, and what of it the measuring machine may have added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rackloop.abilities import Applied
from rackloop.errors import LabError
from rackloop.record import Stage
from rackloop_drivers import workload

# How late the simulated PHY's training was seen delays nothing: the drive is due by the model's own time.
_HOLDS_UP_NOTHING = "phy_up"
_BY_SIMULATION = "rackd"


@dataclass(frozen=True)
class RemapTimeline:
    """One drive coming to one server port; stages as :class:`rackloop.record.RemapSeen` has them, in seconds here.

    An ``*_error_s`` is what the measuring machine may have added: the true time is in [time - error, time]. Of a
    simulated rack that is all that its models did not ask for.
    """

    server: str
    port: str
    drive: str
    stack: str
    generation: int
    stages: tuple[Stage, ...]

    def at_ns(self, stage: str) -> int:
        """When a stage was. Raises LabError where nobody saw it."""
        if (seen := self._seen(stage)) is None:
            raise LabError(f"{self.server}.{self.port}: nobody saw the stage {stage} of generation {self.generation}")
        return seen.at_ns

    @property
    def latency_s(self) -> float:
        """From the moment the switch was told to the first verified read."""
        return (self.at_ns("verified") - self.at_ns("commanded")) / 1e9

    @property
    def latency_error_s(self) -> float:
        """What the machine added to the latency."""
        return self._error_ns(self.stages) / 1e9

    @property
    def attach_s(self) -> float:
        """From the moment the switch acted to the first verified read."""
        return (self.at_ns("verified") - self.at_ns("executed")) / 1e9

    @property
    def attach_error_s(self) -> float:
        """What the machine added to the attach."""
        return self._error_ns(self._behind("executed")) / 1e9

    @property
    def switch_s(self) -> float:
        """From the moment the switch was told to the moment it acted."""
        return (self.at_ns("executed") - self.at_ns("commanded")) / 1e9

    @property
    def switch_error_s(self) -> float:
        """What the machine added to the switching."""
        return (self._error_ns(self.stages) - self._error_ns(self._behind("executed"))) / 1e9

    @property
    def law_s(self) -> float | None:
        """The time that a simulation's law gave this attach, by the moments things were due; None of a real rack."""
        executed, online = self._seen("executed"), self._seen("online")
        if executed is None or online is None or online.clock != _BY_SIMULATION:
            return None
        return (online.at_ns - online.error_ns - executed.at_ns) / 1e9

    def _seen(self, name: str) -> Stage | None:
        return next((stage for stage in self.stages if stage.name == name), None)

    def _behind(self, name: str) -> Sequence[Stage]:
        return [stage for stage in self.stages if stage.at_ns > self.at_ns(name)]

    @staticmethod
    def _error_ns(stages: Sequence[Stage]) -> int:
        return sum(stage.error_ns for stage in stages if stage.name != _HOLDS_UP_NOTHING)


def remap_stages(applied: Applied, logged: Sequence[Stage], read: workload.VerifiedRead) -> tuple[Stage, ...]:
    """The stages of a remap, each with what the machine may have added since the one before.

    ``logged`` are those that the rack's own log has. The simulated switch has no time of its own: all that passes until
    it acts is the machine's.
    """
    by_name = {stage.name: stage for stage in logged}
    written_ns = applied.commanded_ns if applied.written_ns is None else applied.written_ns
    received, executed = by_name.get("received"), by_name.get("executed")
    if received is not None:
        # The switch may have its trigger before the harness's own write returns.
        written_ns = min(written_ns, max(received.at_ns, applied.commanded_ns))
        by_name["received"] = replace(received, error_ns=max(0, received.at_ns - written_ns))
    elif executed is not None and executed.clock == _BY_SIMULATION:
        written_ns = min(written_ns, executed.at_ns)
        by_name["executed"] = replace(executed, error_ns=executed.at_ns - written_ns)
    answered = by_name.get("answered")
    if answered is not None:
        # rackd stamps behind its own act, so the reader may have the answer before.
        due_ns, at_ns = answered.at_ns - answered.error_ns, min(answered.at_ns, read.t_ns)
        if read.submit_ns <= answered.at_ns and due_ns <= read.t_ns:
            by_name["answered"] = answered = replace(answered, at_ns=at_ns, error_ns=max(0, at_ns - due_ns))
        else:
            # It was the answer to another read: what came behind it may have been the drive's time.
            del by_name["answered"]
            answered = None
    late_ns = (read.waited_ns or 0) + (read.idle_ns or 0) if answered is None else read.t_ns - answered.at_ns
    return (
        Stage("commanded", applied.commanded_ns, "harness", written_ns - applied.commanded_ns),
        *sorted(by_name.values(), key=lambda stage: stage.at_ns),
        Stage("verified", read.t_ns, "rackprobe", late_ns),
    )
