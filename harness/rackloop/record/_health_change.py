"""Changes in the health of a rack, and how they are judged."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rackloop.measurement import Cause
from rackloop.units import counted


class Judgement(StrEnum):
    """The judgement of a change: explained by the test or the plan, not explained, or of no consequence."""

    EXPECTED = "expected"
    UNEXPECTED = "unexpected"
    NOTED = "noted"


@dataclass(frozen=True)
class HealthChange:
    """Something that is not as it was. ``subject`` is a drive, a server, or a PHY of one; ``what`` a counter or a rule.

    Of kernel messages ``after`` is their number and ``sample`` the first of them. ``why`` says what an expected change
    comes from, and what an unexpected one means, which then has a ``cause``.
    """

    subject: str
    what: str
    before: int | str | None
    after: int | str | None
    judgement: Judgement
    cause: Cause | None = None
    why: str = ""
    sample: str = ""

    @property
    def difference(self) -> int | None:
        """The difference that a counter moved by; None for anything else."""
        return self.after - self.before if isinstance(self.before, int) and isinstance(self.after, int) else None

    def __str__(self) -> str:
        meaning = f": {self.why}" if self.why else ""
        if self.sample and self.after is not None:
            said = counted(int(self.after or 0), "kernel message")
            return f"{self.subject}: {said} of {self.what}, the first {self.sample!r}{meaning}"
        if self.after is None:
            return f"{self.subject}: {self.what}{meaning}{f' ({self.sample})' if self.sample else ''}"
        was = "not reported" if self.before is None else self.before
        return f"{self.subject}: {self.what} went from {was} to {self.after}{meaning}"
