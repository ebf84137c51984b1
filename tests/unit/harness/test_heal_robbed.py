"""A holder whose lease is over undoes, mends and heals nothing any more: that is for whoever has the rack now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackloop.abilities import Drive, Host
from rackloop.clock import Deadline, RealClock
from rackloop.errors import NotSupported
from rackloop.faults import Faults, FaultSpec
from rackloop.lab import Lab
from rackloop.portmap import Open
from rackloop.safety import HealReport, heal
from rackloop.safety.leases import Holder, LeaseLost, Leases, holding
from rackloop.safety.store import Store, open_store
from rackloop.safety.undo import ActRecorder, Entry, Journal, journalled, undoing
from tests.parts import parts
from tests.unit.harness.sim_rack import SimOutlet, SimRack, described, identity_of

WHOLE = parts(whole=True)


class MarkingJournal(Journal):
    """A journal that calls ``marked`` when entries have been marked as undone."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.marked: Callable[[], None] = lambda: None

    def undone(self, entries: Iterable[Entry]) -> None:
        super().undone(entries)
        self.marked()


class AskedRack:
    """A rack at its baseline, of whose servers only srv1 takes commands: ``meanwhile`` is called with each."""

    def __init__(self, lab: Lab, meanwhile: Callable[[], None]) -> None:
        self._lab = lab
        self._meanwhile = meanwhile

    def host(self, server: str) -> Host:
        if server != "srv1":
            raise NotSupported(f"{server} takes no commands")
        rack = self

        class Server:
            name = server

            def run(self, _argv: tuple[str, ...], _deadline: Deadline) -> Any:
                rack._meanwhile()
                return SimpleNamespace(stdout="", status=0)

            def reconnect(self, deadline: Deadline) -> int:
                return 0

        return cast("Host", Server())

    def drive(self, server: str, port: str) -> Drive:
        drive = {place: name for name, place in self._lab.places.items()}[server, port]
        return cast("Drive", SimpleNamespace(identify=lambda _deadline: identity_of(self._lab, drive)))


