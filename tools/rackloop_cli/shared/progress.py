"""Progress on standard error: shown on a terminal only, and removed at the end."""

from __future__ import annotations

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

if TYPE_CHECKING:
    import polars


@contextmanager
def watched(
    what: str, whole: int | None = None, *, in_percent: bool = False, is_shown: bool = True
) -> Iterator[Callable[..., None]]:
    """A bar for one task; the yielded function takes how much is done, and how much there is where not ``whole``."""
    number = TextColumn("{task.percentage:>3.0f} %") if in_percent else MofNCompleteColumn()
    time = TimeRemainingColumn() if in_percent else TimeElapsedColumn()
    with _progress(TextColumn("{task.description}"), BarColumn(), number, time, is_shown=is_shown) as shown:
        task = shown.add_task(what, total=whole)
        yield lambda done, of=whole: shown.update(task, completed=done, total=of)


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
