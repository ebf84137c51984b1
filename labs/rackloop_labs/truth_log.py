"""The attach log of a simulated rack: the switch's trigger to the first answered read, and detachments."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from threading import Condition, Thread
from types import TracebackType
from typing import Any, Self

from rackloop.abilities import Applied
from rackloop.clock import Deadline
from rackloop.record import Stage
from rackloop_drivers.rackd import TruthStream

_SWITCH = "switch"
_RACKD = "rackd"
_ATTACHED = frozenset({"phy_up", "online", "answered"})
_AWAITED = frozenset({"online", "answered"})
_KEPT_GENERATIONS = 4096
_LOSSES = frozenset({"phy_down", "offline", "io_error", "crashed", "held_timeout"})
EVENTS = frozenset({"executed", *_ATTACHED, *_LOSSES})
"""The events that an attach log is made of."""
_KEPT_LOSSES = 65_536
# An answer's record leaves rackd behind the answer itself; a fault of the drive's may keep it from coming at all.
_ANSWERED_WITHIN_S = 1.0


class TruthLog:
    """The :class:`~rackloop_labs.attach_log.AttachLog` that rackd's truth log tells. A context manager.

    The stamps are rackd's own, and the error of each is how late rackd was with it: the simulated drive and switch had
    nothing to do with that.
    """

    def __init__(self, records: TruthStream) -> None:
        self._records = records
        self._changed = Condition()
        self._executed: dict[int, list[Stage]] = {}
        self._attached: dict[int, dict[int, dict[str, Stage]]] = {}
        self._losses: deque[Mapping[str, Any]] = deque(maxlen=_KEPT_LOSSES)
        self._reader = Thread(target=self._follow, name="attach log", daemon=True)

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._records.close()
        self._reader.join()

    def stages(self, applied: Applied, switch_port: int, deadline: Deadline, *, until: str = "online") -> list[Stage]:
        """See :class:`~rackloop_labs.attach_log.AttachLog`.

        They are ``received`` (the switch had the trigger), ``executed``, ``phy_up``, ``online`` and ``answered``: the
        first read of the drive's first sectors was, before anything else that was asked of it there.
        """
        generation = applied.generation

        def attached() -> dict[str, Stage]:
            return self._attached.get(generation, {}).get(switch_port, {})

        def is_there(stage: str) -> bool:
            return stage in attached()

        with self._changed:
            self._changed.wait_for(lambda: is_there("online"), timeout=deadline.remaining_s())
            if until == "answered" and is_there("online"):
                left_s = deadline.sooner(_ANSWERED_WITHIN_S).remaining_s()
                self._changed.wait_for(lambda: is_there("answered"), timeout=left_s)
            seen = [*self._executed.get(generation, ()), *attached().values()]
        return sorted(seen, key=lambda stage: stage.at_ns)

    def first_loss(
        self, events: Collection[str], places: Collection[tuple[str, str]], drives: Collection[str], since_ns: int
    ) -> Stage | None:
        """See :class:`~rackloop_labs.attach_log.AttachLog`; the last 65,536 are remembered."""
        with self._changed:
            losses = tuple(self._losses)
        for record in losses:
            if record["t_ns"] >= since_ns and record["event"] in events and _is_at(record, places, drives):
                return _stage(record)
        return None

    def _follow(self) -> None:
        for record in self._records:
            self._take(record)

    def _take(self, record: Mapping[str, Any]) -> None:
        name: str = record["event"]
        generation: int = record.get("generation", 0)
        with self._changed:
            if name in _LOSSES:
                self._losses.append(record)
            elif name == "executed":
                self._executed[generation] = _of_the_switch(record)
                for kept in (self._executed, self._attached):
                    kept.pop(generation - _KEPT_GENERATIONS, None)
            elif name in _ATTACHED and not (name == "answered" and _is_of_another(record)):
                ports = self._attached.setdefault(generation, {})
                ports.setdefault(record["switch_port"], {})[name] = _stage(record)
                if name in _AWAITED:
                    self._changed.notify_all()


def _stage(record: Mapping[str, Any], name: str | None = None) -> Stage:
    """A record as a stage; what was not due at a moment of its own happened when it was stamped."""
    t_ns: int = record["t_ns"]
    due_ns = record.get("due_ns")
    return Stage(name or record["event"], t_ns, _RACKD, 0 if due_ns is None else max(0, t_ns - due_ns))


def _of_the_switch(record: Mapping[str, Any]) -> list[Stage]:
    """A map change that was executed, and the trigger's coming where the switch has said when that was."""
    executed, asked_ns = _stage(record), record.get("due_ns")
    return [executed] if asked_ns is None else [Stage("received", asked_ns, _SWITCH, 0), executed]


def _is_of_another(record: Mapping[str, Any]) -> bool:
    """Whether an answer is to something else than the read of an identified sector, which lie at a drive's start."""
    return (record.get("kind"), record.get("offset")) != ("read", 0)


def _is_at(record: Mapping[str, Any], places: Collection[tuple[str, str]], drives: Collection[str]) -> bool:
    """Whether a record is of one of these places: a link's where its server port is, a request's where its drive is."""
    if record["event"] in {"phy_down", "offline"}:
        return (record.get("server"), record.get("port")) in places
    return record.get("drive") in drives or record["event"] == "held_timeout"
