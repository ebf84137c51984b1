"""Events of other processes in one stream: they send, one process writes, and each event is answered once it stands."""

from __future__ import annotations

from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from secrets import token_bytes
from threading import Lock, Thread

from rackloop.errors import LabError
from rackloop.record._event_log import EventLog
from rackloop.record._events import Event


@dataclass(frozen=True)
class RelayAddress:
    """The socket of a relay and its key, both as texts so that they can be handed to a child process."""

    socket: str
    key: str


class EventRelay:
    """Takes events from other processes into ``log`` until it is closed."""

    def __init__(self, log: EventLog) -> None:
        key = token_bytes(16)
        self._log = log
        self._is_closed = False
        self._listener = Listener(family="AF_UNIX", authkey=key)
        self.address = RelayAddress(str(self._listener.address), key.hex())
        self._thread = Thread(target=self._accept, name="event relay", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more events; senders get a LabError from now on."""
        self._is_closed = True
        self._listener.close()
        # A thread that waits in accept() is not woken by the close of its socket; it is a daemon and holds nothing.

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                connection = self._listener.accept()
            except (AuthenticationError, EOFError, ConnectionError):
                # A client without the key, or one that went away at once.
                continue
            except OSError:
                return
            Thread(target=self._serve, args=(connection,), name="event sender", daemon=True).start()

    def _serve(self, connection: Connection[tuple[str | None, str | None], tuple[Event, bool]]) -> None:
        with connection:
            while True:
                try:
                    event, durable = connection.recv()
                except (EOFError, OSError):
                    return
                refused: str | None = None
                try:
                    if self._is_closed:
                        refused = "the event stream has ended: the run cannot go on"
                    else:
                        self._log.write(event, durable=durable)
                except LabError as error:
                    refused = str(error)
                try:
                    connection.send((refused, self._log.problem))
                except OSError:
                    return


class RelayedEvents:
    """The event stream as another process sees it: what is written here is in the file when ``write`` returns."""

    def __init__(self, address: RelayAddress) -> None:
        self._lock = Lock()
        self.problem: str | None = None
        try:
            self._connection: Connection[tuple[Event, bool], tuple[str | None, str | None]] = Client(
                address.socket, family="AF_UNIX", authkey=bytes.fromhex(address.key)
            )
        except (AuthenticationError, EOFError, OSError) as error:
            raise LabError(f"the event stream's writer does not answer at {address.socket}: {error}") from error

    def write(self, event: Event, *, durable: bool = False) -> None:
        """Have the writing process append ``event`` as its log does. Raises LabError too where it is gone."""
        with self._lock:
            try:
                self._connection.send((event, durable))
                refused, self.problem = self._connection.recv()
            except (EOFError, OSError) as error:
                raise LabError("the process that writes the event stream has ended: the run cannot go on") from error
        if refused is not None:
            raise LabError(refused)

    def close(self) -> None:
        """End the connection; the stream goes on without this process."""
        self._connection.close()
