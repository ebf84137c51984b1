"""A run directory that an earlier version wrote: its events, summary, health and evidence are still read."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree

from rackloop.clock import VirtualClock
from rackloop.record import EventLog, read_events
from rackloop_reports import write_summary
from rackloop_reports.junit import to_junit
from rackloop_reports.record import read_run

BEFORE = Path(__file__).parent / "data" / "run_before"


def test_every_event_is_read_and_written_as_it_was(tmp_path: Path) -> None:
    read = list(read_events(BEFORE / "events.jsonl"))
    clock = VirtualClock()
    log = EventLog(tmp_path / "again.jsonl", clock)
    for stamped in read:
        clock.sleep_until_ns(stamped.t_ns)
        log.write(stamped.event)
    log.close()
    assert log.path.read_text(encoding="utf-8") == (BEFORE / "events.jsonl").read_text(encoding="utf-8")


def test_its_summary_and_its_junit_are_made_again_as_they_were(tmp_path: Path) -> None:
    directory = copytree(BEFORE, tmp_path / "run")
    (directory / "summary.json").unlink()
    write_summary(directory)
    made = json.loads((directory / "summary.json").read_text(encoding="utf-8"))
    assert made == json.loads((BEFORE / "summary.json").read_text(encoding="utf-8"))
    assert to_junit(read_run(directory)) == (BEFORE / "junit.xml").read_bytes()
