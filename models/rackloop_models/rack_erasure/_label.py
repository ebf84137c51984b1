"""The label of a drive: its store, its number in it, and the other members. Three copies a drive.

A label has a change number, which grows each time a drive leaves or joins the store: the label with the highest says
who is in it.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from rackloop.abilities.blocks import BLOCK_BYTES, Blocks
from rackloop.errors import BadInput, LabError
from rackloop_models.rack_erasure._errors import NoStripedStore
from rackloop_models.rack_erasure._layout import LABEL_BYTES, Layout, StripeCode

FORMAT = 1

_MAGIC = b"RLSL"
_HEAD = struct.Struct(">4sHxxII")


@dataclass(frozen=True)
class Member:
    """A drive of a store. ``incarnation`` counts the drives that have had its number.

    ``out`` is the change with which it was left out, because something was to be written without it; 0 for one that is
    in, and so has a record of all that was written.
    """

    name: str
    server: str
    incarnation: int = 0
    out: int = 0


@dataclass(frozen=True)
class Label:
    """A drive's label of itself and its store. ``number`` is the drive's own."""

    store_id: bytes
    layout: Layout
    members: tuple[Member, ...]
    change: int = 1
    number: int = 0

    @property
    def own(self) -> Member:
        """The drive that carries the label."""
        return self.members[self.number]

    def changed(self, members: Mapping[int, Member]) -> Label:
        """The next label, with other members at these numbers."""
        after = tuple(members.get(number, member) for number, member in enumerate(self.members))
        return replace(self, members=after, change=self.change + 1)

    def for_drive(self, number: int) -> Label:
        """The label that another drive carries."""
        return replace(self, number=number)


def write_label(blocks: Blocks, label: Label) -> None:
    """Write the copies one after the other, so that a power cut leaves one whole. Raises BadInput: it does not fit."""
    packed = _pack(label)
    for offset in label_offsets(blocks):
        blocks.write(offset, packed)
        blocks.flush()


def read_label(blocks: Blocks, drive: str) -> Label:
    """The newest whole copy. Raises NoStripedStore where there is none, LabError where none can be read."""
    found: list[Label] = []
    failed: list[LabError | OSError] = []
    odd = ""
    for offset in label_offsets(blocks):
        try:
            raw = blocks.read(offset, LABEL_BYTES)
        except (LabError, OSError) as error:
            failed.append(error)
            continue
        try:
            label = _unpack(raw)
        except NoStripedStore as error:
            odd = str(error)
            continue
        if label is not None:
            found.append(label)
    if found:
        return max(found, key=lambda label: label.change)
    if failed:
        raise failed[0]
    raise NoStripedStore(f"drive {drive} carries no striped store{odd}; format it, or leave it out")


def label_offsets(blocks: Blocks) -> Iterator[int]:
    """The places of the copies on a drive: far from each other."""
    last = blocks.size_bytes // BLOCK_BYTES * BLOCK_BYTES - LABEL_BYTES
    if last >= LABEL_BYTES:
        yield 0
        yield last
        if last >= 2 * LABEL_BYTES:
            yield LABEL_BYTES


def _pack(label: Label) -> bytes:
    layout = label.layout
    body = json.dumps(
        {
            "store": label.store_id.hex(),
            "code": asdict(layout.code),
            "homes": layout.homes,
            "places": layout.places,
            "seed": layout.seed,
            "members": [[member.name, member.server, member.incarnation, member.out] for member in label.members],
            "change": label.change,
            "number": label.number,
        },
        separators=(",", ":"),
    ).encode()
    if _HEAD.size + len(body) > LABEL_BYTES:
        raise BadInput(
            f"the label of a drive has room for {LABEL_BYTES} bytes, and this one has {len(body)}: use shorter names"
        )
    return (_HEAD.pack(_MAGIC, FORMAT, len(body), zlib.crc32(body)) + body).ljust(LABEL_BYTES, b"\0")


def _unpack(raw: bytes) -> Label | None:
    """The label there, None where there is none or it is damaged."""
    magic, version, length, crc = _HEAD.unpack_from(raw)
    body = raw[_HEAD.size : _HEAD.size + length]
    if magic != _MAGIC or zlib.crc32(body) != crc:
        return None
    if version != FORMAT:
        raise NoStripedStore(f": its label is of format {version}, and this program knows format {FORMAT}")
    told: dict[str, Any] = json.loads(body)
    layout = Layout(StripeCode(**told["code"]), tuple(told["homes"]), told["places"], told["seed"])
    members = tuple(Member(*member) for member in told["members"])
    return Label(bytes.fromhex(told["store"]), layout, members, told["change"], told["number"])
