"""`rackloop new`: the verbs that write what a user goes on from. Each verb's code is imported when it is called."""

from __future__ import annotations

from typing import Annotated

import typer

from rackloop_cli.shared.groups import Group

new_app = Group("Write a file to go on from.", "rackloop new test my_tests/pull_cable")


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

    raise typer.Exit(verb.run(name, shown=shown))
