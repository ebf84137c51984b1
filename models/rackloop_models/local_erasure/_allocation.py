"""The free sectors of the data area: extents in order, with neighbours joined."""

from __future__ import annotations

from bisect import bisect_left


class FreeSpace:
    """Free extents of sectors. What is taken has one extent; ``free`` counts all that is left.

    Extents are looked for from where the last was found on, so that files written one after the other lie so.
    """

    def __init__(self, first: int, stop: int) -> None:
        self._starts = [first]
        self._stops = [stop]
        self._next = 0
        self.free = stop - first

    def take(self, count: int) -> int | None:
        """The first sector of ``count`` free ones, which are not free any more, or None."""
        extents = len(self._starts)
        for step in range(extents):
            place = (self._next + step) % extents
            if self._stops[place] - self._starts[place] >= count:
                start = self._starts[place]
                self._cut(place, start, start + count)
                self._next = place if place < len(self._starts) else 0
                return start
        return None

    def take_at(self, start: int, count: int) -> bool:
        """Take exactly these sectors; False, and nothing done, where not all of them are free."""
        place = bisect_left(self._starts, start + 1) - 1
        if place < 0 or self._stops[place] < start + count:
            return False
        self._cut(place, start, start + count)
        self._next = min(self._next, max(0, len(self._starts) - 1))
        return True

    def give(self, start: int, count: int) -> None:
        """Sectors are free again. They must not be so already."""
        if not count:
            return
        stop = start + count
        place = bisect_left(self._starts, start)
        before = place > 0 and self._stops[place - 1] == start
        after = place < len(self._starts) and self._starts[place] == stop
        if (place > 0 and self._stops[place - 1] > start) or (place < len(self._starts) and self._starts[place] < stop):
            raise ValueError(f"sectors {start} to {stop - 1} are free already")
        if before and after:
            self._stops[place - 1] = self._stops.pop(place)
            del self._starts[place]
        elif before:
            self._stops[place - 1] = stop
        elif after:
            self._starts[place] = start
        else:
            self._starts.insert(place, start)
            self._stops.insert(place, stop)
        self.free += count

    def _cut(self, place: int, start: int, stop: int) -> None:
        first, last = self._starts[place], self._stops[place]
        kept = [(a, b) for a, b in ((first, start), (stop, last)) if a < b]
        self._starts[place : place + 1] = [a for a, _ in kept]
        self._stops[place : place + 1] = [b for _, b in kept]
        self.free -= stop - start
