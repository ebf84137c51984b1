"""Verdicts of runs, tests and measurements, and causes of those that are not a pass."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from rackloop import errors


class Verdict(StrEnum):
    """The answer to a question put to the rack. Unknown is never green."""

    PASS = "pass"  # noqa: S105 - not a password
    FAIL = "fail"
    UNKNOWN = "unknown"
    BLOCKED = "blocked"
    SKIPPED = "skipped"


class Cause(StrEnum):
    """The cause of a verdict that is not a pass."""

    PRODUCT = "product"
    TEST = "test"
    HARNESS = "harness"
    LAB = "lab"


_WORST_FIRST = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.BLOCKED, Verdict.PASS, Verdict.SKIPPED)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a whole from those of its parts; of nothing at all it is skipped.

    A fail outranks what is not known, which outranks a pass; skipped parts do not count unless all are.
    """
    return min(verdicts, key=_WORST_FIRST.index, default=Verdict.SKIPPED)


def exit_code(verdict: Verdict, causes: Iterable[Cause | None]) -> int:
    """The exit status of a run: 0 pass, 1 a product failed, 3 anything the run could not answer.

    ``causes`` are those of the tests that failed: a failure that no product caused is not the product's.
    """
    if verdict is Verdict.PASS:
        return errors.EXIT_PASS
    if verdict is Verdict.FAIL and Cause.PRODUCT in set(causes):
        return errors.EXIT_PRODUCT_FAILED
    return errors.EXIT_LAB_FAILED
