"""Files as pages: a first page with name, size and the first groups, and further pages with more groups. No I/O."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from rackloop_models.local_erasure._layout import PAGE_GROUPS
from rackloop_models.local_erasure._replicas import PAYLOAD_BYTES

# kind, bytes of the name, uid, size, modified_ns, groups up to the last, name
_FIRST = struct.Struct("<BBxxxxxxQQqQ256s")
# kind, uid, number of the page in its file
_FURTHER = struct.Struct("<BxxxxxxxQQ")
_ENTRY = np.dtype([("start", "<u8"), ("stored", "<u4")])

FIRST_PAGE_GROUPS = (PAYLOAD_BYTES - _FIRST.size) // _ENTRY.itemsize
MOST_NAME_BYTES = 255


class PageKind(IntEnum):
    """The kind of a page's content."""

    FREE = 0
    FIRST = 1
    FURTHER = 2


@dataclass(frozen=True)
class FirstPage:
    """A file. ``groups`` has (first sector, user sectors) for those of the first groups that are on the drive."""

    uid: int
    name: str
    size_bytes: int
    modified_ns: int
    group_count: int
    groups: Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class FurtherPage:
    """Further groups of the file ``uid``: those of page ``number``, by their number in the file."""

    uid: int
    number: int
    groups: Mapping[int, tuple[int, int]]


def page_of(group: int) -> int:
    """The page of its file that describes a group; 0 is the first page."""
    return 0 if group < FIRST_PAGE_GROUPS else 1 + (group - FIRST_PAGE_GROUPS) // PAGE_GROUPS


def groups_of(page: int) -> range:
    """The groups that a page of a file describes."""
    if page == 0:
        return range(FIRST_PAGE_GROUPS)
    first = FIRST_PAGE_GROUPS + (page - 1) * PAGE_GROUPS
    return range(first, first + PAGE_GROUPS)


def pack(page: FirstPage | FurtherPage | None) -> bytes:
    """A page's payload; None is a free one."""
    if page is None:
        return bytes(PAYLOAD_BYTES)
    if isinstance(page, FirstPage):
        name = page.name.encode()
        head = _FIRST.pack(
            PageKind.FIRST, len(name), page.uid, page.size_bytes, page.modified_ns, page.group_count, name
        )
        numbers = groups_of(0)
    else:
        head = _FURTHER.pack(PageKind.FURTHER, page.uid, page.number)
        numbers = groups_of(page.number)
    entries = np.zeros(len(numbers), _ENTRY)
    for number, entry in page.groups.items():
        entries[number - numbers.start] = entry
    return (head + entries.tobytes()).ljust(PAYLOAD_BYTES, b"\0")


def unpack(payload: bytes) -> FirstPage | FurtherPage | None:
    """The content of a page, None for a free one."""
    kind = payload[0]
    if kind == PageKind.FREE:
        return None
    if kind == PageKind.FIRST:
        _, length, uid, size, modified_ns, count, name = _FIRST.unpack_from(payload)
        groups = _entries(payload, _FIRST.size, groups_of(0))
        return FirstPage(uid, name[:length].decode(), size, modified_ns, count, groups)
    _, uid, number = _FURTHER.unpack_from(payload)
    return FurtherPage(uid, number, _entries(payload, _FURTHER.size, groups_of(number)))


def _entries(payload: bytes, at: int, numbers: range) -> dict[int, tuple[int, int]]:
    entries = np.frombuffer(payload, _ENTRY, len(numbers), at)
    used = np.flatnonzero(entries["stored"])
    return {numbers.start + int(place): (int(entries["start"][place]), int(entries["stored"][place])) for place in used}
