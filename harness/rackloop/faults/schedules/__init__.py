"""Schedules of faults: scripted or drawn by a seed, bounded, played and replayed."""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop.faults.schedules._bounds import bound_problems as bound_problems
    from rackloop.faults.schedules._bounds import require_within_bound as require_within_bound
    from rackloop.faults.schedules._play import Breaking as Breaking
    from rackloop.faults.schedules._play import Condition as Condition
    from rackloop.faults.schedules._play import Done as Done
    from rackloop.faults.schedules._play import Played as Played
    from rackloop.faults.schedules._play import ScheduleFailed as ScheduleFailed
    from rackloop.faults.schedules._play import play as play
    from rackloop.faults.schedules._random import drawn as drawn
    from rackloop.faults.schedules._read import examined_schedule as examined_schedule
    from rackloop.faults.schedules._read import load_schedule as load_schedule
    from rackloop.faults.schedules._read import read_schedule as read_schedule
    from rackloop.faults.schedules._resolve import Unsupported as Unsupported
    from rackloop.faults.schedules._resolve import drawable as drawable
    from rackloop.faults.schedules._resolve import left_out as left_out
    from rackloop.faults.schedules._resolve import on_lab as on_lab
    from rackloop.faults.schedules._resolve import taking_of as taking_of
    from rackloop.faults.schedules._resolve import unsupported_out_of_service as unsupported_out_of_service
    from rackloop.faults.schedules._schedule import SHORTEST_S as SHORTEST_S
    from rackloop.faults.schedules._schedule import Bound as Bound
    from rackloop.faults.schedules._schedule import FaultChoice as FaultChoice
    from rackloop.faults.schedules._schedule import RandomSchedule as RandomSchedule
    from rackloop.faults.schedules._schedule import Schedule as Schedule
    from rackloop.faults.schedules._schedule import Step as Step
    from rackloop.faults.schedules._schedulefile import PlanSchedule as PlanSchedule
    from rackloop.faults.schedules._write import flow as flow
    from rackloop.faults.schedules._write import schedule_lines as schedule_lines
    from rackloop.faults.schedules._write import schedule_yaml as schedule_yaml
    from rackloop.faults.schedules._write import time_text as time_text


__getattr__ = lazy_getattr(__name__)
