"""Verdicts combine to the worst, and an exit status says whose fault it is."""

import pytest

from rackloop.measurement import Cause, Verdict, exit_code, worst

PASS, FAIL, UNKNOWN, BLOCKED, SKIPPED = Verdict


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([], SKIPPED),
        ([SKIPPED, SKIPPED], SKIPPED),
        ([PASS, SKIPPED], PASS),
        ([PASS, UNKNOWN], UNKNOWN),
        ([PASS, BLOCKED], BLOCKED),
        ([BLOCKED, UNKNOWN], UNKNOWN),
        ([UNKNOWN, FAIL, PASS], FAIL),
    ],
)
def test_the_worst_part_decides(parts: list[Verdict], whole: Verdict) -> None:
    assert worst(parts) is whole


@pytest.mark.parametrize(
    ("verdict", "causes", "status"),
    [
        (PASS, [], 0),
        (FAIL, [Cause.PRODUCT], 1),
        (FAIL, [Cause.PRODUCT, Cause.LAB], 1),
        (FAIL, [Cause.LAB], 3),
        (UNKNOWN, [], 3),
        (BLOCKED, [], 3),
        (SKIPPED, [], 3),
    ],
)
def test_exit_status(verdict: Verdict, causes: list[Cause | None], status: int) -> None:
    assert exit_code(verdict, causes) == status
