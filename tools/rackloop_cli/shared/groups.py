"""Groups of verbs, and the examples that end their help."""

from __future__ import annotations

import typer

from rackloop_cli.shared.options import LabArgument


def examples(*commands: str) -> str:
    """An epilog with a line for each command; the first character keeps the lines from being filled."""
    return "\n".join(("\b", "Examples:", *(f"  {command}" for command in commands)))


def group(help_text: str, *commands: str) -> typer.Typer:
    """A group of verbs. Plain help reads the same in a terminal, a log and the documents."""
    return typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=help_text, epilog=examples(*commands))


def lab_group(help_text: str, *commands: str) -> typer.Typer:
    """A group of verbs whose first argument is a lab, which each verb finds in its context's ``obj``."""
    verbs = group(help_text, *commands)
    verbs.callback()(_remember_lab)
    return verbs


def _remember_lab(ctx: typer.Context, lab: LabArgument) -> None:
    ctx.obj = lab
