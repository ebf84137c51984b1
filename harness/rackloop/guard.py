"""The destructive guard."""

from __future__ import annotations

from typing import Protocol

from rackloop.errors import BadInput


class Disturbable(Protocol):
    """What must be known of a lab before it is disturbed."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def kind(self) -> str: ...  # noqa: D102


def require_may_disturb(lab: Disturbable) -> None:
    """Refuse to disturb a physical lab: until leases exist, nothing keeps two people off one rack."""
    if lab.kind == "physical":
        raise BadInput(
            f"lab {lab.name} is physical: Rackloop refuses every write and every fault there until labs can be leased; "
            "run the plan on a mock or virtual lab"
        )
