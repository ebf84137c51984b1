"""When drives came to server ports and went: from a switch's trigger to the first verified read, and what was lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from threading import Condition, Thread
from types import TracebackType
from typing import Any, Self

from rackloop.clock import Deadline
from rackloop.events import Stage
from rackloop_drivers.rackd import TruthStream

_STAGE_OF_EVENT = {"executed": "executed", "phy_up": "phy_up", "online": "online"}
# A record is stamped when rackd's timer acted on it; its lateness is below this unless the machine is overloaded.
_STAMP_ERROR_NS = 1_000
_KEPT_GENERATIONS = 4096
_LOSSES = frozenset({"phy_down", "offline", "io_error", "crashed", "held_timeout"})
_KEPT_LOSSES = 65_536


class AttachLog:
    """Follows the truth log of a simulated rack. A context manager; safe to ask from several threads.

    The stamps are rackd's own: they say when the simulated switch acted, the PHY trained and the drive came online.
    """

    def __init__(self, records: TruthStream) -> None:
        self._records = records
        self._changed = Condition()
        self._executed: dict[int, Stage] = {}
        self._attached: dict[tuple[int, int], dict[str, Stage]] = {}
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

    def stages(self, generation: int, switch_port: int, deadline: Deadline) -> list[Stage]:
        """What was seen of the circuit that ``generation`` gave to a server's ``switch_port``, in order of time.

        Waits until the drive is online, or until the deadline; a stage nobody saw is absent.
        """

        def is_online() -> bool:
            return "online" in self._attached.get((generation, switch_port), {})

        with self._changed:
            self._changed.wait_for(is_online, timeout=deadline.remaining_s())
            seen = dict(self._attached.get((generation, switch_port), {}))
            if generation in self._executed:
                seen["executed"] = self._executed[generation]
        return sorted(seen.values(), key=lambda stage: stage.at_ns)

    def first_loss(
        self, events: Collection[str], places: Collection[tuple[str, str]], drives: Collection[str], since_ns: int
    ) -> Stage | None:
        """The first of ``events`` since a moment that was of one of these server ports or drives; None where none was.

        They are ``phy_down`` and ``offline`` of a port, ``io_error`` and ``crashed`` of a drive, and ``held_timeout``,
        which no place is known of. The last 65,536 are remembered.
        """
        with self._changed:
            losses = tuple(self._losses)
        for record in losses:
            if record["t_ns"] >= since_ns and record["event"] in events and _is_at(record, places, drives):
                return Stage(record["event"], record["t_ns"], "rackd", _STAMP_ERROR_NS)
        return None

    def _follow(self) -> None:
        for record in self._records:
            self._take(record)

    def _take(self, record: Mapping[str, Any]) -> None:
        if record["event"] in _LOSSES:
            with self._changed:
                self._losses.append(record)
            return
        name = _STAGE_OF_EVENT.get(record["event"])
        generation = record.get("generation")
        if name is None or generation is None:
            return
        stage = Stage(name, record["t_ns"], "rackd", _STAMP_ERROR_NS)
        with self._changed:
            if name == "executed":
                self._executed[generation] = stage
                self._forget_before(generation - _KEPT_GENERATIONS)
            else:
                self._attached.setdefault((generation, record["switch_port"]), {})[name] = stage
            self._changed.notify_all()

    def _forget_before(self, generation: int) -> None:
        if self._executed.pop(generation, None) is not None:
            gone: Iterable[tuple[int, int]] = [key for key in self._attached if key[0] == generation]
            for key in gone:
                del self._attached[key]


def _is_at(record: Mapping[str, Any], places: Collection[tuple[str, str]], drives: Collection[str]) -> bool:
    """Whether a record is of one of these places: a link's where its server port is, a request's where its drive is."""
    if record["event"] in {"phy_down", "offline"}:
        return (record.get("server"), record.get("port")) in places
    return record.get("drive") in drives or record["event"] == "held_timeout"
