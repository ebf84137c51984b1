"""Why a test is no pass stands in the text of every report, and so does how busy the machine was."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from rackloop.measurement import Cause, MachineLoad, Verdict
from rackloop.record import Measured
from rackloop_reports.attachments import description_html
from rackloop_reports.junit import to_junit
from rackloop_reports.metrics import metrics_of
from rackloop_reports.overview import overview_html
from rackloop_reports.reasons import reasons
from rackloop_reports.record import RunRecord, read_run
from rackloop_reports.summary import summarize, to_json
from rackloop_reports.terminal import print_summary
from tests.unit.reports.example_stream import ExampleRun

REASON = "p99 is <28.8 ms>, but the measuring machine was late"
LOAD = MachineLoad(wall_s=10.0, wait_s=0.138, late_share=0.1, pressure=0.25, steal=None, rackd_s=None)


def ran(run_dir: Path, verdict: str, cause: str | None, *, lab_kind: str = "mock") -> RunRecord:
    example = ExampleRun(run_dir, lab_kind=lab_kind)
    example.start("a/b", "do it")
    example.write(
        Measured("a/b", "a.stall", {}, "s", 1, "max", 0.518, None, None, None, None, None, None, [0.518], [1])
    )
    example.finish("a/b", verdict, cause, REASON, load=LOAD)
    return read_run(example.close(verdict, 3))


def shown(run: RunRecord, *, everything: bool = False) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        print_summary(summarize(run), console, everything=everything)
    return captured.get()


@pytest.mark.parametrize(
    ("verdict", "cause"), [("unknown", "harness"), ("blocked", "lab"), ("skipped", None), ("fail", "product")]
)
def test_the_reason_is_the_first_a_reader_sees(tmp_path: Path, verdict: str, cause: str | None) -> None:
    run = ran(tmp_path, verdict, cause)
    html = description_html(run.tests[0], run, None)
    assert html.startswith(f"<p><b>{verdict.upper()}")
    assert html.count("the measuring machine was late") == 1
    assert html.index("&lt;28.8 ms&gt;, but the measuring machine was late") < html.index("This test will")
    (told,) = json.loads(to_json(summarize(run)))["tests"]
    assert told["reason"] == REASON
    assert REASON.replace("<", "&lt;").replace(">", "&gt;") in to_junit(run).decode()
    assert REASON in shown(run)


def test_how_busy_the_machine_was_is_told_of_each_test(tmp_path: Path) -> None:
    run = ran(tmp_path, "pass", None)
    said = "a ready thread waited up to 138 ms for a core; for 25.0% of the time some task waited for one"
    assert said in description_html(run.tests[0], run, None)
    assert said in to_junit(run).decode()
    (told,) = json.loads(to_json(summarize(run)))["tests"]
    assert (told["load"]["wait_s"], told["load"]["pressure"], told["load"]["steal"]) == (0.138, 0.25, None)


def test_a_maximum_has_no_interval_in_any_report(tmp_path: Path) -> None:
    run = ran(tmp_path, "pass", None)
    (told,) = json.loads(to_json(summarize(run)))["tests"]
    assert told["measurements"][0]["ci95"] is None
    html = description_html(run.tests[0], run, None)
    assert "<td>518 ms</td><td></td>" in html
    assert "a.stall max = 518 ms (n = 1)" in to_junit(run).decode()
    assert "a.stall max 518 ms" in [line.strip() for line in shown(run, everything=True).splitlines()]
    assert [metric["value"] for metric in metrics_of(run)] == [518.0]


@pytest.mark.parametrize(("lab_kind", "said"), [("mock", "simulated product"), ("physical", "product")])
def test_a_simulated_product_is_called_that(tmp_path: Path, lab_kind: str, said: str) -> None:
    run = ran(tmp_path, "fail", "product", lab_kind=lab_kind)
    assert f"{said}: {REASON}" in shown(run)
    assert f"<b>FAIL, cause {said}:</b>" in description_html(run.tests[0], run, None)
    assert summarize(run).tests[0].cause == "product"


def test_what_is_blocked_by_the_same_refers_to_the_first(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    for test in ("a/b", "a/c"):
        example.start(test, "do it")
        example.finish(test, "blocked", "lab", "the pdu is dead")
    run = read_run(example.close("blocked", 3))
    assert shown(run).count("the pdu is dead") == 1
    assert "lab: as a/b" in shown(run)
    assert [test.reason for test in summarize(run).tests] == ["the pdu is dead"] * 2


def test_each_limit_that_was_not_kept_has_a_line_of_its_own(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.start("a/b", "do it")
    told = []
    for server in ("srv1", "srv2"):
        reason = f"{server} was late; by much"
        limits, labels = {"max": 1.0}, {"server": server}
        example.write(
            Measured(
                "a/b", "a.stall", labels, "s", 1, "max", 2.0, None, None, None, limits, "unknown", reason, [2.0], [1]
            )
        )
        told.append(f"a.stall{{server={server}}}: {reason}")
    example.finish("a/b", "unknown", "harness", "; ".join(told))
    run = read_run(example.close("unknown", 3))
    lines = (
        "<li>a.stall (server=srv1): srv1 was late; by much</li><li>a.stall (server=srv2): srv2 was late; by much</li>"
    )
    assert f"<ul>{lines}</ul>" in description_html(run.tests[0], run, None)
    assert f"<b>unknown, cause harness</b><ul>{lines}</ul>" in overview_html(run, [], {})


def test_what_was_missed_in_a_test_that_is_unknown_is_not_said_to_be_why(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.start("a/b", "do it")
    example.write(
        Measured("a/b", "a.stall", {}, "s", 1, "max", 2.0, None, None, None, {"max": 1.0}, "fail", "late", [2.0], [1])
    )
    example.finish("a/b", "unknown", "lab", "the pdu is dead;\nsee its page; before that: a.stall: late")
    told = [line.strip() for line in shown(read_run(example.close("unknown", 3))).splitlines()]
    assert told[told.index("a.stall: late") - 1].startswith("lab: the pdu is dead; see its page")


def test_the_cause_of_a_test_stands_before_what_it_is_the_cause_of(tmp_path: Path) -> None:
    """Too few samples are the test's: a machine that was late is not why they are too few."""
    example = ExampleRun(tmp_path)
    example.start("a/b", "do it")
    few = Measured(
        "a/b", "a.share", {}, "1", 3, "p50", 2.0, None, None, None, {"max": 1.0}, "unknown", "few", [2.0], [3], "test"
    )
    example.write(few)
    example.finish("a/b", "unknown", "harness", "no steady state")
    run = read_run(example.close("unknown", 3))
    told = [line.strip() for line in shown(run).splitlines()]
    assert told[told.index("a.share: few") - 1] == "harness: no steady state"


@pytest.mark.parametrize(
    ("told", "left"),
    [
        ("assert 0; besides, {0}; besides, {0}", "assert 0"),
        ("assert 0; besides, {0}; besides, the port is stuck", "assert 0; besides, the port is stuck"),
        ("{0}; besides, the port is stuck", "besides, the port is stuck"),
        ("{0}", None),
    ],
)
def test_a_measurement_that_is_told_by_itself_leaves_nothing_of_its_place(told: str, left: str | None) -> None:
    late = Measured(
        "a/b", "a.stall", {}, "s", 1, "max", 3.0, None, None, None, None, "fail", "the max is 3 s", [3.0], [1]
    )
    found = reasons(Verdict.FAIL, Cause.PRODUCT, told.format("a.stall: the max is 3 s"), [late] * told.count("{0}"))
    assert [reason.text for reason in found if not reason.text.startswith("a.stall")] == ([left] if left else [])
