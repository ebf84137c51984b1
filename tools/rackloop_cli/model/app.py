"""`rackloop model`: the verbs for the reference models. Each verb's code is imported when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rackloop_cli.model.erasure_app import model_erasure_app
from rackloop_cli.shared.groups import Group
from rackloop_cli.shared.options import JsonOption

model_app = Group(
    "Look at the reference models.",
    "rackloop model list",
    "rackloop model curves sata-hdd --out curves",
    "rackloop model erasure tail --out tail",
)
model_app.add_typer(model_erasure_app, name="erasure")


@model_app.verb("list", "rackloop model list", "rackloop model list --json")
def model_list(as_json: JsonOption = False) -> None:
    """List the drive profiles.

    Each with its model and the published drive that it represents.
    """
    from rackloop_cli.model import curves as verb

    raise typer.Exit(verb.show_profiles(as_json=as_json))


@model_app.verb(
    "curves",
    "rackloop model curves sata-hdd",
    "rackloop model curves nvme-ssd --out curves --size '4 GiB' --seed 7",
    "rackloop model curves profiles/my-drive.yaml",
)
def model_curves(
    profile: Annotated[str, typer.Argument(metavar="PROFILE", help="A drive profile: a file, or the name of one.")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory for curves.json and the plots; else none.")
    ] = None,
    size: Annotated[str, typer.Option(metavar="SIZE", help="Size of the simulated drive.")] = "8 GiB",
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, max=2**63 - 1, help="Seed of the model and of its load.")
    ] = 1,
    as_json: JsonOption = False,
) -> None:
    """Compare a drive model with published figures.

    Measures the model's curves in virtual time, and each published figure of the drive it models; a missed one is exit
    code 1.
    """
    from rackloop_cli.model import curves as verb

    raise typer.Exit(verb.curves(profile, out=out, size=size, seed=seed, as_json=as_json))
