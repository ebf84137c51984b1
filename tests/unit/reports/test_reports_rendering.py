"""Rendering everything: against a program in Allure's place, and against Allure itself where it is installed."""

import base64
import json
import re
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from rackloop.errors import BadInput, ToolError
from rackloop_cli import main
from rackloop_reports import render, write_summary
from rackloop_reports.allure_process import find_allure, find_node
from tests.unit.reports.example_stream import small_run, smoke_run

# Does what Allure does with its files: a page in `output`, a line at the end of `historyPath`.
STAND_IN = """#!{python}
import json, pathlib, sys
script, generate, option, config_file, results = sys.argv[1:]
config = json.load(sys.stdin)
output, history = pathlib.Path(config["output"]), pathlib.Path(config["historyPath"])
seen = [json.loads(line)["name"] for line in history.read_text().splitlines()]
output.mkdir()
(output / "index.html").write_text(json.dumps([sorted(p.name for p in pathlib.Path(results).iterdir()), seen]))
with history.open("a") as file:
    file.write(json.dumps(dict(name=config["name"], timestamp=1, metrics={{}})) + "\\n")
"""


def program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of Node.js and Allure."""
    monkeypatch.setenv("RACKLOOP_ALLURE", str(program(tmp_path / "cli.js", "")))
    return program(tmp_path / "node", STAND_IN.format(python=sys.executable))


def earlier_runs(report: Path) -> list[str]:
    names = json.loads((report / "index.html").read_text())[1]
    return [re.findall(r"2026-\d\d-\d\d", name)[0] for name in names]


def test_every_report_is_there(tmp_path: Path, node: Path) -> None:
    rendered = render(small_run(tmp_path / "run"), node=node)
    assert rendered.summary.verdict == "pass"
    assert json.loads((tmp_path / "run/summary.json").read_text())["verdict"] == "pass"
    assert (tmp_path / "run/junit.xml").read_bytes().startswith(b"<?xml")
    assert rendered.index == tmp_path / "run/report/index.html"
    listed, earlier = json.loads(rendered.index.read_text())
    assert {"categories.json", "environment.properties", "rackloop-globals.json", "rackloop-perf.json"} <= set(listed)
    assert earlier == []
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        "allure-results",
        "events.jsonl",
        "junit.xml",
        "measurements.csv",
        "report",
        "summary.json",
    }


def test_summary_and_junit_are_written_without_the_page(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    there = set(run.iterdir())
    assert write_summary(run).verdict == "pass"
    assert {path.name for path in set(run.iterdir()) - there} == {"summary.json", "junit.xml", "measurements.csv"}
    assert json.loads((run / "summary.json").read_text())["verdict"] == "pass"


def test_trends_show_the_runs_before_and_each_run_once(tmp_path: Path, node: Path) -> None:
    history = tmp_path / "state/history.jsonl"
    for day in (1, 3, 2, 3, 3):
        run_dir = tmp_path / f"day{day}"
        if not run_dir.exists():
            small_run(run_dir, day)
        render(run_dir, node=node, history=lambda _: history)
    history = history.with_name("history-smoke.jsonl")
    entries = [json.loads(line) for line in history.read_text().splitlines()]
    assert [re.findall(r"2026-01-0(\d)", entry["name"])[0] for entry in entries] == ["1", "2", "3"]
    assert entries[1]["timestamp"] - entries[0]["timestamp"] == 86_400_000
    assert earlier_runs(tmp_path / "day3/report") == ["2026-01-01", "2026-01-02"]
    assert earlier_runs(tmp_path / "day2/report") == ["2026-01-01"]


def test_a_damaged_history_costs_no_report(tmp_path: Path, node: Path) -> None:
    history = tmp_path / "history.jsonl"
    history.write_text('{"half\n[]\n"text"\n{"name":"no stamp"}\n')
    render(small_run(tmp_path / "run"), node=node, history=lambda _: history)
    assert len((tmp_path / "history-smoke.jsonl").read_text().splitlines()) == 1


def test_a_message_that_has_line_ends_of_its_own_or_is_not_utf_8_stays_in_the_history(
    tmp_path: Path, node: Path
) -> None:
    entry = '{"name":"a run","timestamp":1,"message":"\x85 \u2028 \\udcff"}'
    made = 'json.dumps(dict(name=config["name"], timestamp=1, metrics={}))'
    node.write_text(node.read_text().replace(made, repr(entry)).replace("read_text().splitlines()", 'open(newline="")'))
    for day in (1, 2):
        render(small_run(tmp_path / f"day{day}", day), node=node, history=lambda _: tmp_path / "history.jsonl")
    lines = (tmp_path / "history-smoke.jsonl").read_text().rstrip("\n").split("\n")
    assert [json.loads(line)["message"] for line in lines] == ["\x85 \u2028 \udcff"] * 2


def test_a_report_replaces_the_one_before_whole(tmp_path: Path, node: Path) -> None:
    run_dir = small_run(tmp_path / "run")
    index = render(run_dir, node=node).index
    (index.parent / "left-over.json").touch()
    render(run_dir, node=node)
    assert not (index.parent / "left-over.json").exists()


def test_a_directory_that_is_no_report_is_not_touched(tmp_path: Path, node: Path) -> None:
    run_dir = small_run(tmp_path / "run")
    (run_dir / "report").mkdir()
    (run_dir / "report/thesis.txt").write_text("precious")
    with pytest.raises(BadInput, match="holds files that no report put there"):
        render(run_dir, node=node)
    assert (run_dir / "report/thesis.txt").read_text() == "precious"


def test_without_allure_everything_else_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RACKLOOP_ALLURE", str(tmp_path / "nowhere"))
    monkeypatch.setenv("RACKLOOP_NODE", sys.executable)
    run_dir = small_run(tmp_path / "run")
    with pytest.raises(ToolError, match=r"RACKLOOP_ALLURE=.*nowhere is not a file"):
        render(run_dir)
    assert (run_dir / "summary.json").is_file()
    assert (run_dir / "junit.xml").is_file()
    assert list((run_dir / "allure-results").glob("*-result.json"))
    assert not (run_dir / "report").exists()


def test_without_node_the_message_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RACKLOOP_NODE", str(tmp_path / "no-node"))
    with pytest.raises(ToolError, match=r"no-node is not a program; unset it or mend it"):
        find_node()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("#!/bin/sh\necho no memory >&2\nexit 7\n", "failed with status 7: no memory"),
        ("#!/bin/sh\nexit 0\n", "failed with status 0: it said nothing"),
        ("not a program", "cannot start"),
    ],
)
def test_an_allure_that_fails_leaves_the_old_report(tmp_path: Path, node: Path, script: str, message: str) -> None:
    run_dir = small_run(tmp_path / "run")
    before = render(run_dir, node=node).index.read_bytes()
    with pytest.raises(ToolError, match=message):
        render(run_dir, node=program(tmp_path / "broken", script))
    assert (run_dir / "report/index.html").read_bytes() == before
    assert not list(run_dir.glob(".report*"))


def test_an_allure_that_hangs_is_started_again(tmp_path: Path, node: Path) -> None:
    run_dir = small_run(tmp_path / "run")
    rendered = render(run_dir, node=node, history=lambda _: tmp_path / "history.jsonl", limits_s=(0.0, 120.0))
    assert rendered.index.is_file()
    assert len((tmp_path / "history-smoke.jsonl").read_text().splitlines()) == 1
    with pytest.raises(ToolError, match="made no report"):
        render(run_dir, node=node, limits_s=(0.0, 0.0))


def test_the_command_prints_the_table_and_the_place(
    tmp_path: Path, node: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RACKLOOP_NODE", str(node))
    monkeypatch.setenv("RACKLOOP_STATE_HOME", str(tmp_path / "state"))
    run_dir = small_run(tmp_path / "run")
    assert main.main(["report", str(run_dir)]) == 0
    said = capsys.readouterr().out
    assert "a/b" in said
    assert f"Report: {run_dir}/report/index.html" in said
    assert (tmp_path / "state/labs/mock/history-smoke.jsonl").is_file()


@pytest.mark.parametrize("case", ["nowhere", "empty", "corrupted"])
def test_the_command_refuses_what_is_no_run(
    tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RACKLOOP_STATE_HOME", str(tmp_path / "state"))
    run_dir = tmp_path / case
    if case == "empty":
        run_dir.mkdir()
    elif case == "corrupted":
        events = small_run(run_dir) / "events.jsonl"
        events.write_text(events.read_text().replace("test.started", "test.strated"))
    assert main.main(["report", str(run_dir)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("rackloop: ")
    assert said.count("\n") == 1
    assert str(run_dir) in said
    assert not (run_dir / "summary.json").exists()


def test_allure_itself_makes_the_report(tmp_path: Path) -> None:
    try:
        find_node()
        find_allure()
    except ToolError as error:
        pytest.skip(str(error))
    rendered = render(smoke_run(tmp_path, remaps=3), history=lambda _: tmp_path / "history.jsonl")
    page = rendered.index.read_text()
    assert "smoke on mock (simulated)" in page
    assert not re.search(r'(src|href)="(https?:)?//', page)
    # The first screen links to the pages that Allure made.
    linked = set(re.findall(r'<a href="#([0-9a-f]{32})">', page))
    made = json.loads(rendered.index.with_name("test-results.json").read_text())["byId"]
    assert linked == made.keys()
    assert "gtag" not in page

    def embedded(widget: str) -> Any:
        found = re.search(rf'"widgets/{widget}\.json","([^"]*)"', page)
        assert found is not None, f"the page carries no widget {widget}"
        return json.loads(base64.b64decode(found[1]))

    assert embedded("statistic") == {
        "total": 10,
        "failed": 1,
        "broken": 2,
        "passed": 5,
        "skipped": 1,
        "unknown": 1,
        "new": 10,
    }
    assert len(embedded("metrics")["current"]) == 16
    assert len(embedded("globals")["attachments"]) == 6
    roots = embedded("categories")["nodes"].values()
    assert {"The simulated product failed", "Blocked by something broken", "The harness is at fault"} <= {
        node["name"] for node in roots
    }
