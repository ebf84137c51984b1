"""A drive model's figures and curves, held against what was published of the drive it is like."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from rackloop.clock import Deadline
from rackloop.lab import Profile, Published
from rackloop_models.drives._curves import Curves, load_curve, marked, standard_curves
from rackloop_models.drives._figures import figure
from rackloop_models.drives._results import Result
from rackloop_models.drives._simulation import DriveSim
from rackloop_models.drives._trials import PREPARATIONS, Measurement, State, Trial

Progress = Callable[[int, int], None]
"""Told of lives that are over, and of how many there are."""


@dataclass(frozen=True)
class Check:
    """A published figure, and the model's."""

    published: Published
    model: float

    @property
    def deviation(self) -> float:
        """The deviation of the model from what was published, as a ratio of that; with its sign."""
        return self.model / self.published.value - 1

    @property
    def is_met(self) -> bool:
        """Whether the model is as near as the profile asks for."""
        return abs(self.deviation) <= self.published.within


def published_checks(sim: DriveSim, deadline: Deadline) -> tuple[Check, ...]:
    """Each published figure of the profile, found on the model by an experiment of its own.

    Raises BadInput for a figure that nothing measures or a parameter that the model refuses, ToolError where drivesim
    fails, DeadlineExceeded.
    """
    sim.run((), deadline)
    measurements = _figures(sim)
    return _checks(sim.profile, measurements, _lived(sim, measurements, deadline, _unwatched))


def characterized(sim: DriveSim, deadline: Deadline, progress: Progress) -> tuple[tuple[Check, ...], Curves]:
    """The published figures, and the standard curves of the profile's kind with these figures marked on them.

    Raises as :func:`published_checks`.
    """
    sim.run((), deadline)
    figures, profile = _figures(sim), sim.profile
    standard = standard_curves(profile, sim.size_bytes)
    found = _lived(sim, [*figures, *standard], deadline, progress)
    curves = [curve for measurement in standard for curve in measurement.evaluate(_of(measurement, found))]
    by_name = {curve.name: curve for curve in curves}
    if depth := by_name.get("depth"):
        most_iops = max(iops for _, iops in depth.lines["random read"])
        last = load_curve(profile, most_iops)
        curves += last.evaluate(_of(last, _lived(sim, [last], deadline, _unwatched)))
    return _checks(profile, figures, found), tuple(marked(curve, profile.published) for curve in curves)


_Found = dict[Trial, tuple[Result, ...]]


def _unwatched(_over: int, _of: int) -> None:
    """A progress callback that does nothing."""


def _figures(sim: DriveSim) -> list[Measurement[float]]:
    return [figure(entry.figure, sim.profile, sim.size_bytes) for entry in sim.profile.published]


def _checks(profile: Profile, measurements: Sequence[Measurement[float]], found: _Found) -> tuple[Check, ...]:
    return tuple(
        Check(published, measurement.evaluate(_of(measurement, found)))
        for published, measurement in zip(profile.published, measurements, strict=True)
    )


def _of(measurement: Measurement[float] | Measurement[Curves], found: _Found) -> list[Result]:
    return [result for trial in measurement.trials for result in found[trial]]


def _lived(
    sim: DriveSim,
    measurements: Sequence[Measurement[float] | Measurement[Curves]],
    deadline: Deadline,
    progress: Progress,
) -> _Found:
    """The results of every trial: each on a drive of its own, those on a fragmented one on the same.

    Fragmenting takes longer than all else, and random writes leave a fragmented drive as it was.
    """
    trials = list(dict.fromkeys(trial for measurement in measurements for trial in measurement.trials))
    fragmented = [trial for trial in trials if trial.state is State.FRAGMENTED]
    lives = [[trial] for trial in trials if trial.state is not State.FRAGMENTED]
    if fragmented:
        lives.insert(0, fragmented)
    found: _Found = {}
    pool = ThreadPoolExecutor(max_workers=os.cpu_count())
    try:
        running = [pool.submit(_live, sim, life, deadline) for life in lives]
        for over, future in enumerate(as_completed(running), 1):
            found |= future.result()
            progress(over, len(lives))
    finally:
        # After an interrupt nobody waits for lives that go on: they end with the caller's executor.
        pool.shutdown(wait=False, cancel_futures=True)
    return found


def _live(sim: DriveSim, life: Sequence[Trial], deadline: Deadline) -> _Found:
    preparation = PREPARATIONS[life[0].state]
    results = sim.run([*preparation, *(experiment for trial in life for experiment in trial.experiments)], deadline)
    found, at = {}, len(preparation)
    for trial in life:
        found[trial] = results[at : at + len(trial.experiments)]
        at += len(trial.experiments)
    return found
