"""Arguments and options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rackloop.errors import BadInput
from rackloop.names import quoted
from rackloop.units import NUMBER, parse_quantity
from rackloop_cli.shared.completion import complete_lab

# Clocks count nanoseconds in 64 bits.
_LONGEST_S = 100 * 365.25 * 86400


def seconds(text: str | float) -> float:
    """The time that ``text`` says, such as 90 s or 5min, of a century at most; a number alone is in seconds."""
    return _time(text, 1.0, "a number of seconds")


def milliseconds(text: str | float) -> float:
    """The time that ``text`` says, in milliseconds, which a number alone is in."""
    return _time(text, 1e-3, "a number of milliseconds") * 1e3


def wait(text: str | float) -> float:
    """The time to wait; a number alone is in seconds."""
    if (found := seconds(text)) < 0:
        raise typer.BadParameter(f"expected a time of 0 or more, found {quoted(str(text))}")
    return found


def _time(text: str | float, unit_s: float, otherwise: str) -> float:
    # A default comes as the number that it is.
    if not isinstance(text, str):
        return text * unit_s
    try:
        found_s = float(text) * unit_s if NUMBER.fullmatch(text.strip()) else parse_quantity(text, "s")
    except ValueError:
        raise typer.BadParameter(f"expected a time such as 90s or 5min, or {otherwise}, found {quoted(text)}") from None
    if abs(found_s) > _LONGEST_S:
        raise typer.BadParameter(f"expected a time of 100 years at most, found {quoted(text)}")
    return found_s


LabArgument = Annotated[
    str,
    typer.Argument(metavar="LAB", help="A lab description: a file, or the name of one.", autocompletion=complete_lab),
]
LabOption = Annotated[
    str,
    typer.Option(metavar="LAB", help="A lab description: a file, or the name of one.", autocompletion=complete_lab),
]
ResultsOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Directory for the results, new or empty; else one below runs/.")
]
TestplansOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="The folder of the plan's tests, instead of the packaged ones.")
]
ServersOption = Annotated[
    str | None,
    typer.Option(metavar="NAME,...", help="Lease these servers and their drives alone; tag:NAME is any with the tag."),
]
WaitOption = Annotated[
    float,
    typer.Option(
        "--wait",
        metavar="TIME",
        parser=wait,
        show_default=False,
        help="How long to wait for the rack's holder; else not.",
    ),
]
PriorityOption = Annotated[
    int,
    typer.Option(
        metavar="N", min=-1_000_000, max=1_000_000, help="The priority in the queue; higher ones are served first."
    ),
]
StealOption = Annotated[
    bool, typer.Option("--steal", help="Take the rack from its holder; asks first, and leaves a record.")
]
VerboseOption = Annotated[
    int, typer.Option("-v", "--verbose", count=True, show_default=False, help="Show all measurements, and more.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask before stealing.")]


def names_in(text: str | None) -> tuple[str, ...]:
    """The names in a list such as ``srv1,srv2``; none where there is no list. Raises BadInput for a list of none."""
    if text is None:
        return ()
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise BadInput(f"expected names such as srv1,srv2, found {quoted(text)}")
    return names
