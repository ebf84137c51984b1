"""``junit.xml``: a run for the tools that read JUnit, in the shape of Jenkins' junit-10.xsd as pytest extends it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from rackloop.measurement import Verdict
from rackloop.record import Measured
from rackloop_reports.formatting import interval_text, limit_text, measure_text, value_text
from rackloop_reports.record import RunRecord, TestRecord
from rackloop_reports.titles import place_of

# What XML 1.0 has no way to say (section 2.2, Char).
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_OUTCOMES = {
    Verdict.FAIL: "failure",
    Verdict.UNKNOWN: "error",
    Verdict.BLOCKED: "error",
    Verdict.SKIPPED: "skipped",
}


def to_junit(run: RunRecord) -> bytes:
    """One test suite with a test case for every test: a fail is a failure, unknown and blocked are errors."""
    outcomes = [_OUTCOMES.get(test.verdict) for test in run.tests]
    suites = ET.Element("testsuites", {"name": _clean(run.title)})
    suite = ET.SubElement(
        suites,
        "testsuite",
        {
            "name": _clean(run.started.plan),
            "tests": str(len(run.tests)),
            "failures": str(outcomes.count("failure")),
            "errors": str(outcomes.count("error")),
            "skipped": str(outcomes.count("skipped")),
            "time": _seconds(run.started_ns, run.ended_ns),
            "timestamp": run.wall(run.started_ns).replace(tzinfo=None).isoformat(timespec="seconds"),
            "hostname": _clean(run.started.lab),
        },
    )
    facts = {"lab": run.lab, "lab_kind": run.started.lab_kind, "seed": str(run.started.seed)}
    _properties(suite, facts | {f"version.{name}": version for name, version in run.started.versions.items()})
    for test in run.tests:
        _case(suite, test)
    ET.indent(suites)
    document: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _case(suite: ET.Element, test: TestRecord) -> None:
    folder, file, function = place_of(test.id)
    case = ET.SubElement(
        suite,
        "testcase",
        {
            "classname": _clean(folder.replace("/", ".") or "run"),
            "name": _clean(f"{file}::{function}" if function else file),
            "time": _seconds(test.started_ns, test.ended_ns),
        },
    )
    lines = []
    properties = {f"label.{key}": value for key, value in test.labels.items()}
    for measured in test.measurements:
        what = f"{measure_text(measured.name, measured.labels)} {measured.quantile}"
        properties[f"{what} [{measured.unit}]"] = repr(measured.value)
        limit = limit_text(measured.limits, measured.unit)
        lines.append(
            f"{what} = {value_text(measured.value, measured.unit)}"
            f" ({_interval(measured)}n = {measured.n})" + (f", limit {limit}: {measured.verdict}" if limit else "")
        )
    if test.load is not None:
        properties["machine.load"] = str(test.load)
    if properties:
        _properties(case, properties)
    outcome = _OUTCOMES.get(test.verdict)
    if outcome:
        kind = f"{test.verdict}.{test.cause}" if test.cause else str(test.verdict)
        reason = _clean(test.reason or f"the verdict is {test.verdict}")
        ET.SubElement(case, outcome, {"type": kind, "message": reason}).text = reason
    if lines:
        ET.SubElement(case, "system-out").text = _clean("\n".join(lines))


def _interval(measured: Measured) -> str:
    interval = interval_text(measured.ci95, measured.unit)
    return f"95 %: {interval}; " if interval else ""


def _properties(parent: ET.Element, values: dict[str, str]) -> None:
    holder = ET.SubElement(parent, "properties")
    for name, value in values.items():
        ET.SubElement(holder, "property", {"name": _clean(name), "value": _clean(value)})


def _seconds(start_ns: int, end_ns: int) -> str:
    return f"{(end_ns - start_ns) / 1e9:.3f}"


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
