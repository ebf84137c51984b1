"""The progress of a run on standard error: one line on a terminal, plain lines now and then in a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from threading import RLock
from typing import Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from rackloop.clock import Clock, RealClock
from rackloop.measurement import Verdict
from rackloop.record import Event, TaskRan, TestFinished, TestStarted
from rackloop.units import format_duration
from rackloop_cli.shared.interruption import require_uninterrupted
from rackloop_reports.terminal import short_name

# A run of a night stays readable in a file.
_LINE_EVERY_S = 30.0
_REFRESH_PER_S = 2
# So much of a run's estimates is trusted until tests have run: one short test does not change what all others take.
_TRUST = 0.5


class Remaining:
    """The remaining time of a run: the estimates of its tests, corrected by the time that those before took.

    It moves little by little, since the test that runs is counted by as much of it as is done: neither its end nor the
    beginning of the next changes it at once. Estimates of tests that end once they are steady are of the fewest rounds:
    :meth:`most_seconds` is by those that there may be.
    """

    def __init__(self) -> None:
        self._expected: dict[str, float] = {}
        self._estimated_s = self._took_s = self._trusted_s = 0.0
        self.begin()

    def expect(self, seconds: Mapping[str, float]) -> None:
        """These tests are to run, and take about so long."""
        self._expected = dict(seconds)
        self._trusted_s = _TRUST * sum(self._expected.values())

    def is_expected(self, test: str) -> bool:
        """Whether a test is one of those that are to run, and has not ended."""
        return test in self._expected

    def begin(self) -> None:
        """A test begins."""
        self._share, self._at_s, self._is_of_test, self._total = 0.0, 0.0, True, 0
        self._first: tuple[int, float] | None = None
        self._most_s = 0.0

    def done(self, done: int, total: int, elapsed_s: float) -> None:
        """``done`` of a ``total`` of the test are done, ``elapsed_s`` after its beginning.

        A share that shrinks, or is of another total, is one of a part of the test, and says nothing of the whole.
        """
        self._is_of_test = self._is_of_test and done / total >= self._share and self._total in {0, total}
        self._share, self._at_s, self._total = (done / total, elapsed_s, total) if self._is_of_test else (0.0, 0.0, 0)

    def done_at_most(self, done: int, most: int, elapsed_s: float) -> None:
        """``done`` are done of as many as there may be, ``elapsed_s`` after the test's beginning."""
        # What was counted before them was a part of the test, such as a fill of the drive.
        self._share, self._at_s, self._is_of_test = 0.0, 0.0, False
        if self._first is None:
            self._first = done, elapsed_s
        first, first_s = self._first
        if done > first and elapsed_s > first_s:
            self._most_s = elapsed_s + (most - done) * (elapsed_s - first_s) / (done - first)

    def end(self, test: str, took_s: float) -> None:
        """A test took so long."""
        self._most_s = 0.0
        if estimate_s := self._expected.pop(test, 0.0):
            self._estimated_s += estimate_s
            self._took_s += took_s

    def seconds(self, test: str | None, elapsed_s: float) -> float | None:
        """The remaining time, ``elapsed_s`` after ``test`` began; None where nothing is known."""
        if not self._expected:
            return None
        estimate_s, whole_s = self._whole(test, elapsed_s)
        later_s = sum(self._expected.values()) - estimate_s
        return whole_s - elapsed_s + self._pace(whole_s if estimate_s else 0.0, estimate_s) * later_s

    def most_seconds(self, test: str | None, elapsed_s: float) -> float | None:
        """The remaining time where ``test`` does as many as it may; None where nothing is known of that."""
        left_s = self.seconds(test, elapsed_s)
        if left_s is None or not self._most_s:
            return None
        return left_s + max(0.0, self._most_s - self._whole(test, elapsed_s)[1])

    def _whole(self, test: str | None, elapsed_s: float) -> tuple[float, float]:
        """The estimated time of a test, and the time it will take by that and by the part of it that is done."""
        estimate_s = self._expected.get(test or "", 0.0)
        return estimate_s, max(elapsed_s, self._at_s + (1 - self._share) * self._pace(0.0, 0.0) * estimate_s)

    def _pace(self, whole_s: float, estimate_s: float) -> float:
        """The factor between real and estimated time, with a test that will have taken ``whole_s``."""
        estimated_s = self._trusted_s + self._estimated_s + estimate_s
        return (self._trusted_s + self._took_s + whole_s) / estimated_s if estimated_s else 1.0


