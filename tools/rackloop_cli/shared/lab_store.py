"""The store of a lab, for commands that name the lab by a description."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from rackloop.clock import Clock
from rackloop.lab import Lab, LabState
from rackloop.safety.store import Store, open_lab_store
from rackloop_labs.described import require_described


@contextmanager
def opened_store(lab: Lab, clock: Clock) -> Iterator[Store]:
    """The lab's store, while the block runs.

    Raises BadInput where a lab of its name is up from another description, whose store it is, and what
    :func:`~rackloop.safety.store.open_lab_store` raises.
    """
    state = LabState.of(lab.name)
    require_described(lab, state)
    with closing(open_lab_store(lab, state, clock)) as store:
        yield store
