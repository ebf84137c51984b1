"""How the trace verbs show what they have read, and what was wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from rackloop.units import counted

if TYPE_CHECKING:
    import polars

    from rackloop.traces import Malformed

_SHOWN_LINES = 5


def counting(frames: Iterable[polars.DataFrame], console: Console) -> Iterator[polars.DataFrame]:
    """The frames as they come, while a terminal counts their requests; where there is none, nothing is shown."""
    columns = (TextColumn("{task.completed:,.0f} requests, {task.speed_text}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None, speed_text="")
        for frame in frames:
            yield frame
            progress.advance(task, frame.height)


def print_findings(malformed: Malformed, doubts: Sequence[str], console: Console) -> None:
    """Say the doubts, and how many lines were no requests, with the first of them."""
    for doubt in doubts:
        console.print(f"doubt: {doubt}", soft_wrap=True, highlight=False, markup=False)
    if malformed.count:
        lines = counted(malformed.count, "malformed line")
        console.print(f"{lines} of {malformed.total_lines:,} left out:", soft_wrap=True, highlight=False)
        for line in malformed.first[:_SHOWN_LINES]:
            console.print(f"  {line}", soft_wrap=True, highlight=False, markup=False)
        if malformed.count > _SHOWN_LINES:
            console.print(f"  and {malformed.count - _SHOWN_LINES} more", highlight=False)
