"""A run directory that an earlier version wrote: its events, summary, health and evidence are still read."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree
from typing import Any

from rackloop.clock import VirtualClock
from rackloop.record import EventLog, read_events
from rackloop_reports import write_summary
from rackloop_reports.junit import to_junit
from rackloop_reports.record import read_run

BEFORE = Path(__file__).parent / "data" / "run_before"


def _without_later(written: dict[str, Any], *later: str) -> dict[str, Any]:
    """What is written now, without the fields that came later."""
    return {name: value for name, value in written.items() if name not in {"headlines", *later}}


def test_every_event_is_read_and_written_as_it_was(tmp_path: Path) -> None:
    read = list(read_events(BEFORE / "events.jsonl"))
    clock = VirtualClock()
    log = EventLog(tmp_path / "again.jsonl", clock)
    for stamped in read:
        clock.sleep_until_ns(stamped.t_ns)
        log.write(stamped.event)
    log.close()
    again = [json.loads(line) for line in log.path.read_text(encoding="utf-8").splitlines()]
    before = [json.loads(line) for line in (BEFORE / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [_without_later(event, "left_out", "gaps") for event in again] == before


def test_its_summary_and_its_junit_are_made_again_as_they_were(tmp_path: Path) -> None:
    directory = copytree(BEFORE, tmp_path / "run")
    (directory / "summary.json").unlink()
    write_summary(directory)
    made = json.loads((directory / "summary.json").read_text(encoding="utf-8"))
    made["tests"] = [_without_later(test, "duration_s") for test in made["tests"]]
    assert made == json.loads((BEFORE / "summary.json").read_text(encoding="utf-8"))
    assert to_junit(read_run(directory)) == (BEFORE / "junit.xml").read_bytes()
