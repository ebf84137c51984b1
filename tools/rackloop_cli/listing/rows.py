"""Printing of what is listed: a table on a terminal, a line with tabs in a pipe, or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from rackloop.names import printable
from rackloop_cli.shared.tables import plain_table, print_whole

_BREAKS = re.compile(r"[\t\r\n]+")


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[object]], *, about: str = "") -> None:
    """Print rows; in a pipe or a file each is a line, its cells parted by tabs, after one of the ``columns``' names.

    ``about`` is a line that comes before, on a terminal alone.
    """
    console = Console(highlight=False)
    if not console.is_terminal:
        for row in (columns, *rows):
            print("\t".join(map(_cell, row)))
        return
    if about:
        console.print(Text(about))
    table = plain_table(*columns)
    for row in rows:
        table.add_row(*(Text(_cell(cell)) for cell in row))
    print_whole(console, table)


def print_json(**found: Any) -> None:
    """Print what was found as JSON."""
    print(json.dumps({"schema": 1, **found}, indent=2, default=_plain))


def _cell(value: object) -> str:
    """A value in one line without tabs: the purpose of a plan may be a text of several lines."""
    return printable(_BREAKS.sub(" ", str(value)).rstrip())


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)
