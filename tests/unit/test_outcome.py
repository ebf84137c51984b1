"""From an exception to a verdict with its cause; from phases to the outcome of a test."""

import pytest

from rackloop.errors import BadInput, DeadlineExceeded, GuardRefused, NotSupported, ProductFailed, ToolError
from rackloop.measurement import Cause, Distribution, Limit, Measurement, Verdict, judge
from rackloop.record import HealthChange, Judgement
from rackloop_fixtures._outcome import (
    BenchBroken,
    HealthChanged,
    LimitsFailed,
    LimitsUnknown,
    Outcome,
    combine,
    judged,
    of_exception,
)


@pytest.mark.parametrize(
    ("error", "verdict", "cause"),
    [
        (AssertionError("x"), Verdict.UNKNOWN, Cause.HARNESS),
        (ProductFailed("x"), Verdict.FAIL, Cause.PRODUCT),
        (LimitsFailed("x"), Verdict.FAIL, Cause.PRODUCT),
        (LimitsUnknown("x"), Verdict.UNKNOWN, Cause.TEST),
        (LimitsUnknown("x", Cause.HARNESS), Verdict.UNKNOWN, Cause.HARNESS),
        (BenchBroken("x"), Verdict.BLOCKED, Cause.LAB),
        (DeadlineExceeded("x"), Verdict.UNKNOWN, Cause.LAB),
        (ToolError("x"), Verdict.UNKNOWN, Cause.HARNESS),
        (BadInput("x"), Verdict.UNKNOWN, Cause.TEST),
        (GuardRefused("d01", ["x"]), Verdict.UNKNOWN, Cause.TEST),
        (ZeroDivisionError("x"), Verdict.UNKNOWN, Cause.HARNESS),
        (KeyboardInterrupt(), Verdict.UNKNOWN, Cause.HARNESS),
        (NotSupported("x"), Verdict.SKIPPED, None),
        (pytest.skip.Exception("x"), Verdict.SKIPPED, None),
    ],
)
def test_outcome_of_an_exception(error: BaseException, verdict: Verdict, cause: Cause | None) -> None:
    outcome = of_exception(error)
    assert (outcome.verdict, outcome.cause) == (verdict, cause)


def moved(cause: Cause, drive: str = "d01") -> HealthChange:
    return HealthChange(drive, "phy_resets", 1, 2, Judgement.UNEXPECTED, cause, "the link was lost")


def test_health_that_changed_fails_with_the_labs_cause_where_any_change_is_the_labs() -> None:
    alone = HealthChanged([moved(Cause.PRODUCT)])
    assert of_exception(alone) == Outcome(
        Verdict.FAIL, Cause.PRODUCT, "the rack's health changed: d01: phy_resets went from 1 to 2: the link was lost"
    )
    both = of_exception(HealthChanged([moved(Cause.PRODUCT, "d01"), moved(Cause.LAB, "d02")]))
    assert (both.verdict, both.cause) == (Verdict.FAIL, Cause.LAB)
    assert both.reason is not None
    assert both.reason.index("d02") < both.reason.index("d01")


def test_a_rack_that_changed_all_over_is_told_by_a_few() -> None:
    told = str(HealthChanged([moved(Cause.LAB, f"d{number}") for number in range(9)]))
    assert told.endswith("; and 4 more")


def test_health_that_changed_turns_a_pass_into_a_failure_and_clears_the_product_of_the_labs() -> None:
    labs = of_exception(HealthChanged([moved(Cause.LAB)]))
    assert combine([Outcome(Verdict.PASS), labs]) == labs
    assert combine([Outcome(Verdict.FAIL, Cause.PRODUCT, "slow"), labs]).verdict is Verdict.UNKNOWN


def test_a_tear_down_that_failed_makes_a_pass_unknown() -> None:
    undo_failed = Outcome(Verdict.UNKNOWN, Cause.LAB, "not given back")
    assert combine([Outcome(Verdict.PASS), undo_failed]) == undo_failed


def test_a_failure_outranks_what_went_wrong_afterwards() -> None:
    failed = Outcome(Verdict.FAIL, Cause.PRODUCT, "slow")
    assert combine([failed, Outcome(Verdict.UNKNOWN, Cause.HARNESS, "later")]) == failed


def test_a_failure_on_a_lab_that_proves_broken_is_not_the_products() -> None:
    failed = Outcome(Verdict.FAIL, Cause.PRODUCT, "slow")
    outcome = combine([failed, Outcome(Verdict.UNKNOWN, Cause.LAB, "the switch is gone")])
    assert outcome == Outcome(Verdict.UNKNOWN, Cause.LAB, "the switch is gone; before that: slow")


@pytest.mark.parametrize(
    ("samples", "raised"), [([0.003] * 400, LimitsFailed), ([0.001] * 50, LimitsUnknown), ([0.001] * 400, None)]
)
def test_findings_decide_beside_assertions(samples: list[float], raised: type[Exception] | None) -> None:
    limit = Limit("remap.latency", quantile=0.99, maximum=0.002, text="max 2 ms")
    findings = judge(Measurement("remap.latency", "s", Distribution.of(samples), {"stack": "comreset"}), [limit], {})
    if raised is None:
        judged(findings)
        return
    with pytest.raises(raised, match=r"remap\.latency\{stack=comreset\}"):
        judged(findings)
