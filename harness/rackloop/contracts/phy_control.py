"""The contract of every :class:`~rackloop.abilities.PhyControl` with its callers.

The factory gives the control of a box together with at least two ports that are mapped, not to each other, and whose
signal may be lost at any moment. Each call opens one more connection to the same box.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from rackloop.abilities import PhyControl
from rackloop.contracts._clause import CLOCK, clauses, must_raise, past, soon
from rackloop.errors import DeadlineExceeded, LabError


@dataclass(frozen=True)
class PhyArm:
    """A box and the ports on it that may be dropped."""

    phy: PhyControl
    ports: tuple[int, ...]


PhyFactory = Callable[[], AbstractContextManager[PhyArm]]

_DOWN_S = 0.001


def counts_a_drop_on_its_port_alone(make: PhyFactory) -> None:
    """A drop adds one to the count of the port it was asked for and none to another circuit's."""
    with make() as arm:
        dropped, other, *_ = arm.ports
        before = arm.phy.drop_counts(arm.ports, soon())
        arm.phy.drop([dropped], _DOWN_S, soon(), request_id=_fresh_id())
        after = arm.phy.drop_counts(arm.ports, soon())
        assert after[dropped] == before[dropped] + 1
        assert after[other] == before[other]


def drops_several_ports_at_once(make: PhyFactory) -> None:
    """One request may name several ports; each counts."""
    with make() as arm:
        before = arm.phy.drop_counts(arm.ports, soon())
        arm.phy.drop(arm.ports, _DOWN_S, soon(), request_id=_fresh_id())
        assert arm.phy.drop_counts(arm.ports, soon()) == {port: count + 1 for port, count in before.items()}


def does_nothing_for_a_repeated_id(make: PhyFactory) -> None:
    """A request with an id the box has seen is done already: retrying is safe, from another connection too."""
    with make() as arm:
        port = arm.ports[0]
        before = arm.phy.drop_counts([port], soon())[port]
        request_id = _fresh_id()
        for _ in range(3):
            arm.phy.drop([port], _DOWN_S, soon(), request_id=request_id)
        assert arm.phy.drop_counts([port], soon())[port] == before + 1
        arm.phy.flap([port], _DOWN_S, _DOWN_S, 2, soon(), request_id=request_id)
        assert arm.phy.drop_counts([port], soon())[port] == before + 1
        _let_pass(2 * _DOWN_S)
        arm.phy.drop([port], _DOWN_S, soon(), request_id=_fresh_id())
        assert arm.phy.drop_counts([port], soon())[port] == before + 2


def flaps_as_often_as_asked(make: PhyFactory) -> None:
    """A flap of n adds n drops, in the time it takes, and no more."""
    with make() as arm:
        port = arm.ports[0]
        before = arm.phy.drop_counts([port], soon())[port]
        began = CLOCK.now_ns()
        arm.phy.flap([port], _DOWN_S, _DOWN_S, 3, soon(), request_id=_fresh_id())
        deadline, wanted = soon(), before + 3
        count = deadline.poll(
            lambda: arm.phy.drop_counts([port], deadline)[port], lambda count: count >= wanted, every_s=1e-3
        )
        assert count >= wanted, f"{count - before} drops of 3 were seen"
        assert CLOCK.now_ns() - began >= 4 * _DOWN_S * 1e9, "the third drop came before two down and two up times"
        _let_pass(4 * _DOWN_S)
        assert arm.phy.drop_counts([port], soon())[port] == before + 3


def refuses_a_port_that_is_not_there(make: PhyFactory) -> None:
    """A port the box does not have is a LabError, nothing is dropped, and the next call works."""
    with make() as arm:
        port = arm.ports[0]
        before = arm.phy.drop_counts([port], soon())[port]
        with must_raise(LabError):
            arm.phy.drop([port, 1_000_000], _DOWN_S, soon(), request_id=_fresh_id())
        assert arm.phy.drop_counts([port], soon())[port] == before
        arm.phy.drop([port], _DOWN_S, soon(), request_id=_fresh_id())


def refuses_a_deadline_that_is_over(make: PhyFactory) -> None:
    """A call that comes too late raises DeadlineExceeded and drops nothing."""
    with make() as arm:
        port = arm.ports[0]
        before = arm.phy.drop_counts([port], soon())[port]
        with must_raise(DeadlineExceeded):
            arm.phy.drop([port], _DOWN_S, past(), request_id=_fresh_id())
        assert arm.phy.drop_counts([port], soon())[port] == before


def answers_for_no_ports(make: PhyFactory) -> None:
    """Asking for the counts of no port gives none."""
    with make() as arm:
        assert arm.phy.drop_counts((), soon()) == {}


CONTRACT = clauses(__name__)


def _fresh_id() -> int:
    """An id no other request has: ids are asked for one at a time, and the clock never goes back."""
    return CLOCK.now_ns()


def _let_pass(seconds: float) -> None:
    CLOCK.sleep_until_ns(CLOCK.now_ns() + round(seconds * 1e9))
