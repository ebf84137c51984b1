"""The stripes of a store: what each holds, read with and without all of its units, and written so that it is whole."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock

import numpy as np

from rackloop.errors import ProductFailed
from rackloop_models import erasure
from rackloop_models.rack_erasure._drives import Drives
from rackloop_models.rack_erasure._errors import NoSuchObject, StripeLost, TooFewDrives
from rackloop_models.rack_erasure._layout import SLOTS
from rackloop_models.rack_erasure._membership import NEVER_MEMBER, Membership, trusted_members
from rackloop_models.rack_erasure._record import REMOVED, CorruptRecord, Version, digest_of
from rackloop_models.rack_erasure._state import Counts
from rackloop_models.rack_erasure._units import Records, UnitError, Units


@dataclass
class StripeState:
    """The state of a stripe. ``holds`` are the positions whose drives have its version, as far as was seen.

    ``blind`` is one whose version cannot be told from the drives that are there. ``tried`` is a version of which
    some records may have been written.
    """

    version: Version | None = None
    holds: frozenset[int] = frozenset()
    newest: int = 0
    blind: bool = False
    tried: Version | None = None
    lock: RLock = field(default_factory=RLock, repr=False)


class Stripes:
    """The stripes of a store by number, each with one object of the same number. Threads may share them.

    ``unseen`` are drives that were not asked since the store was opened, and that may know better.
    """

    def __init__(self, membership: Membership, drives: Drives, counts: Counts, *, trusts: bool = False) -> None:
        label = membership.label
        self.layout = label.layout
        self.code = label.layout.code
        self.units = Units(label, drives, counts)
        self.unseen = set(range(len(drives))) - set(drives.up())
        self._trusts = trusts
        self.known = [StripeState() for _ in self.layout.stripes]
        self._membership = membership
        self._drives = drives
        self._counts = counts
        self._codec = erasure.Code(self.code.k, self.code.m)

    @property
    def may_be_old(self) -> bool:
        """Whether drives that were not asked are so many of a stripe that it may have been written on them alone."""
        return any(self._unseen(number) >= self.code.k for number in range(len(self.known)))

    def reachable(self, number: int) -> set[int]:
        """The positions of a stripe whose drives can be reached."""
        units = self.layout.stripes[number]
        return {position for position, unit in enumerate(units) if self._drives.is_up(unit.drive)}

    def available(self, number: int) -> set[int]:
        """The positions of a stripe that have its version and can be reached."""
        return self.reachable(number) & self.known[number].holds

    def needed(self, version: Version) -> list[int]:
        """The positions of the data units that are not all zeros: so many units must be had to read it."""
        return [at for at in range(self.code.k) if self.code.stored_bytes(at, version.length)]

    def is_readable(self, number: int) -> bool:
        """Whether as much of an object can be had as it takes."""
        known = self.known[number]
        if known.blind or known.tried is not None:
            return False
        return known.version is None or self._suffice(known.version, self.available(number))

    def read(self, number: int) -> bytes:
        """The content of an object. Raises NoSuchObject, StripeLost."""
        known = self.known[number]
        with known.lock:
            self.decide(number)
            version = known.version
            if version is None or version.is_removed:
                raise NoSuchObject(f"there is no object {number}")
            self._counts.add(reads=1)
            units, _ = self._gathered(number, version, keeps=self.available(number))
            needed = self.needed(version)
            if all(position in units for position in needed):
                return b"".join(units[position] for position in needed)[: version.length]
            self._counts.add(degraded_reads=1)
            return self._decoded(number, version, units)[: version.length]

    def write(self, number: int, data: bytes | None) -> None:
        """Have an object hold ``data``, or be gone. Raises TooFewDrives; it holds what it held, or ``data``, then."""
        known = self.known[number]
        with known.lock:
            self.decide(number)
            self._counts.add(writes=1)
            units = dict.fromkeys(range(self.code.units), b"") if data is None else self._encoded(data)
            checksums = tuple(zlib.crc32(units[position]) for position in range(self.code.units))
            length = REMOVED if data is None else len(data)
            version = Version(self._next_generation(known), digest_of(data or b""), length, checksums)
            targets = self.reachable(number)
            self._require(number, targets, "it holds what it held")
            there = self.units.write_each(number, {at: units[at] for at in sorted(targets)}, version)
            self._require(number, there, "it holds what it held")
            known.newest = version.generation
            known.tried = version
            recorded = self.units.record_each(number, there, version)
            self._require(number, recorded, "it holds what it held, or what was written")
            # Before it is said to be written: who has no record of it must not be asked for it. That may be a drive
            # that came back meanwhile.
            self._leave_out(number, recorded, range(self.code.units))
            known.version, known.holds, known.tried = version, frozenset(recorded), None
            if len(recorded) < self.code.units:
                self._counts.add(degraded_writes=1)

    def decide(self, number: int) -> None:
        """Settle what a write that failed left of a stripe. Raises StripeLost where that cannot be told now."""
        known = self.known[number]
        if known.blind:
            self.vote(number)
        if known.blind:
            telling = [at for at in self.reachable(number) if _is_clean(self.units.records(number, at))]
            self._lose(number, telling, "what it holds cannot be told from the drives that are there")
        if known.tried is None:
            return
        tried, here = known.tried, self.reachable(number)
        records = {at: self.units.records(number, at) for at in sorted(here)}
        with_it = [at for at, slots in records.items() if tried in slots]
        if with_it and self._adopt(number, tried, here, records):
            self._counts.add(finished_writes=1)
            return
        # Nobody was told that it was written, and who is not here now will not be believed.
        before = known.version
        left = {at for at in here if before is None or before in records[at]}
        if before is not None and not self._suffice(before, left):
            self._lose(number, left, "a write of it failed")
        self.units.forget_each(number, {at: [tried.slot] for at in with_it})
        left &= self.reachable(number)
        self._leave_out(number, left)
        known.holds, known.tried = frozenset(left), None
        self._counts.add(undone_writes=1)

    def vote(self, number: int, scanned: Mapping[int, Records] | None = None) -> None:
        """Find out from its drives what a stripe holds. ``scanned`` are the records at its positions, where known."""
        known = self.known[number]
        here = self.reachable(number)
        records = dict(scanned) if scanned is not None else {at: self.units.records(number, at) for at in sorted(here)}
        members = self._membership.members
        voters = trusted_members(self.layout.stripes[number], members, self.code.k) & records.keys()
        if self._trusts and not voters:
            voters = set(records)
        clean = {at for at in voters if _is_clean(records[at])}
        seen = [slot for slots in records.values() for slot in slots if isinstance(slot, Version)]
        told = {slot for at in voters for slot in records[at] if isinstance(slot, Version)}
        if not voters:
            # None of those who know all is here. What was written last is hidden where k do not tell, or some have it.
            clean = {at for at in records if self._tells(number, at, records[at])}
            told = set(seen)
        known.newest = max((slot.generation for slot in seen), default=0)
        known.version = max(told, default=None)
        known.blind = not clean or (self._unseen(number) >= self.code.k and not self._trusts)
        if not voters:
            has_few = known.version is not None and seen.count(known.version) < self.code.k
            known.blind |= has_few or self.code.units - len(clean) >= self.code.k
        known.holds = frozenset(at for at, slots in records.items() if holds(slots, known.version))
        if known.blind:
            return
        self.clean(number, records)
        version = known.version
        if version is not None and voters - known.holds:
            # Its writer was stopped while it wrote records: all units are there, and the other records follow.
            self._adopt(number, version, voters if len(known.holds) >= self.code.k else here, records)

    def ask_again(self, number: int) -> None:
        """Look whether drives have units of a stripe that cannot be read, though they have no record of it."""
        known, here = self.known[number], self.reachable(number)
        if known.version is not None and not self.is_readable(number):
            records = {at: self.units.records(number, at) for at in sorted(here)}
            self._adopt(number, known.version, here, records)

    def clean(self, number: int, records: Mapping[int, Records]) -> None:
        """Take out records of writes that did not come to pass, newer than what the stripe holds."""
        version = self.known[number].version
        held = version.generation if version is not None else 0
        void = {
            at: [
                place
                for place, slot in enumerate(slots)
                if isinstance(slot, Version) and slot != version and slot.generation >= held
            ]
            for at, slots in records.items()
        }
        wanted = {at: slots for at, slots in void.items() if slots}
        if wanted:
            self._counts.add(undone_writes=1)
            self.units.forget_each(number, wanted)
            # One that does not let go of it is not believed any more.
            self._leave_out(number, self.available(number))

    def mend(self, number: int, positions: Collection[int]) -> tuple[int, int, int]:
        """Have these positions, whose drives can be reached, hold what the stripe does.

        How many were mended, bytes read and bytes written. Raises StripeLost.
        """
        known = self.known[number]
        with known.lock:
            self.decide(number)
            lacking = sorted((set(positions) & self.reachable(number)) - known.holds)
            version = known.version
            if version is None:
                self.units.forget_each(number, {at: range(SLOTS) for at in lacking})
                known.holds = known.holds | (self.reachable(number) & set(lacking))
                return (0, 0, 0)
            if not lacking:
                return (0, 0, 0)
            made: dict[int, bytes] = dict.fromkeys(lacking, b"")
            read = 0
            stored = [at for at in lacking if self.code.stored_bytes(at, version.length)]
            if stored:
                units, read = self._gathered(number, version, keeps=self.available(number))
                made |= self._computed(version, units, stored)
            there = self.units.write_each(number, made, version)
            done = self.units.record_each(number, there, version)
            known.holds = known.holds | frozenset(done)
            written = sum(len(made[at]) for at in done)
            self._counts.add(rebuilt_units=len(done), rebuilt_read_bytes=read, rebuilt_written_bytes=written)
            return (len(done), read, written)

    def give_up(self, drive: int) -> None:
        """Before another takes the place of a drive: where too few are left that are in, no others are believed."""
        for number, _ in self.layout.on_drive[drive]:
            others = [unit.drive for unit in self.layout.stripes[number] if unit.drive != drive]
            if sum(not self._membership.members[other].out for other in others) < self.code.k:
                self._membership.distrust_removed_members()
                return

    def check(self, number: int) -> tuple[dict[int, UnitError], bool]:
        """Read all units and records of a stripe that should be there: what is wrong, and whether the code agrees."""
        known = self.known[number]
        with known.lock:
            self.decide(number)
            version = known.version
            if version is None:
                return {}, True
            here = sorted(self.available(number))
            stored = [at for at in here if self.code.stored_bytes(at, version.length)]
            read = self.units.read_each(number, stored, version)
            wrong = {at: found for at, found in read.items() if isinstance(found, UnitError)}
            for at in here:
                if at not in wrong and not holds(self.units.records(number, at), version):
                    wrong[at] = UnitError.DAMAGED
                    self._counts.add(damaged=1)
            known.holds = known.holds - wrong.keys()
            data = {at: found for at, found in read.items() if isinstance(found, bytes)}
            if version.is_removed or not all(at in data for at in self.needed(version)):
                return wrong, True
            encoded = self._encoded(b"".join(data[at] for at in self.needed(version))[: version.length])
            return wrong, all(encoded[at] == found for at, found in data.items())

    def _adopt(self, number: int, version: Version, among: Collection[int], records: Mapping[int, Records]) -> bool:
        """Have a stripe hold a version of which there are ``records``, if enough of its units are there."""
        known = self.known[number]
        stored = [at for at in sorted(among) if self.code.stored_bytes(at, version.length)]
        read = self.units.read_each(number, stored, version)
        whole = [at for at in sorted(among) if at not in read or isinstance(read[at], bytes)]
        if len(whole) < self.code.k:
            return False
        recorded = self.units.record_each(number, whole, version)
        if len(recorded) < self.code.k:
            return False
        kept = known.holds if known.version == version else frozenset()
        known.version, known.holds, known.tried = version, kept | frozenset(recorded), None
        self._leave_out(number, known.holds, [at for at, slots in records.items() if _is_clean(slots)])
        return True

    def _next_generation(self, known: StripeState) -> int:
        """Newer than all that was seen, and in the slot that what the stripe holds now does not lie in."""
        following = known.newest + 1
        if known.version is not None and following % 2 == known.version.slot:
            following += 1
        return following

    def _encoded(self, data: bytes) -> dict[int, bytes]:
        """The stored bytes of each unit."""
        code = self.code
        width = code.stored_bytes(code.k, len(data))
        if not width:
            return dict.fromkeys(range(code.units), b"")
        rows = -(-len(data) // code.unit_bytes)
        codeword = np.zeros((rows + code.m, width), np.uint8)
        codeword[:rows].reshape(-1)[: len(data)] = np.frombuffer(data, np.uint8)
        self._codec.encode(codeword[:rows], codeword[rows:])
        units: dict[int, bytes] = {}
        for position in range(code.units):
            stored = code.stored_bytes(position, len(data))
            row = position if position < code.k else rows + position - code.k
            units[position] = codeword[row, :stored].tobytes() if stored else b""
        return units

    def _gathered(self, number: int, version: Version, keeps: Collection[int]) -> tuple[dict[int, bytes], int]:
        """As many units as it takes, data units if they are to be had; and how many bytes were read.

        Where those that a stripe ``keeps`` are too few the others are asked as well: what could not be read may be.
        """
        known, needed = self.known[number], self.needed(version)
        useful = (*needed, *range(self.code.k, self.code.units))
        order = [at for at in useful if at in keeps]
        order += [at for at in useful if at not in keeps and at in self.reachable(number)]
        units: dict[int, bytes] = {}
        told: dict[int, UnitError] = {}
        while len(units) < len(needed):
            some = order[: len(needed) - len(units)]
            if not some:
                why = ", ".join(f"position {at} is {wrong.value}" for at, wrong in told.items())
                self._lose(number, units.keys(), why)
            order = order[len(some) :]
            for at, found in self.units.read_each(number, some, version).items():
                if isinstance(found, bytes):
                    units[at] = found
                    if at not in keeps and holds(self.units.records(number, at), version):
                        known.holds = known.holds | {at}
                else:
                    told[at] = found
                    if found is not UnitError.GONE:
                        known.holds = known.holds - {at}
        return units, sum(map(len, units.values()))

    def _decoded(self, number: int, version: Version, units: Mapping[int, bytes]) -> bytes:
        """The data units of a version from those that there are, joined. Raises ProductFailed: they do not agree."""
        needed = self.needed(version)
        computed = self._computed(version, units, [at for at in needed if at not in units])
        data = b"".join(units.get(at) or computed[at] for at in needed)
        if digest_of(data[: version.length]) != version.digest:
            raise ProductFailed(
                f"object {number}: its units have the right checksums and do not decode to what it held"
            )
        return data

    def _computed(self, version: Version, units: Mapping[int, bytes], wanted: Sequence[int]) -> dict[int, bytes]:
        """These units from others."""
        missing = [at for at in wanted if at not in units]
        if missing:
            self._counts.add(decodes=1)
            rows, parity = len(self.needed(version)), self.code.k
            codeword = np.zeros((rows + self.code.m, self.code.stored_bytes(parity, version.length)), np.uint8)
            row_of = {
                at: at if at < parity else rows + at - parity for at in (*range(rows), *range(parity, self.code.units))
            }
            for at, data in units.items():
                codeword[row_of[at], : len(data)] = np.frombuffer(data, np.uint8)
            erased = [row for at, row in row_of.items() if at not in units]
            self._codec.decode(codeword, erased, wanted=[row_of[at] for at in missing])
        return {
            at: units[at]
            if at in units
            else codeword[row_of[at], : self.code.stored_bytes(at, version.length)].tobytes()
            for at in wanted
        }

    def _tells(self, number: int, at: int, slots: Records) -> bool:
        """Whether a drive would have a record of a write that it took: not one that came in the place of another."""
        member = self._membership.members[self.layout.stripes[number][at].drive]
        return _is_clean(slots) and (member.out != NEVER_MEMBER or any(isinstance(slot, Version) for slot in slots))

    def _unseen(self, number: int) -> int:
        return sum(unit.drive in self.unseen for unit in self.layout.stripes[number])

    def _suffice(self, version: Version, positions: Collection[int]) -> bool:
        """Whether a version can be read from these positions."""
        needed = self.needed(version)
        return len({*needed, *range(self.code.k, self.code.units)}.intersection(positions)) >= len(needed)

    def _leave_out(self, number: int, holders: Collection[int], lacking: Iterable[int] = ()) -> None:
        """Before a stripe's content is acknowledged: distrust the drives that do not hold it.

        Drives that are gone are out then, and those at ``lacking`` positions that are no ``holders``. Where fewer than
        ``k`` of the holders are in, those that left last would be believed, and know no better.
        """
        drives = [unit.drive for unit in self.layout.stripes[number]]
        with self._membership.lock:
            self._membership.exclude_unreachable([drives[at] for at in lacking if at not in holders])
            if sum(not self._membership.members[drives[at]].out for at in holders) < self.code.k:
                self._membership.distrust_removed_members()

    def _require(self, number: int, positions: Collection[int], what: str) -> None:
        if len(positions) < self.code.k:
            gone = [unit.drive for at, unit in enumerate(self.layout.stripes[number]) if at not in positions]
            names = ", ".join(self._membership.members[drive].name for drive in gone)
            raise TooFewDrives(
                f"object {number} is written on {self.code.k} drives at least, and {len(positions)} of its stripe took "
                f"it, {names} did not; {what}; bring drives back, or put spares in their place"
            )

    def _lose(self, number: int, available: Collection[int], why: str) -> None:
        """Raise StripeLost, with all that is not available."""
        known = self.known[number]
        needed = self.needed(known.version) if known.version is not None and not known.blind else range(self.code.k)
        useful = {*needed, *range(self.code.k, self.code.units)}
        erased = sorted(set(useful) - set(available))
        drives = [self._membership.members[self.layout.stripes[number][at].drive].name for at in erased]
        raise StripeLost(number, erased, drives, self.code.m, why)


def _is_clean(slots: Records) -> bool:
    """Whether both records of a place could be read, so that the newer is the last of which there was one."""
    return all(isinstance(slot, Version) or slot is CorruptRecord.EMPTY for slot in slots)


def holds(slots: Records, version: Version | None) -> bool:
    """Whether the records of a place are those of a stripe that holds this version."""
    if version is not None:
        return slots[version.slot] == version
    return _is_clean(slots)
