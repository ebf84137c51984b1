"""Sessions on a drive of a lab that is up, for commands that write to it: leased, and with the guard's permit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from threading import Thread

from rackloop.abilities import BlockDevice, Drive, WritableDrive
from rackloop.clock import Clock, Deadline
from rackloop.errors import BadInput, GuardRefused, NotSupported, RackloopError
from rackloop.lab import Lab, LabKind, LabState, Part, PartKind, Parts
from rackloop.names import guess, quoted
from rackloop.safety import NOT_SCRATCH, Guard
from rackloop.safety.leases import HeldLease, LeaseTerms, holding, leases_of
from rackloop.safety.store import open_lab_store
from rackloop_cli.shared.lab_session import in_maintenance, refuse_in_maintenance, running_bench
from rackloop_cli.shared.own_lease import own_lease
from rackloop_drivers.block import NbdExport
from rackloop_labs import Bench
from rackloop_labs.bench import drive_in_slot
from rackloop_labs.live_places import live_place

_WITHIN_S = 30.0


@dataclass(frozen=True)
class LeasedDrive:
    """A drive that may be written, and the lease it is written under."""

    drive: str
    through: str
    permit: WritableDrive
    lab: Lab
    _held: HeldLease

    @contextmanager
    def watched(self) -> Iterator[Watch]:
        """A watch that tells, while the block runs, whether the drive may still be written."""
        watch = Watch(self.lab)
        with self._held.on_loss(watch.lose):
            yield watch

    @contextmanager
    def ended_on_loss(self, give_up: Callable[[], None]) -> Iterator[None]:
        """Have ``give_up`` called, in a thread of its own, once the lease is over; the drive's I/O is to fail by it.

        Raises LeaseLost for what the block raises then.
        """
        with self._held.on_loss(lambda: Thread(target=give_up, daemon=True).start()):
            try:
                yield
            except RackloopError:
                self._held.check()
                raise


class Watch:
    """A watch for the loss of a lease, or of its simulated lab."""

    def __init__(self, lab: Lab) -> None:
        self._state = None if lab.kind is LabKind.PHYSICAL else LabState.of(lab.name)
        self._lab = lab.name
        self._is_lost = False
        self.why = ""

    def lose(self) -> None:
        """The lease is over."""
        self._is_lost = True

    def is_over(self) -> bool:
        """True once the drive must not be written any more; ``why`` says the reason."""
        if self._state is not None and not self._state.is_held():
            self.why = f"lab {self._lab} was taken down"
        elif self._is_lost:
            self.why = "the lease was lost, or taken"
        return bool(self.why)


@contextmanager
def drive_by_hand(lab: Lab, clock: Clock, drive: str, purpose: str) -> Iterator[LeasedDrive]:
    """``drive`` through the server port that it is joined to now, leased with the ports in between.

    Raises BadInput for an unknown drive and for one that is joined to no server, RackLeased where another holder has
    it, GuardRefused with every reason why it may not be written or could not be reached, LabError where the lab is not
    up.
    """
    if drive not in lab.drives:
        raise BadInput(f"lab {lab.name} has no drive {quoted(drive)}; {guess(drive, lab.drives)}")
    state = LabState.of(lab.name)
    # First where it is, so that a lab that is not up says so, then who may use it there.
    try:
        with running_bench(lab, clock) as bench:
            server, port, ports = _place(bench, drive, Deadline.after(clock, _WITHIN_S))
    except RackloopError:
        # What is in the way of a drive that may not be written anyhow is not worth mending.
        if not lab.drives[drive].scratch:
            raise GuardRefused(drive, (NOT_SCRATCH,)) from None
        raise
    wanted = Parts((Part.drive(drive), *map(Part.switch_port, ports)))
    with closing(open_lab_store(lab, state, clock)) as store:
        out = in_maintenance(lab, store)
        refuse_in_maintenance(lab, wanted, out)
        leases = leases_of(lab, store)
        terms = LeaseTerms(purpose=purpose, within=own_lease(leases, wanted))
        with holding(leases, wanted, terms) as held, ExitStack() as stack:
            bench = stack.enter_context(running_bench(lab, clock, f"{lab.name}/{held.lease.id}"))
            seen = bench.survey([part.name for part in out if part.kind is PartKind.SERVER])
            behind, device = _reached(bench, drive, server, port)
            permit = Guard(lab, held, seen=seen).writable(drive, behind, device, Deadline.after(clock, _WITHIN_S))
            with permit:
                if lab.kind is LabKind.MOCK:
                    # I/O goes to rackd. Elsewhere what holds and serves the drive ends with the bench.
                    stack.close()
                yield LeasedDrive(drive, f"{server}.{port}", permit, lab, held)


def _place(bench: Bench, drive: str, deadline: Deadline) -> tuple[str, str, frozenset[int]]:
    """The server port that leads to a drive now, and the switch ports on the way."""
    lab = bench.lab
    if not lab.has_switch:
        if drive not in lab.places:
            raise NotSupported(f"drive {drive} shares its server's port with others, and is not reached by itself")
        return (*lab.places[drive], frozenset())
    place = live_place(lab, bench.equipment.fabric.live_map(deadline).pairs, drive)
    if place is None:
        raise BadInput(
            f"drive {drive} is joined to no server now; join it first: rackloop fabric {lab.name} map "
            f"SERVER.PORT={drive}"
        )
    return (*place, frozenset({lab.switch_port(*place), lab.where_is(drive)}))


def _reached(bench: Bench, drive: str, server: str, port: str) -> tuple[Drive, BlockDevice]:
    """The drive behind a server port and its block device, limited to the drive's size on a shared path."""
    described = bench.lab.drives[drive]
    behind: Drive
    device: BlockDevice
    if described.expander_slot is None:
        behind, device = bench.drive(server, port), bench.device(server, port)
    else:
        behind, device = drive_in_slot(bench, server, port, described.expander_slot)
    return behind, replace(device, size_bytes=described.size) if isinstance(device, NbdExport) else device
