"""Tables on narrow terminals, and in pipes."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from rackloop_cli.shared.tables import plain_table, print_whole, table_of_figures

FIGURES = ("1,099,511,627,776", "1.01 TiB", "4,311,811", "2026-11-22 09:40:00")
NAME = "a name with words in it and " + "x" * 100


def printed(width: int, *, is_terminal: bool) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=is_terminal, color_system=None)
    table = table_of_figures()
    for number, _ in enumerate(FIGURES):
        table.add_column(f"figure {number}", justify="right", no_wrap=True)
    table.add_column("file", overflow="fold", min_width=12)
    table.add_row(*FIGURES, NAME)
    print_whole(console, table)
    assert console.width == width
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", [20, 80, 300])
@pytest.mark.parametrize("is_terminal", [True, False])
def test_every_figure_is_whole_however_narrow_it_is(width: int, is_terminal: bool) -> None:
    lines = printed(width, is_terminal=is_terminal)
    row = next(line for line in lines if FIGURES[0] in line)
    assert all(figure in row for figure in FIGURES)
    begin = row.index("a name")
    assert "".join(line[begin:].strip() for line in lines[lines.index(row) :]).replace(" ", "") == NAME.replace(" ", "")


def test_a_row_is_folded_to_a_terminal_and_a_line_of_a_pipe() -> None:
    assert max(map(len, printed(80, is_terminal=True))) == 80
    assert any(all(text in line for text in (*FIGURES, NAME)) for line in printed(80, is_terminal=False))


def test_a_line_of_a_pipe_is_not_padded() -> None:
    table = plain_table("server", "link")
    table.add_row("srv1", "UP, and long enough")
    table.add_row("srv2", "")
    text = io.StringIO()
    print_whole(Console(file=text, width=20), table)
    assert all(line == line.rstrip() for line in text.getvalue().splitlines())
