"""The specification of a fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class FaultSpec:
    """A fault of a kind on a target, as the lab names it: ``d01``, ``srv1``, ``srv1.p0``, ``switch``.

    ``parameters`` are values that JSON has; those not given keep the kind's defaults.
    """

    kind: str
    target: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind} of {self.target}"
