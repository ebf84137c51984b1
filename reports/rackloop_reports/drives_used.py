"""The drives that a run was about: those its tests wrote, moved, broke or measured, of all that its lab has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rackloop.record.acts import AskGuard
from rackloop_reports.record import RunRecord, TestRecord


def drives_used(run: RunRecord) -> list[Mapping[str, Any]]:
    """The entries of the run's drives that a test was about, in the lab's order; identities that were read in the run
    stand instead of described ones."""  # noqa: D205, D209
    named = {name for test in run.tests for name in _named(test)}
    seen = {one.drive: one for test in run.tests for one in test.drives}
    found: list[Mapping[str, Any]] = []
    for dut in run.started.duts:
        name = str(dut.get("id"))
        if name in seen:
            one = seen[name]
            told = {"model": one.model, "serial": one.serial, "firmware": one.firmware, "protocol": one.protocol}
            place = {"place": f"{one.server}.{one.port}", "size_bytes": one.size_bytes}
            found.append({**dut, **told, **place})
        elif name in named:
            found.append(dut)
    return found


def the_drive_of(run: RunRecord) -> str | None:
    """The serial number of the one drive that a run measured; None where it measured several, or none by itself."""
    serials = {one.serial for test in run.tests for one in test.drives}
    return serials.pop() if len(serials) == 1 else None


def _named(test: TestRecord) -> Iterator[str]:
    yield from (remap.drive for remap in test.remaps)
    yield from (act.what.drive for act in test.acts if isinstance(act.what, AskGuard))
    yield from (phase.target for phase in test.faults)
    yield from (measured.labels["drive"] for measured in test.measurements if "drive" in measured.labels)
