"""The peer: the host, simulated by this machine."""

from __future__ import annotations


class SimExample:
    """A host that ``reach`` leads to: an environment of this machine in which ``RACKLOOP_HOST`` holds its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def reach(self) -> tuple[str, ...]:
        """The words that come before a command to run it on the host."""
        return ("env", f"RACKLOOP_HOST={self.name}")
