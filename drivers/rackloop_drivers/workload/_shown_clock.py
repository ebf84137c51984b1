"""The clock of a server as a running rackprobe shows it by TCP: quicker than through SSH."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import socket
from itertools import count
from threading import Lock
from typing import Protocol, runtime_checkable

from rackloop.clock import Clock
from rackloop.errors import ProtocolError
from rackloop_drivers.clock_access import ClockAccess
from rackloop_drivers.clock_rate import DRIFT_PPM
from rackloop_drivers.workload._rackprobe_results import Event, parse_line

_ANSWERS_WITHIN_S = 0.5
_RESTS_NS = 2_000_000_000
_KEY_BYTES = 32
_LONGEST_ANSWER = 4096


@runtime_checkable
class ShowsClock(Protocol):
    """A host that may have a port for its clock."""

    @property
    def clock_access(self) -> ClockAccess | None:
        """The place where that is reached; None where it is not."""
        ...


class ShownClock:
    """A clock that a rackprobe shows, once it is given the ``command``. Several threads may ask.

    One that did not answer within half a second is asked again after two; one that closes the connection, or does not
    answer as it should, is asked no more.
    """

    def __init__(self, access: ClockAccess) -> None:
        self._access = access
        self._address = (access.host, access.port)
        self._key = secrets.token_bytes(_KEY_BYTES)
        self._numbers = count(1)
        self._lock = Lock()
        self._socket: socket.socket | None = None
        self._is_over = False
        self._rests_until_ns = 0

    @property
    def command(self) -> str:
        """The command by which a rackprobe shows it."""
        return json.dumps({"op": "show_clock", "port": self._access.listens_at, "key": self._key.hex()})

    @property
    def is_over(self) -> bool:
        """Whether it is asked no more."""
        return self._is_over

    def ask(self, clock: Clock) -> tuple[int, Event, int] | None:
        """A stamp of the run's clock before the host's, what the host said, and one behind it; None without an answer.

        The time that the host took for its answer is taken off the last stamp.
        """
        with self._lock:
            if self._is_over or clock.now_ns() < self._rests_until_ns:
                return None
            try:
                return self._exchange(clock)
            except TimeoutError:
                self._disconnect()
                self._rests_until_ns = clock.now_ns() + _RESTS_NS
            except (OSError, ProtocolError):
                self._end()
            return None

    def close(self) -> None:
        """Ask no more. Closing twice does nothing."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        self._is_over = True
        self._disconnect()

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _exchange(self, clock: Clock) -> tuple[int, Event, int]:
        if self._socket is None:
            self._socket = socket.create_connection(self._address, _ANSWERS_WITHIN_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        number = next(self._numbers)
        question = f"{self._code(f'ask {number}')} {number}\n".encode()
        sent_ns = clock.now_ns()
        self._socket.sendall(question)
        line = self._read_line(self._socket)
        received_ns = clock.now_ns()
        code, _, text = line.partition(" ")
        if not hmac.compare_digest(code.encode(), self._code(f"say {text}").encode()):
            raise ProtocolError(f"what answers at {self._address} for a clock does not hold its key")
        event = parse_line(text)
        if event.get("id") != number:
            raise ProtocolError(f"rackprobe should have answered question {number}, but said {event}")
        took_ns = (event["answered_ns"] - event["t_ns"]) * (1_000_000 - DRIFT_PPM) // 1_000_000
        return sent_ns, event, received_ns - took_ns

    def _read_line(self, connection: socket.socket) -> str:
        said = b""
        while not said.endswith(b"\n"):
            more = connection.recv(_LONGEST_ANSWER)
            said += more
            if not more or len(said) > _LONGEST_ANSWER:
                raise ProtocolError(f"{self._address} closed the connection to its clock, or says too much")
        return said[:-1].decode(errors="replace")

    def _code(self, text: str) -> str:
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()
