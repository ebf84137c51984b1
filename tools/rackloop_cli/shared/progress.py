"""Progress and remarks of the trace verbs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

if TYPE_CHECKING:
    import polars

    from rackloop_traces import Malformed

_SHOWN_LINES = 5


def watched(frames: Iterable[polars.DataFrame]) -> Iterator[polars.DataFrame]:
    """``frames`` as they are, their requests counted on a terminal."""
    columns = (SpinnerColumn(), TextColumn("{task.completed:,} requests"), TextColumn("{task.fields[rate]}"))
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None, rate="")
        for frame in frames:
            yield frame
            speed = progress.tasks[0].speed
            progress.update(task, advance=frame.height, rate=f"{speed:,.0f}/s" if speed else "")


def malformed_remarks(malformed: Malformed) -> Iterator[str]:
    """The number of malformed lines and the first of them, a line each; nothing where there are none."""
    if malformed.count:
        yield f"malformed: {malformed.count:,} of {malformed.total_lines:,} lines left out"
        yield from (f"  {line}" for line in malformed.first[:_SHOWN_LINES])
        if malformed.count > _SHOWN_LINES:
            yield f"  and {malformed.count - _SHOWN_LINES:,} more"
