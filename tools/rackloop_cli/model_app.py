"""`rackloop model`: the simulated drives, looked at by themselves. What a verb does is imported when it is called."""

from __future__ import annotations

import typer

from rackloop_cli.epilog import examples

model_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Look at the reference models.",
    epilog=examples("rackloop model curves sata-hdd --out curves"),
)
