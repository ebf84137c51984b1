"""The central metadata service: which drive of which rack a file is on, and the tokens for it."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from rackloop.abilities.blocks import BLOCK_BYTES, Blocks
from rackloop.errors import RackloopError
from rackloop_models.lwfs._record import DriveKey, pack_key
from rackloop_models.lwfs._server import StorageServer
from rackloop_models.lwfs._token import Extent, Rights, Token

_KEY_BLOCKS = 1


class FileExists(RackloopError):
    """A file has that name already."""


class NoSuchFile(RackloopError):
    """No file has that name."""


class NoRoom(RackloopError):
    """A drive has no extent of that length left."""


@dataclass(frozen=True)
class Grant:
    """A client's means for many I/Os on a file: where it is, its blocks there, and the token for them."""

    name: str
    rack_id: str
    drive_id: str
    extent: Extent
    rights: Rights
    token: bytes
    expires_s: int


@dataclass
class _KnownDrive:
    rack_id: str
    key: DriveKey
    blocks: int
    next_block: int = _KEY_BLOCKS


@dataclass(frozen=True)
class _File:
    file_id: bytes
    drive_id: str
    extent: Extent


class MetadataService:
    """Knows files, and drives by their keys. Asked once a file, not once an I/O: ``calls`` counts how often.

    ``new_key`` makes keys, which must never repeat: what a drive carried under an earlier key belongs to no file of
    this one, and no token of then is good. ``lasts_s`` is how long a token is good. Extents are given out once and
    never again, until the drive is formatted.
    """

    def __init__(self, new_key: Callable[[], bytes], *, lasts_s: int = 3600) -> None:
        self.calls = 0
        self._new_key = new_key
        self._lasts_s = lasts_s
        self._drives: dict[str, _KnownDrive] = {}
        self._files: dict[str, _File] = {}
        self._lock = Lock()

    def format_drive(self, rack_id: str, drive_id: str, blocks: Blocks) -> None:
        """Make a drive carry an empty store with a key of its own: its files are gone, and no later one finds theirs.

        One block is written. The bytes of earlier records stay until something is written in their place.
        """
        key = DriveKey(drive_id, 1, self._new_key())
        blocks.write(0, pack_key(key))
        blocks.flush()
        with self._lock:
            self._files = {name: file for name, file in self._files.items() if file.drive_id != drive_id}
            self._drives[drive_id] = _KnownDrive(rack_id, key, blocks.size_bytes // BLOCK_BYTES)

    def create(self, name: str, drive_id: str, blocks: int) -> None:
        """Give a new file an extent of a drive.

        Raises FileExists where there is one of that name, NoRoom where the drive has no extent of that length left.
        """
        with self._lock:
            self.calls += 1
            if name in self._files:
                raise FileExists(f"a file is named {name!r} already, on {self._files[name].drive_id}")
            drive = self._drives[drive_id]
            if drive.next_block + blocks > drive.blocks:
                raise NoRoom(f"{name} needs {blocks} blocks, {drive_id} has {drive.blocks - drive.next_block} left")
            place = f"{drive.rack_id}/{drive_id}/{drive.next_block}/{name}".encode()
            # The key is in it, so that the same file of an earlier store on this drive was another file.
            file_id = hmac.digest(drive.key.key, place, "sha256")[:16]
            self._files[name] = _File(file_id, drive_id, Extent(drive.next_block, blocks))
            drive.next_block += blocks

    def open(self, name: str, rights: Rights, now_s: float) -> Grant:
        """The place of a file, and a token for it. Raises NoSuchFile."""
        with self._lock:
            self.calls += 1
            try:
                file = self._files[name]
            except KeyError:
                raise NoSuchFile(f"no file is named {name!r}") from None
            drive = self._drives[file.drive_id]
            expires_s = int(now_s) + self._lasts_s
            token = Token(file.file_id, file.extent, rights, expires_s).signed(drive.key.key)
            return Grant(name, drive.rack_id, file.drive_id, file.extent, rights, token, expires_s)

    def revoke(self, drive_id: str, server: StorageServer) -> None:
        """End every token of a drive that is attached to ``server``, by giving the drive another key."""
        with self._lock:
            self.calls += 1
            drive = self._drives[drive_id]
            key = self._new_key()
            server.rekey(drive_id, key)
            drive.key = DriveKey(drive_id, drive.key.generation + 1, key)
