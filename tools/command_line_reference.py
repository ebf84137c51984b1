"""Write the generated part of docs/reference/command-line.md: every command, as the command line describes itself.

And tools/help.txt, from which `./rackloop` answers --help before anything is installed.

``python tools/command_line_reference.py``, in the environment of the tests, after a change to the command line.
"""

from __future__ import annotations

import inspect
import io
import os
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from typer.main import get_command

from generated import below_mark
from rackloop_cli.main import app, main

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "command-line.md"
HELP = Path(__file__).resolve().parent / "help.txt"
MARK = "<!-- What follows is written by tools/command_line_reference.py. -->\n"


def page() -> str:
    """The whole page: what people wrote above the mark, and every command below it."""
    commands = "\n".join(
        line for words, command in _leaves(get_command(app), "rackloop") for line in _section(words, command)
    )
    return below_mark(PAGE, MARK, f"\n{commands}")


def _leaves(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    """Each command that does something, with the words to call it by."""
    children = getattr(command, "commands", None)
    if children is None:
        yield words, command
        return
    groups = " ".join([words, *(parameter.metavar for parameter in _arguments(command))])
    for name, child in children.items():
        if not child.hidden:
            yield from _leaves(child, f"{groups} {name}")


def _section(words: str, command: Any) -> Iterator[str]:
    arguments = [_placed(parameter) for parameter in _arguments(command)]
    yield f"## {words}\n"
    yield f"```text\n{' '.join([words, '[OPTIONS]', *arguments])}\n```\n"
    yield f"{inspect.cleandoc(command.help)}\n"
    if command.params:
        yield "| | | |\n|---|---|---|"
        yield from (_row(parameter) for parameter in command.params)
        yield ""
    examples = command.epilog.partition("Examples:\n")[2].partition("\n\n")[0]
    yield "```console"
    yield from (f"$ {line.strip()}" for line in examples.splitlines())
    yield "```\n"


def _row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        shown, note = parameter.metavar, "required" if parameter.required else ""
    else:
        shown = " ".join(filter(None, [parameter.opts[0], parameter.metavar]))
        default = parameter.default
        flag_or_none = default in (None, False)
        said = f"{default:g}" if isinstance(default, float) else default
        note = "required" if parameter.required else "" if flag_or_none else f"default: {said}"
    return f"| `{shown}` | {parameter.help} | {note} |".replace("|  |", "| |")


def _placed(parameter: Any) -> str:
    shown = parameter.metavar if parameter.required else f"[{parameter.metavar}]"
    return f"{shown}..." if parameter.nargs == -1 else str(shown)


def _arguments(command: Any) -> list[Any]:
    return [parameter for parameter in command.params if parameter.param_type_name == "argument"]


def help_texts() -> str:
    """The output of --help of each command and group, below a line with its words."""
    return "".join(
        f"=== {' '.join(words)}\n{_help(path)}" for words, path in _paths(get_command(app), ["rackloop"], [])
    )


def _paths(command: Any, words: list[str], path: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Each command and group: its words, and the arguments that call it, with those of the groups above it."""
    yield words, path
    path = [*path, *(parameter.metavar for parameter in _arguments(command))]
    for name, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            yield from _paths(child, [*words, name], [*path, name])


def _help(path: list[str]) -> str:
    printed = io.StringIO()
    with redirect_stdout(printed):
        main([*path, "--help"])
    return printed.getvalue()


if __name__ == "__main__":
    # Help is as wide as the terminal, up to this.
    os.environ["COLUMNS"] = "80"
    HELP.write_text(help_texts(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
