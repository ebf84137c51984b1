"""The peer: the box, simulated. It refuses what the box would refuse."""

from __future__ import annotations

from skeletons.line_box._codec import Answer, Refusal, Request
from skeletons.line_box._server import LineBox


class SimExample(LineBox):
    """A box with a drive in slot 1."""

    def __init__(self) -> None:
        super().__init__()
        self.identity = {
            "model": "SSD-8G",
            "serial": "EX000001",
            "firmware": "1.0",
            "protocol": "sata",
            "size_bytes": str(8 << 30),
            "wwn": "5000c500a0000001",
        }
        self.health = {"power_cycles": 3, "temperature_c": 31}

    def act(self, request: Request) -> Answer | Refusal:
        """See :meth:`LineBox.act`."""
        if request.arguments != ("1",):
            return Refusal("no drive in that slot")
        match request.verb:
            case "IDENTIFY":
                return Answer(tuple(f"{name}={value}" for name, value in self.identity.items()))
            case "HEALTH":
                return Answer(tuple(f"{name}={count}" for name, count in self.health.items()))
        return Refusal("no such verb")
