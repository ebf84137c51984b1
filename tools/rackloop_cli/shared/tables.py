"""Tables that are printed without cutting cells, on terminals of any width."""

from __future__ import annotations

from collections.abc import Collection

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

_WIDEST = 100_000


def plain_table(*columns: str) -> Table:
    """An empty table with a line below its headings."""
    return Table(*columns, box=SIMPLE_HEAD, pad_edge=False)


def table_of_figures(*columns: str, left: Collection[str] = (), title: str | None = None) -> Table:
    """An empty table whose columns stand close to each other, aligned right but for those ``left``."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in columns:
        table.add_column(name, justify="left" if name in left else "right", no_wrap=True)
    return table


def print_whole(console: Console, table: Table) -> None:
    """Print a table with all of every cell.

    On a terminal, columns that may wrap get narrower, down to their least width, and lines that are longer still are
    the terminal's to wrap. In a pipe or a file a row is a line, however long.
    """
    widest = console.options.update(max_width=_WIDEST)
    needed, before = console.measure(table, options=widest).maximum, console.width
    if console.is_terminal:
        for column in table.columns:
            if not column.no_wrap:
                cells = (console.measure(cell, options=widest).maximum for cell in (column.header, *column.cells))
                needed -= max(0, max(cells) - (column.min_width or 1))
        needed = max(needed, before)
    console.width = needed
    try:
        if console.is_terminal:
            console.print(table)
            return
        with console.capture() as captured:
            console.print(table)
        # Nor is it padded behind its last cell.
        lines = (line.rstrip() for line in captured.get().splitlines())
        console.file.write("".join(f"{line}\n" for line in lines))
    finally:
        console.width = before
