"""Acts in journals and event streams: written byte for byte as before, and read whatever version wrote them.

``data/acts`` holds the journal and the events of a run that made every kind of act, as schema 1 and 2 have them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackloop.abilities import Host, stager
from rackloop.clock import Deadline
from rackloop.portmap import Full, Open, Partial, PortMap
from rackloop.record import ActAnnounced, read_events
from rackloop.record.acts import SanitizeDrive, TrimDrive
from rackloop.safety import Guard
from rackloop.safety._orphans import Orphan, _end
from rackloop.safety.undo import Equipment, journalled, undo
from rackloop_fixtures.subjects.characterize import DriveUnderTest
from tests.unit.harness.guard_case import Case
from tests.unit.harness.journalled_bench import Bench
from tests.unit.harness.sim_rack import BASELINE, SimSwitch

SAVED = Path(__file__).parent / "data" / "acts"
ROWS = [json.loads(line) for line in (SAVED / "journal.jsonl").read_text().splitlines()]
# What stays the same whenever and wherever the acts are made.
COLUMNS = ("id", "lab", "run", "ability", "resource", "what", "inverse", "state", "result")


class ResettingSwitch(SimSwitch):
    """A switch whose links can be reset."""

    def reset_link(self, ports: Collection[int], deadline: Deadline, *, is_hard: bool = False) -> None:
        self.before()


class EveryAct(Bench):
    """Makes the acts of ``data/acts``."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.log.test = "data/acts"

    def make_every_act(self) -> None:
        """Make each in its order."""
        self._prepare_drives()
        acting = self.acting
        self._change_maps(acting)
        self._drop_signals(acting)
        faults: list[tuple[str, dict[str, Any]]] = [
            ("drive:d01", {"kind": "media_error", "lba": 0, "sectors": 8, "mode": "until_rewritten", "on": "read"}),
            ("drive:d01", {"kind": "slow", "extra_us": 5000.0}),
            ("cabling", {"kind": "miswire", "ports": [1, 2]}),
            ("control", {"kind": "lost", "match": "", "probability": 1.0}),
            ("switch_port:101", {"kind": "stuck"}),
        ]
        for number, (part, fault) in enumerate(faults, start=1):
            acting.breakable[part].break_as(f"run-1/{number}", fault, self.deadline)
        acting.power["srv1"].turn_off(self.deadline)
        acting.power["srv2"].turn_on(self.deadline)
        acting.power["switch"].turn_off(self.deadline)

    def _prepare_drives(self) -> None:
        case = Case.sound(self.lab)
        Guard(self.lab, case.lease, log=self.log).writable("d01", case.drive, case.device, self.deadline).close()
        drive = cast("DriveUnderTest", SimpleNamespace(_acts=self.log, drive_id="d01"))
        with DriveUnderTest._act(drive, SanitizeDrive("block erase")):
            pass
        with DriveUnderTest._act(drive, TrimDrive()):
            pass
        host = cast("Host", SimpleNamespace(name="srv2", run=lambda *_: SimpleNamespace(status=0)))
        _end(host, Orphan("srv2", 7, "bench/lease-1/3", "fio --name x"), self.deadline, self.log)

    def _change_maps(self, acting: Equipment) -> None:
        fabric = acting.fabric
        fabric.apply(Partial(PortMap.of([(1, 102), (2, 101)])), self.deadline)
        fabric.apply(Open(frozenset({5, 6})), self.deadline)
        staged = stager(fabric).stage(Partial(PortMap.of([(1, 101)])), self.deadline)
        stager(fabric).trigger(staged, self.deadline)
        fabric.save_boot_map(self.deadline)
        fabric.apply(Full(PortMap.of([(1, 101), (5, 103), (6, 104)])), self.deadline)

    def _drop_signals(self, acting: Equipment) -> None:
        assert acting.phy is not None
        acting.phy.drop([6, 5], 0.1, self.deadline, request_id=1)
        acting.phy.flap([5], 0.05, 0.2, 3, self.deadline, request_id=2)
        resetting = Equipment(self.rack.switch, ResettingSwitch(self.clock, self.rack.switch.live))
        phy: Any = journalled(resetting, self.recorder).phy
        phy.reset_link([1], self.deadline, is_hard=True)

    def load(self) -> None:
        """Have the journal hold the saved entries, as another version left them."""
        columns = ", ".join(ROWS[0])
        marks = ", ".join("?" * len(ROWS[0]))
        with self.journal.store.transaction() as tables:
            for row in ROWS:
                tables.rows(f"INSERT INTO undo_entry ({columns}) VALUES ({marks})", *row.values())  # noqa: S608

    def rows(self) -> list[dict[str, Any]]:
        """The columns of every entry that do not depend on when and where it was made, as a process leaves them."""
        self.journal.standing(self.lab.name)
        found = self.journal.store.read(f"SELECT {', '.join(COLUMNS)} FROM undo_entry ORDER BY id")  # noqa: S608
        return [dict(zip(COLUMNS, row, strict=True)) for row in found]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[EveryAct]:
    with closing(EveryAct(tmp_path)) as bench:
        yield bench


def test_every_act_stands_in_the_journal_and_the_events_as_it_always_did(bench: EveryAct) -> None:
    bench.make_every_act()
    # A switch port was called port:101.
    rows = [{**row, "resource": row["resource"].replace("port:", "switch_port:")} for row in ROWS]
    assert bench.rows() == [{column: row[column] for column in COLUMNS} for row in rows]
    saved = (SAVED / "events.jsonl").read_text()
    assert bench.events.path.read_text() == saved.replace('"port:101"', '"switch_port:101"')


def test_a_saved_journal_gives_back_the_rack_that_its_run_left(bench: EveryAct, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    left = EveryAct(tmp_path / "other")
    left.make_every_act()
    bench.load()
    outcome = undo(bench.journal.standing("bench"), left.rack.equipment, bench.journal, left.deadline)
    assert outcome.problems == ()
    assert [entry.id for entry in outcome.undone] == [row["id"] for row in reversed(ROWS)]
    assert (left.rack.switch.live, left.rack.switch.saved) == (BASELINE, BASELINE)
    assert [name for name, part in left.rack.parts.items() if part.broken] == []
    assert all(outlet.on for outlet in left.rack.outlets.values())
    left.close()


def test_saved_entries_are_written_again_as_they_were_read(bench: EveryAct) -> None:
    bench.load()
    for entry in reversed(bench.journal.since(0)):
        bench.journal.intend("again", "run-1", entry.resource, what=entry.what, inverse=entry.inverse)
    texts = [(row["lab"], row["ability"], row["what"], row["inverse"]) for row in bench.rows()]
    half = len(ROWS)
    assert len(texts) == 2 * half
    assert [text[1:] for text in texts[half:]] == [text[1:] for text in texts[:half]]


def test_saved_events_are_read_with_all_they_say() -> None:
    lines = [json.loads(line) for line in (SAVED / "events.jsonl").read_text().splitlines()]
    told = [line["what"] for line in lines if line["kind"] == "act.announced"]
    read = [stamped.event for stamped in read_events(SAVED / "events.jsonl")]
    assert [event.what for event in read if isinstance(event, ActAnnounced)] == told
