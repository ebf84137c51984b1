"""`rackloop store LAB VERB DRIVE`: an erasure-coded store on one drive, by hand."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from rackloop.clock import RealClock
from rackloop.errors import EXIT_PASS, EXIT_PRODUCT_FAILED, BadInput, LabError, RackloopError
from rackloop.lab import load_lab
from rackloop.units import counted, format_quantity
from rackloop_cli.drive_by_hand import DriveByHand, drive_by_hand
from rackloop_drivers.drive_blocks import open_blocks
from rackloop_models.local_erasure import (
    SECTOR_BYTES,
    Layout,
    LocalStore,
    NoRoom,
    NoStore,
    NoSuchFile,
    StoreInUse,
    format_drive,
    require_mount_point,
    serve_files,
)

if TYPE_CHECKING:
    from rackloop_drivers.block.nbd_session import NbdSession
    from rackloop_drivers.block.path_session import PathSession
    from rackloop_models.local_erasure import ScrubReport

# A switch that moves the drive holds its requests for half a minute at most.
_IO_S = 60.0
_PIECE_BYTES = 4 << 20
# One for all names: who puts has the drive, and what one that was killed left goes with the next.
_HALF_PUT = ".half-put"


@dataclass(frozen=True)
class Place:
    """A drive of a lab, and whether its store may be taken from an owner that may be alive."""

    lab: str
    drive: str
    take_over: bool = False


def make(place: Place, *, ph: float, codeword: int, files: int, overwrite: bool) -> int:
    """Have a drive carry an empty store."""
    layout = Layout.for_failure_probability(ph, codeword)
    with _reached(place, "store format") as (at, blocks):
        if not overwrite:
            _require_no_store(at, blocks)
        format_drive(blocks, layout, files=files)
        with LocalStore(blocks, RealClock()) as store:
            room = _room_for_data(store)
    Console().print(
        f"{place.drive} carries a store: {_described(layout)}; there is room for {_size(room)}",
        soft_wrap=True,
        highlight=False,
    )
    return EXIT_PASS


def status(place: Place) -> int:
    """Say what a store is like, and list its files."""
    with _opened(place, "store status") as (at, store):
        names = store.names()
        table = Table(
            "file", "bytes", "on the drive", "groups", "unprotected", "modified", box=SIMPLE_HEAD, pad_edge=False
        )
        for name in names:
            file = store.stat(name)
            modified = datetime.fromtimestamp(file.modified_ns / 1e9, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
            on_drive = _size(file.sectors * SECTOR_BYTES)
            unprotected = str(file.unprotected_groups or "")
            table.add_row(Text(name), f"{file.size_bytes:,}", on_drive, str(file.groups), unprotected, modified)
        room, layout = _room_for_data(store), store.layout
    console = Console(highlight=False)
    console.print(f"{at.drive} at {at.through}: {_described(layout)}", soft_wrap=True)
    console.print(f"{counted(len(names), 'file')}, room for {_size(room)}", soft_wrap=True)
    if names:
        console.print(table)
    return EXIT_PASS


def put(place: Place, source: Path, name: str | None) -> int:
    """Copy a file of this machine into a store, in place of one of that name once all of it is on the drive."""
    name = name or source.name
    try:
        length, reading = source.stat().st_size, source.open("rb")
    except OSError as error:
        raise BadInput(f"{source} cannot be read: {error.strerror}") from None
    with reading, _opened(place, "store put") as (_, store):
        with suppress(NoSuchFile):
            store.stat(name)  # Refuses what is no name, before anything is written.
        _remove(store, _HALF_PUT)
        room = _room_for_data(store)
        if length > room:
            raise NoRoom(f"{source} has {_size(length)}, and {place.drive} has room for {_size(room)}; remove files")
        file = store.create(_HALF_PUT)
        try:
            with _progress("put", length) as advance:
                offset = 0
                while piece := reading.read(_PIECE_BYTES):
                    file.write(offset, piece)
                    offset += len(piece)
                    advance(offset)
            file.sync()
            store.rename(_HALF_PUT, name)
        except BaseException:
            _remove(store, _HALF_PUT)
            raise
        store.flush()
    Console().print(f"{name}: {_size(offset)} are on {place.drive}", soft_wrap=True, highlight=False, markup=False)
    return EXIT_PASS


def get(place: Place, name: str, target: Path) -> int:
    """Copy a file of a store to this machine; nothing is left there of one that cannot be read whole."""
    if target.is_dir():
        target /= name.rpartition("/")[2]
    # What a link leads to is written, and a device or a pipe is not replaced by a file.
    whole = Path(os.path.realpath(target))
    if whole.exists() and not whole.is_file():
        raise BadInput(f"{target} is neither a file nor a folder; give one of these")
    half = whole.with_name(f".rackloop-get-{os.getpid()}.half")
    with _opened(place, "store get") as (_, store):
        file, written = store.open(name), 0
        try:
            with half.open("wb") as writing, _progress("get", file.size_bytes) as advance:
                while piece := file.read(written, _PIECE_BYTES):
                    writing.write(piece)
                    written += len(piece)
                    advance(written)
            half.replace(whole)
        except OSError as error:
            raise BadInput(f"{target} cannot be written: {error.strerror}") from None
        finally:
            with suppress(OSError):
                half.unlink()
        degraded = store.statistics.degraded_reads
    said = f"{target}: {_size(written)}" + (f", {counted(degraded, 'read')} of sectors that failed" if degraded else "")
    Console().print(said, soft_wrap=True, highlight=False, markup=False)
    return EXIT_PASS


def remove(place: Place, names: list[str]) -> int:
    """Remove files from a store, all or none."""
    with _opened(place, "store rm") as (_, store):
        for name in names:
            store.open(name)
        for name in names:
            store.remove(name)
        store.flush()
    return EXIT_PASS


def scrub(place: Place, *, check: bool) -> int:
    """Read all of a store and repair it; exit 1 where anything is lost, or with ``check`` where anything is wrong."""
    with _opened(place, "store scrub") as (_, store), _progress("scrub", None) as advance:
        report = store.scrub(advance, repair=not check)
    is_well = report.is_clean and not (check and report.unreadable_sectors)
    _print(report, only_checked=check and not is_well)
    return EXIT_PASS if is_well else EXIT_PRODUCT_FAILED


def mount(place: Place, directory: Path) -> int:
    """Serve a store as a folder until it is unmounted; exit 3 where that was because lab or lease were lost."""
    require_mount_point(directory)
    console, errors = Console(highlight=False), Console(stderr=True, highlight=False)

    def ready() -> None:
        console.print(
            f"{place.drive} is mounted at {directory}; `umount {directory}` or Ctrl-C ends it",
            soft_wrap=True,
            markup=False,
        )

    def trouble(text: str) -> None:
        errors.print(f"rackloop: {text}", soft_wrap=True, markup=False)

    lost: list[str] = []
    try:
        with _opened(place, "store mount") as (at, store), at.watched() as watch:
            serve_files(
                store,
                directory,
                RealClock(),
                name=f"{place.lab}/{place.drive}",
                is_over=watch.is_over,
                on_ready=ready,
                on_trouble=trouble,
            )
            lost += [watch.why] if watch.why else []
    except RackloopError:
        # Without its drive the store cannot be closed either; why that is says more.
        if not lost:
            raise
    if lost:
        raise LabError(f"{directory} was unmounted: {lost[0]}; what was not synced is lost")
    console.print(f"{place.drive} is unmounted, and all that was written is on it")
    return EXIT_PASS


@contextmanager
def _reached(place: Place, purpose: str) -> Iterator[tuple[DriveByHand, NbdSession | PathSession]]:
    lab, clock = load_lab(place.lab), RealClock()
    with (
        drive_by_hand(lab, clock, place.drive, f"{purpose} {place.drive}") as at,
        open_blocks(at.permit, clock, within_s=_IO_S) as blocks,
    ):
        yield at, blocks


@contextmanager
def _opened(place: Place, purpose: str) -> Iterator[tuple[DriveByHand, LocalStore]]:
    with _reached(place, purpose) as (at, blocks):
        try:
            store = LocalStore(blocks, RealClock(), take_over=place.take_over, owner=purpose)
        except NoStore:
            raise NoStore(
                f"drive {place.drive} carries no store; make one: rackloop store {place.lab} format {place.drive}"
            ) from None
        except StoreInUse as error:
            raise StoreInUse(f"drive {place.drive}: {error} (--take-over)") from None
        with store:
            yield at, store


def _require_no_store(at: DriveByHand, blocks: NbdSession | PathSession) -> None:
    """Raise BadInput where a drive carries a store, whoever has it and whatever its version."""
    try:
        with LocalStore(blocks, RealClock()) as store:
            count = len(store.names())
    except NoStore:
        return
    raise BadInput(f"drive {at.drive} carries a store with {counted(count, 'file')}; --overwrite to lose them")


def _remove(store: LocalStore, name: str) -> None:
    try:
        store.remove(name)
    except NoSuchFile:
        return


@contextmanager
def _progress(what: str, whole: int | None) -> Iterator[Callable[..., None]]:
    """A bar on a terminal; what it gives takes how much is done, and how much there is where that was not known."""
    console = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=whole)

        def advance(done: int, of: int | None = whole) -> None:
            progress.update(task, completed=done, total=of)

        yield advance


def _print(report: ScrubReport, *, only_checked: bool) -> None:
    console = Console(highlight=False)
    console.print(
        f"{report.checked_sectors:,} sectors read: {report.unreadable_sectors:,} could not be read, "
        f"{report.repaired_sectors:,} of them repaired, {report.corrected_sectors:,} wrong ones corrected",
        soft_wrap=True,
    )
    if report.protected_groups or report.metadata_repairs:
        console.print(
            f"redundancy of {counted(report.protected_groups, 'group')} brought up to date, "
            f"{counted(report.metadata_repairs, 'sector')} of metadata repaired",
            soft_wrap=True,
        )
    for what, groups in (
        ("cannot be recovered", report.unrecoverable),
        ("does not belong to its redundancy", report.mismatches),
        ("is unprotected", report.unprotected),
    ):
        for found in groups:
            console.print(f"{found.file}, group {found.group}: {what}", soft_wrap=True, markup=False)
    if report.metadata_lost:
        console.print(f"{counted(report.metadata_lost, 'sector')} of metadata lost", soft_wrap=True)
    if only_checked:
        console.print("nothing was repaired; leave out --check to do so")


def _described(layout: Layout) -> str:
    return (
        f"groups of {layout.k} sectors and {layout.m} of redundancy over {layout.field}, "
        f"metadata in {counted(layout.replicas, 'replica')}"
    )


def _room_for_data(store: LocalStore) -> int:
    """What files may still have, the redundancy of whole groups taken off."""
    layout = store.layout
    return store.free_bytes() // SECTOR_BYTES * layout.k // (layout.k + layout.m) * SECTOR_BYTES


def _size(size_bytes: int) -> str:
    return format_quantity(size_bytes, "B")
