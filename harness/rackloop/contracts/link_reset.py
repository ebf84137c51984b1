"""The contract of every :class:`~rackloop.abilities.LinkReset` with its callers.

The factory gives the reset of a box together with at least two ports that have a signal, and what counts their resets.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from rackloop.abilities import LinkReset, PortState
from rackloop.contracts._clause import clauses, must_raise, past, soon
from rackloop.errors import DeadlineExceeded, LabError


@dataclass(frozen=True)
class ResetArm:
    """A box, the ports on it that may be reset, and how often each was and whether it has a signal."""

    reset: LinkReset
    ports: tuple[int, ...]
    counts: Callable[[], dict[int, int]]
    states: Callable[[], dict[int, PortState]]


ResetFactory = Callable[[], AbstractContextManager[ResetArm]]


def resets_its_port_alone(make: ResetFactory) -> None:
    """A link that is reset loses its signal once and has it again; another's does not."""
    with make() as arm:
        port, other, *_ = arm.ports
        before = arm.counts()
        for is_hard in (False, True):
            at_least = arm.counts()[port] + 1
            arm.reset.reset_link([port], soon(), is_hard=is_hard)
            _until(lambda at_least=at_least: arm.counts()[port] >= at_least, "the link was never lost")  # type: ignore[misc]
            _until(lambda: arm.states()[port] is PortState.UP, "the link did not come up")
        assert arm.counts()[other] == before[other]


def resets_several_ports_at_once(make: ResetFactory) -> None:
    """One call may name several ports; each counts."""
    with make() as arm:
        before = arm.counts()
        arm.reset.reset_link(arm.ports, soon())
        _until(lambda: all(count > before[port] for port, count in arm.counts().items()), "not all were lost")
        _until(lambda: set(arm.states().values()) == {PortState.UP}, "not all came up")


def refuses_a_port_that_is_not_there(make: ResetFactory) -> None:
    """A port the box does not have is a LabError, and nothing is reset."""
    with make() as arm:
        before = arm.counts()
        with must_raise(LabError, "1000000"):
            arm.reset.reset_link([arm.ports[0], 1_000_000], soon())
        assert arm.counts() == before


def refuses_a_deadline_that_is_over(make: ResetFactory) -> None:
    """A call that comes too late raises DeadlineExceeded and resets nothing."""
    with make() as arm:
        before = arm.counts()
        with must_raise(DeadlineExceeded):
            arm.reset.reset_link(arm.ports, past())
        assert arm.counts() == before


CONTRACT = clauses(__name__)


def _until(is_so: Callable[[], bool], otherwise: str) -> None:
    assert soon().poll(is_so, every_s=1e-3), otherwise
