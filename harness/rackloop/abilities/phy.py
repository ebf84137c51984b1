"""The signal of ports: taking it away, giving it back, training links anew."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, runtime_checkable

from rackloop.clock import Deadline


@runtime_checkable
class PhyControl(Protocol):
    """Takes the signal away from ports for a time. A repeated ``request_id`` does nothing."""

    def drop(self, ports: Collection[int], down_s: float, deadline: Deadline, *, request_id: int) -> None: ...
    def flap(
        self, ports: Collection[int], down_s: float, up_s: float, count: int, deadline: Deadline, *, request_id: int
    ) -> None: ...
    def drop_counts(self, ports: Collection[int], deadline: Deadline) -> dict[int, int]: ...


@runtime_checkable
class SignalRestorer(Protocol):
    """A PhyControl that can end its drops and flaps early: what is left of those of ``ports`` is forgotten."""

    def restore(self, ports: Collection[int], deadline: Deadline) -> None: ...


@runtime_checkable
class LinkReset(Protocol):
    """Has ports train their links anew; ``is_hard`` resets what is at their other ends too (SAS hard reset)."""

    def reset_link(self, ports: Collection[int], deadline: Deadline, *, is_hard: bool = False) -> None: ...
