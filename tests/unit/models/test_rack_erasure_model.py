"""A striped store against a dictionary, while drives fail, come back and are replaced, and the power is cut."""

from __future__ import annotations

from contextlib import suppress
from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rackloop.abilities.blocks import BLOCK_BYTES
from rackloop.seed import stream
from rackloop_models.rack_erasure import Health, NoSuchObject, StripedStore, StripeLost, TooFewDrives
from tests.unit.models.striped_drives import Case, Drive, PowerCut, case

Content = bytes | None

_DRIVES = 7
_OBJECTS = 4


class StoreMachine(RuleBasedStateMachine):
    """``may_hold`` has what an object may hold, ``damaged`` and ``stale`` the drives that may lack its unit.

    ``suspected`` are those of which it could not be read for a while: the store may go on to say that it lacks them.
    """

    case: Case
    store: StripedStore

    @initialize(code=st.sampled_from([(3, 2), (4, 1), (2, 2), (1, 1)]))
    def begin(self, code: tuple[int, int]) -> None:
        self.k, self.m = code
        self.case = case(*code, _DRIVES, places=6)
        self.store = self.case.open()
        self.may_hold: dict[int, set[Content]] = {number: {None} for number in range(_OBJECTS)}
        self.unseen: set[str] = set()
        self.fresh: set[str] = set()
        self.untold: set[int] = set()
        self.stale: dict[int, set[str]] = {number: set() for number in range(_OBJECTS)}
        self.damaged: dict[int, set[str]] = {number: set() for number in range(_OBJECTS)}
        self.suspected: dict[int, set[str]] = {number: set() for number in range(_OBJECTS)}
        self.names = count(_DRIVES)
        self.seeds = count()

    numbers = st.integers(0, _OBJECTS - 1)
    contents = st.tuples(st.integers(0, 255), st.integers(0, 3 * BLOCK_BYTES))
    which = st.integers(0, _DRIVES - 1)

    @property
    def down(self) -> set[str]:
        """The drives that are dead, some of which dropped by themselves."""
        return {name for name, drive in self.case.drives.items() if drive.is_dead}

    def drive(self, which: int) -> str:
        return list(self.case.drives)[which]

    def on(self, number: int) -> list[str]:
        names = [state.name for state in self.store.recovery_state().drives]
        return [names[unit.drive] for unit in self.store.layout.stripes[number]]

    def unusable(self, number: int) -> set[str]:
        """The drives of an object that may not have its unit."""
        return (self.down | self.stale[number] | self.damaged[number]) & set(self.on(number))

    def may_be_lost(self, number: int) -> bool:
        """Too little is left, too many have not been asked, or too few who are there have been in the store before."""
        on = set(self.on(number))
        self.fresh &= {state.name for state in self.store.recovery_state().drives if state.is_out}
        if number in self.untold or len(self.unusable(number)) > self.m:
            return True
        return len(self.unseen & on) >= self.k or len(on & (self.fresh | self.down)) >= self.k

    def made(self, content: tuple[int, int]) -> bytes:
        letter, length = content
        most = min(length, self.store.object_bytes)
        return stream(letter, "content").randbytes(most)

    @rule(number=numbers, content=contents)
    def put(self, number: int, content: tuple[int, int]) -> None:
        self.write(number, self.made(content))

    @rule(number=numbers)
    def remove(self, number: int) -> None:
        if self.may_hold[number] != {None}:
            self.write(number, None)

    def write(self, number: int, content: Content) -> None:
        up = set(self.on(number)) - self.down
        try:
            if content is None:
                self.store.remove(number)
            else:
                self.store.put(number, content)
        except NoSuchObject:
            assert None in self.may_hold[number]
            self.may_hold[number] = {None}
        except StripeLost:
            assert self.may_be_lost(number)
        except TooFewDrives:
            assert len(up - self.down) < self.k
            self.may_hold[number].add(content)
        else:
            self.may_hold[number] = {content}
            # Those that dropped had perhaps taken it before.
            self.stale[number] = set(self.on(number)) - (up - self.down)
            self.damaged[number] = set()

    @rule(number=numbers)
    def get(self, number: int) -> None:
        found: Content
        try:
            found = self.store.get(number)
        except NoSuchObject:
            found = None
        except StripeLost:
            assert self.may_be_lost(number)
            return
        assert found in self.may_hold[number], "wrong bytes"
        self.may_hold[number] = {found}

    @rule(which=which)
    def fail(self, which: int) -> None:
        drive = self.drive(which)
        self.case.drives[drive].is_dead = True

    @rule(which=which, after=st.integers(0, 8))
    def drop(self, which: int, after: int) -> None:
        """A write is done, and said to have failed."""
        self.case.drives[self.drive(which)].drops_after = after

    @rule(number=numbers)
    def read_badly_for_a_while(self, number: int) -> None:
        """More than m units at once cannot be read, and can again: nothing is lost by it."""
        if self.may_hold[number] == {None}:
            return
        try:
            places = self.store.places(number)
        except (NoSuchObject, StripeLost):
            return
        before = {name: set(drive.unreadable) for name, drive in self.case.drives.items()}
        for drive, offset, length in places[: self.m + 1]:
            self.case.drives[drive].unreadable.update(range(offset, offset + length, BLOCK_BYTES))
        with suppress(StripeLost, NoSuchObject):
            assert self.store.get(number) in self.may_hold[number], "wrong bytes"
        for name, sectors in before.items():
            self.case.drives[name].unreadable = sectors
        self.suspected[number] |= {drive for drive, _, _ in places[: self.m + 1]}
        self.get(number)

    @rule(which=which, said=st.booleans())
    def come_back(self, which: int, said: bool) -> None:
        drive = self.drive(which)
        if said:
            self.store.drive_failed(drive)
        self.case.drives[drive].is_dead = False
        self.case.drives[drive].drops_after = None
        self.store.drive_back(drive, self.case.drives[drive])
        self.unseen.discard(drive)

    @rule(which=which)
    def replace(self, which: int) -> None:
        drive = self.drive(which)
        spare, blocks = f"d{next(self.names)}", Drive(self.case.drives[drive].size_bytes, self.case.power)
        self.store.replace(drive, spare, blocks)
        # Where it was, so that the numbers of drives do not change.
        self.case.drives = {
            (spare if name == drive else name): (blocks if name == drive else other)
            for name, other in self.case.drives.items()
        }
        if drive in self.unseen:
            self.unseen = (self.unseen - {drive}) | {spare}
        self.fresh.add(spare)
        for number in self.stale:
            self.damaged[number].discard(drive)
            self.stale[number].discard(drive)
            if spare in self.on(number) and self.may_hold[number] != {None}:
                self.stale[number].add(spare)

    @rule(number=numbers, at=st.integers(0, 4), readable=st.booleans())
    def damage(self, number: int, at: int, readable: bool) -> None:
        # More than m units of one object damaged may be a record of every voter, of which nothing is promised.
        if len(self.may_hold[number]) > 1 or self.may_hold[number] == {None}:
            return
        try:
            places = self.store.places(number)
        except (NoSuchObject, StripeLost):
            return
        drive, offset, length = places[at % len(places)]
        if readable:
            self.case.drives[drive].damage(offset, length)
        else:
            self.case.drives[drive].unreadable.update(range(offset, offset + length, BLOCK_BYTES))
        self.damaged[number].add(drive)

    @rule(at_most=st.sampled_from([None, 1, 2]))
    def rebuild(self, at_most: int | None) -> None:
        report = self.store.rebuild(at_most=at_most)
        if report.left == 0 and not report.lost:
            for number in self.stale:
                self.stale[number] &= self.down

    @rule()
    def scrub(self) -> None:
        report = self.store.scrub()
        assert not report.mismatched
        for number in self.stale:
            if number not in report.lost:
                self.stale[number] &= self.down
                self.damaged[number] &= self.down

    @precondition(lambda self: len(self.down) < _DRIVES)
    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.open_again()

    def open_again(self) -> None:
        self.unseen = set(self.down)
        self.store = self.case.open(without=sorted(self.unseen))
        self.untold = {number for number in self.stale if len(self.unseen & set(self.on(number))) >= self.k}

    @precondition(lambda self: len(self.down) <= self.m)
    @rule(number=numbers, content=contents, after=st.integers(0, 40), dying=st.sets(which, max_size=2))
    def cut_power(self, number: int, content: tuple[int, int], after: int, dying: set[int]) -> None:
        data, up = self.made(content), set(self.on(number)) - self.down
        self.case.power.left = after
        held = set(self.may_hold[number])
        try:
            self.write(number, data)
        except PowerCut:
            self.may_hold[number] = held | {data}
            # Written over, or only begun: what lacks a unit of either may lack it.
            self.stale[number] |= set(self.on(number)) - (up - self.down)
        self.case.cut_power(stream(next(self.seeds), "power"))
        self.store.close()
        # Some do not survive it, and may come back later with what only they have.
        for drive in map(self.drive, dying):
            if len(self.down) < _DRIVES - 1:
                self.case.drives[drive].is_dead = True
        self.open_again()

    @invariant()
    def what_it_says_of_itself_is_true(self) -> None:
        if not hasattr(self, "store"):
            return
        state = self.store.recovery_state()
        if state.health is Health.HEALTHY:
            assert not state.missing
            assert state.units_missing == 0
        # What could not be told when the store was opened stays so until enough drives are there at one time.
        self.untold &= set(state.lost)
        for number in state.lost:
            if number < _OBJECTS:
                doubted = self.suspected[number] & set(self.on(number))
                assert self.may_be_lost(number) or len(self.unusable(number) | doubted) > self.m


def test_it_is_a_dictionary_whatever_happens_to_its_drives() -> None:
    run_state_machine_as_test(StoreMachine, settings=settings(max_examples=60, stateful_step_count=25))


@pytest.mark.nightly
def test_it_is_a_dictionary_however_long_it_lasts() -> None:
    run_state_machine_as_test(StoreMachine, settings=settings(max_examples=600, stateful_step_count=40))
