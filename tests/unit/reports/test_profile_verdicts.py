"""The verdict on each profile of drives: what is judged of it, and what could not be decided."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rackloop.record import Measured
from rackloop_reports.overview import overview_html
from rackloop_reports.profile_verdicts import profile_verdicts
from rackloop_reports.record import RunRecord, read_run
from rackloop_reports.summary import summarize, to_json
from rackloop_reports.terminal import print_summary
from tests.unit.reports.example_stream import ExampleRun

Judged = Sequence[tuple[str, str | None]]
"""Measurements of a test: the profile, and the verdict of the limit if there is one."""


def measured(test: str, profile: str, verdict: str | None) -> Measured:
    limits: Mapping[str, Any] | None = {"min": 0.5} if verdict else None
    labels = {"profile": profile} if profile else {}
    distribution = {"n": 5, "quantile": "mean", "value": 0.9, "ci95": (0.8, 1.0), "values": [0.9], "counts": [5]}
    judged = {"p50": None, "p99": None, "limits": limits, "verdict": verdict, "reason": None}
    return Measured(test=test, name="fairness.jain", labels=labels, unit="1", **distribution, **judged)  # type: ignore[arg-type]


def run_of(folder: Path, *tests: tuple[str, Judged]) -> RunRecord:
    """A run of tests, each with its verdict and what it measured."""
    example = ExampleRun(folder)
    for number, (verdict, measurements) in enumerate(tests):
        example.start(f"tenancy/t{number}::t", "share a drive")
        for profile, of_limit in measurements:
            example.write(measured(f"tenancy/t{number}::t", profile, of_limit))
        cause = None if verdict == "pass" else "product"
        example.finish(f"tenancy/t{number}::t", verdict, cause, None if cause is None else "as it is")
    example.close()
    return read_run(folder)


@pytest.mark.parametrize(
    ("tests", "verdicts"),
    [
        ([("pass", [("nvme", "pass"), ("nvme", None)])], {"nvme": "pass"}),
        ([("fail", [("nvme", "pass"), ("hdd", "fail")])], {"nvme": "pass", "hdd": "fail"}),
        ([("unknown", [("nvme", "pass"), ("hdd", "unknown")])], {"nvme": "pass", "hdd": "unknown"}),
        # It never became steady, whatever it kept until then.
        ([("unknown", [("nvme", "pass")])], {"nvme": "unknown"}),
        ([("unknown", [("nvme", "fail")])], {"nvme": "unknown"}),
        ([("unknown", [("nvme", "fail"), ("hdd", "unknown")])], {"nvme": "unknown", "hdd": "unknown"}),
        ([("pass", [("nvme", None)])], {"nvme": "unknown"}),
        ([("pass", [("nvme", "pass")]), ("fail", [("nvme", "fail")])], {"nvme": "fail"}),
        ([("pass", [("", "pass")])], {}),
    ],
)
def test_each_profile_has_the_worst_of_what_was_found_of_it(
    tmp_path: Path, tests: list[tuple[str, Judged]], verdicts: Mapping[str, str]
) -> None:
    assert profile_verdicts(run_of(tmp_path, *tests).tests) == verdicts


def test_a_limit_that_is_not_why_a_test_is_unknown_leaves_all_its_profiles_unknown(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.start("tenancy/t::t", "share a drive")
    example.write(replace(measured("tenancy/t::t", "hdd", "unknown"), reason="the interval straddles the limit"))
    example.write(measured("tenancy/t::t", "nvme", "pass"))
    example.finish("tenancy/t::t", "unknown", "product", "no steady state in 30 rounds")
    assert profile_verdicts(read_run(example.close()).tests) == {"hdd": "unknown", "nvme": "unknown"}


def test_every_view_of_a_run_has_them(tmp_path: Path) -> None:
    run = run_of(tmp_path, ("fail", [("nvme-ssd", "pass"), ("sata-hdd", "fail")]))
    summary = summarize(run)
    assert json.loads(to_json(summary))["profiles"] == {"nvme-ssd": "pass", "sata-hdd": "fail"}
    console = Console(record=True, width=100, force_terminal=False)
    print_summary(summary, console)
    said = console.export_text()
    assert "PASS profile nvme-ssd\nFAIL profile sata-hdd\n" in said
    page = overview_html(run, [], {})
    assert "<h2>Drive profiles</h2>" in page
    assert page.index("<td>nvme-ssd</td>") < page.index("<td>sata-hdd</td>")


def test_a_run_without_profiles_says_nothing_of_them(tmp_path: Path) -> None:
    run = run_of(tmp_path, ("pass", [("", "pass")]))
    assert "profiles" not in json.loads(to_json(summarize(run)))
    assert "Drive profiles" not in overview_html(run, [], {})
