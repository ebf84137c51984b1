"""The control socket of a mock lab: states of its servers, and faults of its parts."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from rackloop.clock import Deadline
from rackloop.errors import BadInput, DeadlineExceeded, LabError, NotConnected, ProtocolError
from rackloop.lab import LabState

__all__ = ["LABD_SOCKET", "HostState", "LabdControl"]

LABD_SOCKET = "labd.sock"


class HostState(StrEnum):
    """The state of a mock server.

    ``off`` has no power. ``up`` answers. ``hung`` accepts connections and answers nothing. ``crashed`` has power,
    and its drives' links stay up, but its kernel is gone: it refuses connections until it boots again.
    """

    OFF = "off"
    UP = "up"
    HUNG = "hung"
    CRASHED = "crashed"


class LabdControl:
    """The control socket of a mock lab that is up (``docs/reference/mock-hosts.md``); each call is a connection.

    A call returns when it is done. It raises LabError where the server cannot do that in the state it is in or is
    not there, NotConnected where the lab is not up, DeadlineExceeded where it does not answer in time.
    """

    def __init__(self, state: LabState) -> None:
        self._path = state.directory / LABD_SOCKET

    def states(self, deadline: Deadline) -> dict[str, HostState]:
        """The state of every server, by name."""
        servers = self._request({"op": "state"}, deadline)["servers"]
        return {name: HostState(state) for name, state in servers.items()}

    def crash(self, server: str, deadline: Deadline) -> None:
        """Have its kernel panic: it refuses connections, and keeps its power and its drives' links."""
        self._request({"op": "crash", "server": server}, deadline)

    def hang(self, server: str, deadline: Deadline) -> None:
        """Stop all it does; it accepts connections and answers nothing."""
        self._request({"op": "hang", "server": server}, deadline)

    def resume(self, server: str, deadline: Deadline) -> None:
        """Let a server that hangs go on where it stopped."""
        self._request({"op": "resume", "server": server}, deadline)

    def boot(self, server: str, deadline: Deadline) -> None:
        """Press its reset button: it boots anew, whatever it did before. A server without power refuses."""
        self._request({"op": "boot", "server": server}, deadline)

    def break_as(self, resource: str, key: str, fault: Mapping[str, Any], deadline: Deadline) -> None:
        """Break a part of the rack, such as ``network:srv1``, under a key; one that stands already does nothing.

        Raises BadInput where there is no such part or it cannot be broken so.
        """
        self._request({"op": "break", "resource": resource, "key": key, "fault": dict(fault)}, deadline)

    def mend(self, resource: str, key: str, deadline: Deadline) -> bool:
        """Mend what stands under ``key``; False where nothing did."""
        return bool(self._request({"op": "mend", "resource": resource, "key": key}, deadline)["mended"])

    def standing(self, resource: str, deadline: Deadline) -> dict[str, Mapping[str, Any]]:
        """The standing faults of a part, by key; what was broken without one has a name that begins with ``#``."""
        answer = self._request({"op": "standing", "resource": resource}, deadline)
        return dict(answer["standing"][resource])

    def all_standing(self, deadline: Deadline) -> dict[str, dict[str, Mapping[str, Any]]]:
        """The standing faults of every part, by its name and key; parts that are well are left out."""
        return dict(self._request({"op": "standing"}, deadline)["standing"])

    def _request(self, request: dict[str, Any], deadline: Deadline) -> dict[str, Any]:
        if deadline.is_over():
            raise DeadlineExceeded(f"labd was not asked to {request['op']}: the deadline is over; allow more time")
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wire:
                wire.settimeout(max(deadline.remaining_s(), 1e-6))
                wire.connect(str(self._path))
                wire.sendall(json.dumps(request).encode() + b"\n")
                line = wire.makefile("rb").readline()
        except TimeoutError as error:
            raise DeadlineExceeded(f"labd at {self._path} did not answer {request['op']} in time") from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise NotConnected(f"no labd answers at {self._path}: {reason}; bring the lab up") from error
        answer = _parsed(line)
        if answer.get("ok") is True:
            return answer
        if "error" in answer:
            kind = BadInput if answer["error"].get("code") == "bad_request" else LabError
            raise kind(str(answer["error"].get("message")))
        raise ProtocolError(f"labd at {self._path} answered {line[:80]!r}, which is no answer")


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(line)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}
