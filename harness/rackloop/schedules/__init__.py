"""Schedules of faults: scripted or drawn by a seed, bounded, played, replayed and shrunk."""

from typing import TYPE_CHECKING

from rackloop.door import opening

if TYPE_CHECKING:
    from rackloop.schedules._bounds import Taken, Taking, bound_problems, nothing_known, require_within_bound
    from rackloop.schedules._draw import drawn
    from rackloop.schedules._on_lab import (
        Lacking,
        drawable,
        lacking_out_of_service,
        left_out,
        nothing_lacking,
        on_lab,
        taking_of,
    )
    from rackloop.schedules._play import Breaking, Condition, Done, Played, ScheduleFailed, play
    from rackloop.schedules._read import load_schedule, read_schedule
    from rackloop.schedules._schedule import Bound, FaultChoice, RandomSchedule, Schedule, Step
    from rackloop.schedules._shrink import Shrunk, shrink
    from rackloop.schedules._write import schedule_yaml

__all__ = [
    "Bound",
    "Breaking",
    "Condition",
    "Done",
    "FaultChoice",
    "Lacking",
    "Played",
    "RandomSchedule",
    "Schedule",
    "ScheduleFailed",
    "Shrunk",
    "Step",
    "Taken",
    "Taking",
    "bound_problems",
    "drawable",
    "drawn",
    "lacking_out_of_service",
    "left_out",
    "load_schedule",
    "nothing_known",
    "nothing_lacking",
    "on_lab",
    "play",
    "read_schedule",
    "require_within_bound",
    "schedule_yaml",
    "shrink",
    "taking_of",
]

__getattr__ = opening(
    __name__,
    {
        "Bound": "_schedule",
        "Breaking": "_play",
        "Condition": "_play",
        "Done": "_play",
        "FaultChoice": "_schedule",
        "Lacking": "_on_lab",
        "Played": "_play",
        "RandomSchedule": "_schedule",
        "Schedule": "_schedule",
        "ScheduleFailed": "_play",
        "Shrunk": "_shrink",
        "Step": "_schedule",
        "Taken": "_bounds",
        "Taking": "_bounds",
        "bound_problems": "_bounds",
        "drawable": "_on_lab",
        "drawn": "_draw",
        "lacking_out_of_service": "_on_lab",
        "left_out": "_on_lab",
        "load_schedule": "_read",
        "nothing_known": "_bounds",
        "nothing_lacking": "_on_lab",
        "on_lab": "_on_lab",
        "play": "_play",
        "read_schedule": "_read",
        "require_within_bound": "_bounds",
        "schedule_yaml": "_write",
        "shrink": "_shrink",
        "taking_of": "_on_lab",
    },
)
