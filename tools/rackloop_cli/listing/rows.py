"""Printing of what is listed: a table on a terminal, a line with tabs in a pipe, or JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from rackloop_cli.shared.tables import plain_table, print_whole


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[object]], *, about: str = "") -> None:
    """Print rows; in a pipe or a file each is a line, its cells parted by tabs, after one of the ``columns``' names.

    ``about`` is a line that comes before, on a terminal alone.
    """
    console = Console(highlight=False)
    if not console.is_terminal:
        for row in (columns, *rows):
            print("\t".join(str(cell) for cell in row))
        return
    if about:
        console.print(Text(about))
    table = plain_table(*columns)
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    print_whole(console, table)


def print_json(**found: Any) -> None:
    """Print what was found as JSON."""
    print(json.dumps({"schema": 1, **found}, indent=2, default=_plain))


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)
