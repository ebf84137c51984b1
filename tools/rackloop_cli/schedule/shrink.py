"""`rackloop schedule shrink`: reduction of a failing test's schedule by repeated runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from rackloop.errors import EXIT_INTERRUPTED, EXIT_LAB_FAILED, EXIT_PASS, BadInput, LabError
from rackloop.faults.schedules import Schedule, bound_problems, taking_of
from rackloop.lab import load_lab
from rackloop.measurement import Verdict
from rackloop.plan import plan_yaml
from rackloop.record import Measured, RunFinished, TestFinished, read_events
from rackloop.units import counted
from rackloop_cli.schedule.delta_debugging import Shrunk, shrink
from rackloop_cli.schedule.show import Found, ScheduleRequest, find, write
from rackloop_cli.schedule.trial_words import tried
from rackloop_cli.shared.interruption import interruptible_run, say_in_handler, uninterrupted

# What failed where no measure broke its limit: the test said so.
_THE_TEST_ITSELF = "the test itself"
_SAYS_SOMETHING = frozenset({Verdict.PASS, Verdict.FAIL})


def run(request: ScheduleRequest, *, times: int, runs: int, out: Path) -> int:
    """Shrink the first schedule of the request and write a plan with the least to ``out``, a new file."""
    _require_new(out)
    lab = load_lab(request.lab)
    found = find(request, lab)[0]
    if found.plan is None or found.entry is None:
        raise BadInput(
            f"{request.source} is a schedule without a test; name the plan or the run whose test fails with it"
        )
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{found.title}: {counted(len(found.schedule.unrolled().steps), 'fault')}, seed {found.seed}")
    taking = taking_of(lab)
    with TemporaryDirectory(prefix="rackloop-shrink-") as folder:
        trials = _Trials(found, request, Path(folder), console, out, times)
        try:
            with interruptible_run(partial(say_in_handler, "interrupted; the run ends first")):
                shrunk = shrink(
                    found.schedule,
                    trials.fails,
                    times=times,
                    most_runs=runs,
                    is_allowed=lambda candidate: not any(bound_problems(candidate, taking)),
                    on_run=trials.tell,
                )
        except KeyboardInterrupt:
            console.print(f"interrupted before the test was seen to fail: {out} is not written", markup=False)
            return EXIT_INTERRUPTED
    trials.keep(shrunk.schedule, _said(shrunk))
    if shrunk.is_interrupted:
        console.print("interrupted")
    console.print(f"{_said(shrunk)}: {out}")
    if shrunk.is_interrupted:
        return EXIT_INTERRUPTED
    if not shrunk.schedule.steps:
        console.print("the faults are not the cause: look at the limit that was broken, and at the lab")
        return EXIT_LAB_FAILED
    return EXIT_PASS


def _require_new(out: Path) -> None:
    """Raise BadInput where the file is there, or cannot be: before the first run, not behind the last."""
    if out.exists():
        raise BadInput(f"{out} is there already: choose another file with --out, or delete it first")
    if not out.absolute().parent.is_dir():
        raise BadInput(f"--out {out}: there is no folder {out.parent}; make it first")


@dataclass
class _Trials:
    """Runs of one test with other schedules, each by the command line in a process of its own."""

    found: Found
    request: ScheduleRequest
    folder: Path
    console: Console
    out: Path
    times: int
    _number: int = 0
    _kept: Schedule | None = None
    _failure: frozenset[str] | None = None

    def keep(self, schedule: Schedule, said: str) -> None:
        """Write the plan that runs the test with ``schedule``, over one that this search wrote and no other."""
        counted_as = f"A candidate counted as failing if it failed {self.times} of {self.times} times."
        remark = f"{self.found.title} fails with this: {said}.\n{counted_as}"
        write(self.out, self._plan(schedule, remark), replacing=self._kept is not None)
        self._kept = schedule

    def tell(self, number: int, candidate: Schedule, best: Schedule) -> None:
        """Say what is tried next; the best that was seen to fail is in its file whatever ends the search."""
        self._number = number
        # The first runs are those that see whether it fails as it was given.
        if number > self.times and best is not self._kept:
            self.keep(best, "the best so far of a search that did not end")
        self.console.print(
            f"run {number}: {tried(best, candidate)}: {counted(len(candidate.steps), 'fault')} "
            f"(least so far {len(best.steps)}) ... ",
            end="",
            markup=False,
        )

    def fails(self, candidate: Schedule) -> bool:
        """True where the test fails with ``candidate`` as at first: a measure breaks the limit that it broke then.

        Raises LabError where it could not be run at all.
        """
        plan = self.folder / f"candidate-{self._number}.yaml"
        plan.write_text(self._plan(candidate), encoding="utf-8")
        out = self.folder / f"run-{self._number}"
        command = [sys.executable, "-m", "rackloop_cli.main", "run", str(plan), f"--lab={self.request.lab}"]
        if self.request.testplans is not None:
            command.append(f"--testplans={self.request.testplans.absolute()}")
        status, said = _run_to_its_end([*command, f"--out={out}", "--no-report"])
        if status == EXIT_INTERRUPTED:
            raise KeyboardInterrupt
        verdict, reason, broken = _judged(out / "events.jsonl")
        if verdict is None:
            last = said.strip().splitlines()[-1:] or [f"it ended with {status}"]
            raise LabError(f"the test could not be run again: {last[0]}")
        if verdict is not Verdict.FAIL:
            self.console.print(verdict if reason is None else f"{verdict}: {reason}", markup=False)
            return False
        self._failure = broken if self._failure is None else self._failure
        is_same = not self._failure.isdisjoint(broken)
        self.console.print(
            f"{verdict}: {_listed(broken)}{'' if is_same else ', which is another failure'}", markup=False
        )
        return is_same

    def _plan(self, schedule: Schedule, remark: str = "") -> str:
        assert self.found.plan is not None  # noqa: S101 - run has seen to it
        assert self.found.entry is not None  # noqa: S101 - the same
        return plan_yaml(self.found.plan, self.found.entry, schedule, self.found.seed, remark=remark)


def _run_to_its_end(command: list[str]) -> tuple[int, str]:
    """The exit code of a command and what it said; an interrupt is passed on, and it heals the rack before it ends."""
    process = None
    try:
        with uninterrupted():
            # In a session of its own a Ctrl-C at the terminal reaches it once, from here.
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
            )
        said, _ = process.communicate()
    except BaseException:
        if process is not None:
            process.terminate()
            process.communicate()
        raise
    return process.returncode, said


def _judged(events: Path) -> tuple[Verdict | None, str | None, frozenset[str]]:
    """The verdict of a run, None where it has none; why, if that says nothing of the product; what broke its limit."""
    reason = None
    broken = set()
    try:
        for stamped in read_events(events):
            match stamped.event:
                case Measured(name=name, verdict=Verdict.FAIL):
                    broken.add(name)
                case TestFinished(reason=str() as said):
                    reason = said
                case RunFinished(verdict=found):
                    verdict = Verdict(found)
                    why = None if verdict in _SAYS_SOMETHING else reason
                    return verdict, why, frozenset(broken or {_THE_TEST_ITSELF})
    except BadInput:
        pass  # nothing was run
    return None, None, frozenset()


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _said(shrunk: Shrunk) -> str:
    what = counted(len(shrunk.schedule.steps), "fault") if shrunk.schedule.steps else "it fails without any fault"
    how = "minimal" if shrunk.is_minimal else "interrupted" if shrunk.is_interrupted else "the runs are used up"
    flaky = f", {counted(shrunk.flaky, 'candidate')} failed only sometimes" if shrunk.flaky else ""
    return f"{what} after {counted(shrunk.runs, 'run')}, {how}{flaky}"
