"""Lines of text, and the files that verbs write into a directory given by --out."""

from __future__ import annotations

import csv
import io
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console

from rackloop.errors import BadInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SCHEMA = 1

Value = TypeVar("Value")


def say(line: str) -> None:
    """Print a line as it is, however long."""
    Console(highlight=False, soft_wrap=True, markup=False, emoji=False).print(line)


def print_json(**document: Any) -> None:
    """Print a result as JSON, with the number of its schema."""
    print(json.dumps({"schema": _SCHEMA, **document}, indent=2, ensure_ascii=False))


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


def write_whole(out: Path, text: str, *, replacing: bool) -> None:
    """Write a file of which all is there or nothing; one that is replaced stays until then, and a link is followed.

    Raises FileExistsError where it is there and not ``replacing``, another OSError where it cannot be written.
    """
    place = Path(os.path.realpath(out))
    if replacing and place.exists() and not place.is_file():
        # A device or a pipe has no half.
        place.write_text(text, encoding="utf-8")
        return
    # One that is new is made at its place, which nothing else takes in the meantime.
    half = place.with_name(f".{place.name}.half") if replacing else place
    with half.open("w" if replacing else "x", encoding="utf-8") as file, _removed_on_failure(half):
        file.write(text)
        file.flush()
        if place.exists():
            half.chmod(stat.S_IMODE(place.stat().st_mode))
        half.replace(place)


@contextmanager
def _removed_on_failure(path: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def write_files(out: Path, texts: Mapping[str, str], stem: str, figure: Figure | None) -> None:
    """Write files by their names, and the plot as SVG and PNG. Raises BadInput where one cannot be written."""
    from rackloop_reports.plots import encode

    try:
        for name, text in texts.items():
            (out / name).write_text(text, encoding="utf-8")
        if figure is not None:
            (out / f"{stem}.svg").write_bytes(encode(figure, "svg"))
            (out / f"{stem}.png").write_bytes(encode(figure, "png"))
    except OSError as error:
        raise BadInput(f"--out {out}: cannot write {error.filename or 'into it'}: {error.strerror}") from error


def write_results(
    out: Path | None,
    stem: str,
    settings: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    draw: Callable[[], Figure] | None = None,
    *,
    as_json: bool = False,
) -> None:
    """Write rows as CSV and, with their settings, as JSON, and the plot as SVG and PNG; print their location.

    With ``as_json`` the same JSON is printed instead of the location. Nothing is written without a directory. Raises
    BadInput where it cannot be written.
    """
    document = {"schema": _SCHEMA, "model": stem, **settings, "rows": rows}
    if as_json:
        print(json.dumps(document, indent=2, ensure_ascii=False))
    if out is None:
        return
    figure = draw() if draw is not None else None
    table = io.StringIO()
    writer = csv.DictWriter(table, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    texts = {f"{stem}.json": json.dumps(document, indent=1) + "\n", f"{stem}.csv": table.getvalue()}
    write_files(out, texts, stem, figure)
    names = [*texts, *([f"{stem}.svg", f"{stem}.png"] if figure is not None else [])]
    if not as_json:
        say(f"{', '.join(names[:-1])} and {names[-1]} are in {out}")
