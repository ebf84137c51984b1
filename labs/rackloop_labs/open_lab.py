"""Opening of a bench, for every kind of lab."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rackloop.clock import Clock
from rackloop.errors import HigherToken
from rackloop.lab import Lab, LabKind, LabState
from rackloop.safety.leases import HeldLease, unknown_token
from rackloop_drivers.host import NOBODY
from rackloop_labs.bench import Bench
from rackloop_labs.mock import MockLab

if TYPE_CHECKING:
    from rackloop_labs.rackd_drives import RackdDrives


@contextmanager
def open_leased(
    lab: Lab,
    clock: Clock,
    state: LabState,
    held: HeldLease,
    *,
    seed: int | None = None,
    bring_up: bool = True,
    on_exchange: Callable[[Any], None] | None = None,
    above: int | None = None,
) -> Iterator[Bench]:
    """The bench of what ``held`` has of ``lab``.

    The holder of the whole rack holds the switch's lock from the first; the holder of a part takes it for each act, and
    finds a mock lab only where `lab up` left it running, since it is not its to take down. Raises as :func:`open_lab`,
    HigherToken where the switch has granted a token that the lab's store never gave. With ``above``, the holder of the
    whole rack goes above that number, and, where the switch's lock is free, above the one that it has granted.
    """
    whole = held.parts.whole

    def entered(stack: ExitStack, token: int | None) -> Bench:
        opening = open_lab(
            lab,
            clock,
            state,
            token,
            working_for=f"{lab.name}/{held.lease.id}",
            seed=seed,
            bring_up=bring_up and whole,
            on_exchange=on_exchange,
            lease=held,
        )
        return stack.enter_context(opening)

    with ExitStack() as stack:
        token = held.lease.token if whole else None
        if whole and above:
            token = held.fresh_token(above)
        try:
            bench = entered(stack, token)
        except HigherToken as error:
            if error.highest <= held.leases.last_token():
                held.require()
                raise
            if above is None or error.holder:
                raise unknown_token(error, lab.name) from None
            bench = entered(stack, held.fresh_token(error.highest))
        if whole:
            yield bench
        else:
            from rackloop_labs.bench_view import LeasedBench

            yield LeasedBench(bench, held)


@contextmanager
def open_lab(
    lab: Lab,
    clock: Clock,
    state: LabState,
    token: int | None,
    *,
    working_for: str = NOBODY,
    seed: int | None = None,
    bring_up: bool = True,
    on_exchange: Callable[[Any], None] | None = None,
    lease: HeldLease | None = None,
) -> Iterator[Bench]:
    """The bench of ``lab``: of the one that `lab up` left running, else of one brought up for as long as it is open.

    ``working_for`` names the lab and the lease, parted by a slash, that commands on its servers are known by; under
    ``lease`` faults may overwrite drives.
    Raises LabError where it does not answer, where it is not up and, without ``bring_up``, is not brought up, or where
    its guests are not built.
    """
    if lab.kind is not LabKind.MOCK:
        from rackloop_labs.physical import PhysicalBench

        # A virtual rack that is up is one that is simply there, but for its drives.
        is_there = lab.kind is LabKind.PHYSICAL
        there = nullcontext((lab, None)) if is_there else _virtual(lab, clock, state, seed, bring_up)
        with (
            there as (rack, drives),
            closing(PhysicalBench(rack, clock, state, token, on_exchange, working_for, drives, lease)) as bench,
        ):
            yield bench
        return
    mock = MockLab(lab, clock, state)
    leash = mock.leashed(seed, bring_up=bring_up)
    try:
        with closing(mock.open(token, on_exchange, working_for, is_new=leash is not None)) as bench:
            yield bench
    finally:
        if leash is not None:
            mock.release(leash)


@contextmanager
def _virtual(
    lab: Lab,
    clock: Clock,
    state: LabState,
    seed: int | None,
    bring_up: bool,  # noqa: FBT001
) -> Iterator[tuple[Lab, RackdDrives | None]]:
    """The description of a virtual rack that is up, and its drives, for as long as the block lasts."""
    from rackloop_labs.rackd_drives import RackdDrives
    from rackloop_labs.virtual import VirtualLab

    virtual = VirtualLab(lab, clock, state)
    leash = virtual.leashed(seed, bring_up=bring_up)
    try:
        described = virtual.described()
        yield described, RackdDrives(described, Path(state.endpoints()["control"]), clock)
    finally:
        if leash is not None:
            virtual.release(leash)
