"""A server on which a command can have a connection of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from rackloop.abilities import Host, Process
from rackloop.clock import Deadline


class Stream(Process, Protocol):
    """A command on a server that reads and writes lines or bytes; ``kill`` gives its connection back too."""

    def read_bytes(self, deadline: Deadline) -> bytes: ...
    def write_bytes(self, data: bytes) -> None: ...


@runtime_checkable
class StreamingHost(Host, Protocol):
    """A Host that gives a command a connection of its own, as SshHost does."""

    def open_stream(self, argv: Sequence[str]) -> Stream: ...
    def start_aside(self, argv: Sequence[str]) -> Process:
        """Start a command that stays for long and says little, by a connection that such commands share."""
        ...
