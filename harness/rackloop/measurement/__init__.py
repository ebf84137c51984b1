"""Measurements, the limits they are judged by, verdicts, and the load of the measuring machine."""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop.measurement._distribution import Distribution, Interval
    from rackloop.measurement._machine_load import PERIOD_S, LoadWitness, MachineLoad
    from rackloop.measurement._measurement import Finding, Limit, Measurement, judge
    from rackloop.measurement._steady_state import (
        PTS,
        Criteria,
        SteadySpan,
        Window,
        attained,
        steady_spans,
        why_not_steady,
    )
    from rackloop.measurement._verdict import Cause, Verdict, exit_code, worst

__all__ = [
    "PERIOD_S",
    "PTS",
    "Cause",
    "Criteria",
    "Distribution",
    "Finding",
    "Interval",
    "Limit",
    "LoadWitness",
    "MachineLoad",
    "Measurement",
    "SteadySpan",
    "Verdict",
    "Window",
    "attained",
    "exit_code",
    "judge",
    "steady_spans",
    "why_not_steady",
    "worst",
]

__getattr__ = lazy_getattr(__name__)
