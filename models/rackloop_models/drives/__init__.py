"""The simulated drives by themselves: their figures and curves in virtual time, against what was published."""

from rackloop_models.drives._characterization import Check, Progress, characterized, published_checks
from rackloop_models.drives._curves import Curve, Mark
from rackloop_models.drives._experiments import (
    Depth,
    Experiment,
    Idle,
    Load,
    Passes,
    Rate,
    Region,
    Requests,
    Sanitize,
    Seconds,
    Seek,
)
from rackloop_models.drives._results import Distance, Done, Figures, Interval, Latency, LoadResult, Result, SeekResult
from rackloop_models.drives._simulation import DriveSim

__all__ = [
    "Check",
    "Curve",
    "Depth",
    "Distance",
    "Done",
    "DriveSim",
    "Experiment",
    "Figures",
    "Idle",
    "Interval",
    "Latency",
    "Load",
    "LoadResult",
    "Mark",
    "Passes",
    "Progress",
    "Rate",
    "Region",
    "Requests",
    "Result",
    "Sanitize",
    "Seconds",
    "Seek",
    "SeekResult",
    "characterized",
    "published_checks",
]
