"""The ability of a server's serial console."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rackloop.clock import Deadline


@dataclass(frozen=True)
class Heard:
    """Bytes that a console sent between two stamps of the harness's clock: each within the two, in order."""

    data: bytes
    since_ns: int
    until_ns: int


class Console(Protocol):
    """The serial console of one server: bytes both ways. One thread may read while another sends or closes.

    ``where`` names the console in messages. Every call raises NotConnected where the console cannot be reached or is
    lost; one that was lost is closed, and may be opened again. LabError says that it is not open, or that others have
    it, LoginRefused, HostKeyUnknown and HostKeyMismatch that its box does not let us in.
    """

    @property
    def where(self) -> str: ...

    def open(self, deadline: Deadline) -> None:
        """Connect; nothing where it is open. Output of before is not heard."""
        ...

    def read(self, deadline: Deadline) -> Heard | None:
        """Take the bytes that come, as soon as any do; None where none have come by the deadline."""
        ...

    def send(self, data: bytes, deadline: Deadline) -> None:
        """Type ``data``, as it is. Raises DeadlineExceeded where the console does not take all of it in time."""
        ...

    def close(self) -> None:
        """Let go of it; a read that waits ends soon. Closing twice is no error."""
        ...
