"""A lease held while a block runs: waited for, kept by heartbeats, released when the block ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from rackloop.clock import Deadline
from rackloop.errors import BadInput, GuardRefused, LabError
from rackloop.lab import Part, Parts
from rackloop.safety.leases._holder import Holder
from rackloop.safety.leases._lease import Lease, LeaseLost, RackLeased, Ticket
from rackloop.safety.leases._leases import HEARTBEAT_S, Leases, LeaseTerms
from rackloop.safety.leases._shared_store import leases_of
from rackloop.safety.maintenance import OutOfServiceStore
from rackloop.safety.store import Store

if TYPE_CHECKING:
    from rackloop.lab import Lab

_BEATS = 3
# Of the term, how much may pass since the last renewal before the holder takes the lease for another's. What is left of
# it, 5 s, is for ending what writes.
_TRUSTED = 2 / 3
_LEAST_WAIT_S = 0.01
# The more are in the way, the longer it takes until the last of them is gone.
_LOOK_S, _LONGEST_LOOK_S = 0.05, 1.0
_AT_ONCE = LeaseTerms()


class HeldLease:
    """A lease that this process holds, kept alive by a thread of its own. ``stolen`` are those it ended on its way.

    Where other machines share the store, a second thread takes the lease for lost when the last renewal was sent 10 s
    ago: 5 s later it may be another's, who does not wait for this machine to find its way back to the store.
    """

    def __init__(self, leases: Leases, lease: Lease, stolen: tuple[Lease, ...] = ()) -> None:
        self.leases = leases
        self.stolen = stolen
        self._lease = lease
        self._lost: LeaseLost | None = None
        self._on_loss: list[Callable[[], None]] = []
        self._telling = Lock()
        self._is_over = Event()
        self._renewed_ns = leases.store.clock.now_ns()
        self._threads = [Thread(target=self._beat, name=f"lease {lease.id}", daemon=True)]
        if not leases.store.is_private:
            self._threads.append(Thread(target=self._fence, name=f"fence of lease {lease.id}", daemon=True))

    @property
    def lease(self) -> Lease:
        """The lease as it was when it was last renewed."""
        return self._lease

    @property
    def parts(self) -> Parts:
        """The parts that it is for."""
        return self._lease.parts

    def check(self) -> None:
        """Raise LeaseLost if a heartbeat has found that the lease is over. The journal asks the store itself."""
        if self._lost is not None:
            raise self._lost

    @contextmanager
    def on_loss(self, call: Callable[[], None]) -> Iterator[None]:
        """Have ``call`` made, by the thread of the heartbeats, when one finds while the block runs that it is over.

        That is five seconds after it was lost, ten after a shared store was last heard, and again with each heartbeat
        until the block ends. Raises LeaseLost where it was found over before.
        """
        with self._telling:
            self.check()
            self._on_loss.append(call)
        try:
            yield
        finally:
            with self._telling:
                self._on_loss.remove(call)

    def require_covers(self, part: Part, ports: Collection[int] = ()) -> None:
        """Raise BadInput where an act on ``part`` that touches these switch ports is not in the lease.

        Raises LeaseLost as :meth:`check` does.
        """
        self.check()
        if not self.parts.covers(part, ports):
            named = f" with ports {', '.join(map(str, sorted(ports)))}" if ports else ""
            raise BadInput(
                f"{part}{named} is not in lease {self._lease.id}, which has {self.parts}; lease what is missing too"
            )

    def refusals(self, drive_id: str, through: str) -> list[str]:
        """The reasons why the drive may not be written under this lease, asked of the store.

        Also that it is out of service, or reached ``through`` a server or port that is. Raises GuardRefused as Leased.
        """
        try:
            self.require()
        except LeaseLost as lost:
            return [str(lost)]
        if drive_id not in self.parts.drives:
            raise GuardRefused(drive_id, [f"it is not in lease {self._lease.id}, which has {self.parts}"])
        return [
            str(out)
            for part, out in OutOfServiceStore(self.leases.store, self.leases.lab).standing().items()
            if part == Part.drive(drive_id) or (part.server_name and f"{through}.".startswith(f"{part.name}."))
        ]

    def record_attempt(self, drive_id: str, reasons: Sequence[str]) -> None:
        """Keep in the store that the drive was to be written, and every reason against it."""
        self.leases.record_attempt(self._lease, drive_id, reasons)

    def require(self) -> None:
        """Ask the store. Raises LeaseLost where the lease is over."""
        self.check()
        self._renew()

    def fresh_token(self, above: int = 0) -> int:
        """A token for the switch, higher than ``above`` and all before; raises LeaseLost where the lease is over."""
        self.check()
        return self.leases.fresh_token(self._lease, above)

    def start(self) -> None:
        """Begin the heartbeats. Raises LabError where the first, on a shared store, is not heard."""
        if not self.leases.store.is_private:
            # When the grant was asked for is not known here: its age counts from a renewal's sending.
            self._renew()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the heartbeats and give the lease back; a store that is gone lets it lapse by itself."""
        self._is_over.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        with suppress(LabError):
            self.leases.release(self._lease)

    def _beat(self) -> None:
        while not self._is_over.wait(HEARTBEAT_S / _BEATS):
            # A store that does not answer now may do so before the lease is over, and each act asks it again. Whatever
            # else goes wrong, in a call of on_loss too, the next heartbeat goes out.
            with suppress(Exception):
                if self._lost is not None:
                    self._tell(self._lost)
                    continue
                try:
                    self._renew()
                except LeaseLost as lost:
                    self._tell(lost)

    def _fence(self) -> None:
        """Take the lease for lost in time, also while a network keeps the heartbeats waiting for minutes."""
        clock = self.leases.store.clock
        while not self._is_over.wait(max(self._trusted_for_s(), _LEAST_WAIT_S)):
            if self._lost is not None:
                return
            if self._trusted_for_s() <= 0:
                age_s = (clock.now_ns() - self._renewed_ns) / 1e9
                with suppress(Exception):
                    self._tell(
                        LeaseLost(
                            f"lease {self._lease.id} of lab {self._lease.lab} was last renewed {age_s:.0f} s ago, and "
                            "its store does not answer: it may be another's soon; see that this machine reaches "
                            f"{self.leases.store.name}, and lease the rack again"
                        )
                    )

    def _trusted_for_s(self) -> float:
        """The time for which the last renewal is still good, without another."""
        return (self._renewed_ns - self.leases.store.clock.now_ns()) / 1e9 + HEARTBEAT_S * _TRUSTED

    def _renew(self) -> None:
        """A heartbeat, whose age counts from before it was sent."""
        sent_ns = self.leases.store.clock.now_ns()
        self._lease = self.leases.renew(self._lease)
        self._renewed_ns = max(self._renewed_ns, sent_ns)

    def _tell(self, lost: LeaseLost) -> None:
        with self._telling:
            self._lost = lost
            for call in self._on_loss:
                call()


