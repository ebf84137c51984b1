"""Classification of sectors that were read, many at a time, with the verdicts of rackprobe.

A sector is believed to be whole only when it is, byte for byte, the sector that its own header speaks of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from rackloop_oracles.recovery._sectors import (
    HEADER,
    HEADER_CHECKED,
    MAGIC,
    PIECE_BYTES,
    SECTOR_BYTES,
    SERIAL_BYTES,
    STAMP,
    STAMPS,
    STAMPS_AT,
    U64,
    VERSION,
    Identity,
    can_be_stamped,
    mix,
)


class Content(StrEnum):
    """The content of a sector that is not the one expected, or why there is nothing to look at."""

    STALE = "stale"
    NEWER = "newer"
    TORN = "torn"
    MISPLACED = "misplaced"
    OTHER_RUN = "other_run"
    CORRUPT = "corrupt"
    FOREIGN = "foreign"
    BLANK = "blank"
    UNREADABLE = "unreadable"
    MISSING = "missing"


@dataclass(frozen=True)
class Found:
    """The content of a sector, and the identity in its header where that can be believed.

    ``generations`` are those of the writes that a torn sector mixes, ascending; 0 is a part of zeros. Of a torn sector
    ``is_stray`` says that a part of it belongs to another address or run. ``pieces`` are, of a sector that is not
    whole, the generations that each 512 bytes of it are of, byte for byte: 0 are zeros, None is what this run never
    wrote there, and ``is_damaged`` says that a piece has this run's stamp and other bytes. ``error`` is what the
    system said of a sector that it did not give.
    """

    content: Content
    serial: str = ""
    lba: int | None = None
    generation: int | None = None
    seed: int | None = None
    generations: tuple[int, ...] = ()
    is_stray: bool = False
    pieces: tuple[int | None, ...] = ()
    is_damaged: bool = False
    error: str = ""

    def __str__(self) -> str:
        match self.content:
            case Content.STALE | Content.NEWER:
                return f"generation {self.generation} ({self.content})"
            case Content.TORN:
                strays = ", some of another place" if self.is_stray else ", some damaged" if self.is_damaged else ""
                return "parts of generations " + ", ".join(map(str, self.generations)) + f" (torn{strays})"
            case Content.MISPLACED:
                return f"sector {self.lba} of generation {self.generation} (misplaced)"
            case Content.OTHER_RUN:
                return f"sector {self.lba} of {self.serial}, seed {self.seed}, generation {self.generation} (other run)"
            case Content.UNREADABLE | Content.MISSING:
                return f"nothing ({self.content}: {self.error})"
            case Content.BLANK:
                return "zeros (blank)"
            case _:
                return f"damaged content ({self.content})"


def unlike(identity: Identity, sectors: U64, lbas: U64, generations: U64) -> NDArray[np.intp]:
    """The rows of ``sectors`` that differ anywhere from the sector of that address and generation."""
    different = np.zeros(len(sectors), bool)
    for part, expected in identity.parts(lbas, generations):
        # Most of what is looked at is right: one comparison of all is less work than one for each.
        if not np.array_equal(expected, sectors[part]):
            different[part] = (expected != sectors[part]).any(axis=1)
    return np.flatnonzero(different)


def found_in(identity: Identity, sectors: U64, lbas: U64, generations: U64) -> Iterator[tuple[int, Found]]:
    """The content of each row of ``sectors`` that is not the one of that address and generation."""
    wrong = unlike(identity, sectors, lbas, generations)
    if not len(wrong):
        return
    rows, expected_lbas, expected = sectors[wrong], lbas[wrong], generations[wrong]
    # Most wrong sectors are whole ones of this store: they are told together, the others one by one.
    said_lbas, said = rows[:, 2].copy(), rows[:, 3].copy()
    damaged = np.ones(len(wrong), bool)
    damaged[unlike(identity, rows, said_lbas, said)] = False
    for at, index in enumerate(wrong):
        if damaged[at]:
            whole = Found(Content.STALE, identity.serial, int(said_lbas[at]), int(said[at]), identity.seed)
            yield int(index), _placed(whole, identity, int(expected_lbas[at]), int(expected[at]))
        else:
            yield int(index), _examined(rows[at].tobytes(), identity, int(expected_lbas[at]), int(expected[at]))


def _placed(found: Found, identity: Identity, lba: int, generation: int) -> Found:
    """A whole sector, with what is wrong about it."""
    if (found.serial, found.seed) != (identity.serial, identity.seed):
        content = Content.OTHER_RUN
    elif found.lba != lba:
        content = Content.MISPLACED
    elif found.generation is not None and found.generation > generation:
        content = Content.NEWER
    else:
        content = Content.STALE
    return Found(content, found.serial, found.lba, found.generation, found.seed)


def _examined(sector: bytes, identity: Identity, lba: int, generation: int) -> Found:
    if not any(sector):
        return Found(Content.BLANK)
    header = _header(sector)
    if header is None:
        stamps = _stamps(sector)
        if not stamps and not sector.startswith(MAGIC):
            return Found(Content.FOREIGN)
        return _damaged(sector, Found(Content.CORRUPT), stamps, identity, lba)
    said, is_checked = header
    # A whole one of this store would have been told already.
    is_ours = (said.serial, said.seed) == (identity.serial, identity.seed)
    writer = identity if is_ours else Identity(said.serial, said.seed or 0)
    numbers = np.array([said.lba, said.generation], np.uint64)
    if not is_ours and writer.content(numbers[:1], numbers[1:]) == sector:
        return _placed(said, identity, lba, generation)
    stamps = _stamps(sector)
    if not is_checked:
        return _damaged(sector, Found(Content.CORRUPT), stamps, identity, lba)
    stamps.add((said.generation or 0, int(writer.places(numbers[:1])[0])))
    return _damaged(sector, said, stamps, identity, lba)


def _damaged(sector: bytes, said: Found, stamps: set[tuple[int, int]], identity: Identity, lba: int) -> Found:
    """Two writes in one sector, or one that was damaged."""
    own_place = int(identity.places(np.array([lba], np.uint64))[0])
    pieces, is_damaged = _pieces(sector, identity, lba, {generation for generation, _ in stamps}, own_place)
    is_damaged |= pieces[0] is None and (said.serial, said.seed, said.lba) == (identity.serial, identity.seed, lba)
    ends = (*STAMPS_AT[1:], SECTOR_BYTES)
    starts_blank = not any(sector[:PIECE_BYTES])
    part_blank = any(not any(sector[at:end]) for at, end in zip(STAMPS_AT, ends, strict=True))
    if not stamps or (len(stamps) == 1 and not starts_blank and not part_blank):
        return replace(said, content=Content.CORRUPT, pieces=pieces, is_damaged=is_damaged)
    generations = {generation for generation, _ in stamps}
    if starts_blank or part_blank:
        generations.add(0)
    is_stray = any(place != own_place for _, place in stamps)
    return replace(
        said,
        content=Content.TORN,
        generations=tuple(sorted(generations)),
        is_stray=is_stray,
        pieces=pieces,
        is_damaged=is_damaged,
    )


def _pieces(
    sector: bytes, identity: Identity, lba: int, generations: set[int], own_place: int
) -> tuple[tuple[int | None, ...], bool]:
    """The origin of each 512 bytes, and whether some have the stamp of this place and are of no write of it."""
    lbas = np.array([lba], np.uint64)
    written = {
        generation: identity.content(lbas, np.array([generation], np.uint64)) for generation in sorted(generations)
    }
    pieces: list[int | None] = []
    is_damaged = False
    for number, at in enumerate(range(0, SECTOR_BYTES, PIECE_BYTES)):
        piece = slice(at, at + PIECE_BYTES)
        found = next((generation for generation, whole in written.items() if whole[piece] == sector[piece]), None)
        if found is None and not any(sector[piece]):
            found = 0
        pieces.append(found)
        if found is None:
            stamps = [_stamp(sector, stripe) for stripe in (number, STAMPS if number == STAMPS - 1 else 0) if stripe]
            is_damaged |= any(stamp is not None and stamp[1] == own_place for stamp in stamps)
    return tuple(pieces), is_damaged


def _header(sector: bytes) -> tuple[Found, bool] | None:
    """The content of a header, and whether its own check is right; None where there is no header of this version."""
    magic, version, length, _, lba, generation, seed, serial, check = HEADER.unpack_from(sector)
    if magic != MAGIC or version != VERSION or not 1 <= length <= SERIAL_BYTES:
        return None
    name = serial[:length].decode("ascii", "replace")
    if not can_be_stamped(name):
        return None
    is_checked = mix(crc32c(sector[:HEADER_CHECKED])) >> 32 == check
    return Found(Content.CORRUPT, name, lba, generation, seed), is_checked


def _stamps(sector: bytes) -> set[tuple[int, int]]:
    """Generation and place of every stamp that is whole."""
    stamps = (_stamp(sector, stripe) for stripe in range(1, STAMPS + 1))
    return {stamp for stamp in stamps if stamp is not None}


def _stamp(sector: bytes, stripe: int) -> tuple[int, int] | None:
    generation, place, check = STAMP.unpack_from(sector, STAMPS_AT[stripe - 1])
    return (generation, place) if mix(generation ^ mix(stripe << 32 | place)) >> 32 == check else None


def as_sectors(data: bytes) -> U64:
    """The bytes as rows of words, one row a sector. They are not copied."""
    return np.frombuffer(data, np.uint64).reshape(-1, SECTOR_BYTES // 8)
