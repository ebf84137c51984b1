"""`rackloop trace`: the verbs for block traces. What a verb does is imported when it is called."""

from __future__ import annotations

import typer

from rackloop_cli.epilog import examples

trace_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Read, convert, make and replay block traces.",
    epilog=examples(
        "rackloop trace stat trace.csv.gz",
        "rackloop trace convert trace.csv.gz trace.iolog",
        "rackloop trace replay trace.csv.gz --lab mock --speed 10",
    ),
)
