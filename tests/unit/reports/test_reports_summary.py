"""summary.json: the fields the interface fixes, and nothing green that is not."""

import io
import json
from importlib.resources import files
from pathlib import Path

from pydantic import TypeAdapter
from rich.console import Console

from rackloop.measurement import Distribution
from rackloop.record import PartOut, RackHealed, RetestDone
from rackloop_reports.allure_results import environment_of
from rackloop_reports.record import read_run
from rackloop_reports.summary import Summary, json_schema, summarize, to_json
from rackloop_reports.terminal import print_summary
from tests.unit.reports.example_stream import ExampleRun, smoke_run

RUN_KEYS = ["schema", "plan", "lab", "lab_kind", "seed", "started", "wall_s", "verdict", "versions", "duts", "tests"]
TEST_KEYS = ["id", "verdict", "cause", "reason", "labels", "measurements", "load", "duration_s", "headlines"]
MEASUREMENT_KEYS = ["name", "labels", "unit", "n", "quantile", "value", "ci95", "p50", "p99", "limits", "verdict"]
MEASUREMENT_KEYS += ["cause", "reason", "clusters", "error"]


def test_the_fields_are_those_of_schema_1(tmp_path: Path) -> None:
    written = json.loads(to_json(summarize(read_run(smoke_run(tmp_path, remaps=3)))))
    assert list(written) == RUN_KEYS
    assert written["schema"] == 1
    assert list(written["duts"][0]) == ["id", "model", "serial", "firmware", "protocol", "identifiers"]
    assert all(list(test) == TEST_KEYS for test in written["tests"])
    measurements = [entry for test in written["tests"] for entry in test["measurements"]]
    assert len(measurements) == 16
    assert all(list(entry) == MEASUREMENT_KEYS for entry in measurements)


def test_what_was_measured_comes_through_unchanged(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    samples = [index / 1000 for index in range(1, 401)]
    example.start("a/b", "measure")
    example.measure("a/b", "remap.latency", "s", samples, {"stack": "comreset"}, quantile=0.99, maximum=0.5)
    example.clock.advance(2.5)
    example.finish("a/b")
    example.close()
    summary = summarize(read_run(tmp_path))
    (measured,) = summary.tests[0].measurements
    expected = Distribution.of(samples)
    assert (measured.value, measured.ci95) == (expected.quantile(0.99), expected.quantile_ci95(0.99))
    assert (measured.n, measured.quantile, measured.unit) == (400, "p99", "s")
    assert measured.limits == {"text": "max 500 ms", "min": None, "max": 0.5}
    assert measured.verdict == "pass"
    assert summary.wall_s == 2.5


def test_the_json_schema_beside_the_module_is_the_one_of_its_classes() -> None:
    shipped = files("rackloop_reports").joinpath("summary.schema.json").read_text()
    assert shipped == json_schema()


def test_a_summary_reads_back_as_it_was_written(tmp_path: Path) -> None:
    summary = summarize(read_run(smoke_run(tmp_path, remaps=3)))
    text = to_json(summary)
    assert to_json(TypeAdapter(Summary).validate_json(text)) == text


def test_what_was_not_used_is_in_every_view_of_a_run(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.write(PartOut(None, "drive:d01", "maintenance", "drive d01 is in maintenance, by ada: new firmware"))
    example.start("a/b", "measure")
    example.write(RetestDone("a/b", "d02", "drive", ["drive:d02"], [], "the retest says: drive d02"))
    example.write(PartOut("a/b", "drive:d02", "broken", "drive d02 is broken", ["a/b: no answer"]))
    example.finish("a/b")
    example.close()
    record = read_run(tmp_path)
    assert [retest.drive for retest in record.tests[0].retests] == ["d02"]
    written = json.loads(to_json(summarize(record)))
    assert list(written) == [*RUN_KEYS, "out_of_service"]
    assert written["out_of_service"] == [
        {
            "gear": "drive:d01",
            "state": "maintenance",
            "reason": "drive d01 is in maintenance, by ada: new firmware",
            "test": None,
        },
        {"gear": "drive:d02", "state": "broken", "reason": "drive d02 is broken", "test": "a/b"},
    ]
    shown = io.StringIO()
    print_summary(summarize(record), Console(width=120, file=shown))
    lines = "\n".join(line.rstrip() for line in shown.getvalue().splitlines())
    assert "not used\n    drive d01 is in maintenance, by ada: new firmware\n    drive d02 is broken" in lines


def test_what_was_healed_before_the_first_test_is_in_every_view_of_a_run(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.write(RackHealed(["undone: power turn_off server:srv1 (by hand)", "mended: hang of drive:d01"]))
    example.start("a/b", "measure")
    example.finish("a/b")
    example.close()
    record = read_run(tmp_path)
    whole = "undone: power turn_off server:srv1 (by hand); mended: hang of drive:d01"
    assert json.loads(to_json(summarize(record)))["healed"] == whole.split("; ")
    shown = io.StringIO()
    print_summary(summarize(record), Console(width=120, file=shown))
    assert f"\nhealed before the first test: {whole}\n" in shown.getvalue()
    assert environment_of(record)["Healed before the first test"] == whole
