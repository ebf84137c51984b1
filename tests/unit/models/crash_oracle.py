"""The contents that a store may have after a power cut, sector by sector."""

from __future__ import annotations

from dataclasses import dataclass, field

SECTOR = 4096


@dataclass
class Versions:
    """The contents that a file has had; ``floor`` is the oldest that a crash may still leave, for sectors and size."""

    contents: list[bytes] = field(default_factory=lambda: [b""])
    floor: int = 0
    size_floor: int = 0
    sector_floors: dict[int, int] = field(default_factory=dict)
    # A long write may have been committed up to the end of any of its groups.
    between: set[int] = field(default_factory=set)

    @property
    def now(self) -> bytes:
        return self.contents[-1]

    def complaint(self, found: bytes) -> str:
        """What is wrong with a content that was found, empty when it may be."""
        sizes = {len(content) for content in self.contents[self.size_floor :]} | self.between
        if len(found) not in sizes:
            return f"{len(found)} bytes, expected one of {sorted(sizes)}"
        for sector in range(-(-len(found) // SECTOR)):
            there = found[sector * SECTOR : (sector + 1) * SECTOR]
            oldest = self.sector_floors.get(sector, self.floor)
            allowed = (content[sector * SECTOR : (sector + 1) * SECTOR] for content in self.contents[oldest:])
            if not any(there == content[: len(there)].ljust(len(there), b"\0") for content in allowed):
                return f"sector {sector} is not of version {oldest} or later, of {len(self.contents)}"
        return ""


class CrashOracle:
    """Follows what is done to a store, and judges what is found after a crash.

    Names are those of one moment since the last sync. ``group_bytes`` are the user bytes of a whole group.
    """

    def __init__(self, group_bytes: int) -> None:
        self._group_bytes = group_bytes
        self._files: dict[int, Versions] = {}
        self._names: list[dict[str, int]] = [{}]

    @property
    def names(self) -> dict[str, int]:
        return self._names[-1]

    def content(self, name: str) -> bytes:
        return self._files[self.names[name]].now

    def created(self, name: str) -> None:
        number = len(self._files)
        self._files[number] = Versions()
        self._names.append(self.names | {name: number})

    def removed(self, name: str) -> None:
        self._names.append({other: number for other, number in self.names.items() if other != name})

    def renamed(self, old: str, new: str) -> None:
        names = dict(self.names)
        names[new] = names.pop(old)
        self._names.append(names)

    def written(self, name: str, offset: int, data: bytes) -> None:
        file = self._files[self.names[name]]
        before = file.now
        after = before.ljust(offset, b"\0")[:offset] + data + before[offset + len(data) :]
        file.contents.append(after if data else before)
        first = max(len(before), offset) // self._group_bytes + 1
        file.between |= {at * self._group_bytes for at in range(first, -(-len(after) // self._group_bytes))}

    def refused(self, name: str) -> None:
        """The last write to a file was not done, nor anything of it."""
        self._files[self.names[name]].contents.pop()

    def truncated(self, name: str, size: int) -> None:
        file = self._files[self.names[name]]
        file.contents.append(file.now[:size].ljust(size, b"\0"))

    def write_synced(self, name: str, offset: int, length: int) -> None:
        file = self._files[self.names[name]]
        newest = len(file.contents) - 1
        file.size_floor = newest
        file.between.clear()
        for sector in range(offset // SECTOR, -(-(offset + length) // SECTOR)):
            file.sector_floors[sector] = newest

    def synced(self) -> None:
        self._names = [self.names]
        for file in self._files.values():
            file.floor = file.size_floor = len(file.contents) - 1
            file.sector_floors.clear()
            file.between.clear()

    def complaint(self, found: dict[str, bytes]) -> str:
        """What is wrong with what was found, empty when nothing is."""
        complaints = []
        for names in self._names:
            if names.keys() == found.keys():
                wrong = [
                    f"{name}: {complaint}"
                    for name, number in names.items()
                    if (complaint := self._files[number].complaint(found[name]))
                ]
                if not wrong:
                    return ""
                complaints += wrong
        return "; ".join(complaints) or f"the names {sorted(found)} are of no moment since the last sync"
