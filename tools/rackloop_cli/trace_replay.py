"""`rackloop trace replay`: the shipped replay plan with its parameters set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rackloop.lab import load_lab
from rackloop_cli import run as plan_run


@dataclass(frozen=True)
class Request:
    """What the user asked to replay; None where the plan's own value is meant."""

    trace: str
    lab: str
    drive: str | None = None
    volume: str | None = None
    speed: float | None = None
    from_s: float | None = None
    duration_s: float | None = None
    reads_only: bool = False
    fold: bool = False
    out: Path | None = None
    seed: int | None = None
    dry_run: bool = False


def run(request: Request) -> int:
    """Run the plan; returns the exit status of a run. Raises BadInput before anything was touched."""
    _check(request)
    asked = {
        "trace": request.trace,
        "drive": request.drive,
        "volume": request.volume,
        "speed": request.speed,
        "from_s": request.from_s,
        "duration_s": request.duration_s,
        "reads_only": "true" if request.reads_only else None,
        "fold": "true" if request.fold else None,
    }
    settings = tuple(f"{key}={value}" for key, value in asked.items() if value is not None)
    return plan_run.run(
        plan_run.Request(
            plan="replay",
            lab=request.lab,
            out=request.out,
            seed=request.seed,
            settings=settings,
            dry_run=request.dry_run,
        )
    )


def _check(request: Request) -> None:
    """Raise BadInput where the trace cannot be read, or its stretch does not fit the drive."""
    from rackloop_drivers.workload import Stretch
    from rackloop_fixtures import find_trace, plan_replay, replay_place

    lab = load_lab(request.lab)
    server, port = replay_place(lab, request.drive)
    stretch = Stretch(
        speed=1.0 if request.speed is None else request.speed,
        from_s=request.from_s or 0.0,
        duration_s=request.duration_s,
        fold=request.fold,
        reads_only=request.reads_only,
    )
    plan_replay(lab, lab.baseline[server][port], find_trace(request.trace), stretch, request.volume)
