"""Sessions on the store of a drive, which end in order also when interrupted."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rackloop.clock import RealClock
from rackloop.errors import NotConnected, RackloopError
from rackloop.lab import Lab, load_lab
from rackloop.units import counted, format_quantity
from rackloop_cli.shared.interruption import Interruption, interruptible
from rackloop_cli.store.drive_errors import DriveAtPort, named
from rackloop_cli.store.drive_session import LeasedDrive, drive_by_hand
from rackloop_drivers.open_blocks import open_blocks
from rackloop_models.local_erasure import (
    IN_FLIGHT_BYTES,
    SECTOR_BYTES,
    Layout,
    LocalStore,
    NoStore,
    NoSuchFile,
    StoreInUse,
)

HALF_PUT = ".rackloop-put.half"
"""The name of a file until all of it has been put; one for all, as there is one writer a drive."""

# A switch that moves the drive holds its requests for half a minute at most.
_IO_S = 60.0


@dataclass(frozen=True)
class StoreRequest:
    """A drive of a lab, and whether its store may be taken from an owner that may be alive."""

    lab: str
    drive: str
    take_over: bool = False


@dataclass(frozen=True)
class Reached:
    """A drive that may be written, and how a command that works on it is interrupted."""

    at: LeasedDrive
    blocks: DriveAtPort
    interruption: Interruption
    close: Callable[[], None]

    @contextmanager
    def in_order(self) -> Iterator[None]:
        """Let the block come to its end before a signal ends the command; with a second, the drive answers no more."""
        with self.interruption.postponed(self.close):
            yield


@contextmanager
def reached(request: StoreRequest, purpose: str) -> Iterator[Reached]:
    """The drive, leased and with the guard's permission; it answers no more once the lease is over.

    Raises as drive_by_hand and open_blocks do, LeaseLost where the lease is lost before the block ends.
    """
    lab, clock = load_lab(request.lab), RealClock()
    with interruptible() as interruption:
        try:
            with drive_by_hand(lab, clock, request.drive, f"{purpose} {request.drive}") as at:
                name, look = f"drive {at.drive} at {at.through}", _where_to_look(lab)
                try:
                    session = open_blocks(at.permit, clock, within_s=_IO_S)
                except NotConnected as error:
                    raise NotConnected(f"{name} is out of reach; {look}") from error
                blocks = named(session, clock, name, look)
                with at.ended_on_loss(session.close), session, blocks.looked_after(tell):
                    yield Reached(at, blocks, interruption, session.close)
        except RackloopError as error:
            if not interruption.is_asked:
                raise
            tell(f"interrupted: {error}")
            raise KeyboardInterrupt from error
        except KeyboardInterrupt:
            tell("interrupted")
            raise


@contextmanager
def opened(request: StoreRequest, purpose: str) -> Iterator[tuple[Reached, LocalStore]]:
    """The store of the drive; what a put that was killed left there is gone. Raises also as LocalStore does."""
    with reached(request, purpose) as drive:
        with drive.in_order():
            store = _opened(request, drive, purpose)
        try:
            drive.interruption.check()
            with drive.in_order():
                remove_if_there(store, HALF_PUT)
            yield drive, store
        except BaseException:
            # Without its drive a store cannot be closed, and its owner is gone as soon as this process is.
            if not drive.blocks.is_gone:
                with drive.in_order():
                    store.close()
            raise
        with drive.in_order():
            store.close()


def remove_if_there(store: LocalStore, name: str) -> None:
    """Remove a file that there may be."""
    with suppress(NoSuchFile):
        store.remove(name)


def tell(text: str) -> None:
    """Say something that is no result."""
    print(f"rackloop: {text}", file=sys.stderr)


def described(layout: Layout) -> str:
    """The code and layout of a store, in words."""
    return (
        f"groups of {layout.k} sectors and {layout.m} of redundancy over {layout.field}, "
        f"metadata in {counted(layout.replicas, 'replica')}"
    )


def room_for_data(store: LocalStore) -> int:
    """The free space for file data, without the redundancy of whole groups."""
    layout = store.layout
    return store.free_bytes() // SECTOR_BYTES * layout.k // (layout.k + layout.m) * SECTOR_BYTES


def size(size_bytes: int) -> str:
    """``3 MiB``."""
    return format_quantity(size_bytes, "B")


def _opened(request: StoreRequest, drive: Reached, purpose: str) -> LocalStore:
    try:
        return LocalStore(
            drive.blocks,
            RealClock(),
            take_over=request.take_over,
            owner=purpose,
            in_flight_bytes=IN_FLIGHT_BYTES,
        )
    except NoStore:
        raise NoStore(
            f"drive {request.drive} carries no store; make one: "
            f"rackloop store {shlex.quote(request.lab)} format {request.drive}"
        ) from None
    except StoreInUse as error:
        raise StoreInUse(f"drive {request.drive}: {error} (--take-over)") from None


def _where_to_look(lab: Lab) -> str:
    if lab.has_switch:
        return f"`rackloop fabric {lab.name} show` says whether its link is up"
    return f"`rackloop lab status {lab.name}` says whether the lab is up"
