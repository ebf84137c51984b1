"""A drive behind an NBD export."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self
from urllib.parse import quote, unquote, urlsplit

from rackloop.abilities import BlockUsage, Claim, DriveIdentity
from rackloop.errors import BadInput

_FAIL_FAST = ".failfast"
_BY_ID = ".by-id."
_PORT = 10809
_SOCKET = "socket="


@dataclass(frozen=True)
class NbdExport:
    """A BlockDevice that is an export of the NBD server at ``server``: a Unix socket, or a host and a TCP port.

    ``size_bytes`` is the export's size; the drive that is behind it at the moment may be smaller. A server that
    ``knows_drives`` (rackd) has each export by a name for one drive alone too; with a ``serial`` this is that one's.
    """

    server: Path | tuple[str, int]
    export: str
    size_bytes: int
    knows_drives: bool = False
    serial: str = ""

    @classmethod
    def of_uri(cls, uri: str, size_bytes: int) -> Self:
        """The export of an NBD URI. Raises BadInput for one that names neither a Unix socket nor a host."""
        with suppress(ValueError):
            # Of a port or an address that is none.
            parts = urlsplit(uri)
            export = unquote(parts.path.removeprefix("/"))
            # A plus sign is one: this is no form that was filled in.
            socket = next((part[len(_SOCKET) :] for part in parts.query.split("&") if part.startswith(_SOCKET)), "")
            if parts.scheme == "nbd+unix" and socket:
                return cls(Path(unquote(socket)), export, size_bytes)
            if parts.scheme == "nbd" and parts.hostname:
                return cls((parts.hostname, parts.port or _PORT), export, size_bytes)
        raise BadInput(
            f"{uri} is no NBD URI that is known here: give one such as nbd+unix:///t1?socket=/run/box.sock or "
            "nbd://box.example/t1"
        )

    @property
    def uri(self) -> str:
        """The export's NBD URI (https://github.com/NetworkBlockDevice/nbd/blob/master/doc/uri.md)."""
        name = quote(self._name, safe="")
        if isinstance(self.server, Path):
            return f"nbd+unix:///{name}?socket={quote(str(self.server))}"
        host, port = self.server
        return f"nbd://{f'[{host}]' if ':' in host else host}:{port}/{name}"

    @property
    def location(self) -> str:
        """The export's name, which a Drive on the same path has as its location."""
        return self.export.removesuffix(_FAIL_FAST)

    def in_slot(self, slot: int) -> Self:
        """The drive in a slot of the expander that is mapped to this server port of rackd's."""
        return replace(self, export=f"{self.location}.s{slot}")

    def failing_fast(self) -> Self:
        """The same drive through the export of rackd's that fails reads of unreadable sectors without retrying."""
        return replace(self, export=f"{self.location}{_FAIL_FAST}")

    def bound_to(self, identity: DriveIdentity) -> Self:
        """The export by the name for that drive: the server executes nothing of it on any other.

        Where the server has no such names it is the export itself, which leads to whatever drive is there.
        """
        return replace(self, serial=identity.serial) if self.knows_drives else self

    @property
    def _name(self) -> str:
        if not self.serial:
            return self.export
        fails_fast = _FAIL_FAST if self.export.endswith(_FAIL_FAST) else ""
        return f"{self.location}{_BY_ID}{self.serial}{fails_fast}"

    def drive_bytes(self) -> int | None:
        """None: the export keeps its size whatever drive is behind it."""
        return None

    def identifiers(self) -> Mapping[str, str]:
        """None: NBD carries no identifiers."""
        return {}

    def fio_options(self) -> dict[str, str]:
        """Options for fio's nbd engine on this export."""
        return {"ioengine": "nbd", "uri": self.uri}

    def probe_target(self) -> str:
        """The URI."""
        return self.uri

    def usage(self) -> BlockUsage:
        """None: a simulated drive is mounted nowhere, and NBD would not tell."""
        return BlockUsage()

    def claim_exclusive(self) -> Claim | None:
        """None: nothing on this machine can claim an export."""
        return None
