"""The plans that characterize and qualify a drive, on the mock lab: what they conclude and the pages they leave."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.command_line import CommandLine, Results

# Whatever is measured counts as steady: a busy machine must not fail a test.
QUICK = {
    "drive": "d09",
    "active_range": "16 MiB",
    "seconds": "0.05",
    "most_rounds": "5",
    "excursion": "100",
    "slope": "100",
}


def run(rackloop: CommandLine, plan: str, changes: dict[str, str], status: int) -> Results:
    settings = [argument for key, value in changes.items() for argument in ("--set", f"{key}={value}")]
    ended = rackloop("run", plan, "--lab", "mock", "--out", "out", "--seed", "7", *settings)
    assert ended.status == status, ended
    return Results(rackloop.directory / "out")


def results_of(results: Results) -> dict[str, dict[str, Any]]:
    """Allure's results by test."""
    found = {}
    for path in (results.directory / "allure-results").glob("*-result.json"):
        result = json.loads(path.read_text())
        label = next(label["value"] for label in result["labels"] if label["name"] == "rackloop_test")
        found[label] = result
    return found


def test_the_characterization_of_a_drive_leaves_the_pages_that_its_readers_know(rackloop: CommandLine) -> None:
    rackloop.renders_reports = True
    small = {
        **QUICK,
        "blocks": "4 KiB",
        "read_percents": "100,0",
        "iodepths": "1,4",
        "round_seconds": "0.1",
        "most_seconds": "3",
        "overwrites": "100000",
    }
    results = run(rackloop, "characterize", small, 0)
    assert {test["verdict"] for test in results.tests().values()} == {"pass"}
    steady = "Steady state"
    pages = {
        "write_saturation": ["Write saturation"],
        "iops": ["IOPS by block size and mix", steady, steady],
        "throughput": ["Sequential throughput", steady, steady],
        "latency": ["Latency by block size and mix", steady, steady],
        "depth": ["Demand curve", steady, steady],
    }
    found = results_of(results)
    for name, expected in pages.items():
        attachments = [entry["name"] for entry in found[f"characterize/{name}::{name}"]["attachments"]]
        plots = [attached for attached in attachments if attached.endswith("(simulated)")]
        assert [plot[: len(start)] for plot, start in zip(plots, expected, strict=True)] == expected
    matrix = {
        (m["labels"]["block"], m["labels"]["mix"]): m["value"]
        for m in results.tests()["characterize/iops::iops"]["measurements"]
        if m["name"] == "steady.iops"
    }
    assert matrix.keys() == {("4 KiB", "100/0"), ("4 KiB", "0/100")}
    assert min(matrix.values()) > 0


def test_a_drive_is_taken_through_its_life(rackloop: CommandLine) -> None:
    rackloop.renders_reports = True
    results = run(rackloop, "qualify", QUICK, 0)
    (test,) = results.tests().values()
    measured = {(m["name"], m["labels"].get("counter")): m["value"] for m in test["measurements"]}
    assert [measured[f"life.{what}", None] for what in ("differs", "not_erased", "corrupt", "alarms")] == [0] * 4
    # Identified, filled twice, identified again, and what was measured: all of it counted by the drive.
    assert measured["health.change", "bytes_written"] > 4 * (16 << 20)
    assert measured["health.change", "media_errors"] == 0
    (seen,) = results.of_kind("drive.seen")
    assert (seen.drive, seen.serial, seen.identifiers["eui64"]) == ("d09", "00123456", "0025385b71b00009")
    acts = [act.what["do"] for act in results.of_kind("act.announced") if act.ability == "drive"]
    assert acts == ["sanitize"]
    (result,) = results_of(results).values()
    assert "Identity card" in result["descriptionHtml"]
    assert "<td>bytes_written</td>" in result["descriptionHtml"]


def test_a_drive_that_is_never_steady_is_unknown(rackloop: CommandLine) -> None:
    rackloop.renders_reports = True
    # No drive keeps to the same figure to the last digit.
    results = run(rackloop, "qualify", QUICK | {"excursion": "0", "slope": "0"}, 3)
    (test,) = results.tests().values()
    # On a machine whose cores were short meanwhile, nobody can tell whether it was the drive.
    assert test["verdict"] == "unknown"
    assert test["cause"] in {"test", "harness"}
    assert "no steady state in 5 rounds of 4 KiB at 0/100" in test["reason"]
    (result,) = results_of(results).values()
    assert any(entry["name"].startswith("Steady state convergence") for entry in result["attachments"])


@pytest.mark.parametrize("plan", ["characterize", "qualify"])
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"drive": "d19"}, "drive d19 is in no server's baseline"),
        ({"drive": "d99"}, "lab mock has no drive 'd99'; did you mean"),
        ({"drive": "d08", "active_range": "8 GiB"}, "drive d08 has 4 GiB, the test was given an active_range of 8 GiB"),
        ({"most_rounds": "2"}, "expected a whole number from 5 to 1000, found '2'"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is_touched(
    rackloop: CommandLine, plan: str, changes: dict[str, str], said: str
) -> None:
    settings = [argument for key, value in changes.items() for argument in ("--set", f"{key}={value}")]
    rackloop("run", plan, "--lab", "mock", "--out", "out", *settings).refused(2, said)
    assert not rackloop.processes()
