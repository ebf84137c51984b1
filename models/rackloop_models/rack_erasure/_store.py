"""A store of objects in stripes over the drives of several servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock
from types import TracebackType
from typing import Self

from rackloop.abilities.blocks import BLOCK_BYTES, Blocks
from rackloop.clock import Clock
from rackloop.errors import BadInput
from rackloop_models.rack_erasure._drives import Drives, DriveUnavailable
from rackloop_models.rack_erasure._errors import NoStripedStore, StripeLost
from rackloop_models.rack_erasure._label import Member, read_label
from rackloop_models.rack_erasure._layout import Layout, needed_bytes
from rackloop_models.rack_erasure._membership import Membership
from rackloop_models.rack_erasure._opening import find_store, require_member, wipe
from rackloop_models.rack_erasure._rebuild import Rebuild, RebuildReport
from rackloop_models.rack_erasure._record import Version
from rackloop_models.rack_erasure._scrub import ScrubReport, scrub
from rackloop_models.rack_erasure._state import Counts, DriveState, Health, RecoveryState, Statistics
from rackloop_models.rack_erasure._stripes import Stripes, holds
from rackloop_models.rack_erasure._throttle import Throttle


class StripedStore:
    """Objects, numbered from 0, of up to ``object_bytes`` each: a stripe of k + m units each, on as many drives.

    A write is done when its units and a record of them stay on all drives of the stripe that can be reached, ``k`` at
    least; it is seen whole or not at all, also after a power cut. Any ``m`` drives of a stripe may be missing, or give
    wrong bytes, and it is read. Threads may share a store; two stores may not share drives. A context manager.

    ``drives`` are those that are there, by name; opening reads the records of all units. Drives that can be reached and
    were left out of writes are caught up by :meth:`rebuild`. ``workers`` is how many requests are under way at once,
    one for each drive when nothing is said. Where ``k`` or more drives of a stripe are missing, what the others say of
    it may be old, and it is not read or written; ``trusting`` believes them, to have a mirror back of which half is
    gone for good.

    Raises NoStripedStore.
    """

    covers_silent_corruption = True

    def __init__(
        self, drives: Mapping[str, Blocks], clock: Clock, *, workers: int | None = None, trusting: bool = False
    ) -> None:
        if workers is not None and workers < 1:
            raise BadInput(f"workers: expected at least 1, found {workers}")
        label, reached, failed = find_store(drives)
        self._clock = clock
        self._counts = Counts()
        self._drives = Drives(reached, workers)
        for number, member in enumerate(label.members):
            if member.name in failed:
                self._drives.explain(number, failed[member.name])
        self._membership = Membership(label, self._drives)
        self._stripes = Stripes(self._membership, self._drives, self._counts, trusts=trusting)
        self._throttles: list[Throttle] = []
        self._rebuilding = 0
        self._lock = Lock()
        self._vote()

    @property
    def layout(self) -> Layout:
        """The layout: which units lie where."""
        return self._stripes.layout

    @property
    def objects(self) -> int:
        """The number of objects there can be; their numbers are below."""
        return len(self.layout.stripes)

    @property
    def object_bytes(self) -> int:
        """The most that an object holds."""
        return self.layout.code.object_bytes

    @property
    def statistics(self) -> Statistics:
        """The counters since the store was opened."""
        return self._counts.statistics()

    @property
    def server_failures_survived(self) -> int:
        """The number of servers that may fail with every object readable, if all is well, by where drives are now."""
        return self.layout.server_failures_survived([member.server for member in self._membership.members])

    def numbers(self) -> list[int]:
        """The objects that there are, as far as can be told."""
        return [number for number in range(self.objects) if self._version(number) is not None]

    def get(self, number: int) -> bytes:
        """The content of an object. Raises NoSuchObject, StripeLost."""
        with self._timed(number):
            return self._stripes.read(number)

    def put(self, number: int, data: bytes) -> None:
        """Have an object hold ``data``; returns when that stays.

        Raises BadInput: too long. Raises TooFewDrives and StripeLost: then it holds what it held, or ``data``.
        """
        self._require_fits(number, len(data))
        with self._timed(number):
            self._stripes.write(number, data)

    def update(self, number: int, offset: int, data: bytes) -> None:
        """Change part of an object, which may grow; what is between its end and ``offset`` becomes zeros.

        All of its units are read and written. Raises as ``get`` and ``put`` do.
        """
        if offset < 0:
            raise BadInput(f"offset: expected 0 or more, found {offset}")
        self._require_fits(number, offset + len(data))
        with self._timed(number), self._stripes.known[number].lock:
            before = self._stripes.read(number)
            after = before[:offset].ljust(offset, b"\0") + data + before[offset + len(data) :]
            self._stripes.write(number, after)

    def remove(self, number: int) -> None:
        """Have an object be gone. Raises as ``put`` does, and NoSuchObject."""
        with self._timed(number), self._stripes.known[number].lock:
            self._stripes.read(number)
            self._stripes.write(number, None)

    def flush(self) -> None:
        """Nothing is kept back: every write stays when it returns. Has the drives flush all the same."""
        for number in self._drives.up():
            try:
                self._drives.do(number, lambda blocks: blocks.flush())
            except DriveUnavailable:
                continue

    def places(self, number: int) -> list[tuple[str, int, int]]:
        """Drive, offset and length of each unit of an object, in codeword order: its data units, then the others.

        A unit is a block that says what it is, and its bytes; one of zeros is only its record. Raises NoSuchObject.
        """
        version = self._version(number)
        if version is None:
            # Says why.
            self._stripes.read(number)
        found = []
        for position, unit in enumerate(self.layout.stripes[number]):
            drive = self._membership.members[unit.drive].name
            stored = self.layout.code.stored_bytes(position, version.length) if version else 0
            slot = version.slot if version else 0
            if stored:
                found.append((drive, self.layout.unit_offset(unit.place, slot), BLOCK_BYTES + stored))
            else:
                found.append((drive, self.layout.record_offset(unit.place, slot), BLOCK_BYTES))
        return found

    def recovery_state(self) -> RecoveryState:
        """The state of the store, as far as is known without reading."""
        missing = [0] * len(self._drives)
        units_missing = degraded = 0
        lost: list[int] = []
        survivors: dict[int, int] = {}
        for number, units in enumerate(self.layout.stripes):
            available = self._stripes.available(number)
            is_readable = self._stripes.is_readable(number)
            if self._version(number) is None and is_readable:
                continue
            for position, unit in enumerate(units):
                missing[unit.drive] += position not in available
            units_missing += len(units) - len(available)
            if not is_readable:
                lost.append(number)
            elif len(available) < len(units):
                degraded += 1
            if len(available) < len(units):
                survivors[len(available)] = survivors.get(len(available), 0) + 1
        drives = tuple(
            DriveState(
                member.name,
                member.server,
                self._drives.is_up(number),
                bool(member.out),
                missing[number],
                self._drives.why_gone(number),
            )
            for number, member in enumerate(self._membership.members)
        )
        health = Health.HEALTHY
        if degraded or any(drive.is_out or not drive.is_up for drive in drives):
            health = Health.DEGRADED
        if self._rebuilding:
            health = Health.REBUILDING
        if lost:
            health = Health.LOST
        return RecoveryState(
            health, len(self.numbers()), degraded, tuple(lost), units_missing, dict(sorted(survivors.items())), drives
        )

    def drive_failed(self, drive: str, why: str = "was said to have failed") -> None:
        """Ask no more of a drive. Raises NoStripedStore for one that the store does not have."""
        self._drives.leave(self._number(drive), why)

    def drive_back(self, drive: str, blocks: Blocks, *, server: str | None = None) -> None:
        """Use a drive of the store again, through these blocks: at ``server``, where it was when nothing is said.

        What it lacks is found by its records, which are read; :meth:`rebuild` catches it up. Raises NoStripedStore:
        it is another drive, was replaced, or carries no store; LabError: it cannot be read.
        """
        number = self._number(drive)
        label = read_label(blocks, drive)
        require_member(drive, label, self._membership.label)
        self._drives.leave(number, "comes back")
        self._take_out(number)
        self._drives.come(number, blocks)
        self._stripes.unseen.discard(number)
        if server is not None:
            self._membership.moved(number, server)
        self._membership.repeat(number)
        for stripe, slots in self._stripes.units.records_of_drive(number).items():
            known = self._stripes.known[stripe]
            position = self._position(number, stripe)
            with known.lock:
                if known.blind:
                    self._stripes.vote(stripe)
                elif known.tried is not None:
                    self._settle(stripe)
                elif position not in known.holds:
                    self._stripes.clean(stripe, {position: slots})
                    if holds(slots, known.version):
                        known.holds = known.holds | {position}
                    self._stripes.ask_again(stripe)
        self._join()

    def replace(self, drive: str, spare: str, blocks: Blocks, *, server: str | None = None) -> None:
        """Have a spare take the place of a drive, which is of the store no more; what was on the spare is lost.

        :meth:`rebuild` puts on it what it should have. Raises BadInput: the spare is of the store already, or too
        small; LabError: it cannot be written, and nothing has changed.
        """
        number = self._number(drive)
        if spare != drive and any(member.name == spare for member in self._membership.members):
            raise BadInput(f"drive {spare} is of the store already; take another as a spare for {drive}")
        wanted = needed_bytes(self.layout.code, self.layout.places)
        if blocks.size_bytes < wanted:
            raise BadInput(f"a drive of this store needs {wanted} bytes, and spare {spare} has {blocks.size_bytes}")
        wipe(blocks, self.layout)
        before = self._membership.members[number]
        self._drives.leave(number, f"was replaced by {spare}")
        self._take_out(number)
        self._stripes.give_up(number)
        self._membership.enter(number, Member(spare, server or before.server, before.incarnation + 1))
        self._drives.come(number, blocks)
        self._membership.repeat(number)
        for stripe, position in self.layout.on_drive[number]:
            known = self._stripes.known[stripe]
            with known.lock:
                if known.tried is not None:
                    self._settle(stripe)
                elif known.version is None and not known.blind:
                    known.holds = known.holds | {position}
        self._join()

    def rebuild(
        self,
        target: str | None = None,
        throttle: Throttle | None = None,
        progress: Callable[[int, int], None] | None = None,
        *,
        at_most: int | None = None,
    ) -> RebuildReport:
        """Write what drives that can be reached lack: all of them, or ``target``.

        Stripes with the fewest units left come first; when a drive comes or goes meanwhile that is worked out anew. It
        may be stopped at any time, by ``at_most`` stripes or by raising in ``progress``, which hears of units done and
        of all: another goes on from what is on the drives. Drives that lack nothing any more are in again. Objects can
        be read and written meanwhile, and ``throttle`` hears how long that takes. Raises NoStripedStore for a drive
        that the store does not have.
        """
        numbers = range(len(self._drives)) if target is None else [self._number(target)]
        with self._lock:
            self._rebuilding += 1
            if throttle is not None:
                self._throttles.append(throttle)
        try:
            return Rebuild(self._stripes, self._drives, numbers, self._clock).run(throttle, progress, at_most)
        finally:
            with self._lock:
                self._rebuilding -= 1
                if throttle is not None:
                    self._throttles.remove(throttle)
            self._join()

    def scrub(self, progress: Callable[[int, int], None] | None = None, *, repair: bool = True) -> ScrubReport:
        """Read every unit on drives that can be reached, and write again what is wrong, or lacking, with ``repair``."""
        try:
            return scrub(self._stripes, progress, repair=repair)
        finally:
            self._join()

    def close(self) -> None:
        """End the store's threads. Nothing is lost without it."""
        self._drives.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _vote(self) -> None:
        """Find out what every stripe holds.

        Drives that are missing are left out first: what is read now must not be something else when they are back. Not
        where they may be those that went on.
        """
        if not self._stripes.may_be_old:
            self._membership.exclude_unreachable()
        up = self._drives.up()
        scans = self._drives.at_once([partial(self._stripes.units.records_of_drive, number) for number in up])
        found = dict(zip(up, scans, strict=True))
        for stripe, units in enumerate(self.layout.stripes):
            records = {at: found[unit.drive][stripe] for at, unit in enumerate(units) if unit.drive in found}
            self._stripes.vote(stripe, records)
        self._join()

    def _join(self) -> None:
        """Have drives be in again that lack nothing any more."""
        out = [number for number in self._drives.up() if self._membership.members[number].out]
        self._membership.join([number for number in out if not self._lacks_anything(number)])

    def _lacks_anything(self, number: int) -> bool:
        for stripe, position in self.layout.on_drive[number]:
            known = self._stripes.known[stripe]
            if known.blind or known.tried is not None or position not in known.holds:
                return True
        return False

    def _settle(self, stripe: int) -> None:
        """Settle what a write that failed left, if enough drives are there for it now."""
        with suppress(StripeLost):
            self._stripes.decide(stripe)

    def _take_out(self, number: int) -> None:
        """Have no stripe believe that a drive has its unit."""
        for stripe, position in self.layout.on_drive[number]:
            known = self._stripes.known[stripe]
            with known.lock:
                known.holds = known.holds - {position}

    def _position(self, number: int, stripe: int) -> int:
        return next(at for at, unit in enumerate(self.layout.stripes[stripe]) if unit.drive == number)

    def _version(self, number: int) -> Version | None:
        """The version of an object, None where there is none."""
        self._require_number(number)
        version = self._stripes.known[number].version
        return None if version is None or version.is_removed else version

    def _number(self, drive: str) -> int:
        for number, member in enumerate(self._membership.members):
            if member.name == drive:
                return number
        names = ", ".join(member.name for member in self._membership.members)
        raise NoStripedStore(f"drive {drive} is not of this store, which has {names}")

    def _require_number(self, number: int) -> None:
        if not 0 <= number < self.objects:
            raise BadInput(f"objects have the numbers 0 to {self.objects - 1}, found {number}")

    def _require_fits(self, number: int, length: int) -> None:
        self._require_number(number)
        if length > self.object_bytes:
            raise BadInput(f"object {number}: an object has {self.object_bytes} bytes at most, found {length}")

    @contextmanager
    def _timed(self, number: int) -> Iterator[None]:
        """Tell throttles how long a request took."""
        self._require_number(number)
        began_ns = self._clock.now_ns()
        yield
        if self._throttles:
            seconds = (self._clock.now_ns() - began_ns) / 1e9
            with self._lock:
                throttles = list(self._throttles)
            for throttle in throttles:
                throttle.saw(seconds)
