"""Groups of verbs, and the examples that end their help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from rackloop_cli.shared.options import LabArgument

Verb = TypeVar("Verb", bound=Callable[..., Any])


def examples(*commands: str) -> str:
    """An epilog with a line for each command; the first character keeps the lines from being filled."""
    return "\n".join(("\b", "Examples:", *(f"  {command}" for command in commands)))


class PlainContext(typer.Context):
    """A context that names the arguments of groups as the documents do: LAB, and not {LAB}."""

    @property
    def command_path(self) -> str:
        """The words that call the command."""
        return _plain(super().command_path)


class PlainCommand(TyperCommand):
    """A command whose usage names what is required as the documents do."""

    context_class = PlainContext

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        """Write the usage line."""
        _write_usage(self, ctx, formatter)


class PlainGroup(TyperGroup):
    """A group whose usage is that of a plain command."""

    context_class = PlainContext

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        """Write the usage line."""
        _write_usage(self, ctx, formatter)


def _write_usage(command: TyperCommand | TyperGroup, ctx: Any, formatter: Any) -> None:
    formatter.write_usage(ctx.command_path, _plain(" ".join(command.collect_usage_pieces(ctx))))


def _plain(usage: str) -> str:
    return usage.replace("{", "").replace("}", "")


class Group(typer.Typer):
    """A group of verbs. Plain help reads the same in a terminal, a log and the documents."""

    def __init__(self, about: str, *commands: str) -> None:
        super().__init__(
            cls=PlainGroup, no_args_is_help=True, rich_markup_mode=None, help=about, epilog=examples(*commands)
        )

    def verb(self, name: str, *commands: str, more: str = "") -> Callable[[Verb], Verb]:
        """Add the decorated function, whose help ends with the examples ``commands`` and ``more``."""
        return self.command(name, cls=PlainCommand, epilog=examples(*commands) + more)


class LabGroup(Group):
    """A group of verbs whose first argument is a lab, which each verb finds in its context's ``obj``."""

    def __init__(self, about: str, *commands: str) -> None:
        super().__init__(about, *commands)
        self.callback()(_remember_lab)


def _remember_lab(ctx: typer.Context, lab: LabArgument) -> None:
    ctx.obj = lab
