"""What is done by hand leaves alone what somebody works on, and a retest tries all that shows whether a part works."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import EXIT_LAB_FAILED, EXIT_PASS, BadInput
from rackloop.lab import LabState, Part, Parts, parts_at, parts_for, parts_of
from rackloop.portmap import Full, Open, PortMap
from rackloop.safety.leases import Holder, Leases, RackLeased
from rackloop.safety.maintenance import Diagnosis, OutOfService, OutOfServiceStore, Seen, State, Trial, diagnose
from rackloop.safety.store import open_store
from rackloop_cli.lab import maintenance as lab_maintenance
from rackloop_cli.lab import provision as lab_provision
from rackloop_cli.shared import lab_session, own_lease
from rackloop_labs import retest
from tests.unit.harness.sim_rack import BASELINE, SimRack, described

D01, D02, SRV1, SRV2 = Part.drive("d01"), Part.drive("d02"), Part.server("srv1"), Part.server("srv2")


class Work:
    """A rack in memory that the command line has as a lab that is up; ``broken`` are drives that fail a retest."""

    def __init__(self, folder: Path) -> None:
        self.clock = VirtualClock()
        self.lab = described(folder)
        self.rack = SimRack(self.clock)
        self.store = open_store(LabState.of(self.lab.name).store, self.clock)
        self.upkeep = OutOfServiceStore(self.store, self.lab.name)
        self.broken: set[str] = set()
        self.tried: list[str] = []
        self.seen: list[set[str]] = []

    def maintain(self, *gear: Part) -> None:
        for one in gear:
            self.upkeep.maintain(one, "new memory", "ada@bench")

    @contextmanager
    def bench(self, *_: object, **_options: object) -> Iterator[Any]:
        yield SimpleNamespace(lab=self.lab, clock=self.clock, equipment=self.rack.equipment)

    def retest(self, bench: Any, _equipment: object, drive: str) -> Diagnosis:
        self.tried.append(drive)
        self.seen.append(set(bench.lab.drives))
        seen = Seen.UNREADABLE if drive in self.broken else Seen.WORKS
        return diagnose([Trial(drive, *self.lab.places[drive], seen)])

    @property
    def soon(self) -> Deadline:
        return Deadline.after(self.clock, 10.0)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Work]:
    monkeypatch.setenv("RACKLOOP_STATE_HOME", str(tmp_path / "state"))
    work = Work(tmp_path)
    monkeypatch.setattr(own_lease, "open_leased", work.bench)
    monkeypatch.setattr(retest, "retest", work.retest)
    with closing(work.store):
        yield work


def _parts(work: Work) -> dict[str, Parts]:
    return {
        "the drive": parts_for(work.lab, Part.of("drive:d01")),
        "its switch port": parts_at(work.lab, [101]),
        "the server": parts_for(work.lab, Part.of("server:srv2")),
        "a port of the server": parts_at(work.lab, [7]),
    }


@pytest.mark.parametrize("part", ["the drive", "its switch port", "the server", "a port of the server"])
def test_nothing_is_done_by_hand_to_what_somebody_works_on(work: Work, part: str) -> None:
    work.maintain(D01, SRV2)
    with (
        pytest.raises(BadInput, match=r"is in maintenance since .*, by ada@bench: new memory; leave it alone, or end"),
        lab_session.acting(work.lab, work.clock, _parts(work)[part], "power"),
    ):
        pytest.fail("it was let through")


def test_what_nobody_works_on_is_acted_on_by_hand(work: Work) -> None:
    work.maintain(D01, SRV2)
    with lab_session.acting(work.lab, work.clock, parts_at(work.lab, [2, 102]), "fabric map") as equipment:
        equipment.fabric.apply(Open(frozenset({2})), work.soon)
    assert work.rack.switch.live == BASELINE.without({2})


def test_a_whole_map_by_hand_leaves_the_circuits_of_what_somebody_works_on(work: Work) -> None:
    work.maintain(SRV2)
    with lab_session.acting(work.lab, work.clock, parts_of(work.lab), "fabric map") as equipment:
        equipment.fabric.apply(Full(PortMap.of([(1, 102)])), work.soon)
        with pytest.raises(BadInput, match="ports 5 belong to what is out of service"):
            equipment.fabric.apply(Full(PortMap.of([(5, 101)])), work.soon)
    assert work.rack.switch.live == PortMap.of([(1, 102), (5, 103), (6, 104)])


def test_the_switch_is_not_turned_off_by_hand_while_somebody_works_on_a_drive(work: Work) -> None:
    work.maintain(D01)
    with lab_session.acting(work.lab, work.clock, parts_of(work.lab), "power switch") as equipment:
        with pytest.raises(BadInput, match=r"drive d01 is in maintenance since .*, by ada@bench: new memory; leave it"):
            equipment.power["switch"].turn_off(work.soon)
        assert equipment.power["switch"].is_on(work.soon)


def test_what_the_user_leased_before_is_acted_on_within_that_lease(
    work: Work, capsys: pytest.CaptureFixture[str]
) -> None:
    leases, wanted = Leases(work.store, work.lab.name), parts_at(work.lab, [2, 102])
    mine = leases.request(parts_of(work.lab, ["srv1"]), Holder.here(bound=False), term_s=60.0)
    with lab_session.acting(work.lab, work.clock, wanted, "fabric map") as equipment:
        equipment.fabric.apply(Open(frozenset({2})), work.soon)
        assert {lease.within for lease in leases.held()} == {None, mine.id}
    assert work.rack.switch.live == BASELINE.without({2})
    assert capsys.readouterr().err == f"within your lease {mine.id}\n"


def test_a_retest_goes_on_within_the_lease_that_the_user_took_before(work: Work) -> None:
    work.upkeep.quarantine(SRV1, "it crashes", "run r1")
    Leases(work.store, work.lab.name).request(parts_of(work.lab), Holder.here(bound=False), term_s=60.0)
    assert lab_maintenance.retest(str(work.lab.source), "srv1") == EXIT_PASS


@pytest.mark.parametrize(
    "holder",
    [Holder.here(), Holder("somebody", "else"), None],
    ids=["a process of the user", "somebody else", "the user, of too little"],
)
def test_no_other_lease_is_worked_within(work: Work, holder: Holder | None) -> None:
    wanted = parts_at(work.lab, [2, 102])
    part = parts_of(work.lab) if holder else parts_at(work.lab, [2])
    Leases(work.store, work.lab.name).request(part, holder or Holder.here(bound=False), term_s=60.0)
    with pytest.raises(RackLeased), lab_session.acting(work.lab, work.clock, wanted, "fabric map"):
        pytest.fail("it was let through")


@pytest.mark.parametrize(("broken", "status"), [(set(), EXIT_PASS), ({"d02"}, EXIT_LAB_FAILED)])
def test_a_server_is_lifted_once_every_drive_there_works(
    work: Work, capsys: pytest.CaptureFixture[str], broken: set[str], status: int
) -> None:
    work.upkeep.quarantine(SRV1, "it crashes", "run r1")
    work.broken = broken
    assert lab_maintenance.retest(str(work.lab.source), "srv1") == status
    assert work.tried == ["d01", "d02"]
    assert (SRV1 in work.upkeep.standing()) == bool(broken)
    said = capsys.readouterr().out
    assert ("it passed with d01, d02" in said) == (not broken)
    assert "d01: the retest did not reproduce it" in said


def test_a_port_is_tried_by_the_drive_there(work: Work) -> None:
    work.upkeep.quarantine(Part.port("srv1", "p1"), "it trains slowly", "run r1")
    assert lab_maintenance.retest(str(work.lab.source), "srv1.p1") == EXIT_PASS
    assert work.tried == ["d02"]


def test_a_retest_moves_no_drive_that_somebody_works_on(work: Work, capsys: pytest.CaptureFixture[str]) -> None:
    work.upkeep.quarantine(SRV1, "it crashes", "run r1")
    work.maintain(D01)
    assert lab_maintenance.retest(str(work.lab.source), "srv1") == EXIT_PASS
    assert (work.tried, work.seen) == (["d02"], [{"d02", "d03", "d04"}])
    assert "d01 is not tried: it is in maintenance" in capsys.readouterr().out


def test_a_retest_that_only_what_somebody_works_on_could_answer_is_refused(work: Work) -> None:
    work.upkeep.quarantine(Part.drive("d03"), "it fails", "run r1")
    work.maintain(SRV2)
    with pytest.raises(BadInput, match="server srv2 is in maintenance since"):
        lab_maintenance.retest(str(work.lab.source), "d03")
    assert work.tried == []


def test_servers_that_somebody_works_on_are_not_provisioned(work: Work) -> None:
    console = Console(record=True, width=200)
    work.maintain(SRV2, D02)
    out: dict[Part, OutOfService] = lab_session.in_maintenance(work.lab, work.store)
    assert all(one.state is State.MAINTENANCE for one in out.values())
    both = ("srv1", "srv2")
    assert list(lab_provision._in_service(work.lab, both, out, console).servers) == ["srv1"]
    assert "left alone: server srv2 is in maintenance since" in console.export_text()
    with pytest.raises(BadInput, match="server srv2 is in maintenance since"):
        lab_provision._in_service(work.lab, ("srv2",), out, console)
    work.maintain(SRV1)
    with pytest.raises(BadInput, match="server srv1 is in maintenance since"):
        lab_provision._in_service(work.lab, both, lab_session.in_maintenance(work.lab, work.store), console)
