"""The first screen of a report, and the trends that it goes into."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rackloop.record import DriveSeen, EnvironmentSeen
from rackloop.record.acts import AskGuard
from rackloop_reports.allure import generate
from rackloop_reports.allure_process import AllureStart
from rackloop_reports.allure_results import case_id_of, complete, environment_of
from rackloop_reports.drives_used import drives_used
from rackloop_reports.overview import MOST_DRIVES, MOST_TESTS, overview_html
from rackloop_reports.plot_selection import Plot
from rackloop_reports.record import RunRecord, read_run
from rackloop_reports.run_history import history_of
from tests.unit.reports.example_stream import ExampleRun

ALLURE = """#!{python}
import json, pathlib, sys
config = json.load(sys.stdin)
pathlib.Path(config["output"]).mkdir()
pathlib.Path(config["output"], "index.html").write_text("<html><body><div id=app></div></body></html>")
entry = dict(name=config["name"], timestamp=1, testResults={{"case.digest": dict(id="page-1")}})
with open(config["historyPath"], "a") as file:
    file.write(json.dumps(entry) + "\\n")
"""


def a_run(run_dir: Path, *, qualified: str = "", failing: bool = False) -> RunRecord:
    example = ExampleRun(run_dir)
    example.start("fabric/undisturbed_io::undisturbed_io", "disturb nothing")
    example.act("fabric/undisturbed_io::undisturbed_io", AskGuard("d02", "/dev/sda"), "d02")
    example.measure("fabric/undisturbed_io::undisturbed_io", "stall", "s", [0.5] * 20, maximum=1.0)
    example.finish("fabric/undisturbed_io::undisturbed_io")
    example.start("a/b", "fail")
    if qualified:
        example.write(DriveSeen("a/b", "d03", "srv1", "p2", "RL SSD 1", qualified, "2.0", "sata", 8 << 30, {}, []))
    example.finish("a/b", *(("fail", "product", "the drive said <no>") if failing else ("pass",)))
    return read_run(example.close("fail" if failing else "pass", int(failing)))


def test_the_first_screen_says_what_failed_of_which_drives(tmp_path: Path) -> None:
    run = a_run(tmp_path, qualified="00123456", failing=True)
    case = hashlib.md5(case_id_of(run, "a/b").encode(), usedforsecurity=False).hexdigest()
    html = overview_html(run, [Plot("Throughput", "svg", b"<svg/>")], {case: "page-7"})
    assert re.search(r"<h1>FAIL: 1 of 2 tests passed, 1 failed\.</h1>", html)
    assert (
        '<a href="#page-7">B of S/N 00123456</a>: <b>fail, cause simulated product</b>, the drive said &lt;no&gt;'
        in html
    )
    assert "<td>d03</td><td>00123456</td><td>2.0</td>" in html
    assert "srv1.p2" in html
    assert "<td>d02</td>" in html
    assert "<td>d01</td>" not in html
    assert "1 limit kept, the closest: stall p50 500 ms, limit max 1 s (50.0% of it)." in html
    assert 'alt="Throughput" src="data:image/svg+xml;base64,' in html
    assert not re.search(r'(src|href)="(https?:)?//', html)


def test_a_label_that_is_not_utf_8_is_in_the_tables_of_measurements(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.start("a/b", "do it")
    example.measure("a/b", "stall", "s", [0.5], {"file": "\udcff.bin"})
    example.finish("a/b")
    run = read_run(example.close())
    (tmp_path / "results").mkdir()
    complete(run, tmp_path / "results", tmp_path)
    (table,) = (tmp_path / "results").glob("*measurements*.csv")
    assert rb"file=\udcff.bin" in table.read_bytes()
    assert base64.b64encode(table.read_bytes()).decode() in overview_html(run, [], {})


def test_only_drives_that_a_test_was_about_are_under_test(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    assert [drive["id"] for drive in drives_used(run)] == ["d02"]
    assert [name for name in environment_of(run) if name.startswith("Drive")] == ["Drive d02"]


def test_many_drives_do_not_push_the_tests_off_the_first_screen(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.start("a/b", "do it")
    for dut in range(1, 5):
        example.measure("a/b", "stall", "s", [0.5], {"drive": f"d0{dut}"})
    example.finish("a/b")
    run = read_run(example.close())
    known = list(run.started.duts)
    duts = [*known, *({**known[0], "id": f"e{number}"} for number in range(MOST_DRIVES))]
    for extra in duts[len(known) :]:
        measured = run.tests[0].measurements[0]
        run.tests[0].measurements.append(replace(measured, labels={"drive": str(extra["id"])}))
    run.started = replace(run.started, duts=duts)
    assert "<summary>4 drives more</summary>" in overview_html(run, [], {})


def test_the_first_screen_stands_before_allures_pages_and_links_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RACKLOOP_ALLURE", __file__)
    node = tmp_path / "node"
    node.write_text(ALLURE.format(python=sys.executable))
    node.chmod(0o755)
    (tmp_path / "results").mkdir()
    with AllureStart(tmp_path / "results", node) as start:
        index = generate(
            start,
            tmp_path / "report",
            None,
            title="a run",
            started_ms=1,
            first_screen=lambda pages: f"<p>{pages['case']} of \udcff.yaml</p>",
        )
    assert index.read_text() == r"<html><body><div id=app></div><p>page-1 of \udcff.yaml</p></body></html>"


@pytest.mark.parametrize(("qualified", "name"), [("", "history-smoke.jsonl"), ("0 1", "history-smoke-0_1.jsonl")])
def test_trends_go_through_runs_of_one_plan_and_of_one_drive(tmp_path: Path, qualified: str, name: str) -> None:
    run, history = a_run(tmp_path / "run", qualified=qualified), tmp_path / "history.jsonl"
    titles = ["smoke on mock (simulated), 2026", "storm on mock (simulated), 2026"]
    history.write_text("".join(json.dumps({"name": title, "timestamp": 1}) + "\n" for title in titles) + "{damaged\n")
    before = history.read_bytes()
    mine = history_of(run, history)
    assert mine == tmp_path / name
    kept = [json.loads(line)["name"] for line in mine.read_text().splitlines()] if mine.exists() else []
    assert kept == ([] if qualified else titles[:1])
    assert history.read_bytes() == before


def test_the_environment_has_what_the_rack_was_found_to_run_on(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.write(EnvironmentSeen({"Server srv1": "Linux 6.1, fio-3.33"}))
    example.start("a/b", "do it")
    example.finish("a/b")
    run = read_run(example.close())
    assert environment_of(run)["Server srv1"] == "Linux 6.1, fio-3.33"
    assert "<td>Server srv1</td><td>Linux 6.1, fio-3.33</td>" in overview_html(run, [], {})


def test_tests_that_did_not_pass_and_are_not_shown_are_counted(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    for number in range(MOST_TESTS + 2):
        example.start(f"a/b::c[{number}]", "do it")
        example.finish(f"a/b::c[{number}]", "fail", "product", "too slow")
    html = overview_html(read_run(example.close("fail", 1)), [], {})
    assert html.count("too slow") == MOST_TESTS
    assert "<li>and 2 more: see all tests in detail</li></ul>" in html
