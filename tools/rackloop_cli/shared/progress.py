"""Progress on standard error: a bar that a terminal loses at the end, and a line now and then in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from rackloop.clock import RealClock
from rackloop.units import format_duration

if TYPE_CHECKING:
    import polars

_LINE_EVERY_S = 5.0


@contextmanager
def watched(
    what: str, whole: int | None = None, *, in_percent: bool = False, is_shown: bool = True
) -> Iterator[Callable[..., None]]:
    """A bar for one task; the yielded function takes how much is done, and how much there is where not ``whole``."""
    if is_shown and not Console(stderr=True).is_terminal:
        yield _Lines(what, whole, in_percent=in_percent).tell
        return
    number = TextColumn("{task.percentage:>3.0f} %") if in_percent else MofNCompleteColumn()
    time = TimeRemainingColumn() if in_percent else TimeElapsedColumn()
    with _progress(TextColumn("{task.description}"), BarColumn(), number, time, is_shown=is_shown) as shown:
        task = shown.add_task(what, total=whole)
        yield lambda done, of=whole: shown.update(task, completed=done, total=of)


class _Lines:
    """Tells a pipe how far a task is, each some seconds: that it goes on, and what is left."""

    def __init__(self, what: str, whole: int | None, *, in_percent: bool) -> None:
        self._what, self._whole, self._in_percent = what, whole, in_percent
        self._clock = RealClock()
        self._began_ns = self._told_ns = self._clock.now_ns()

    def tell(self, done: int, of: int | None = None) -> None:
        """Report how much is done, and how much there is where not the ``whole``."""
        now_ns, whole = self._clock.now_ns(), of or self._whole
        if now_ns - self._told_ns < _LINE_EVERY_S * 1e9:
            return
        self._told_ns = now_ns
        far = f"{done / whole:.0%}" if self._in_percent and whole else f"{done:,}" + (f" of {whole:,}" if whole else "")
        print(f"{self._what}: {far}, {format_duration((now_ns - self._began_ns) / 1e9)}", file=sys.stderr, flush=True)


def counted_requests(frames: Iterable[polars.DataFrame]) -> Iterator[polars.DataFrame]:
    """``frames`` as they are, their requests counted."""
    columns = (SpinnerColumn(), TextColumn("{task.completed:,} requests"), TextColumn("{task.fields[rate]}"))
    with _progress(*columns) as progress:
        task = progress.add_task("", total=None, rate="")
        for frame in frames:
            yield frame
            speed = progress.tasks[0].speed
            progress.update(task, advance=frame.height, rate=f"{speed:,.0f}/s" if speed else "")


def _progress(*columns: ProgressColumn, is_shown: bool = True) -> Progress:
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not (is_shown and console.is_terminal))
