"""Allure results completed from events: what allure-pytest wrote, what it never wrote, and doing it twice."""

import json
from pathlib import Path
from typing import Any

import pytest

from rackloop.errors import BadInput
from rackloop.record import Attached, Exchange
from rackloop.record.acts import SaveBootMap
from rackloop_reports.allure_results import complete
from rackloop_reports.metrics import metrics_of
from rackloop_reports.record import KILLED, read_run
from tests.unit.reports.example_stream import ExampleRun, smoke_run

PLAIN = {
    "uuid": "11111111-2222-3333-4444-555555555555",
    "name": "test_b",
    "status": "passed",
    "fullName": "testplans.a.test_b#test_b",
    "historyId": "chosen by pytest",
    "start": 1_767_225_605_000,
    "stop": 1_767_225_606_000,
    "labels": [{"name": "rackloop_test", "value": "a/b"}, {"name": "epic", "value": "A"}],
    "attachments": [{"name": "log", "source": "theirs-attachment.txt", "type": "text/plain"}],
    "steps": [{"name": "map the drive", "status": "passed"}],
}


def completed(run_dir: Path) -> dict[str, dict[str, Any]]:
    """Complete the results of a run; returns them by test."""
    complete(read_run(run_dir), run_dir / "allure-results", run_dir)
    found = [json.loads(path.read_text()) for path in sorted((run_dir / "allure-results").glob("*-result.json"))]
    return {label(result, "rackloop_test"): result for result in found}


def label(result: dict[str, Any], name: str) -> str:
    (value,) = [str(entry["value"]) for entry in result["labels"] if entry["name"] == name]
    return value


def write_plain(run_dir: Path) -> Path:
    path = run_dir / "allure-results" / f"{PLAIN['uuid']}-result.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(PLAIN))
    return path


def content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def one_test(
    run_dir: Path,
    verdict: str = "pass",
    cause: str | None = None,
    reason: str | None = None,
    lab_kind: str = "mock",
) -> ExampleRun:
    example = ExampleRun(run_dir, lab_kind=lab_kind)
    example.start("a/b", "do it")
    example.measure("a/b", "remap.latency", "s", [0.001, 0.002], {"stack": "comreset"})
    example.finish("a/b", verdict, cause, reason)
    return example


def test_what_pytest_wrote_is_kept_and_completed(tmp_path: Path) -> None:
    one_test(tmp_path, "fail", "product", "too slow").close("fail", 1)
    path = write_plain(tmp_path)
    results = completed(tmp_path)
    assert list(results) == ["a/b"]
    result = json.loads(path.read_text())
    assert (result["steps"], result["fullName"]) == (PLAIN["steps"], PLAIN["fullName"])
    assert result["attachments"][0] == PLAIN["attachments"][0]  # type: ignore[index]
    assert (result["name"], result["status"]) == ("B", "failed")
    assert result["statusDetails"]["message"] == "fail, cause simulated product: too slow"
    assert label(result, "rackloop_cause") == "product"
    assert "remap.latency (stack=comreset)" in result["descriptionHtml"]


def test_completing_what_pytest_wrote_twice_doubles_no_attachment(tmp_path: Path) -> None:
    one_test(tmp_path).close()
    path = write_plain(tmp_path)
    completed(tmp_path)
    once = path.read_bytes()
    completed(tmp_path)
    assert path.read_bytes() == once
    assert len(json.loads(once)["attachments"]) == 1 + 2


def test_results_of_other_tests_are_left_alone(tmp_path: Path) -> None:
    one_test(tmp_path).close()
    path = write_plain(tmp_path)
    other = path.with_name("other-result.json")
    other.write_text('{"uuid":"x","labels":[{"name":"epic","value":"Elsewhere"}]}')
    before = other.read_bytes()
    complete(read_run(tmp_path), path.parent, tmp_path)
    assert other.read_bytes() == before