@contextmanager
def leased(lab: Lab, store: Store, terms: LeaseTerms = _AT_ONCE) -> Iterator[HeldLease]:
    """Hold a lease of ``lab`` while the block runs; raises as what it calls does."""
    leases = leases_of(lab, store)
    with holding(leases, terms.parts_of(lab, leases), terms) as held:
        yield held


@contextmanager
def holding(leases: Leases, wanted: Parts, terms: LeaseTerms = _AT_ONCE) -> Iterator[HeldLease]:
    """Hold ``wanted``, by ``terms``, for as long as the block runs and the process lives.

    Raises RackLeased where it cannot be had, LeaseLost or BadInput where the lease it is to be a part of is over or
    does not have it.
    """
    held = HeldLease(leases, *obtain(leases, wanted, terms))
    try:
        held.start()
        yield held
    finally:
        held.stop()


def obtain(leases: Leases, wanted: Parts, terms: LeaseTerms = _AT_ONCE) -> tuple[Lease, tuple[Lease, ...]]:
    """A lease without heartbeats yet, and the leases that ended for it; raises as :func:`holding` does."""
    ticket = leases.request(wanted, Holder.here(), purpose=terms.purpose, priority=terms.priority, within=terms.within)
    try:
        if terms.steal_why is not None and ticket.lease is None:
            return leases.steal(ticket, terms.steal_why, terms.steal_from)
        return _awaited(leases, ticket, terms.wait_s), ()
    except BaseException:
        with suppress(LabError):
            leases.release(ticket)
        raise


def _awaited(leases: Leases, ticket: Ticket, wait_s: float) -> Lease:
    clock = leases.store.clock
    deadline = Deadline.after(clock, wait_s)
    heartbeat = Deadline.after(clock, HEARTBEAT_S / _BEATS)
    while ticket.lease is None:
        if deadline.is_over():
            raise RackLeased(leases.lab, ticket.held_up_by, waited_s=wait_s)
        pause_s = min(_LONGEST_LOOK_S, _LOOK_S * len(ticket.held_up_by))
        clock.sleep_until_ns(min(deadline.at_ns, clock.now_ns() + round(pause_s * 1e9)))
        try:
            if heartbeat.is_over() or deadline.is_over() or leases.may_be_next(ticket):
                ticket = leases.poll(ticket)
                heartbeat = Deadline.after(clock, HEARTBEAT_S / _BEATS)
        except LeaseLost:
            raise
        except LabError:
            # A database that is being started again has the queue when it is back.
            if deadline.is_over():
                raise
    return ticket.lease
