"""`rackloop new`: the verbs that write what a user goes on from. Each verb's code is imported when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rackloop_cli.shared.groups import Group

new_app = Group(
    "Write a file to go on from.", "rackloop new test my_tests/pull_cable", "rackloop new testplan fabric/warm_swap"
)


@new_app.verb("test", "rackloop new test my_tests/pull_cable", "rackloop new test pull_cable --print")
def new_test(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="The name of the test, after its folder: my_tests/pull_cable."),
    ],
    shown: Annotated[bool, typer.Option("--print", help="Print the test; write nothing.")] = False,
) -> None:
    """Write a test that runs as it is: FOLDER/test_NAME.py.

    It unplugs a drive while it is read, on whatever rack it runs on. A file that is there is never overwritten.
    """
    from rackloop_cli.new import writing as verb

    raise typer.Exit(verb.write_test(name, shown=shown))


@new_app.verb(
    "testplan", "rackloop new testplan fabric/warm_swap", "rackloop new testplan fabric/warm_swap --testplans tests"
)
def new_testplan(
    name: Annotated[
        str,
        typer.Argument(metavar="SUBJECT/NAME", help="The name of the test, after its subject: fabric/warm_swap."),
    ],
    testplans: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder of the tests, as rackloop run has it.")
    ] = Path("testplans"),
) -> None:
    """Write a test for plans: DIR/SUBJECT/test_NAME.py.

    It has a declaration, parameters and measurements, and runs as it is: it deals drives to ports at random, on a rack
    with a switch. A file that is there is never overwritten.
    """
    from rackloop_cli.new import writing as verb

    raise typer.Exit(verb.write_testplan(name, testplans))