class _ProgressConsole(Console):
    """A console that ends nothing where its reader or its terminal is gone, or its disk is full."""

    def __exit__(self, *error: object) -> None:
        """Print nothing more once something could not be written."""
        try:
            super().__exit__(*error)
        except OSError:
            self.quiet = True

    def on_broken_pipe(self) -> None:
        """Print nothing more, where rich would close standard output and end the program: in the middle of a test."""
        self.quiet = True


class RunDisplay:
    """A display of the current test or step of a run, its progress and the remaining time.

    A plugin of the session that is the run. It writes to a copy of standard error, which stays the terminal while
    pytest captures what tests print. Use as a context manager.
    """

    def __init__(self, clock: Clock | None = None, file: TextIO | None = None) -> None:
        self._is_own = file is None
        self._file = file or os.fdopen(os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2), "w", buffering=1)
        self._console = _ProgressConsole(file=self._file, highlight=False, markup=False, soft_wrap=True)
        self._is_live = self._console.is_terminal and not self._console.is_dumb_terminal
        self._clock = clock or RealClock()
        self._started_ns = self._test_ns = self._step_ns = self._line_ns = self._clock.now_ns()
        self._remaining = Remaining()
        self._lock = RLock()
        self._live: Live | None = None
        self._test: str | None = None
        self._step = self._part = ""
        self._number = self._total = 0
        self._is_over = self._is_interrupted = self._is_told = False

    def __enter__(self) -> Self:
        if self._is_live:
            self._live = Live(
                self,
                console=self._console,
                refresh_per_second=_REFRESH_PER_S,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._is_own:
            with suppress(OSError):
                self._file.close()

    def stop(self) -> None:
        """Remove the line; nothing is shown any more."""
        self._is_over = True
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def __rich__(self) -> Text:
        """The line of a terminal."""
        return Text(self.line(), no_wrap=True, overflow="ellipsis", end="")

    def line(self) -> str:
        """The current activity, the elapsed time and the remaining time."""
        with self._lock:
            now_ns = self._clock.now_ns()
            said = [self._what(), format_duration((now_ns - self._started_ns) // 10**9)]
            return ", ".join([*said, *self._left(now_ns)])

    def _left(self, now_ns: int) -> list[str]:
        """The remaining time in words, where it is known."""
        # A step of the run's own is none of the test's time.
        counted_ns = self._step_ns if self._step else now_ns
        elapsed_s = (counted_ns - self._test_ns) / 1e9
        left_s = self._remaining.seconds(self._test, elapsed_s)
        if self._is_interrupted or left_s is None:
            return []
        least = format_duration(left_s) if left_s >= 1 else ""
        most_s = self._remaining.most_seconds(self._test, elapsed_s)
        most = format_duration(most_s) if most_s is not None and most_s >= max(1.0, left_s) else ""
        if least and most and most != least:
            return [f"about {least} to {most} left"]
        if least:
            return [f"about {least} left"]
        return [f"at most about {most} left"] if most else []

    def _what(self) -> str:
        if self._is_interrupted:
            return f"interrupted: {self._step or 'ending the test'}"
        if self._step:
            return self._step
        name = short_name(self._test) if self._test is not None and self._is_told else ""
        if name and self._total:
            name = f"{self._number}/{self._total} {name}"
        return ": ".join(filter(None, (name, self._part))) or "starting"

    def say(self, text: str) -> None:
        """Print a line that stays, above the line that does not."""
        with self._lock:
            if not self._is_over:
                self._console.print(text)

    def pytest_rackloop_expected(self, seconds: Mapping[str, float]) -> None:
        """Keep how long each test takes about."""
        self._remaining.expect(seconds)
        self._total = len(seconds)

    def pytest_rackloop_blocked(self, reasons: Mapping[str, str]) -> None:
        """Say before the first test which the lab cannot run."""
        for test, reason in reasons.items():
            self.say(f"{self._prefix()}{short_name(test)} cannot run here: {reason}")

    def pytest_runtest_setup(self) -> None:
        """End the run before a test where an interrupt was swallowed."""
        require_uninterrupted()

    def pytest_runtest_call(self) -> None:
        """Say the first test: what its setup brought up was the rack, which is that of all tests."""
        self._tell_test()

    def pytest_rackloop_step(self, what: str) -> None:
        """Show a step of the run's own."""
        was, self._step = self._step, what
        if not what:
            self._test_ns = self._clock.now_ns()
        elif what != was:
            self._step_ns = self._step_ns if was else self._clock.now_ns()
            self._tell()

    def pytest_rackloop_event(self, event: Event) -> None:
        """Show what begins, and what ends otherwise than well."""
        match event:
            case TestStarted(test=test):
                self._begin(test)
            case TestFinished():
                self._end(event)
            case TaskRan(server=server, task=task):
                self._step = f"provisioning {server}: {task}"
                self._tell(now_and_then=True)

    def pytest_rackloop_progress(self, test: str, done: int, total: int, what: str) -> bool:
        """Show how far a test is."""
        if test == self._test and total:
            self._tell_test()
            self._part = f"{done} of {total} {what}"
            count = self._remaining.done_at_most if "at most" in what else self._remaining.done
            count(done, total, (self._clock.now_ns() - self._test_ns) / 1e9)
            self._tell(now_and_then=True)
        return True

    def _begin(self, test: str) -> None:
        if self._total and not self._remaining.is_expected(test):
            # Provisioning is a part of what brings the rack up.
            return
        with self._lock:
            self._test, self._test_ns, self._part = test, self._clock.now_ns(), ""
            self._number += 1
            self._is_told = False
            self._remaining.begin()
        if self._number > 1:
            self._tell_test()

    def _tell_test(self) -> None:
        """Print that the test begins, unless it was."""
        if self._test is not None and not self._is_told:
            self._is_told = True
            self._tell()

    def _end(self, event: TestFinished) -> None:
        with self._lock:
            self._remaining.end(event.test, (self._clock.now_ns() - self._test_ns) / 1e9)
            if event.test == self._test:
                self._test, self._part = None, ""
        if not self._is_live or event.verdict not in {Verdict.PASS, Verdict.SKIPPED}:
            took = "" if self._is_live else f", {format_duration(event.duration_s)}"
            self.say(f"{self._prefix()}{short_name(event.test)}: {event.verdict}{took}")

    def _prefix(self) -> str:
        """The elapsed time, before each line of a pipe."""
        if self._is_live:
            return ""
        return f"[{format_duration((self._clock.now_ns() - self._started_ns) // 10**9)}] "

    def _tell(self, *, now_and_then: bool = False) -> None:
        """Print a line in a pipe: at once, or where the last one is half a minute old."""
        now_ns = self._clock.now_ns()
        if self._is_live or (now_and_then and now_ns - self._line_ns < _LINE_EVERY_S * 1e9):
            return
        self._line_ns = now_ns
        self.say(self._prefix() + ", ".join([self._what(), *self._left(now_ns)]))

    def interrupted(self, acts: int) -> None:
        """Answer a signal: for a signal handler, which may have interrupted what prints."""
        self._is_interrupted = True
        undoing = f"undoing {acts} {'action' if acts == 1 else 'actions'}, " if acts else ""
        # To the first column, and what is left of the line that was there away.
        before = b"\r\x1b[2K" if self._is_live else b""
        with suppress(OSError):
            os.write(self._file.fileno(), before + f"interrupted: {undoing}writing the report\n".encode())
