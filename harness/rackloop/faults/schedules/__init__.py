"""Schedules of faults: scripted or drawn by a seed, bounded, played, replayed and shrunk."""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop.faults.schedules._bounds import Taking, bound_problems, nothing_known, require_within_bound
    from rackloop.faults.schedules._play import Breaking, Condition, Done, Played, ScheduleFailed, play
    from rackloop.faults.schedules._random import drawn
    from rackloop.faults.schedules._read import examined_schedule, load_schedule, read_schedule
    from rackloop.faults.schedules._resolve import (
        Unsupported,
        all_supported,
        drawable,
        left_out,
        on_lab,
        taking_of,
        unsupported_out_of_service,
    )
    from rackloop.faults.schedules._schedule import Bound, FaultChoice, RandomSchedule, Schedule, Step
    from rackloop.faults.schedules._schedulefile import PlanSchedule
    from rackloop.faults.schedules._shrink import Shrunk, shrink
    from rackloop.faults.schedules._write import flow, schedule_lines, schedule_yaml, time_text

__all__ = [
    "Bound",
    "Breaking",
    "Condition",
    "Done",
    "FaultChoice",
    "PlanSchedule",
    "Played",
    "RandomSchedule",
    "Schedule",
    "ScheduleFailed",
    "Shrunk",
    "Step",
    "Taking",
    "Unsupported",
    "all_supported",
    "bound_problems",
    "drawable",
    "drawn",
    "examined_schedule",
    "flow",
    "left_out",
    "load_schedule",
    "nothing_known",
    "on_lab",
    "play",
    "read_schedule",
    "require_within_bound",
    "schedule_lines",
    "schedule_yaml",
    "shrink",
    "taking_of",
    "time_text",
    "unsupported_out_of_service",
]

__getattr__ = lazy_getattr(__name__)
