"""The agreement of virtual and real time: pass, fail, and unknown where the machine did not keep up."""

from __future__ import annotations

import math

import pytest

from rackloop.measurement import MachineLoad, Verdict
from rackloop_oracles.fairness import TOLERANCE, Lateness, RealRun, agreement

VIRTUAL = {"a": 1.0, "b": 0.5}
QUIET = MachineLoad(wall_s=5.0, wait_s=0.001, late_share=0.01, pressure=0.02, steal=0.0)


def run(name: str = "together", late_us: float = 10.0, load: MachineLoad = QUIET) -> RealRun:
    """A run with a mean latency of 2 ms."""
    return RealRun(name, Lateness(late_us * 1e3, late_us * 1e3, late_us * 1e3), 2e6, load)


def test_shares_within_the_tolerance_agree() -> None:
    found = agreement(VIRTUAL, {"a": 1.04, "b": 0.48}, [run(), run("a alone")])
    assert (found.verdict, found.reason) == (Verdict.PASS, None)
    assert found.differences == pytest.approx({"a": 0.04, "b": -0.04})


@pytest.mark.parametrize("share", [1.06, 0.94, 0.0, math.nan])
def test_one_tenant_apart_is_a_failure(share: float) -> None:
    found = agreement(VIRTUAL, {"a": share, "b": 0.5}, [run()])
    assert found.verdict is Verdict.FAIL
    assert found.reason is not None
    assert "a " in found.reason
    assert "b " not in found.reason.partition(": ")[2]


@pytest.mark.parametrize(
    ("late", "said"),
    [
        (run("b alone", late_us=150.0), "late by 7.5%"),
        (run("b alone", load=MachineLoad(5.0, 0.2, 0.06)), "waited up to 200 ms"),
        (run("b alone", load=MachineLoad(5.0, 0.001, 0.01, pressure=0.3)), "30.0% of the time some task waited"),
        (run("b alone", load=MachineLoad(5.0, 0.001, 0.01, steal=0.1)), "the hypervisor had it"),
        (run("b alone", late_us=math.nan), "b alone"),
    ],
)
@pytest.mark.parametrize("real", [VIRTUAL, {"a": 0.1, "b": 3.0}])
def test_a_machine_that_is_late_in_one_run_gives_no_figure(late: RealRun, said: str, real: dict[str, float]) -> None:
    found = agreement(VIRTUAL, real, [run(), late])
    assert (found.verdict, found.differences) == (Verdict.UNKNOWN, {})
    assert found.reason is not None
    assert "b alone" in found.reason
    assert said in found.reason
    assert "together" not in found.reason


def test_nothing_that_was_run_is_unknown() -> None:
    assert agreement(VIRTUAL, VIRTUAL, []).verdict is Verdict.UNKNOWN


def test_lateness_is_bounded_by_its_quantiles() -> None:
    assert Lateness(10.0, 100.0, 1000.0).mean_ns == pytest.approx(64.0)
    assert run(late_us=2e3 * TOLERANCE).taken == pytest.approx(TOLERANCE)


def test_other_tenants_and_none_are_refused() -> None:
    with pytest.raises(ValueError, match="tenants in virtual time"):
        agreement(VIRTUAL, {"a": 1.0}, [run()])
    with pytest.raises(ValueError, match="tenants in virtual time"):
        agreement({}, {}, [run()])
    with pytest.raises(ValueError, match="without a share"):
        agreement({"a": 0.0}, {"a": 1.0}, [run()])
