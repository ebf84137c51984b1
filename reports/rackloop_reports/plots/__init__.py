"""Plots of a run, each a function from its data to a figure."""

from rackloop_reports.plots._style import Source, encode, in_paper_order
from rackloop_reports.plots.characterize import (
    Cell,
    DemandPoint,
    bandwidth_bars,
    demand_curve,
    iops_matrix,
    latency_matrix,
    measurement_window,
    steady_state_convergence,
    write_saturation,
)
from rackloop_reports.plots.drive_models import ModelCurve, PublishedPoint, SimulatedDrive, drive_model_sheet
from rackloop_reports.plots.erasure import (
    GroupedBar,
    RebuildBar,
    RecoveryCell,
    StateLatency,
    TailCurve,
    codec_throughput,
    degraded_reads,
    rebuild_times,
    recovery_matrix,
    tail_curves,
    update_latency,
)
from rackloop_reports.plots.evidence import evidence_timeline
from rackloop_reports.plots.faults import fault_timeline
from rackloop_reports.plots.latency import StackLatency, figure_2, latency_ecdf
from rackloop_reports.plots.local_erasure import (
    BarPanel,
    Estimate,
    RedundancyStretch,
    TailCell,
    TailPoint,
    bar_sheet,
    redundancy_curves,
    tail_latency_sheet,
)
from rackloop_reports.plots.remaps import remap_timeline, stage_breakdown
from rackloop_reports.plots.replay import Replayed, replay_fidelity
from rackloop_reports.plots.schedules import schedule_timeline
from rackloop_reports.plots.throughput import ThroughputPoint, figure_3
from rackloop_reports.plots.traces import trace_page

__all__ = [
    "BarPanel",
    "Cell",
    "DemandPoint",
    "Estimate",
    "GroupedBar",
    "ModelCurve",
    "PublishedPoint",
    "RebuildBar",
    "RecoveryCell",
    "RedundancyStretch",
    "Replayed",
    "SimulatedDrive",
    "Source",
    "StackLatency",
    "StateLatency",
    "TailCell",
    "TailCurve",
    "TailPoint",
    "ThroughputPoint",
    "bandwidth_bars",
    "bar_sheet",
    "codec_throughput",
    "degraded_reads",
    "demand_curve",
    "drive_model_sheet",
    "encode",
    "evidence_timeline",
    "fault_timeline",
    "figure_2",
    "figure_3",
    "in_paper_order",
    "iops_matrix",
    "latency_ecdf",
    "latency_matrix",
    "measurement_window",
    "rebuild_times",
    "recovery_matrix",
    "redundancy_curves",
    "remap_timeline",
    "replay_fidelity",
    "schedule_timeline",
    "stage_breakdown",
    "steady_state_convergence",
    "tail_curves",
    "tail_latency_sheet",
    "trace_page",
    "update_latency",
    "write_saturation",
]
