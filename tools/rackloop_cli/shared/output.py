"""Output of the verbs of `rackloop model`: progress bars and the files of --out."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rackloop.errors import BadInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SCHEMA = 1

Value = TypeVar("Value")


def make_directory(out: Path | None) -> None:
    """Make the directory, before the computation. Raises BadInput where it cannot be made."""
    if out is None:
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"--out {out}: {error.strerror}; name a directory that can be made") from error


def each_once(values: Iterable[Value]) -> tuple[Value, ...]:
    """The distinct values of an option, in order."""
    return tuple(dict.fromkeys(values))


def bar() -> Progress:
    """A progress bar on standard error, shown on a terminal only and removed at the end."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


@contextmanager
def watched(description: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar for one task; the yielded function takes the amounts done and in total."""
    with bar() as shown:
        task = shown.add_task(description, total=None)
        yield lambda over, total: shown.update(task, completed=over, total=total)


def write_results(
    console: Console,
    out: Path | None,
    stem: str,
    settings: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    figure: Figure | None,
) -> None:
    """Write rows as CSV and, with their settings, as JSON, and the plot as SVG and PNG; print their location.

    Does nothing without a directory. Raises BadInput where it cannot be written.
    """
    if out is None:
        return
    from rackloop_reports.plots import encode

    document = {"schema": _SCHEMA, "model": stem, **settings, "rows": rows}
    table = io.StringIO()
    writer = csv.DictWriter(table, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    names = [f"{stem}.json", f"{stem}.csv"]
    try:
        (out / names[0]).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        (out / names[1]).write_text(table.getvalue(), encoding="utf-8")
        if figure is not None:
            names += [f"{stem}.svg", f"{stem}.png"]
            (out / names[2]).write_bytes(encode(figure, "svg"))
            (out / names[3]).write_bytes(encode(figure, "png"))
    except OSError as error:
        raise BadInput(f"--out {out}: cannot write {error.filename}: {error.strerror}") from error
    console.print(f"{', '.join(names[:-1])} and {names[-1]} are in {out}", highlight=False, soft_wrap=True)
