"""The services of a rack: which server has a drive, and which server has a block."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock

from rackloop.errors import RackloopError
from rackloop_models.disaggregation._history import Announced, History, Located


class InTransition(RackloopError):
    """A drive is on its way from one server to another; ask again."""


class MappingService:
    """Rack-local: driveId -> server. ``lookups`` counts how often it was asked, each of which is in the history."""

    def __init__(self, history: History, now_s: Callable[[], float]) -> None:
        self.lookups = 0
        self._history = history
        self._now_s = now_s
        self._server_of: dict[str, str] = {}
        self._lock = Lock()

    def settle(self, drive: str, server: str) -> None:
        """The drive is at ``server`` now."""
        with self._lock:
            self._server_of[drive] = server

    def lift(self, drive: str) -> None:
        """The drive is at no server now."""
        with self._lock:
            self._server_of.pop(drive, None)

    def server_of(self, drive_id: str) -> str:
        """The server that has the drive. Raises InTransition where none has."""
        with self._lock:
            self.lookups += 1
            server = self._server_of.get(drive_id)
            self._history.note(Located(self._now_s(), drive_id, server))
        if server is None:
            raise InTransition(f"drive {drive_id} is at no server of this rack now; ask again in a moment")
        return server


class NameService:
    """Block -> server, as servers report it. A report replaces what was known of its drive."""

    def __init__(self, history: History, now_s: Callable[[], float]) -> None:
        self.updates = 0
        self._history = history
        self._now_s = now_s
        self._drive_of: dict[str, str] = {}
        self._server_of: dict[str, str] = {}
        self._lock = Lock()

    def report(self, server: str, drive: str, blocks: Iterable[str]) -> None:
        """``server`` has ``drive`` with these blocks on it."""
        named = frozenset(blocks)
        with self._lock:
            self.updates += 1
            self._drive_of = {block: at for block, at in self._drive_of.items() if at != drive}
            self._drive_of |= dict.fromkeys(named, drive)
            self._server_of[drive] = server
            self._history.note(Announced(self._now_s(), server, drive, named))

    def forget_server(self, server: str) -> None:
        """Nothing is at ``server`` any more, until another reports it."""
        with self._lock:
            self._server_of = {drive: at for drive, at in self._server_of.items() if at != server}

    def server_of(self, block: str) -> str | None:
        """The server to ask for a block, None where no server has reported it."""
        with self._lock:
            return self._server_of.get(self._drive_of.get(block, ""))

    def missing(self) -> frozenset[str]:
        """The blocks that are known and that no server has."""
        with self._lock:
            return frozenset(block for block, drive in self._drive_of.items() if drive not in self._server_of)