@pytest.mark.parametrize(
    ("verdict", "status"),
    [("pass", "passed"), ("fail", "failed"), ("unknown", "unknown"), ("blocked", "broken"), ("skipped", "skipped")],
)
def test_every_verdict_has_a_status(tmp_path: Path, verdict: str, status: str) -> None:
    one_test(tmp_path, verdict, None, "because").close()
    assert completed(tmp_path)["a/b"]["status"] == status


def test_a_test_a_killed_run_left_gets_a_result(tmp_path: Path) -> None:
    example = one_test(tmp_path)
    example.start("a/left", "be left", size="4096")
    example.clock.advance(3)
    example.act("a/left", SaveBootMap(), "switch")
    example.log.close()
    left = completed(tmp_path)["a/left"]
    assert left["status"] == "unknown"
    assert left["stop"] - left["start"] == 3000
    assert left["statusDetails"]["message"].startswith("unknown, cause harness: the test started and never finished")
    assert left["parameters"] == [{"name": "size", "value": "4096"}]
    globals_ = json.loads((tmp_path / "allure-results/rackloop-globals.json").read_text())
    assert [error["message"] for error in globals_["errors"]] == [KILLED]


def test_the_history_of_a_test_survives_another_seed_and_day(tmp_path: Path) -> None:
    found = []
    for seed, day in ((1, 1), (7, 2)):
        example = ExampleRun(tmp_path / str(seed), seed=seed, day=day)
        for test in ("a/b", "a/c"):
            example.start(test, "do it")
            example.finish(test)
        found.append(completed(example.close()))
    first, second = found
    assert all(first[test]["historyId"] == second[test]["historyId"] for test in ("a/b", "a/c"))
    assert len({result["historyId"] for result in first.values()}) == 2
    assert not {result["uuid"] for result in first.values()} & {result["uuid"] for result in second.values()}


def test_a_smoke_run_has_its_attachments_and_completing_it_twice_changes_nothing(tmp_path: Path) -> None:
    smoke_run(tmp_path, remaps=3)
    results = tmp_path / "allure-results"
    latency = completed(tmp_path)["fabric/remap_latency"]
    once = content(results)
    assert [attachment["name"] for attachment in latency["attachments"]] == [
        "Remap latency by driver stack (simulated)",
        "Remap latency, whole distribution (simulated)",
        "Stages of a remap (simulated)",
        "Timeline of remaps and I/O (simulated)",
        "Remaps",
        "Switch exchanges",
        "Switch log",
    ]
    sources = [once[attachment["source"]] for attachment in latency["attachments"]]
    assert all(sources)
    csv = sources[4].decode().splitlines()
    assert len(csv) == 1 + 12
    assert csv[0].startswith("simulated,stack,server,port,drive,generation,commanded_ns")
    assert b"> ROUTe:LOAD (@1!101)" in sources[5]
    assert sources[6] == b"trigger, trigger, trigger\n"
    globals_ = json.loads(once["rackloop-globals.json"])
    assert [attachment["name"] for attachment in globals_["attachments"]] == [
        "Remap latency by driver stack (simulated)",
        "Remap latency, whole distribution (simulated)",
        "Throughput by block size (simulated)",
        "Stages of a remap (simulated)",
        "Timeline of remaps and I/O (simulated)",
        "All measurements",
    ]
    assert globals_["errors"] == []
    completed(tmp_path)
    assert content(results) == once


def attached(results: Path) -> dict[str, bytes]:
    """The attachments of the whole run by name."""
    told = json.loads((results / "rackloop-globals.json").read_text())["attachments"]
    found = {entry["name"]: (results / entry["source"]).read_bytes() for entry in told}
    assert len(found) == len(told)
    return found


