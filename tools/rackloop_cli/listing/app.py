"""`rackloop plan`, `test` and `driver`: what there is to name. Each verb's code is imported when it is called."""

from __future__ import annotations

from typing import Annotated

import typer

from rackloop_cli.shared.completion import complete_test
from rackloop_cli.shared.groups import Group
from rackloop_cli.shared.options import TestplansOption

plan_app = Group("List plans.", "rackloop plan list")
test_app = Group(
    "List tests, and show what one takes and measures.\n\n"
    "In a checkout, `./rackloop test VERB` runs the checks of Rackloop itself, such as lint.",
    "rackloop test list",
)
driver_app = Group("List the drivers that lab descriptions can name.", "rackloop driver list")

JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@plan_app.verb("list", "rackloop plan list", "rackloop plan list --json")
def list_plans(testplans: TestplansOption = None, as_json: JsonOption = False) -> None:
    """List the plans that `run` finds by name, with their purpose.

    In a pipe each is a line, its cells parted by tabs.
    """
    from rackloop_cli.listing import plans as verb

    raise typer.Exit(verb.run(testplans, as_json=as_json))


@test_app.verb("list", "rackloop test list", "rackloop test list --testplans tests --json")
def list_tests(testplans: TestplansOption = None, as_json: JsonOption = False) -> None:
    """List the tests that a plan can select, with their purpose.

    In a pipe each is a line, its cells parted by tabs.
    """
    from rackloop_cli.listing import tests as verb

    raise typer.Exit(verb.run(testplans, as_json=as_json))


@test_app.verb("show", "rackloop test show fabric/remap_latency", "rackloop test show fabric/phy_drop --json")
def show_test(
    test: Annotated[
        str, typer.Argument(metavar="TEST", help="A test by its name in plans.", autocompletion=complete_test)
    ],
    testplans: TestplansOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a test's parameters, its measures and the limits that plans set for it.

    Parameters have their type, unit, default and range.
    """
    from rackloop_cli.listing import tests as verb

    raise typer.Exit(verb.show(test, testplans, as_json=as_json))


@driver_app.verb("list", "rackloop driver list", "rackloop driver list --json")
def list_drivers(as_json: JsonOption = False) -> None:
    """List the registered drivers by kind, with their keys in a lab description.

    Drivers of other packages are those that are installed beside Rackloop.
    """
    from rackloop_cli.listing import drivers as verb

    raise typer.Exit(verb.run(as_json=as_json))
