"""A storage server for any drives that are attached to it; it checks tokens with their keys alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from rackloop.abilities.blocks import BLOCK_BYTES, Blocks
from rackloop.errors import ProductFailed, RackloopError
from rackloop_models.lwfs._record import (
    DriveKey,
    NoStore,
    blocks_for,
    pack_key,
    pack_record,
    payload_of,
    read_header,
    read_key,
)
from rackloop_models.lwfs._token import Extent, Rights, Token


class NotHere(RackloopError):
    """The drive is not attached to the server that was asked. ``server`` and ``drive_id`` name them."""

    def __init__(self, server: str, drive_id: str) -> None:
        self.server = server
        self.drive_id = drive_id
        super().__init__(f"drive {drive_id} is not attached to {server}; ask where it is")


class RecordDamaged(ProductFailed):
    """A record does not read back as it was written."""


@dataclass(frozen=True)
class Address:
    """The place of a record: its first block on the drive, and how many bytes its payload has."""

    block: int
    length: int


@dataclass(frozen=True)
class Tail:
    """The place of the next record of a file, its number, and the CRC-32 of the record before it."""

    block: int
    sequence: int = 0
    previous_crc: int = 0


@dataclass(frozen=True)
class Recovered:
    """The whole part of a file's log: the records in order, and where to go on."""

    records: tuple[Address, ...]
    tail: Tail


@dataclass
class _Attached:
    blocks: Blocks
    key: DriveKey
    lock: Lock = field(default_factory=Lock)


class StorageServer:
    """Reads and appends records on the drives attached to it, for bearers of tokens. Threads may share it.

    ``wall_s`` gives the seconds since 1970, for tokens that end. A token is checked here with the key that was read
    when the drive was attached, which took exactly one read; nothing else is read for it.
    Methods that take a drive raise NotHere where it is not attached, and TokenRefused.
    """

    def __init__(self, name: str, wall_s: Callable[[], float]) -> None:
        self.name = name
        self._wall_s = wall_s
        self._attached: dict[str, _Attached] = {}

    @property
    def drives(self) -> frozenset[str]:
        """The drives attached now."""
        return frozenset(self._attached)

    def attach(self, drive_id: str, blocks: Blocks) -> None:
        """Take a drive, with one read. Raises NoStore where it carries none, or another drive's."""
        key = read_key(blocks.read(0, BLOCK_BYTES))
        if key.drive_id != drive_id:
            raise NoStore(f"{drive_id} was to be attached, but it is {key.drive_id}; is the map right?")
        self._attached[drive_id] = _Attached(blocks, key)

    def detach(self, drive_id: str) -> None:
        """Let a drive go, once the request it works on is done."""
        attached = self._attached.pop(drive_id, None)
        if attached is not None:
            with attached.lock:
                return

    def append(self, drive_id: str, token: bytes, tail: Tail, payload: bytes, *, flush: bool = True) -> Tail:
        """Write a record at ``tail``; returns where the next one goes. With ``flush``, it stays."""
        attached = self._of(drive_id)
        place = Extent(tail.block, blocks_for(len(payload)))
        with self._working_on(drive_id, attached):
            granted = self._granted(attached, token, Rights.APPEND, place)
            record, crc = pack_record(granted.file_id, tail.sequence, payload, tail.previous_crc)
            attached.blocks.write(tail.block * BLOCK_BYTES, record)
            if flush:
                attached.blocks.flush()
        return Tail(place.end, tail.sequence + 1, crc)

    def read(self, drive_id: str, token: bytes, address: Address) -> bytes:
        """The payload of a record. Raises RecordDamaged where it is not what was written there by this file."""
        attached = self._of(drive_id)
        place = Extent(address.block, blocks_for(address.length))
        with self._working_on(drive_id, attached):
            granted = self._granted(attached, token, Rights.READ, place)
            raw = attached.blocks.read(place.first * BLOCK_BYTES, place.count * BLOCK_BYTES)
        header = read_header(raw)
        if header is None or (header.file_id, header.length) != (granted.file_id, address.length):
            raise RecordDamaged(f"block {address.block} of {drive_id} holds no record of this file and length")
        payload = payload_of(raw, header)
        if payload is None:
            raise RecordDamaged(f"the record at block {address.block} of {drive_id} has another checksum")
        return payload

    def recover(self, drive_id: str, token: bytes) -> Recovered:
        """Find the last whole record of the token's file, reading its log from the start.

        Takes the right to read or to append: it says where records are and how long, not what is in them.
        """
        attached = self._of(drive_id)
        with self._working_on(drive_id, attached):
            granted = Token.checked(token, attached.key.key)
            right = Rights.APPEND if Rights.APPEND in granted.rights else Rights.READ
            granted.require(right, granted.extent, self._wall_s())
            return recovered(attached.blocks, granted.file_id, granted.extent)

    def rekey(self, drive_id: str, key: bytes) -> None:
        """Give the drive another key: every token of the old one is refused from now on, here and elsewhere."""
        attached = self._of(drive_id)
        with self._working_on(drive_id, attached):
            new = DriveKey(drive_id, attached.key.generation + 1, key)
            attached.blocks.write(0, pack_key(new))
            attached.blocks.flush()
            attached.key = new

    def _of(self, drive_id: str) -> _Attached:
        try:
            return self._attached[drive_id]
        except KeyError:
            raise NotHere(self.name, drive_id) from None

    def _granted(self, attached: _Attached, raw: bytes, right: Rights, place: Extent) -> Token:
        token = Token.checked(raw, attached.key.key)
        token.require(right, place, self._wall_s())
        return token

    @contextmanager
    def _working_on(self, drive_id: str, attached: _Attached) -> Iterator[None]:
        """One request on a drive at a time. Raises NotHere where the drive was let go before its turn came.

        A token is checked in here: a request that waited while the drive got another key must not be served by the old.
        """
        with attached.lock:
            if self._attached.get(drive_id) is not attached:
                raise NotHere(self.name, drive_id)
            yield


def recovered(blocks: Blocks, file_id: bytes, extent: Extent) -> Recovered:
    """The whole records of a file from the start of its extent on, to the first that is torn or another's."""
    records: list[Address] = []
    tail = Tail(extent.first)
    while tail.block < extent.end:
        raw = blocks.read(tail.block * BLOCK_BYTES, BLOCK_BYTES)
        header = read_header(raw)
        if header is None or (header.file_id, header.sequence, header.previous_crc) != (
            file_id,
            tail.sequence,
            tail.previous_crc,
        ):
            break
        if not extent.holds(Extent(tail.block, header.blocks)):
            break
        if header.blocks > 1:
            raw += blocks.read((tail.block + 1) * BLOCK_BYTES, (header.blocks - 1) * BLOCK_BYTES)
        if payload_of(raw, header) is None:
            break
        records.append(Address(tail.block, header.length))
        tail = Tail(tail.block + header.blocks, tail.sequence + 1, header.crc)
    return Recovered(tuple(records), tail)
