"""`rackloop store LAB VERB DRIVE`: commands for an erasure-coded store on one drive."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from rackloop.clock import RealClock
from rackloop.errors import EXIT_PASS, EXIT_PRODUCT_FAILED, BadInput, LabError, RackloopError
from rackloop.units import counted
from rackloop_cli.shared.interruption import default_signals
from rackloop_cli.shared.output import print_json, say
from rackloop_cli.shared.progress import watched
from rackloop_cli.shared.tables import print_whole, table_of_figures
from rackloop_cli.store.session import (
    Reached,
    StoreRequest,
    described,
    opened,
    reached,
    room_for_data,
    size,
    tell,
)
from rackloop_models.local_erasure import (
    SECTOR_BYTES,
    Layout,
    LocalStore,
    NoStore,
    ReplicasDisagree,
    StoreInUse,
    UnknownSuperblock,
    format_drive,
    require_mount_point,
    serve_files,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table

    from rackloop_models.local_erasure import FileStatus, ScrubReport

_NAME_WIDTH = 12


def make(request: StoreRequest, *, ph: float, codeword: int, files: int, overwrite: bool) -> int:
    """Create an empty store on a drive."""
    layout = Layout.for_failure_probability(ph, codeword)
    with reached(request, "store format") as drive, drive.in_order():
        if not overwrite:
            _require_no_store(drive)
        drive.interruption.check()
        format_drive(drive.blocks, layout, files=files)
        try:
            with LocalStore(drive.blocks, RealClock()) as store:
                room = room_for_data(store)
        except (NoStore, ReplicasDisagree) as error:
            raise LabError(
                f"drive {request.drive} at {drive.at.through} was formatted, and does not give back what was written "
                "to it; take another drive"
            ) from error
    say(f"{request.drive} carries a store: {described(layout)}; there is room for {size(room)}")
    return EXIT_PASS


def status(request: StoreRequest, *, as_json: bool = False) -> int:
    """Print the status of a store, and list its files."""
    with opened(request, "store status") as (drive, store), drive.in_order():
        files = {name: store.stat(name) for name in store.names()}
        room, layout = room_for_data(store), store.layout
    if as_json:
        print_json(
            drive=request.drive,
            at=str(drive.at.through),
            code={"sectors": layout.k, "redundancy": layout.m, "field": str(layout.field), "replicas": layout.replicas},
            room_bytes=room,
            files=[{"name": name, **asdict(file)} for name, file in files.items()],
        )
        return EXIT_PASS
    say(f"{request.drive} at {drive.at.through}: {described(layout)}")
    say(f"{counted(len(files), 'file')}, room for {size(room)}")
    if files:
        print_whole(Console(highlight=False), _listed(files))
    return EXIT_PASS


def remove(request: StoreRequest, names: list[str]) -> int:
    """Remove files from a store, all or none."""
    with opened(request, "store rm") as (drive, store), drive.in_order():
        for name in names:
            store.open(name)
        for name in dict.fromkeys(names):
            store.remove(name)
        store.flush()
    return EXIT_PASS


def scrub(request: StoreRequest, *, check: bool) -> int:
    """Read all of a store and repair it; exit 1 where anything is lost, or with ``check`` where anything is wrong."""
    bar = watched("scrub", in_percent=True)
    with opened(request, "store scrub") as (drive, store), bar as advance, drive.in_order():

        def step(done: int, of: int) -> None:
            drive.interruption.check()
            advance(done, of)

        report = store.scrub(step, repair=not check)
    is_well = report.is_clean and not (check and report.unreadable_sectors)
    _print(report, only_checked=check and not is_well)
    return EXIT_PASS if is_well else EXIT_PRODUCT_FAILED


def mount(request: StoreRequest, directory: Path) -> int:
    """Serve a store as a folder until it is unmounted; exit 3 where that was because drive, lab or lease were lost."""
    require_mount_point(directory)
    is_ready, lost = [], ""

    def ready() -> None:
        is_ready.append(True)
        say(f"{request.drive} is mounted at {directory}; `umount {directory}` or Ctrl-C ends it")

    try:
        with opened(request, "store mount") as (drive, store), drive.at.watched() as watch:
            with drive.in_order(), default_signals():
                serve_files(
                    store,
                    directory,
                    RealClock(),
                    name=f"{request.lab}/{request.drive}",
                    is_over=watch.is_over,
                    on_ready=ready,
                    on_trouble=tell,
                )
            lost = watch.why
    except RackloopError as error:
        if not is_ready:
            raise
        # Without its drive the store cannot be closed either; why that is says more.
        lost = lost or str(error)
    if lost:
        raise LabError(f"{directory} was unmounted, and what was not synced is lost: {lost}")
    say(f"{request.drive} is unmounted, and all that was written is on it")
    return EXIT_PASS


def _require_no_store(drive: Reached) -> None:
    """Raise BadInput where a drive carries a store of any owner, version or state."""
    try:
        with LocalStore(drive.blocks, RealClock()) as store:
            found = f"a store with {counted(len(store.names()), 'file')}; --overwrite to lose them"
    except NoStore:
        return
    except (StoreInUse, UnknownSuperblock) as error:
        found = f"a store; --overwrite to lose what is in it: {error}"
    except ReplicasDisagree as error:
        raise BadInput(
            f"drive {drive.at.drive} may carry a store; --overwrite to lose what is in it: {error}"
        ) from None
    raise BadInput(f"drive {drive.at.drive} carries {found}")


def _listed(files: Mapping[str, FileStatus]) -> Table:
    """A line for each file: figures first, which are never folded."""
    table = table_of_figures("bytes", "on drive", "groups", "unprotected", "modified", left={"modified"})
    table.add_column("file", overflow="fold", min_width=_NAME_WIDTH)
    for name, file in files.items():
        modified = datetime.fromtimestamp(file.modified_ns / 1e9, UTC)
        table.add_row(
            f"{file.size_bytes:,}",
            size(file.sectors * SECTOR_BYTES),
            str(file.groups),
            str(file.unprotected_groups or "-"),
            modified.strftime("%Y-%m-%d %H:%M:%S UTC"),
            Text(name if name.isprintable() else repr(name)),
        )
    return table


def _print(report: ScrubReport, *, only_checked: bool) -> None:
    say(
        f"{report.checked_sectors:,} sectors read: {report.unreadable_sectors:,} could not be read, "
        f"{report.repaired_sectors:,} of them repaired, {report.corrected_sectors:,} wrong ones corrected"
    )
    if report.protected_groups or report.metadata_repairs:
        say(
            f"redundancy of {counted(report.protected_groups, 'group')} brought up to date, "
            f"{counted(report.metadata_repairs, 'sector')} of metadata repaired"
        )
    for what, groups in (
        ("cannot be recovered", report.unrecoverable),
        ("does not belong to its redundancy", report.mismatches),
        ("is unprotected", report.unprotected),
    ):
        for found in groups:
            say(f"{found.file}, group {found.group}: {what}")
    if report.metadata_lost:
        say(f"{counted(report.metadata_lost, 'sector')} of metadata lost")
    if only_checked:
        say("nothing was repaired; leave out --check to do so")
