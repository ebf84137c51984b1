"""The peer: the box, simulated. It refuses what the box would refuse."""

from __future__ import annotations

from rackloop.errors import ProtocolError
from rackloop.portmap import Open, PortMap
from skeletons.fabric._changes import NOTHING, read_change, write_map
from skeletons.line_box._codec import Answer, Refusal, Request
from skeletons.line_box._server import LineBox


class SimExample(LineBox):
    """A switch of ``ports`` ports with an empty map and no controller."""

    def __init__(self, ports: int = 16) -> None:
        super().__init__()
        self.ports = ports
        self.generation = 1
        self.live = PortMap()
        self.boot = PortMap()
        self.highest_token = 0
        self.is_locked = False

    def act(self, request: Request) -> Answer | Refusal:
        """See :meth:`LineBox.act`."""
        match request.verb, request.arguments:
            case "IDENTIFY", ():
                return Answer(("ACME", "SW16", "EX000001", "1.0"))
            case "PORTS", ():
                return Answer((str(self.ports),))
            case "MAP", ():
                return Answer((str(self.generation), write_map(self.live)))
            case "STATES", ports:
                return Answer(tuple("UP" if self.live.peer_of(int(port)) else "DOWN" for port in ports))
            case "BOOT", ():
                return Answer((write_map(self.boot),))
            case "LOCK", (token,):
                return self._lock(int(token))
            case "UNLOCK", (token,):
                return self._unlock(int(token))
            case "SAVE", (token,) if self._may_act(int(token)):
                self.boot = self.live
                return Answer()
            case "APPLY", (token, expected, verb, word) if self._may_act(int(token)):
                return self._apply(expected, verb, word)
            case (("SAVE" | "APPLY"), (_, *_)):
                return Refusal("LOCKED by another controller")
        return Refusal("no such verb")

    def _may_act(self, token: int) -> bool:
        return not self.is_locked or token == self.highest_token

    def _lock(self, token: int) -> Answer | Refusal:
        if token < self.highest_token:
            return Refusal("LOCKED by a higher token")
        self.highest_token = token
        self.is_locked = True
        return Answer()

    def _unlock(self, token: int) -> Answer | Refusal:
        if token != self.highest_token:
            return Refusal("LOCKED by another token")
        self.is_locked = False
        return Answer()

    def _apply(self, expected: str, verb: str, word: str) -> Answer | Refusal:
        if expected not in {NOTHING, str(self.generation)}:
            return Refusal(f"STALE generation, the map is at {self.generation}")
        try:
            change = read_change(verb, word)
        except ProtocolError as error:
            return Refusal(str(error))
        named = change.ports if isinstance(change, Open) else change.pairs.ports()
        if not all(1 <= port <= self.ports for port in named):
            return Refusal(f"no such port, the last one is {self.ports}")
        self.live = change.after(self.live)
        self.generation += 1
        return Answer((str(self.generation),))
