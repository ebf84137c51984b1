"""Capability tokens: rights to blocks of a drive, checked with the drive's key alone.

A token is a fixed 45 bytes of plain text and an HMAC-SHA256 over them under the drive's key (RFC 2104). Another
drive has another key, so a token of one is worth nothing on another; a new key ends every token of the old one.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass
from enum import IntFlag, StrEnum
from typing import Self

from rackloop.errors import RackloopError

KEY_BYTES = 32

_BODY = struct.Struct(">4s16sQQBQ")
_MAGIC = b"LWT1"
_MAC_BYTES = hashlib.sha256().digest_size


class Rights(IntFlag):
    """The rights of a token's bearer.

    ``READ`` gives the records of the file. ``APPEND`` gives finding the end of its log, and writing records of this
    file anywhere in its extent: a server keeps no tails, so where the log goes on is the bearer's word, and a writer
    that names another place destroys what is there. It gives no other file, drive or block.
    """

    READ = 1
    APPEND = 2


class Refusal(StrEnum):
    """The reason why a token was refused."""

    MALFORMED = "malformed"
    FORGED = "forged or of another drive or key"
    EXPIRED = "expired"
    OUTSIDE = "outside the extent"
    NO_RIGHT = "without the right"


class TokenRefused(RackloopError):
    """A storage server would not serve a request. ``refusal`` says why."""

    def __init__(self, refusal: Refusal, detail: str) -> None:
        self.refusal = refusal
        super().__init__(f"the token is {refusal}: {detail}")


@dataclass(frozen=True, order=True)
class Extent:
    """Blocks of a drive, ``first`` to ``first + count - 1``. Raises ValueError where there are none."""

    first: int
    count: int

    def __post_init__(self) -> None:
        if self.first < 0 or self.count < 1:
            raise ValueError(f"an extent has at least one block, from block 0 on; found {self.count} from {self.first}")

    @property
    def end(self) -> int:
        """The block behind the last."""
        return self.first + self.count

    def holds(self, other: Extent) -> bool:
        """Whether all of ``other`` lies in this extent."""
        return self.first <= other.first and other.end <= self.end

    def __str__(self) -> str:
        return f"blocks {self.first} to {self.end - 1}"


@dataclass(frozen=True)
class Token:
    """The content of a capability. ``expires_s`` is a moment on the wall clock, in whole seconds since 1970.

    ``file_id`` has 16 bytes.
    """

    file_id: bytes
    extent: Extent
    rights: Rights
    expires_s: int

    def signed(self, key: bytes) -> bytes:
        """The token as it is handed to clients."""
        body = _BODY.pack(_MAGIC, self.file_id, self.extent.first, self.extent.count, int(self.rights), self.expires_s)
        return body + hmac.digest(key, body, "sha256")

    @classmethod
    def checked(cls, raw: bytes, key: bytes) -> Self:
        """The content of a signed token. Raises TokenRefused where it is malformed, or not signed with ``key``."""
        if len(raw) != _BODY.size + _MAC_BYTES or raw[: len(_MAGIC)] != _MAGIC:
            raise TokenRefused(Refusal.MALFORMED, f"{len(raw)} bytes that are no token of this format")
        body, mac = raw[: _BODY.size], raw[_BODY.size :]
        if not hmac.compare_digest(hmac.digest(key, body, "sha256"), mac):
            raise TokenRefused(Refusal.FORGED, "its signature is not by the key of this drive")
        _, file_id, first, count, rights, expires_s = _BODY.unpack(body)
        return cls(file_id, Extent(first, count), Rights(rights), expires_s)

    def require(self, right: Rights, wanted: Extent, now_s: float) -> None:
        """Raise TokenRefused unless the token gives ``right`` on all of ``wanted`` at ``now_s``."""
        if now_s >= self.expires_s:
            raise TokenRefused(Refusal.EXPIRED, f"it ended at {self.expires_s} s, it is {now_s:.3f} s")
        if not self.extent.holds(wanted):
            raise TokenRefused(Refusal.OUTSIDE, f"{wanted} do not lie within {self.extent}")
        if right not in self.rights:
            raise TokenRefused(Refusal.NO_RIGHT, f"{right.name} was asked for, it gives {self.rights!r}")
