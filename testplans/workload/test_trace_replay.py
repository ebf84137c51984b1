"""A recorded workload on one drive, and how faithful the replay was; other drives may move meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import allure
from rackloop.lab import Lab
from rackloop.measurement import Cause
from rackloop.parameters import flag, number, part, text
from rackloop.portmap import Partial
from rackloop_drivers.workload import Stretch
from rackloop_fixtures import LimitsUnknown, Measure, Moving, Progress, Rack, find_trace, plan_replay, replay_place

PARAMETERS = {
    "trace": text("demo", "the trace: a file, or the name of a shipped one", longest=1024),
    "volume": text("", "the volume, where the trace has several"),
    "drive": part("", "the drive to replay on; the first one where empty", of="drive"),
    "speed": number(1.0, "speed, as a multiple of the recorded one", least=1e-6, most=1e6),
    "from_s": number(0.0, "start of the replayed stretch in the trace", most=31_536_000, unit="s"),
    "duration_s": number(0.0, "duration of the stretch; to the trace's end where 0", most=31_536_000, unit="s"),
    "fold": flag(False, "fold offsets beyond the drive into it"),
    "reads_only": flag(False, "replay reads only"),
    "spread": flag(True, "spread requests of one coarse stamp until the next"),
    "moving": flag(False, "move other drives meanwhile"),
}
MEASURES = {
    "replay.lateness": "s",
    "replay.drift": "1",
    "replay.requests": "1",
    "replay.missing": "1",
    "replay.changed": "1",
    "replay.errors": "1",
    "replay.latency": "s",
    "replay.stall": "s",
    "replay.remaps": "1",
}
HEADLINES = ("replay.lateness", "replay.latency")

pytestmark = pytest.mark.rackloop(
    purpose="replay a trace on one drive and report the lateness, latency and failures of its requests",
    requires=["fio"],
    destructive=True,
    time_class="minutes",
)


def drives_erased(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The drive that is replayed on, unless only reads are."""
    drive, _, _ = _place(lab, parameters)
    return [] if parameters["reads_only"] else [drive]


def faults(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """Remaps of scratch drives beside the replay, where it is asked for. Raises NotSupported where none could move."""
    moving = _moving(lab, parameters)
    return [f"remaps for as long as the replay takes, by which {moving}"] if moving else []


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """The stretch at its speed and some seconds around it. Raises BadInput where the trace cannot be replayed."""
    drive, _, _ = _place(lab, parameters)
    trace = find_trace(parameters["trace"])
    return 5 + plan_replay(lab, drive, trace, _stretch(parameters), parameters["volume"] or None).span_s


def _moving(lab: Lab, parameters: Mapping[str, Any]) -> Moving | None:
    if not parameters["moving"]:
        return None
    _, *at = _place(lab, parameters)
    return Moving.beside(lab, [(at[0], at[1])])


def _stretch(parameters: Mapping[str, Any]) -> Stretch:
    return Stretch(
        speed=parameters["speed"],
        from_s=parameters["from_s"],
        duration_s=parameters["duration_s"] or None,
        fold=parameters["fold"],
        reads_only=parameters["reads_only"],
        spread=parameters["spread"],
    )


def _place(lab: Lab, parameters: Mapping[str, Any]) -> tuple[str, str, str]:
    return replay_place(lab, parameters["drive"] or None)


def test_trace_replay(rack: Rack, parameters: Mapping[str, Any], measure: Measure, progress: Progress) -> None:
    """Replay the stretch, with the other scratch drives dealt anew all the while if asked."""
    _, server, port = _place(rack.lab, parameters)
    moving = _moving(rack.lab, parameters)
    trace = find_trace(parameters["trace"])
    remaps = 0
    with rack.replaying(server, port, trace, _stretch(parameters), volume=parameters["volume"] or None) as replay:
        allure.attach("\n".join(replay.planned.remarks()) or "nothing was changed", "How the trace was fitted")
        total_s = max(1, round(replay.planned.span_s))
        while replay.is_due():
            if moving is not None:
                rack.fabric.apply(Partial(moving.dealt(rack.chance)), rack.deadline())
                remaps += 1
            progress(max(0, round(replay.elapsed_s)), total_s, "seconds")
            rack.clock.sleep_until_ns(rack.clock.now_ns() + rack.chance.randrange(20, 60) * 1_000_000)

    seen = replay.seen
    late_s = seen.lateness.late_s
    # Whatever it is late by is the harness's.
    measure("replay.lateness", late_s, errors=late_s.values, seen_by=seen.seen_by)
    measure("replay.drift", seen.lateness.drift, seen_by=seen.seen_by)
    measure("replay.requests", seen.lateness.due)
    measure("replay.missing", seen.lateness.missing)
    measure("replay.errors", seen.errors)
    measure("replay.stall", seen.stall_s)
    measure("replay.remaps", remaps)
    for change, count in replay.planned.changes().items():
        measure("replay.changed", count, change=change)
    for direction, latency_s in seen.latency_s.items():
        measure("replay.latency", latency_s, direction=direction)
    if moving is not None and not remaps:
        raise LimitsUnknown("the replay was over before any other drive was moved: replay for longer", Cause.HARNESS)
