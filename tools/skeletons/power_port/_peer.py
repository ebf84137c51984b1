"""The peer: the box, simulated. It refuses what the box would refuse."""

from __future__ import annotations

from skeletons.line_box._codec import Answer, Refusal, Request
from skeletons.line_box._server import LineBox


class SimExample(LineBox):
    """A strip of outlets, numbered from 1, all on at first."""

    def __init__(self, outlets: int = 2) -> None:
        super().__init__()
        self.is_on = dict.fromkeys(range(1, outlets + 1), True)

    def act(self, request: Request) -> Answer | Refusal:
        """See :meth:`LineBox.act`."""
        outlet = int(request.arguments[0]) if request.arguments[:1] and request.arguments[0].isdecimal() else 0
        if outlet not in self.is_on:
            return Refusal("no such outlet")
        match request.verb:
            case "ON" | "OFF":
                self.is_on[outlet] = request.verb == "ON"
                return Answer()
            case "STATE":
                return Answer(("ON" if self.is_on[outlet] else "OFF",))
        return Refusal("no such verb")