class Robbed:
    """A holder of a whole rack, and a thief who takes it when told."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.clock = RealClock()
        store = stack.enter_context(closing(open_store(folder / "store.sqlite", self.clock)))
        self.leases = Leases(store, "bench")
        self.held = stack.enter_context(holding(self.leases, WHOLE))
        self.lab = described(folder)
        self.journal = MarkingJournal(store)
        self.rack = SimRack(self.clock)
        self.recorder = ActRecorder(self.lab, self.journal, "run-1", lease=self.held)
        self.acting = journalled(self.rack.equipment, self.recorder)

    @property
    def soon(self) -> Deadline:
        return Deadline.after(self.clock, 20)

    def rob(self, *_: object) -> None:
        if not self.leases.thefts():
            self.leases.steal(self.leases.request(WHOLE, Holder("eve", "there")), "an outage")

    def heal(self) -> None:
        heal(self.lab, self.journal, self.rack.equipment, self.clock, self.soon, lease=self.held)

    def heal_while_asked(self, meanwhile: Callable[[], None]) -> HealReport:
        """Heal, and seek orphans first; ``meanwhile`` is called when the server is asked for them."""
        equipment = replace(self.rack.equipment, registers=(self.rack.register,))
        looked = AskedRack(self.lab, meanwhile)
        return heal(
            self.lab, self.journal, equipment, self.clock, self.soon, lease=self.held, look_at=looked, seek_orphans=True
        )

    def rob_when_turned_on(self, *names: str) -> None:
        for name in names:
            outlet = SimOutlet(self.rob)
            outlet.on = False
            self.rack.outlets[name] = outlet


@pytest.fixture
def robbed(tmp_path: Path) -> Iterator[Robbed]:
    with ExitStack() as stack:
        yield Robbed(stack, tmp_path)


def test_heal_touches_nothing_once_the_lease_is_over(robbed: Robbed) -> None:
    robbed.acting.power["srv1"].turn_off(robbed.soon)
    robbed.acting.fabric.apply(Open(frozenset({1})), robbed.soon)
    robbed.rob()
    live, told = robbed.rack.switch.live, list(robbed.rack.outlets["srv1"].told)
    with pytest.raises(LeaseLost, match=r"stolen by eve@there \(an outage\)"):
        robbed.heal()
    assert (robbed.rack.switch.live, robbed.rack.outlets["srv1"].told) == (live, told)
    assert len(robbed.journal.standing("bench")) == 2


def test_heal_stops_where_the_lease_is_taken_on_its_way(robbed: Robbed) -> None:
    for name in ("srv1", "srv2"):
        robbed.acting.power[name].turn_off(robbed.soon)
    robbed.acting.fabric.apply(Open(frozenset({1})), robbed.soon)
    robbed.rob_when_turned_on("srv1", "srv2")
    live = robbed.rack.switch.live
    with pytest.raises(LeaseLost):
        robbed.heal()
    # The one that was turned on when the thief came is the last that was touched.
    assert sorted(outlet.on for outlet in (robbed.rack.outlets["srv1"], robbed.rack.outlets["srv2"])) == [False, True]
    assert robbed.rack.switch.live == live
    assert len(robbed.journal.standing("bench")) == 3


def test_heal_gives_no_map_back_where_the_lease_is_taken_after_the_last_entry(robbed: Robbed) -> None:
    robbed.acting.power["srv1"].turn_off(robbed.soon)
    robbed.rack.switch.apply(Open(frozenset({1})), robbed.soon)
    live = robbed.rack.switch.live

    robbed.journal.marked = robbed.rob
    with pytest.raises(LeaseLost):
        robbed.heal()
    assert robbed.rack.switch.live == live


def test_heal_leaves_the_faults_of_the_thief_who_came_while_it_asked_the_servers(robbed: Robbed) -> None:
    part = robbed.rack.parts["drive:d01"]

    def come() -> None:
        robbed.rob()
        part.broken["thief/1"] = {"kind": "dead"}

    with pytest.raises(LeaseLost):
        robbed.heal_while_asked(come)
    assert (list(part.broken), part.told) == (["thief/1"], [])


def test_heal_undoes_by_the_journal_what_broke_while_it_asked_the_servers(robbed: Robbed) -> None:
    def break_d01() -> None:
        robbed.acting.breakable["drive:d01"].break_as("late", {"kind": "dead"}, robbed.soon)

    report = robbed.heal_while_asked(break_d01)
    assert [entry.resource for entry in report.undone] == ["drive:d01"]
    assert report.mended == ()
    assert not robbed.rack.parts["drive:d01"].broken
    assert robbed.journal.standing("bench") == []


def test_a_scope_stops_undoing_where_the_lease_is_taken_on_its_way(robbed: Robbed) -> None:
    with pytest.raises(LeaseLost):
        _break_two_parts(robbed)
    assert "mine" in robbed.rack.parts["drive:d01"].broken
    assert len(robbed.journal.standing("bench")) == 2


def _break_two_parts(robbed: Robbed) -> None:
    with undoing(robbed.rack.equipment, robbed.recorder, robbed.clock) as equipment:
        equipment.power["srv1"].turn_off(robbed.soon)
        equipment.breakable["drive:d01"].break_as("mine", {"kind": "slow"}, robbed.soon)
        robbed.rob_when_turned_on("srv1")


def test_a_fault_is_left_to_the_thief(robbed: Robbed) -> None:
    mended: list[str] = []

    def mend_and_be_robbed() -> None:
        mended.append("d01")
        robbed.rob()

    faults = Faults(robbed.lab, robbed.rack.equipment, robbed.clock, robbed.recorder)
    injection = faults.begin(FaultSpec("fail_stop", "d01"))
    robbed.rack.parts["drive:d01"].mending = mend_and_be_robbed
    with pytest.raises(LeaseLost):
        faults.end(injection)
    assert len(mended) == 1
    with pytest.raises(LeaseLost):
        robbed.acting.breakable["drive:d01"].mend("mine", robbed.soon)
    assert len(mended) == 1
    assert injection.stands
