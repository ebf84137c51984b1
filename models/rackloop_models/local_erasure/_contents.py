"""Reading, writing and cutting what is in files, group by group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from rackloop.errors import BadInput
from rackloop_models.erasure import Bytes, UnrecoverableError
from rackloop_models.local_erasure._errors import NoRoom
from rackloop_models.local_erasure._file import File, Group
from rackloop_models.local_erasure._layout import SECTOR_BYTES
from rackloop_models.local_erasure._pages import page_of
from rackloop_models.local_erasure._volume import Volume


@dataclass(frozen=True)
class Stretch:
    """Bytes ``first`` to ``stop - 1`` of the user sectors of a group; they lie ``at`` bytes into what was asked for."""

    index: int
    first: int
    stop: int
    at: int

    @property
    def rows(self) -> tuple[int, int]:
        """The sectors it touches, as (first, end)."""
        return self.first // SECTOR_BYTES, -(-self.stop // SECTOR_BYTES)


class Contents:
    """The bytes of files on a volume, for one thread at a time."""

    def __init__(self, volume: Volume) -> None:
        self._volume = volume
        self._group_bytes = volume.layout.k * SECTOR_BYTES

    def read(self, file: File, offset: int, length: int) -> bytes:
        """Bytes of a file, fewer at its end. Raises BadInput, and GroupUnrecoverable."""
        _require_range(offset, length)
        pieces: list[bytes | memoryview] = []
        for stretch in self._stretches(offset, min(offset + length, file.size_bytes)):
            pieces += self._read_stretch(file, stretch)
        if len(pieces) == 1 and isinstance(pieces[0], bytes):
            return pieces[0]
        return b"".join(pieces)

    def write(self, file: File, offset: int, data: bytes | bytearray | memoryview) -> list[Group]:
        """Put bytes into a file, in the cache: the groups that changed. Raises BadInput, NoRoom, GroupUnrecoverable."""
        content = np.frombuffer(data, np.uint8)
        _require_range(offset, len(content))
        if not len(content):
            return []
        stretches = list(self._stretches(offset, offset + len(content)))
        groups = self._reserve(file, stretches)
        try:
            # A sector that is written in part holds zeros behind the end, not what was there before the file was cut.
            if file.size_bytes // SECTOR_BYTES <= (offset + len(content) - 1) // SECTOR_BYTES:
                self._zero_behind_end(file)
            for group, stretch in zip(groups, stretches, strict=True):
                self._volume.begin(besides=group)
                self._write_stretch(group, stretch, content[stretch.at : stretch.at + stretch.stop - stretch.first])
        finally:
            self._drop_unused(file, groups)
        return groups

    def truncate(self, file: File, size_bytes: int) -> None:
        """Make a file shorter or longer; what is new reads as zeros. Raises BadInput, GroupUnrecoverable."""
        _require_range(0, size_bytes)
        if size_bytes > file.size_bytes:
            self._zero_behind_end(file)
        elif size_bytes < file.size_bytes:
            # So many pages may go that one transaction has no room for them.
            for groups in self._volume.table.cuts(file, -(-size_bytes // self._group_bytes)):
                self._cut(file, groups * self._group_bytes)
                self._volume.begin()
            self._cut(file, size_bytes)
        file.size_bytes = size_bytes
        file.change()

    def _cut(self, file: File, size_bytes: int) -> None:
        whole, rest = divmod(size_bytes, self._group_bytes)
        kept = whole + (rest > 0)
        last = file.groups.get(whole) if rest else None
        if last is not None:
            self._shorten(last, -(-rest // SECTOR_BYTES))
        for index in [index for index in file.groups if index >= kept]:
            group = file.groups.pop(index)
            file.change(group)
            self._volume.give_up(group)
        self._volume.table.drop_pages(file, kept)
        file.size_bytes = size_bytes
        file.change()

    def _stretches(self, offset: int, stop: int) -> Iterator[Stretch]:
        position = offset
        while position < stop:
            index, first = divmod(position, self._group_bytes)
            length = min(self._group_bytes - first, stop - position)
            yield Stretch(index, first, first + length, position - offset)
            position += length

    def _read_stretch(self, file: File, stretch: Stretch) -> list[bytes | memoryview]:
        group = file.groups.get(stretch.index)
        first, stop = stretch.rows
        held = min(stop, group.stored) if group else 0
        if group is None or held <= first:
            return [bytes(stretch.stop - stretch.first)]
        end = min(stretch.stop, held * SECTOR_BYTES)
        hole = [bytes(stretch.stop - end)] if stretch.stop > end else []
        self._volume.let_go(besides=group)
        if group.cached is None or not group.cached.present[first:held].any():
            # A reader that takes most of a group in one go does not come back for the rest.
            keep = group.cached is not None or 2 * (held - first) < group.stored
            pieces = self._volume.reads.fresh(group, first, held, keep=keep)
            return _cut(pieces, stretch.first - first * SECTOR_BYTES, end - first * SECTOR_BYTES) + hole
        cached = self._volume.reads.load(group, first, held)
        return [cached.rows.reshape(-1)[stretch.first : end].tobytes(), *hole]

    def _reserve(self, file: File, stretches: list[Stretch]) -> list[Group]:
        """Groups with room for what is to be written, or NoRoom with nothing done."""
        try:
            return self._reserved(file, stretches)
        except NoRoom:
            self._volume.free_by_commit()
            self._volume.allocator.trim()
        return self._reserved(file, stretches)

    def _reserved(self, file: File, stretches: list[Stretch]) -> list[Group]:
        groups: list[Group] = []
        taken: list[int] = []
        try:
            for stretch in stretches:
                self._volume.begin()
                if self._volume.table.take_page(file, page_of(stretch.index)):
                    taken.append(page_of(stretch.index))
                groups.append(self._with_room(file, stretch))
        except BaseException:
            self._drop_unused(file, groups)
            for page in taken:
                self._volume.table.return_page(file, page)
            raise
        return groups

    def _with_room(self, file: File, stretch: Stretch) -> Group:
        rows = stretch.rows[1]
        allocator = self._volume.allocator
        group = file.groups.get(stretch.index)
        if group is None:
            group = allocator.reserve(file, stretch.index, rows) or self._refuse(rows)
            file.groups[stretch.index] = group
            return group
        if max(rows, group.stored) + self._volume.layout.m > group.room and not allocator.extend(group, rows):
            moved = allocator.reserve(file, stretch.index, rows) or self._refuse(rows)
            try:
                self._move(group, moved)
            except BaseException:
                allocator.give_up(moved)
                raise
        group.needed = rows
        return group

    def _refuse(self, rows: int) -> NoReturn:
        sectors = rows + self._volume.layout.m
        raise NoRoom(
            f"no {sectors} sectors that follow each other are free, of {self._volume.allocator.free_sectors} that are; "
            "remove files"
        )

    def _move(self, group: Group, place: Group) -> None:
        """Have a group lie elsewhere: all of it is in the cache then, and new."""
        if group.stored:
            cached = self._volume.reads.load(group, 0, group.stored)
            cached.dirty[: group.stored] = True
            # What it was before it changes cannot be read from the new place.
            cached.forget_redundancy()
            self._volume.drive.statistics.moved_groups += 1
        self._volume.allocator.free(group.start, group.room, committed=group.committed > 0)
        self._volume.allocator.adopt(group, place)
        self._volume.write_back.mark_protected(group)
        group.file.change(group)

    def _drop_unused(self, file: File, groups: list[Group]) -> None:
        for group in groups:
            group.needed = 0
            if not group.stored:
                self._volume.give_up(group)
                file.groups.pop(group.index, None)

    def _write_stretch(self, group: Group, stretch: Stretch, content: Bytes) -> None:
        volume = self._volume
        first, stop = stretch.rows
        if not group.stored and stretch.stop - stretch.first == self._group_bytes:
            volume.write_back.write_new(group, content.reshape(-1, SECTOR_BYTES))
            self._reach(group, stretch)
            return
        cached = volume.cache.of(group)
        # Sectors that are written in part are read before; those that the group does not have yet are zeros.
        for row, whole in ((first, stretch.first % SECTOR_BYTES == 0), (stop - 1, stretch.stop % SECTOR_BYTES == 0)):
            if row < group.stored and not (whole or cached.present[row]):
                volume.reads.load(group, row, row + 1)
        if not 2 * (stop - first) >= group.stored:
            for row in range(first, min(stop, cached.base)):
                if cached.present[row] and not cached.changed[row]:
                    cached.old[row] = cached.rows[row].copy()
        begin = min(first, group.stored)
        if stop > group.stored:
            cached.rows[group.stored : first + 1] = 0
            cached.rows[max(stop - 1, group.stored) : stop] = 0
        cached.rows.reshape(-1)[stretch.first : stretch.stop] = content
        for mask in (cached.present, cached.dirty, cached.changed):
            mask[begin:stop] = True
        self._reach(group, stretch)
        group.damaged = False
        volume.cache.charge(group)
        if group.stored == volume.layout.k and cached.dirty.all():
            if group.committed:
                volume.write_back.overwritten(group)
            else:
                # It is whole, and nobody knows its place: nothing has to be on the drive before it.
                volume.write_back.write_out([group])

    def _reach(self, group: Group, stretch: Stretch) -> None:
        """A group has what was to be written to it, and its file is as long as it takes: also if what follows fails."""
        file, stop = group.file, stretch.rows[1]
        if stop > group.stored:
            group.stored = stop
            file.change(group)
        file.size_bytes = max(file.size_bytes, stretch.index * self._group_bytes + stretch.stop)
        file.change()

    def _zero_behind_end(self, file: File) -> None:
        """Zeros from the end of a file to the end of its last sector, before the file grows over them."""
        index, end = divmod(file.size_bytes, self._group_bytes)
        group = file.groups.get(index)
        row, used = divmod(end, SECTOR_BYTES)
        if not used or group is None or row >= group.stored:
            return
        cached = self._volume.reads.load(group, row, row + 1)
        if cached.rows[row, used:].any():
            if row < cached.base and not cached.changed[row]:
                cached.old[row] = cached.rows[row].copy()
            cached.rows[row, used:] = 0
            cached.dirty[row] = cached.changed[row] = True

    def _shorten(self, group: Group, rows: int) -> None:
        """Leave the first ``rows`` user sectors of a group, with redundancy that is to be computed anew."""
        if rows >= group.stored:
            return
        volume = self._volume
        cached = volume.cache.of(group)
        try:
            # The redundancy that is there does not help any more when the group is shorter.
            volume.reads.load(group, 0, rows)
        except UnrecoverableError:
            group.damaged = True
        for mask in (cached.present, cached.dirty):
            mask[rows:] = False
        cached.forget_redundancy()
        group.stored = rows
        volume.write_back.mark_stale(group)
        volume.allocator.loosen(group)
        group.file.change(group)


def _cut(pieces: list[bytes], first: int, stop: int) -> list[bytes | memoryview]:
    """Bytes ``first`` to ``stop - 1`` of pieces that follow each other; whole ones are not copied, nor are others."""
    cut: list[bytes | memoryview] = []
    at = 0
    for piece in pieces:
        start, end = max(first - at, 0), min(stop - at, len(piece))
        if start < end:
            cut.append(piece if end - start == len(piece) else memoryview(piece)[start:end])
        at += len(piece)
    return cut


def _require_range(offset: int, length: int) -> None:
    if offset < 0 or length < 0 or offset + length >= 1 << 63:
        raise BadInput(f"offsets and lengths are 0 or more, and below 2^63 together; found {offset} and {length}")
