"""Putting a store on drives, and finding it there again."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace

from rackloop.abilities.blocks import BLOCK_BYTES, Blocks
from rackloop.errors import BadInput, LabError
from rackloop_models.rack_erasure._errors import NoStripedStore
from rackloop_models.rack_erasure._label import Label, Member, read_label, write_label
from rackloop_models.rack_erasure._layout import SLOTS, TABLE_OFFSET, Layout, StripeCode, laid_out, needed_bytes
from rackloop_models.rack_erasure._membership import NEVER_MEMBER
from rackloop_models.rack_erasure._record import STORE_ID_BYTES

_WIPED_BYTES = 1 << 20


def format_store(
    drives: Mapping[str, Blocks],
    code: StripeCode,
    *,
    servers: Mapping[str, str] | None = None,
    seed: int = 0,
    server_failures: int = 1,
    store_id: bytes | None = None,
) -> Layout:
    """Put an empty store on drives, as large as the smallest of them allows; what is on them is lost.

    ``servers`` says which server each drive is at, each at one of its own when nothing is said. ``seed`` gives the
    layout. ``store_id`` are 16 bytes that no other store has, by chance when nothing is said.

    Raises BadInput: fewer drives than a stripe has units, a drive that is too small, a drive without a server, or
    fewer servers than it takes for every object to survive that ``server_failures`` of them fail. 0 accepts any.
    """
    at = {drive: drive for drive in drives} if servers is None else {drive: servers.get(drive, "") for drive in drives}
    homeless = [drive for drive, server in at.items() if not server]
    if homeless:
        raise BadInput(f"servers: nothing says at which server {', '.join(homeless)} is")
    store_id = secrets.token_bytes(STORE_ID_BYTES) if store_id is None else store_id
    if len(store_id) != STORE_ID_BYTES:
        raise BadInput(f"store_id: expected {STORE_ID_BYTES} bytes, found {len(store_id)}")
    small = {drive: blocks.size_bytes for drive, blocks in drives.items() if blocks.size_bytes < needed_bytes(code, 1)}
    if small:
        told = ", ".join(f"{drive} of {size} bytes" for drive, size in small.items())
        raise BadInput(f"a drive needs {needed_bytes(code, 1)} bytes for units of {code.unit_bytes}, found {told}")
    size = min((blocks.size_bytes for blocks in drives.values()), default=0)
    layout = laid_out(code, at, size, seed)
    survived = layout.server_failures_survived()
    if survived < server_failures:
        raise BadInput(
            f"a stripe of {code.k} + {code.m} units has up to {layout.most_at_a_server} at one of the "
            f"{len(set(at.values()))} servers, so that {survived} servers may fail and {server_failures} should; use "
            f"more servers or a larger m, or accept it with server_failures={survived}"
        )
    label = Label(store_id, layout, tuple(Member(drive, server) for drive, server in at.items()))
    for blocks in drives.values():
        wipe(blocks, layout)
    for number, blocks in enumerate(drives.values()):
        write_label(blocks, label.for_drive(number))
    return layout


def wipe(blocks: Blocks, layout: Layout) -> None:
    """Take all records out of the table of a drive."""
    offset, end = TABLE_OFFSET, TABLE_OFFSET + layout.places * SLOTS * BLOCK_BYTES
    while offset < end:
        length = min(_WIPED_BYTES, end - offset)
        blocks.write(offset, bytes(length))
        offset += length
    blocks.flush()


def find_store(drives: Mapping[str, Blocks]) -> tuple[Label, list[Blocks | None], dict[str, str]]:
    """The newest label on drives, their blocks by number, None for those that are missing; and why some cannot be read.

    Raises NoStripedStore: a drive without one, drives of several stores, one with another name than it is given here,
    one that was replaced, or none that can be read.
    """
    labels: dict[str, Label] = {}
    failed: dict[str, str] = {}
    for drive, blocks in drives.items():
        try:
            labels[drive] = read_label(blocks, drive)
        except (LabError, OSError) as error:
            failed[drive] = str(error)
    if not labels:
        told = "; ".join(f"{drive}: {why}" for drive, why in failed.items()) or "none was given"
        raise NoStripedStore(f"no drive of the store can be read: {told}")
    newest = max(labels.values(), key=lambda label: label.change)
    reached: list[Blocks | None] = [None] * len(newest.members)
    for drive, label in labels.items():
        require_member(drive, label, newest)
        reached[label.number] = drives[drive]
    strange = sorted(failed.keys() - {member.name for member in newest.members})
    if strange:
        raise NoStripedStore(f"{', '.join(strange)}: no drives of this store, and they cannot be read; leave them out")
    return replace(newest, number=0), reached, failed


def require_member(drive: str, label: Label, newest: Label) -> None:
    """Raise NoStripedStore where a drive with this label is not the one of this name in the store."""
    if label.store_id != newest.store_id:
        raise NoStripedStore(
            f"drive {drive} is of the store {label.store_id.hex()}, others of {newest.store_id.hex()}; leave it out"
        )
    if label.own.name != drive:
        raise NoStripedStore(f"drive {drive} was to be opened, but it is {label.own.name}; is the map right?")
    member = newest.members[label.number]
    if (member.name, member.incarnation) != (label.own.name, label.own.incarnation):
        raise NoStripedStore(f"drive {drive} was replaced by {member.name}; leave it out")
    # A label is on all drives that are in before anything is written with it. So this drive was written without those
    # that are in by the newest only if it has them all out, and knows of more than when it was left out itself.
    rest = [number for number, other in enumerate(newest.members) if not other.out]
    went_on = bool(rest) and all(label.members[number].out for number in rest)
    if member.out > NEVER_MEMBER and label.change >= member.out and went_on:
        raise NoStripedStore(
            f"drive {drive} was written without others of its store, and they without it; leave it or the others out"
        )
