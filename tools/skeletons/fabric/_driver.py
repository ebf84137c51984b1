"""The driver: what :class:`~rackloop.abilities.Fabric` asks, in the box's words."""

from __future__ import annotations

from collections.abc import Collection

from rackloop.abilities import Applied, BoxIdentity, LiveMap, PortState
from rackloop.clock import Deadline
from rackloop.errors import FabricError, LabError, LockedOut, ProtocolError, StaleGeneration
from rackloop.portmap import MapChange, PortMap
from skeletons.fabric._changes import NOTHING, change_words, read_map
from skeletons.line_box._codec import Refusal, Request
from skeletons.line_box._wire import ask

_REFUSALS: dict[str, type[FabricError]] = {"LOCKED": LockedOut, "STALE": StaleGeneration}


class ExampleFabric:
    """An example box at ``host:port``; see :class:`~rackloop.abilities.Fabric`."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._token = 0
        self._is_closed = False

    def identify(self, deadline: Deadline) -> BoxIdentity:
        """The identity that the box reports."""
        words = self._ask(deadline, "IDENTIFY")
        if len(words) != 4:
            raise ProtocolError(f"expected vendor, model, serial and firmware, got {words}")
        return BoxIdentity(*words)

    def port_count(self, deadline: Deadline) -> int:
        """The number of ports; they are numbered from 1."""
        return self._number(deadline, "PORTS")

    def live_map(self, deadline: Deadline) -> LiveMap:
        """The map that the box carries now."""
        words = self._ask(deadline, "MAP")
        if len(words) != 2 or not words[0].isdecimal():
            raise ProtocolError(f"expected a generation and a map, got {words}")
        return LiveMap(int(words[0]), read_map(words[1]))

    def apply(self, change: MapChange, deadline: Deadline, *, on: LiveMap | None = None) -> Applied:
        """Change the map; raises StaleGeneration or LockedOut where it may not."""
        expected = NOTHING if on is None else str(on.generation)
        commanded_ns = deadline.clock.now_ns()
        generation = self._number(deadline, "APPLY", str(self._token), expected, *change_words(change))
        return Applied(generation, commanded_ns, deadline.clock.now_ns())

    def port_states(self, ports: Collection[int], deadline: Deadline) -> dict[int, PortState]:
        """The state of each of ``ports``."""
        asked = sorted(ports)
        words = self._ask(deadline, "STATES", *map(str, asked))
        if len(words) != len(asked) or not set(words) <= set(PortState):
            raise ProtocolError(f"expected a state for each of ports {asked}, got {words}")
        return dict(zip(asked, map(PortState, words), strict=True))

    def take_lock(self, token: int, deadline: Deadline) -> None:
        """Take the control lock; raises LockedOut where a higher token was granted before."""
        self._ask(deadline, "LOCK", str(token))
        self._token = token

    def release_lock(self, token: int, deadline: Deadline) -> None:
        """Give the control lock back."""
        self._ask(deadline, "UNLOCK", str(token))

    def save_boot_map(self, deadline: Deadline) -> None:
        """Keep the live map as the one to start with."""
        self._ask(deadline, "SAVE", str(self._token))

    def boot_map(self, deadline: Deadline) -> PortMap:
        """The map that the box starts with."""
        words = self._ask(deadline, "BOOT")
        return read_map(words[0] if words else NOTHING)

    def close(self) -> None:
        """Ask nothing more of the box."""
        self._is_closed = True

    def _number(self, deadline: Deadline, verb: str, *arguments: str) -> int:
        words = self._ask(deadline, verb, *arguments)
        if len(words) != 1 or not words[0].isdecimal():
            raise ProtocolError(f"expected a number as the answer to {verb}, got {words}")
        return int(words[0])

    def _ask(self, deadline: Deadline, verb: str, *arguments: str) -> tuple[str, ...]:
        if self._is_closed:
            raise LabError(f"{verb} was asked of {self._address[0]}:{self._address[1]} after it was closed")
        reply = ask(self._address, Request(verb, arguments), deadline)
        if isinstance(reply, Refusal):
            kind = _REFUSALS.get(reply.reason.partition(" ")[0], FabricError)
            raise kind(f"{self._address[0]}:{self._address[1]} refused {verb}: {reply.reason}")
        return reply.words
