"""The peer: the box, simulated. It refuses what the box would refuse."""

from __future__ import annotations

from skeletons.line_box._codec import Answer, Refusal, Request
from skeletons.line_box._server import LineBox


class SimExample(LineBox):
    """A box with one volume, ``v1``."""

    def __init__(self) -> None:
        super().__init__()
        self.size_bytes = 1 << 30
        self.clients: tuple[str, ...] = ()

    def act(self, request: Request) -> Answer | Refusal:
        """See :meth:`LineBox.act`."""
        if request.arguments != ("v1",):
            return Refusal("no such volume")
        match request.verb:
            case "SIZE":
                return Answer((str(self.size_bytes),))
            case "EXPORT":
                return Answer(("nbd://127.0.0.1/v1",))
            case "CLIENTS":
                return Answer(self.clients)
        return Refusal("no such verb")
