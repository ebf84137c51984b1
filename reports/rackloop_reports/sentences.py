"""Verdicts in a sentence: of a test with its closest limit, of a whole run with what it missed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from rackloop.measurement import Verdict
from rackloop.record import Measured
from rackloop.units import counted
from rackloop_reports.formatting import cause_text, is_provisioning, is_test, limit_text, measure_text, value_text
from rackloop_reports.record import RunRecord, TestRecord

_MOST_MISSED = 3


def verdict_sentence(test: TestRecord, *, is_simulated: bool) -> str:
    """``PASS: 37 limits kept, the closest: undisturbed.stall max 7.35 ms, limit max 1 s (0.7% of it)``."""
    limited = [measured for measured in test.measurements if measured.limits]
    missed = [measured for measured in limited if measured.verdict == Verdict.FAIL]
    doubtful = [measured for measured in limited if measured.verdict == Verdict.UNKNOWN]
    kept = len(limited) - len(missed) - len(doubtful)
    parts = []
    if missed:
        parts.append(f"{counted(len(missed), 'limit')} {missed_word(test.verdict)}{_listed(missed, test)}")
    if doubtful:
        parts.append(f"{counted(len(doubtful), 'limit')} not decided{_listed(doubtful, test)}")
    if kept:
        parts.append(f"{counted(kept, 'limit')} kept{_closest_text(limited)}")
    if not limited:
        parts.append("no limits")
    return f"{_verdict_words(test, is_simulated=is_simulated)}: {'; '.join(parts)}."


def missed_word(verdict: Verdict) -> str:
    """The word for limits that were missed in a test with this verdict: of one that is no fail they prove nothing."""
    return "missed" if verdict is Verdict.FAIL else "missed but held against nothing"


def run_sentence(run: RunRecord) -> str:
    """``FAIL: 1 of 5 limits missed, in Remap latency; 7 of 8 tests passed``, for people who read no more than that."""
    verdicts = Counter(test.verdict for test in run.tests if is_test(test.id))
    limited = [measured for test in run.tests for measured in test.measurements if measured.limits]
    # What a test measured that failed for none of it is held against nothing.
    failed = [test for test in run.tests if test.verdict is Verdict.FAIL]
    missed = sum(measured.verdict == Verdict.FAIL for test in failed for measured in test.measurements)
    parts = []
    doubtful = sum(measured.verdict == Verdict.UNKNOWN for measured in limited)
    if missed:
        parts.append(f"{missed} of {counted(len(limited), 'limit')} missed")
    elif doubtful and run.verdict is Verdict.UNKNOWN:
        parts.append(f"{doubtful} of {counted(len(limited), 'limit')} not decided")
    elif limited and run.verdict is Verdict.PASS:
        parts.append(f"all {counted(len(limited), 'limit')} kept")
    parts.append(f"{verdicts[Verdict.PASS]} of {counted(verdicts.total(), 'test')} passed")
    parts += [
        f"{verdicts[verdict]} {word}"
        for verdict, word in (
            (Verdict.FAIL, "failed"),
            (Verdict.UNKNOWN, "not conclusive"),
            (Verdict.BLOCKED, "blocked"),
            (Verdict.SKIPPED, "skipped"),
        )
        if verdicts[verdict]
    ]
    parts += [
        f"{test.id} {test.verdict}" for test in run.tests if is_provisioning(test.id) and test.verdict != Verdict.PASS
    ]
    parts += ["the run was interrupted"] if run.finished is not None and run.finished.interrupted else []
    parts += ["the run was killed"] if run.finished is None else []
    return f"{run.verdict.upper()}: {', '.join(parts)}."


def closest_limit(measurements: Sequence[Measured]) -> Measured | None:
    """The measurement nearest to its limit, as a share of it, among those that are not required to be 0; None if none.

    One that missed its limit is nearer than any that kept it.
    """
    candidates = [measured for measured in measurements if share_of_limit(measured) is not None]
    return max(candidates, key=lambda measured: share_of_limit(measured) or 0.0, default=None)


def share_of_limit(measured: Measured) -> float | None:
    """The share of its limit that a measurement takes, 1 at the limit; None where the limit is 0 or missing."""
    limits = measured.limits or {}
    shares = []
    if limits.get("max"):
        shares.append(measured.value / float(limits["max"]))
    if limits.get("min"):
        shares.append(float(limits["min"]) / measured.value if measured.value > 0 else math.inf)
    return max(shares, default=None)


def limited_text(measured: Measured) -> str:
    """``remap.latency (stack=comreset) p99 8.71 ms, limit max 5 ms``."""
    what = measure_text(measured.name, measured.labels)
    value, limit = value_text(measured.value, measured.unit), limit_text(measured.limits, measured.unit)
    return f"{what} {measured.quantile} {value}, limit {limit}"


def _closest_text(limited: Sequence[Measured]) -> str:
    closest = closest_limit([measured for measured in limited if measured.verdict == Verdict.PASS])
    if closest is None:
        return ""
    share = share_of_limit(closest) or 0.0
    return f", the closest: {limited_text(closest)} ({share:.1%} of it)"


def _listed(measurements: Sequence[Measured], test: TestRecord) -> str:
    """The first of ``measurements``; empty where the reason of the test names them already."""
    if all(measured.reason and measured.reason in (test.reason or "") for measured in measurements):
        return ""
    more = f"; and {len(measurements) - _MOST_MISSED} more" if len(measurements) > _MOST_MISSED else ""
    return ": " + "; ".join(limited_text(measured) for measured in measurements[:_MOST_MISSED]) + more


def _verdict_words(test: TestRecord, *, is_simulated: bool) -> str:
    cause = f", cause {cause_text(test.cause, is_simulated=is_simulated)}" if test.cause else ""
    return f"{test.verdict.upper()}{cause}"
