"""What the plans of the designs note of what happened: the rules judge what was, not what was meant to be."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from types import SimpleNamespace
from typing import Any

import pytest

from rackloop.data import data_path
from rackloop.measurement import Finding, Limit, Measurement, Verdict, judge
from rackloop_fixtures import TimeRatio
from rackloop_models.disaggregation import Assignment, Chosen, History, Mapped, Shape, complete_rules, judged
from tests.unit.models.lwfs_rack import SmallRack

SHAPE = Shape(("s1", "s2"), ("p0",), tuple(f"d{number}" for number in range(8)))


def plan(name: str) -> Any:
    """A test of the plan, as a module: it belongs to no package."""
    path = data_path("testplans") / "disaggregation" / f"test_{name}.py"
    spec = spec_from_file_location(f"plan_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)  # where its dataclasses look for their types
    spec.loader.exec_module(module)
    return module


COMPLETE = plan("complete")


@pytest.mark.parametrize(("chosen", "verdict"), [("s1", Verdict.PASS), ("s2", Verdict.FAIL)])
def test_the_server_of_an_io_is_the_one_that_answered_and_not_the_one_that_was_chosen(
    chosen: str, verdict: Verdict
) -> None:
    rack, history = SmallRack(), History()
    history.note(Mapped(0.0, "d1", "s1", "p0"))
    history.note(Chosen(rack.now_s, 1, "d1", chosen))
    service = SimpleNamespace(
        storage=SimpleNamespace(history=history, now_s=rack.wall_s),
        controller=SimpleNamespace(finished=lambda _assigned: None),
        assigned=Assignment(1, "d1", (chosen, "p0"), None, None),
        guard_s=0.0,
    )
    client = rack.client()
    file = client.open("notes")
    ios = COMPLETE.TimedIos(service, client)
    address = ios.do(file, "one", lambda: file.append(b"one"), b"one")
    ios.do(file, "one", lambda: file.read(address), b"one")
    verdicts = {judgement.rule: judgement.verdict for judgement in judged(complete_rules(SHAPE), history)}
    assert verdicts["the policy chooses for each I/O"] is verdict
    assert verdicts["a drive answers only while it is mapped"] is Verdict.PASS
    assert verdicts["no I/O is lost"] is Verdict.PASS


@pytest.mark.parametrize(("late_s", "verdict"), [(0.0, Verdict.FAIL), (0.5, Verdict.UNKNOWN)])
def test_an_overhead_that_may_be_the_machines_is_not_the_products(late_s: float, verdict: Verdict) -> None:
    ratios = [TimeRatio.of(0.6, 0.1, lambda _seconds: late_s)] * 20
    findings: list[Finding] = []

    def measure(name: str, samples: list[float], *, errors: list[float], **labels: str) -> None:
        limits = [Limit(name, quantile=0.5, maximum=5.0)]
        findings.extend(judge(Measurement.of(name, "1", samples, labels, errors=errors), limits, {}))

    COMPLETE._measure_overhead(measure, "lwfs.overhead", ratios, op="read", policy="any")
    assert [finding.verdict for finding in findings] == [verdict]
