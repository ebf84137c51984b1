"""Faults as their phases tell of them: when each was made, first noticed and mended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rackloop.record import FaultPhase

_COMMANDED, _ACKNOWLEDGED, _EFFECT, _HEALED = "commanded", "acknowledged", "effect", "healed"


@dataclass(frozen=True)
class BrokenPart:
    """One fault of a test, put together from its phases, by their names; a phase that nobody saw is absent."""

    test: str
    number: int
    phases: dict[str, FaultPhase]

    @property
    def kind(self) -> str:
        """The kind of fault."""
        return self._any.fault_kind

    @property
    def target(self) -> str:
        """What was broken."""
        return self._any.target

    @property
    def parameters(self) -> dict[str, Any]:
        """How it was broken."""
        return dict(self._any.parameters)

    @property
    def began_ns(self) -> int:
        """When it was asked for."""
        return self._any.at_ns

    @property
    def stood(self) -> bool:
        """Whether the equipment said that it was broken."""
        return _ACKNOWLEDGED in self.phases

    @property
    def effect(self) -> FaultPhase | None:
        """What was first seen of it."""
        return self.phases.get(_EFFECT)

    @property
    def healed_ns(self) -> int | None:
        """When it was mended; None where nobody saw that."""
        healed = self.phases.get(_HEALED)
        return healed.at_ns if healed is not None else None

    @property
    def _any(self) -> FaultPhase:
        return self.phases.get(_COMMANDED) or next(iter(self.phases.values()))


def broken_parts(phases: Iterable[FaultPhase]) -> list[BrokenPart]:
    """The faults that these phases are of, in the order they were made."""
    found: dict[tuple[str, int], dict[str, FaultPhase]] = {}
    for phase in phases:
        found.setdefault((phase.test, phase.fault), {}).setdefault(phase.phase, phase)
    parts = [BrokenPart(test, number, its) for (test, number), its in found.items()]
    return sorted(parts, key=lambda part: (part.began_ns, part.number))
