"""`rackloop trace replay`: the shipped replay plan with its parameters set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rackloop.errors import BadInput
from rackloop_cli import run as plan_run
from rackloop_fixtures import RunRequest


@dataclass(frozen=True)
class ReplayRequest:
    """The options of `rackloop trace replay`; None for the plan's own value."""

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


def run(request: ReplayRequest) -> int:
    """Run the plan; returns the exit status of a run. Raises BadInput before anything was touched."""
    # To the plan, nothing means all of the trace, the first drive, every volume: not what an option was given for.
    for option, value in (("--drive", request.drive), ("--volume", request.volume), ("--for", request.duration_s)):
        if value is not None and not value:
            raise BadInput(f"{option} is {value!r}: give another value, or leave it out")
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
        RunRequest(
            "replay",
            request.lab,
            out=request.out,
            seed=request.seed,
            settings=settings,
            dry_run=request.dry_run,
        )
    )