def test_plots_of_tests_that_are_named_alike_are_two_files(tmp_path: Path) -> None:
    """Those of one function in two files, and those whose parameters differ in what a name of a file has not."""
    example = ExampleRun(tmp_path)
    tests = ["a/one::rebuild", "a/two::rebuild", "a/c::d[x-y]", "a/c::d[x_y]", "a/c::d[дом]", f"a/c::{'d' * 300}"]
    for number, test in enumerate(tests, start=1):
        example.start(test, "measure")
        example.measure(test, "rebuild.time", "s", [float(number)], {"way": "spread"})
        example.finish(test)
    example.close()
    completed(tmp_path)
    plots = [data for name, data in attached(tmp_path / "allure-results").items() if name.startswith("Rebuild")]
    assert len(plots) == len({*plots}) == len(tests)


def test_exchanges_outside_tests_are_global(tmp_path: Path) -> None:
    example = one_test(tmp_path)
    example.write(Exchange(None, "socket://switch:5025", "*IDN?", "Rackloop,FF160,1,1.0", 5_000_000_000, 5_000_090_000))
    example.close()
    completed(tmp_path)
    (path,) = (tmp_path / "allure-results").glob("*switch-exchanges-outside-tests*")
    assert "> *IDN?\n  < Rackloop,FF160,1,1.0\n" in path.read_text()


@pytest.mark.parametrize("path", ["../secret.txt", "/etc/hostname", "missing.txt", "."])
def test_no_file_from_elsewhere_is_attached(tmp_path: Path, path: str) -> None:
    run_dir = tmp_path / "run"
    (tmp_path / "secret.txt").write_text("secret")
    example = ExampleRun(run_dir)
    example.start("a/b", "attach")
    example.write(Attached("a/b", "stolen", path, "text/plain"))
    example.finish("a/b")
    example.close()
    assert completed(run_dir)["a/b"]["attachments"] == []


def test_metrics_are_the_statistics_in_units_that_do_not_change(tmp_path: Path) -> None:
    metrics = {entry["key"]: entry for entry in metrics_of(read_run(smoke_run(tmp_path, remaps=3)))}
    assert len(metrics) == 16
    assert all({"id", "key", "value", "start", "stop"} <= entry.keys() for entry in metrics.values())
    comreset = metrics["fabric/remap_latency remap.latency (stack=comreset) p50"]
    assert 1.0 < comreset["value"] < 1.6
    assert (comreset["unit"], comreset["better"], comreset["groupTitle"]) == (
        "ms",
        "lower",
        "fabric/remap_latency (simulated)",
    )
    steady = metrics["fabric/switched_throughput throughput.steady (block=16 MiB) p50"]
    assert (steady["unit"], steady["better"]) == ("MB/s", "higher")
    assert 250 < steady["value"] < 300
    assert "better" not in metrics["data/verify verify.blocks p50"]


def test_the_environment_says_simulated_only_where_it_is(tmp_path: Path) -> None:
    for lab_kind, expected in (("mock", "Results=simulated\n"), ("physical", "Results=measured\n")):
        example = one_test(tmp_path / lab_kind, lab_kind=lab_kind)
        run_dir = example.close()
        results = completed(run_dir)
        assert expected in (run_dir / "allure-results/environment.properties").read_text()
        everything = json.dumps(results)
        assert ("simulated" in everything) is (lab_kind == "mock")


@pytest.mark.parametrize("left", ['{"uuid":"x","labels":[{"na', ""])
def test_a_result_that_a_killed_run_left_half_written_costs_no_report(tmp_path: Path, left: str) -> None:
    one_test(tmp_path).log.close()
    path = write_plain(tmp_path)
    path.write_text(left)
    for _ in range(2):
        assert sorted(completed(tmp_path)) == ["a/b", "run"]
    assert not path.exists()
    assert path.with_suffix(".cut-short").read_text() == left


def test_a_result_that_is_not_json_is_named(tmp_path: Path) -> None:
    one_test(tmp_path).close()
    broken = write_plain(tmp_path).with_name("broken-result.json")
    broken.write_text("{")
    with pytest.raises(BadInput, match=r"broken-result\.json is not an Allure result"):
        completed(tmp_path)
