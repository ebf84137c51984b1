"""`rackloop fabric`: the verbs for the circuit switch. Each verb's code is imported when it is called."""

from __future__ import annotations

from typing import Annotated

import typer

from rackloop_cli.shared.groups import LabGroup
from rackloop_cli.shared.options import JsonOption, milliseconds

fabric_app = LabGroup(
    "Look at a lab's circuit switch and change its map by hand.",
    "rackloop fabric mock show",
    "rackloop fabric mock map srv1.p0=d05",
    "rackloop fabric mock drop srv1.p0 --ms 50",
)

PortsArgument = Annotated[
    list[str], typer.Argument(metavar="PORT", help="Switch ports, or names such as srv1.p0 or d05.")
]


@fabric_app.verb("show", "rackloop fabric mock show", "rackloop fabric mock show --json")
def fabric_show(ctx: typer.Context, as_json: JsonOption = False) -> None:
    """Draw the live map.

    A line for each server port: the drive it sees, and the state of its link.
    """
    from rackloop_cli.fabric import verbs as verb

    raise typer.Exit(verb.show(ctx.obj, as_json=as_json))


@fabric_app.verb(
    "map",
    "rackloop fabric mock map 1=117 2=118",
    "rackloop fabric mock map srv1.p0=d05",
    "rackloop fabric mock map --full 1=101 2=102",
)
def fabric_map(
    ctx: typer.Context,
    pairs: Annotated[
        list[str],
        typer.Argument(metavar="PAIR", help="Pairs of switch ports such as 1=117, or of names such as srv1.p0=d05."),
    ],
    full: Annotated[bool, typer.Option("--full", help="Replace the whole map: every other circuit opens.")] = False,
) -> None:
    """Join ports.

    Every other circuit stays as it is; `heal` goes back to the baseline.
    """
    from rackloop_cli.fabric import verbs as verb

    raise typer.Exit(verb.map_pairs(ctx.obj, pairs, full=full))


@fabric_app.verb("unmap", "rackloop fabric mock unmap srv1.p0 d05")
def fabric_unmap(
    ctx: typer.Context,
    ports: PortsArgument,
) -> None:
    """Open the circuits of ports.

    Every other circuit stays as it is; `heal` goes back to the baseline.
    """
    from rackloop_cli.fabric import verbs as verb

    raise typer.Exit(verb.unmap(ctx.obj, ports))


@fabric_app.verb("drop", "rackloop fabric mock drop srv1.p0 --ms 50")
def fabric_drop(
    ctx: typer.Context,
    ports: PortsArgument,
    ms: Annotated[
        float,
        typer.Option(
            metavar="TIME", parser=milliseconds, help="How long the signal is away; a number is milliseconds."
        ),
    ] = 100.0,
) -> None:
    """Take the signal away from ports.

    It comes back by itself after the time given; the circuits stay.
    """
    from rackloop_cli.fabric import verbs as verb

    raise typer.Exit(verb.drop(ctx.obj, ports, down_ms=ms))
