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
    "rackloop model tenancy --out tenancy",
    "rackloop model remote-flash --out remote-flash",
    "rackloop model cost --out cost",
    "rackloop model store --mix b",
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


@model_app.verb(
    "tenancy",
    "rackloop model tenancy --out tenancy",
    "rackloop model tenancy --scenario sizes --tenants 16 --scheduler none --scheduler gimbal",
    "rackloop model tenancy --scheduler none --scheduler gimbal:thresh_max_us=2000,priority_quotas=[16,4,2,1]",
    "rackloop model tenancy --scenario kinds-4k --seeds 5",
    "rackloop model tenancy my-tenants.yaml --tenants 4 --json",
)
def model_tenancy(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A file of scenarios; else those of the papers.")
    ] = None,
    scenario: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A scenario by name; may be given again. Else all.")
    ] = None,
    condition: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="The drive's condition, clean or fragmented; may be given again. Else both."),
    ] = None,
    scheduler: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND[:NAME=VALUE,...]",
            help="A scheduler: none, reflex, parda, flashfq or gimbal, with parameters; may be given again. Else all.",
        ),
    ] = None,
    tenants: Annotated[
        list[int] | None,
        typer.Option(metavar="N", min=1, max=1024, help="Number of tenants; may be given again. Else 4, 8 and 16."),
    ] = None,
    seconds: Annotated[
        float, typer.Option(metavar="S", min=0.01, max=3600, help="Measured virtual time of each run.")
    ] = 0.5,
    warm_up: Annotated[
        float, typer.Option(metavar="S", min=0.001, max=3600, help="Virtual time before it, for schedulers to settle.")
    ] = 1.8,
    profile: Annotated[
        str, typer.Option(metavar="PROFILE", help="The drive's profile: a file, or the name of one.")
    ] = "nvme-ssd",
    size: Annotated[str, typer.Option(metavar="SIZE", help="Size of the simulated drive.")] = "4 GiB",
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, max=2**63 - 1, help="Seed of the model and of its load.")
    ] = 1,
    seeds: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="Number of seeds from that on; from 5 on with intervals.")
    ] = 1,
    sweeps: Annotated[
        bool,
        typer.Option(
            "--sweeps",
            help="Draw with --out as well what the write buffer, the virtual slots, a box's cores and its link change.",
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory for a page, JSON, CSV, and the plots; else none.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare schedulers of tenants on a drive model.

    Tenants share a clean and a fragmented drive through each scheduler, in virtual time: fairness (f-Util and Jain's
    index), utilisation and tail latency. With --out it draws the figures of the papers as well, interference and time
    lines among them. Claims of the paper stand below; one that differs is told and not judged: the exit code is 0.
    """
    from rackloop_cli.model import tenancy as verb
    from rackloop_cli.model.tenancy_results import TenancyRequest

    asked = TenancyRequest(
        file=file,
        scenarios=scenario or [],
        conditions=condition or [],
        schedulers=scheduler or [],
        counts=tenants or [],
        seconds=seconds,
        warm_up_s=warm_up,
        profile=profile,
        size=size,
        seed=seed,
        seeds=seeds,
        with_sweeps=sweeps,
        out=out,
        as_json=as_json,
    )
    raise typer.Exit(verb.tenancy(asked))


@model_app.verb(
    "remote-flash",
    "rackloop model remote-flash --out remote-flash",
    "rackloop model remote-flash --drives 8 --json",
)
def model_remote_flash(
    drives: Annotated[int, typer.Option(metavar="N", min=1, max=32, help="Drives in the box.")] = 4,
    profile: Annotated[
        str, typer.Option(metavar="PROFILE", help="The drives' profile: a file, or the name of one.")
    ] = "nvme-ssd",
    size: Annotated[str, typer.Option(metavar="SIZE", help="Size of each simulated drive.")] = "4 GiB",
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, max=2**63 - 1, help="Seed of the model and of its load.")
    ] = 1,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Directory for JSON and the plot; else none.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Serve remote flash from x86 and from small ARM cores.

    A box of drives behind 100 GbE in virtual time: 4 KiB reads by the number of cores, their 95th percentile by load,
    and ReFlex's admission by objectives up to 10 ms. Published figures stand below; what the model was given is no
    agreement, and one that differs is told and not judged: the exit code is 0.
    """
    from rackloop_cli.model import remote_flash as verb

    raise typer.Exit(
        verb.remote_flash(drives=drives, profile_name=profile, size=size, seed=seed, out=out, as_json=as_json)
    )


@model_app.verb("cost", "rackloop model cost --out cost", "rackloop model cost --inputs my-boxes.yaml --json")
def model_cost(
    inputs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file of inputs; else that of the small-core box.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory for JSON, CSV and the plot; else none.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the cost of two storage boxes over years.

    Purchase and operation apart: energy by watts, price and PUE, rack space, maintenance. Says for each input where a
    published saving comes out and where it does not; that it differs is told and not judged: the exit code is 0.
    """
    from rackloop_cli.model import cost as verb

    raise typer.Exit(verb.cost(inputs=inputs, out=out, as_json=as_json))


@model_app.verb(
    "store",
    "rackloop model store --out store",
    "rackloop model store --mix b --condition fragmented --scheduler none --scheduler gimbal",
    "rackloop model store --scheduler gimbal --mix a --mix b --mix c --seeds 5 --out store",
    "rackloop model store --clients 4 --json",
)
def model_store(
    mix: Annotated[
        list[str] | None,
        typer.Option(metavar="LETTER", help="A workload of YCSB, a to f; may be given again. Else a."),
    ] = None,
    condition: Annotated[
        str, typer.Option(metavar="NAME", help="The condition of the drives, clean or fragmented.")
    ] = "clean",
    scheduler: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND[:NAME=VALUE,...]",
            help="A scheduler: none, reflex, parda, flashfq or gimbal, with parameters; may be given again. Else all.",
        ),
    ] = None,
    clients: Annotated[int, typer.Option(metavar="N", min=1, max=256, help="Number of clients.")] = 8,
    records: Annotated[
        int, typer.Option(metavar="N", min=1, max=2**28, help="Records of 1 KiB that each client stores first.")
    ] = 131072,
    depth: Annotated[
        int, typer.Option(metavar="N", min=1, max=65536, help="Operations of each client under way.")
    ] = 16,
    seconds: Annotated[
        float, typer.Option(metavar="S", min=0.01, max=3600, help="Measured virtual time of each run.")
    ] = 1.0,
    warm_up: Annotated[
        float, typer.Option(metavar="S", min=0.001, max=3600, help="Virtual time before it, for schedulers to settle.")
    ] = 0.5,
    profile: Annotated[
        str, typer.Option(metavar="PROFILE", help="The profile of the drives: a file, or the name of one.")
    ] = "nvme-ssd",
    size: Annotated[str, typer.Option(metavar="SIZE", help="Size of each simulated drive.")] = "4 GiB",
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, max=2**63 - 1, help="Seed of the model and of its load.")
    ] = 1,
    seeds: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="Number of seeds from that on; figures are their means.")
    ] = 1,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Directory for the plots; else none.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare schedulers of key-value stores.

    Clients with a database each share a box of four drives, in virtual time: blobs with two replicas, I/O within the
    credits of the schedulers, reads steered by credit. With Gimbal, the client is measured without each of these as
    well. What differs from a paper is told and not judged: the exit code is 0.
    """
    from rackloop_cli.model import store as verb

    asked = verb.StoreRequest(
        mixes=mix or ["a"],
        condition=condition,
        schedulers=scheduler or [],
        clients=clients,
        records=records,
        depth=depth,
        seconds=seconds,
        warm_up_s=warm_up,
        profile=profile,
        size=size,
        seed=seed,
        seeds=seeds,
        out=out,
        as_json=as_json,
    )
    raise typer.Exit(verb.store(asked))
