"""The driver: what :class:`~rackloop.abilities.Drive` asks, in the box's words."""

from __future__ import annotations

from rackloop.abilities import DriveIdentity
from rackloop.clock import Deadline
from rackloop.errors import ProtocolError
from skeletons.line_box._codec import Request
from skeletons.line_box._wire import exchange

_PROPERTIES = frozenset({"model", "serial", "firmware", "protocol", "size_bytes"})


class ExampleDrive:
    """The drive in one slot of an example box at ``host:port``; see :class:`~rackloop.abilities.Drive`."""

    def __init__(self, host: str, port: int, slot: int) -> None:
        self._address = (host, port)
        self._slot = str(slot)

    def identify(self, deadline: Deadline) -> DriveIdentity:
        """The identity that the drive reports."""
        found = self._ask("IDENTIFY", deadline)
        missing = sorted(_PROPERTIES - found.keys())
        if missing or not found["size_bytes"].isdecimal():
            raise ProtocolError(f"slot {self._slot} does not say {missing or 'a size in bytes'}: {found}")
        return DriveIdentity(
            model=found["model"],
            serial=found["serial"],
            firmware=found["firmware"],
            protocol=found["protocol"],
            size_bytes=int(found["size_bytes"]),
            identifiers={name: value for name, value in found.items() if name not in _PROPERTIES},
        )

    def health(self, deadline: Deadline) -> dict[str, int]:
        """Health counters by name."""
        found = self._ask("HEALTH", deadline)
        odd = sorted(name for name, value in found.items() if not value.isdecimal())
        if odd:
            raise ProtocolError(f"slot {self._slot} counts {odd} in something other than whole numbers: {found}")
        return {name: int(value) for name, value in found.items()}

    def _ask(self, verb: str, deadline: Deadline) -> dict[str, str]:
        words = exchange(self._address, Request(verb, (self._slot,)), deadline).words
        pairs = [word.partition("=") for word in words]
        if not all(equals for _, equals, _ in pairs):
            raise ProtocolError(f"expected name=value for {verb} of slot {self._slot}, got {words}")
        return {name: value for name, _, value in pairs}
