"""A client: it asks the metadata service once a file, a rack-local service for servers, and then does its I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from rackloop_models.lwfs._metadata import Grant, MetadataService
from rackloop_models.lwfs._server import Address, NotHere, Recovered, StorageServer, Tail
from rackloop_models.lwfs._token import Refusal, Rights, TokenRefused

T = TypeVar("T")


class Locator(Protocol):
    """The rack-local service: the server that a drive's I/O goes to now.

    Where a drive must be attached first, as with remapping at every I/O, it returns when it is.
    """

    def server_of(self, drive_id: str) -> str: ...


class LwfsClient:
    """Opens files. What the metadata service says is kept until the token ends.

    ``keeps_servers`` is for designs in which drives stay for minutes: the server of a drive is asked for once, and
    again when it says that the drive is not there any more, up to ``tries`` times with ``pause`` between.
    ``lookups`` counts how often it was asked for. ``served_by`` is the server that a request went to last, whether it
    did it or answered with an error, and ``asked_s`` when, by ``now_s``, or by ``wall_s`` where none is given.
    """

    def __init__(
        self,
        metadata: MetadataService,
        locator: Locator,
        servers: Mapping[str, StorageServer],
        wall_s: Callable[[], float],
        *,
        keeps_servers: bool = False,
        tries: int = 1,
        pause: Callable[[], None] = lambda: None,
        now_s: Callable[[], float] | None = None,
    ) -> None:
        self.lookups = 0
        self.served_by = ""
        self.asked_s = 0.0
        self._metadata = metadata
        self._locator = locator
        self._servers = servers
        self._wall_s = wall_s
        self._keeps_servers = keeps_servers
        self._tries = tries
        self._pause = pause
        self._now_s = now_s or wall_s
        self._grants: dict[tuple[str, Rights], Grant] = {}
        self._server_of: dict[str, str] = {}

    def open(self, name: str, rights: Rights = Rights.READ | Rights.APPEND) -> LwfsFile:
        """The file. Raises NoSuchFile."""
        self.grant(name, rights)
        return LwfsFile(self, name, rights)

    def grant(self, name: str, rights: Rights) -> Grant:
        """The grant that is kept of the file, asked for anew where its token has ended."""
        kept = self._grants.get((name, rights))
        now_s = self._wall_s()
        if kept is None or now_s >= kept.expires_s:
            kept = self._grants[name, rights] = self._metadata.open(name, rights, now_s)
        return kept

    def forget(self, name: str) -> None:
        """Ask the metadata service again for this file, as after its tokens were revoked."""
        self._grants = {key: grant for key, grant in self._grants.items() if key[0] != name}

    def served(self, drive_id: str, request: Callable[[StorageServer], T]) -> T:
        """The answer to ``request`` by the server that has the drive. Raises NotHere where none has it."""
        for left in reversed(range(self._tries)):
            try:
                server = self._find(drive_id)
                self.served_by, self.asked_s = server, self._now_s()
                return request(self._servers[server])
            except NotHere:
                self._server_of.pop(drive_id, None)
                if not left:
                    raise
                self._pause()
        raise AssertionError("a client tries once at least")

    def _find(self, drive_id: str) -> str:
        if drive_id in self._server_of:
            return self._server_of[drive_id]
        self.lookups += 1
        server = self._locator.server_of(drive_id)
        if self._keeps_servers:
            self._server_of[drive_id] = server
        return server


class LwfsFile:
    """A file of a client: an append-only log of records. One writer at a time knows its tail.

    The first append looks for the end of the log, which reads all of it; the others go on from there.
    """

    def __init__(self, client: LwfsClient, name: str, rights: Rights) -> None:
        self._client = client
        self._name = name
        self._rights = rights
        self._tail: Tail | None = None

    @property
    def drive_id(self) -> str:
        """The drive it is on."""
        return self._client.grant(self._name, self._rights).drive_id

    def append(self, payload: bytes, *, flush: bool = True) -> Address:
        """Write a record behind the last; with ``flush``, it stays. Raises as StorageServer's does."""

        def request(server: StorageServer, grant: Grant) -> tuple[Tail, Tail]:
            tail = self._tail or server.recover(grant.drive_id, grant.token).tail
            return tail, server.append(grant.drive_id, grant.token, tail, payload, flush=flush)

        tail, self._tail = self._served(request)
        return Address(tail.block, len(payload))

    def read(self, address: Address) -> bytes:
        """The payload of a record. Raises as StorageServer's does."""
        return self._served(lambda server, grant: server.read(grant.drive_id, grant.token, address))

    def recover(self) -> Recovered:
        """Find the records and the end of the log, and go on there, as after another writer was lost.

        Takes the right to read or to append.
        """
        found = self._served(lambda server, grant: server.recover(grant.drive_id, grant.token))
        self._tail = found.tail
        return found

    def _served(self, request: Callable[[StorageServer, Grant], T]) -> T:
        """The answer to a request with the file's token; once more with a new one where that ended on its way."""
        try:
            return self._served_with(self._client.grant(self._name, self._rights), request)
        except TokenRefused as refused:
            if refused.refusal is not Refusal.EXPIRED:
                raise
        self._client.forget(self._name)
        return self._served_with(self._client.grant(self._name, self._rights), request)

    def _served_with(self, grant: Grant, request: Callable[[StorageServer, Grant], T]) -> T:
        return self._client.served(grant.drive_id, lambda server: request(server, grant))
