"""junit.xml: well formed whatever the reasons hold, and counted right."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from rackloop_reports.junit import to_junit
from rackloop_reports.record import read_run
from tests.unit.reports.example_stream import ExampleRun, smoke_run

# The order in which Jenkins' junit-10.xsd, with pytest's properties, lets the parts of a test case stand.
PARTS = ["properties", "skipped", "error", "failure", "system-out"]


def parsed(run_dir: Path) -> ET.Element:
    return ET.fromstring(to_junit(read_run(run_dir)))  # noqa: S314 - our own document


@pytest.fixture
def suite(tmp_path: Path) -> ET.Element:
    root = parsed(smoke_run(tmp_path, remaps=3))
    assert root.tag == "testsuites"
    (suite,) = root
    return suite


def test_the_counts_are_those_of_the_cases(suite: ET.Element) -> None:
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "10",
        "failures": "1",
        "errors": "3",
        "skipped": "1",
    }
    assert len(suite.findall("testcase")) == 10
    assert len(suite.findall("testcase/failure")) == 1
    assert len(suite.findall("testcase/error")) == 3
    assert len(suite.findall("testcase/skipped")) == 1


def test_every_case_has_the_parts_the_schema_allows_in_their_order(suite: ET.Element) -> None:
    for case in suite.findall("testcase"):
        assert set(case.attrib) == {"classname", "name", "time"}
        assert float(case.get("time", "")) >= 0
        places = [PARTS.index(part.tag) for part in case]
        assert places == sorted(set(places))


def test_a_failure_says_whose_fault_it_is(suite: ET.Element) -> None:
    failure = suite.find("testcase[@name='stale_read']/failure")
    assert failure is not None
    assert failure.get("type") == "fail.product"
    assert "stale data" in failure.get("message", "")


def test_measurements_are_properties_and_text(suite: ET.Element) -> None:
    case = suite.find("testcase[@name='remap_latency']")
    assert case is not None
    values = {
        item.get("name"): float(item.get("value", ""))
        for item in case.iterfind("properties/property[@name]")
        if (item.get("name") or "").startswith("remap.latency")
    }
    assert 0.0009 < values["remap.latency (stack=comreset) p50 [s]"] < 0.002
    assert len(values) == 5
    assert (case.findtext("system-out") or "").count("\n") == 4


def test_the_lab_is_called_simulated(suite: ET.Element) -> None:
    lab = suite.find("properties/property[@name='lab']")
    assert lab is not None
    assert lab.get("value") == "mock (simulated)"


@pytest.mark.parametrize("reason", ["a \x00\x1b[31m b", "<&>\"'", "\ud800 lone", "\ufffe", "è \U0001f4be"])
def test_no_reason_breaks_the_document(tmp_path: Path, reason: str) -> None:
    example = ExampleRun(tmp_path)
    example.start("a/b", "break it")
    example.finish("a/b", "fail", "product", reason)
    example.close("fail", 1)
    error = parsed(tmp_path).find(".//failure")
    assert error is not None
    assert error.get("message")


@pytest.mark.parametrize(
    ("test", "names"),
    [
        ("mine/pull::of_path[/dev/sda]", ("mine", "pull::of_path[/dev/sda]")),
        ("pull::of_path[a/b]", ("run", "pull::of_path[a/b]")),
        ("mine/nvme/pull", ("mine.nvme", "pull")),
    ],
)
def test_a_parameter_with_slashes_is_of_the_name(tmp_path: Path, test: str, names: tuple[str, str]) -> None:
    example = ExampleRun(tmp_path)
    example.start(test, "pull it")
    example.finish(test)
    example.close()
    case = parsed(tmp_path).find(".//testcase")
    assert case is not None
    assert (case.get("classname"), case.get("name")) == names
