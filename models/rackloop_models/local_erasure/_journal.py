"""The journal: one transaction of pages, which is on the drive as a whole or not at all."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

from rackloop_models.local_erasure._drive import Drive
from rackloop_models.local_erasure._errors import ReplicasDisagree
from rackloop_models.local_erasure._layout import Geometry
from rackloop_models.local_erasure._replicas import ReplicatedArea, Sealed

_DESCRIPTOR = struct.Struct("<II")
_NUMBER = struct.Struct("<I")


class Journal:
    """Pages, and the transaction that changes several of them at once.

    ``commit`` writes what changes to the journal and flushes, then to the pages. Before the next transaction takes the
    journal's place, the drive must have been flushed. ``recover`` writes the last transaction to the pages again, as
    the next ``commit`` does where one failed at the pages.
    """

    def __init__(self, drive: Drive, geometry: Geometry, store_id: bytes) -> None:
        replicas = geometry.layout.replicas
        self._drive = drive
        self._behind: dict[int, Sealed] = {}
        self.most = geometry.journal
        self.pages = ReplicatedArea(drive, b"PAGE", geometry.pages_at, geometry.pages, replicas, store_id)
        self.area = ReplicatedArea(drive, b"JRNL", geometry.journal_at, 1 + geometry.journal, replicas, store_id)

    def format(self, empty_page: bytes) -> None:
        """Write empty pages and a journal with nothing in it."""
        self.pages.write(dict.fromkeys(range(self.pages.count), Sealed(0, empty_page)))
        self.area.write(dict.fromkeys(range(self.area.count), Sealed(0, _DESCRIPTOR.pack(0, 0))))

    def commit(self, generation: int, pages: Mapping[int, bytes]) -> None:
        """Change pages, all or none of them. ``generation`` must be higher than any before.

        Raises ValueError, with nothing written, for more pages than ``most``.
        """
        if len(pages) > self.most:
            raise ValueError(f"a transaction has room for {self.most} pages, found {len(pages)}")
        if self._behind:
            self.pages.write(self._behind)
            self._drive.flush()
        numbers = sorted(pages)
        crc = 0
        for number in numbers:
            crc = zlib.crc32(pages[number], crc)
        descriptor = _DESCRIPTOR.pack(len(numbers), crc) + b"".join(map(_NUMBER.pack, numbers))
        images = {place: Sealed(generation, pages[number]) for place, number in enumerate(numbers, 1)}
        self.area.write({0: Sealed(generation, descriptor)} | images)
        self._drive.flush()
        self._behind = {number: Sealed(generation, pages[number]) for number in numbers}
        self.pages.write(self._behind)
        self._behind = {}

    def empty(self, generation: int) -> None:
        """Write a journal with nothing in it, once the pages have been flushed."""
        self.area.write(dict.fromkeys(range(self.area.count), Sealed(generation, _DESCRIPTOR.pack(0, 0))))

    def recover(self) -> None:
        """Write the last whole transaction to its pages, which changes nothing where it was written to them before."""
        (descriptor,) = self.area.read_all(1)
        count, crc = _DESCRIPTOR.unpack_from(descriptor.payload)
        numbers = [_NUMBER.unpack_from(descriptor.payload, _DESCRIPTOR.size + 4 * place)[0] for place in range(count)]
        images = self.area.read_each(1 + count)[1:]
        known = [image for image in images if isinstance(image, Sealed)]
        if any(image.generation != descriptor.generation for image in known):
            return  # the power was cut before it was whole
        homes = self._homes(numbers)
        for place, (number, image) in enumerate(zip(numbers, images, strict=True), 1):
            if isinstance(image, str) and homes[number] < descriptor.generation:
                raise ReplicasDisagree(f"journal sector {place}", self.area.places(place), image)
        if len(known) == count:
            found = 0
            for image in known:
                found = zlib.crc32(image.payload, found)
            if found != crc:
                return
        behind = {
            number: image
            for number, image in zip(numbers, images, strict=True)
            if isinstance(image, Sealed) and homes[number] < descriptor.generation
        }
        if behind:
            self.pages.write(behind)
            self._drive.flush()

    def _homes(self, numbers: list[int]) -> dict[int, int]:
        generations = {}
        for number in numbers:
            try:
                generations[number] = self.pages.read(number).generation
            except ReplicasDisagree:
                generations[number] = -1
        return generations
