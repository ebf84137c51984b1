"""Arguments and options that several verbs share."""

from __future__ import annotations

from typing import Annotated

import typer

LabArgument = Annotated[str, typer.Argument(metavar="LAB", help="A lab description: a file, or the name of one.")]
ServersOption = Annotated[
    str | None,
    typer.Option(
        "--servers", metavar="NAME,...", help="Lease these servers with what they have, and nothing else of the rack."
    ),
]
WaitOption = Annotated[
    float, typer.Option("--wait", metavar="SECONDS", min=0.0, help="How long to wait for whoever has the rack.")
]
PriorityOption = Annotated[
    int, typer.Option("--priority", metavar="N", help="Who waits with a higher one is served first.")
]
StealOption = Annotated[
    bool, typer.Option("--steal", help="Take the rack from whoever has it; asks first, and leaves a record.")
]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask before stealing.")]
