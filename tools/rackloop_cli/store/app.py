"""`rackloop store`: the verbs for a store on one drive. Each verb's code is imported when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rackloop_cli.shared.groups import LabGroup
from rackloop_cli.shared.options import JsonOption

store_app = LabGroup(
    "Keep files on one drive of a lab, protected against sectors that cannot be read.",
    "rackloop store mock format d05",
    "rackloop store mock put d05 results.tar",
    "rackloop store mock mount d05 /mnt/d05",
    "rackloop store mock scrub d05",
)

DriveArgument = Annotated[str, typer.Argument(metavar="DRIVE", help="A drive of the lab that is marked scratch: true.")]
TakeOverOption = Annotated[
    bool, typer.Option("--take-over", help="Take the store over from an owner that is certainly dead.")
]


@store_app.verb(
    "format",
    "rackloop store mock format d05",
    "rackloop store mock format d13 --ph 0.005 --codeword 1023",
    "rackloop store mock format d05 --files 10000 --overwrite",
)
def store_format(
    ctx: typer.Context,
    drive: DriveArgument,
    ph: Annotated[
        float, typer.Option(metavar="P", help="Probability that a sector cannot be read at the first attempt.")
    ] = 1e-3,
    codeword: Annotated[
        int, typer.Option(metavar="N", min=2, max=65_536, help="Sectors of a group, redundancy and all: 255, 1023.")
    ] = 255,
    files: Annotated[
        int, typer.Option(metavar="N", min=1, help="The number of files that the store has room for.")
    ] = 1024,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a store on the drive, whose files are lost.")
    ] = False,
) -> None:
    """Create an empty store on a drive.

    The drive's content is lost. Groups get enough redundancy to decode all but one in a million.
    """
    from rackloop_cli.store import verbs as verb
    from rackloop_cli.store.session import StoreRequest

    raise typer.Exit(
        verb.make(StoreRequest(ctx.obj, drive), ph=ph, codeword=codeword, files=files, overwrite=overwrite)
    )


@store_app.verb("status", "rackloop store mock status d05", "rackloop store mock status d05 --json")
def store_status(
    ctx: typer.Context, drive: DriveArgument, take_over: TakeOverOption = False, as_json: JsonOption = False
) -> None:
    """Show the status of a store.

    Its code, its free space, and a line for each file.
    """
    from rackloop_cli.store import verbs as verb
    from rackloop_cli.store.session import StoreRequest

    raise typer.Exit(verb.status(StoreRequest(ctx.obj, drive, take_over), as_json=as_json))


@store_app.verb(
    "put",
    "rackloop store mock put d05 results.tar",
    "rackloop store mock put d05 results.tar --name yesterday.tar",
    "tar -c results | rackloop store mock put d05 - --name results.tar",
)
def store_put(
    ctx: typer.Context,
    drive: DriveArgument,
    source: Annotated[str, typer.Argument(metavar="FILE", help="A file of this machine, or - for standard input.")],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Its name in the store; else its name here.")] = None,
    take_over: TakeOverOption = False,
) -> None:
    """Copy a file into a store.

    It replaces a file of that name once all of it is on the drive; a copy that fails or is interrupted leaves nothing
    behind.
    """
    from rackloop_cli.store import copy as verb
    from rackloop_cli.store.session import StoreRequest

    raise typer.Exit(verb.put(StoreRequest(ctx.obj, drive, take_over), source, name))


@store_app.verb(
    "get",
    "rackloop store mock get d05 results.tar /tmp",
    "rackloop store mock get d05 results.tar today.tar",
    "rackloop store mock get d05 results.tar - | sha256sum",
)
def store_get(
    ctx: typer.Context,
    drive: DriveArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A file of the store.")],
    target: Annotated[
        str, typer.Argument(metavar="FILE", help="Where to write it: a file, a folder, or - for standard output.")
    ] = ".",
    take_over: TakeOverOption = False,
) -> None:
    """Copy a file out of a store.

    Sectors that cannot be read are decoded; exit code 1 where there are too many. An existing FILE is replaced
    once all was read. Standard output gets the bytes that were read until then.
    """
    from rackloop_cli.store import copy as verb
    from rackloop_cli.store.session import StoreRequest

    raise typer.Exit(verb.get(StoreRequest(ctx.obj, drive, take_over), name, target))


@store_app.verb("rm", "rackloop store mock rm d05 results.tar")
def store_rm(
    ctx: typer.Context,
    drive: DriveArgument,
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Files of the store.")],
    take_over: TakeOverOption = False,
) -> None:
    """Remove files from a store.

    All of them, or none where there is no file of one of the names.
    """
    from rackloop_cli.store import verbs as verb
    from rackloop_cli.store.session import StoreRequest

    raise typer.Exit(verb.remove(StoreRequest(ctx.obj, drive, take_over), names))


@store_app.verb("scrub", "rackloop store mock scrub d05", "rackloop store mock scrub d05 --check")
def store_scrub(
    ctx: typer.Context,
    drive: DriveArgument,
    check: Annotated[bool, typer.Option("--check", help="Report problems without repairing them.")] = False,
    take_over: TakeOverOption = False,
) -> None:
    """Read all of a store and repair it.

    Sectors that cannot be read are decoded and written again, and redundancy is compared with the data. The exit code
    is 1 where something cannot be repaired, or with --check where something is wrong.
    """
    from rackloop_cli.store import verbs as verb
    from rackloop_cli.store.session import StoreRequest

    raise typer.Exit(verb.scrub(StoreRequest(ctx.obj, drive, take_over), check=check))


@store_app.verb("mount", "rackloop store mock mount d05 /mnt/d05", "rackloop store mock mount d05 /mnt/d05 &")
def store_mount(
    ctx: typer.Context,
    drive: DriveArgument,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="An empty folder of this machine.")],
    take_over: TakeOverOption = False,
) -> None:
    """Serve a store as a folder.

    Until it is unmounted, or ended by Ctrl-C: then all written data are on the drive. fsync returns when data are on
    the drive; their redundancy follows when the store is idle. It needs FUSE.
    """
    from rackloop_cli.store import verbs as verb
    from rackloop_cli.store.session import StoreRequest

    raise typer.Exit(verb.mount(StoreRequest(ctx.obj, drive, take_over), directory))
