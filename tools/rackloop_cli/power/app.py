"""`rackloop power`: the verbs for the power of servers and outlets. Each verb's code is imported when it is called."""

from __future__ import annotations

from typing import Annotated

import typer

from rackloop_cli.shared.groups import LabGroup
from rackloop_cli.shared.options import JsonOption

power_app = LabGroup(
    "Look at the power of a lab's servers and outlets and switch it by hand.",
    "rackloop power mock show",
    "rackloop power mock off srv1",
    "rackloop power mock cycle pdu1/1",
)

Target = Annotated[
    str,
    typer.Argument(metavar="TARGET", help="A server, switched by its controller, or an outlet such as pdu1/1."),
]


@power_app.verb("show", "rackloop power mock show", "rackloop power mock show --json")
def power_show(ctx: typer.Context, as_json: JsonOption = False) -> None:
    """Show the power state of servers.

    A line for each server: what switches it, whether it is on, and the outlet that feeds it. A device that does not
    answer is exit code 3.
    """
    from rackloop_cli.power import verbs as verb

    raise typer.Exit(verb.show(ctx.obj, as_json=as_json))


@power_app.verb("on", "rackloop power mock on srv1")
def power_on(ctx: typer.Context, target: Target) -> None:
    """Turn a server or an outlet on.

    It is on when the command ends, and `heal` leaves it on.
    """
    from rackloop_cli.power import verbs as verb

    raise typer.Exit(verb.turn_on(ctx.obj, target))


@power_app.verb("off", "rackloop power mock off srv1", "rackloop power mock off pdu1/1")
def power_off(ctx: typer.Context, target: Target) -> None:
    """Cut the power of a server or an outlet.

    At once: the operating system is not asked. `heal` gives it back.
    """
    from rackloop_cli.power import verbs as verb

    raise typer.Exit(verb.turn_off(ctx.obj, target))


@power_app.verb("cycle", "rackloop power mock cycle srv1")
def power_cycle(ctx: typer.Context, target: Target) -> None:
    """Cut the power of a server or an outlet that is on, and give it back.

    The operating system is not asked.
    """
    from rackloop_cli.power import verbs as verb

    raise typer.Exit(verb.cycle(ctx.obj, target))
