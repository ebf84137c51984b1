"""Health and evidence in the report: what is shown first, what is unfolded, and the lanes of the plot."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from rackloop.measurement import Cause
from rackloop.record import EvidenceGathered, HealthChange, HealthCompared, Judgement
from rackloop_reports.attachments import description_html
from rackloop_reports.health_page import health_compared_html
from rackloop_reports.plot_selection import RunPlots
from rackloop_reports.plots import Source, evidence_timeline
from rackloop_reports.record import read_run
from tests.unit.reports.example_stream import ExampleRun

LOST = HealthChange("d01", "phy_resets", 1, 2_000, Judgement.UNEXPECTED, Cause.LAB, "the link was <lost>")
OWN = HealthChange("srv1 p0", "kernel.link_lost", None, 4, Judgement.EXPECTED, None, "the test did", "ata1: SError")
WORK = HealthChange("d01", "host_reads", 10, 5, Judgement.NOTED)
EVIDENCE = EvidenceGathered(
    "t", 1_000_000_000, 3_000_000_000, {"switch": [(1_500_000_000, 0)], "srv1 SEL": [(2_000_000_000, 500_000_000)]}, {}
)
SOURCE = Source("smoke", "mock (simulated)", 42, is_simulated=True)


def page(*changes: HealthChange, before: str | None = "health/0001.json", **unread: str) -> str:
    return health_compared_html(HealthCompared("t", changes, unread, before, before))


def test_what_should_not_have_changed_stands_before_what_is_unfolded() -> None:
    text = page(WORK, OWN, LOST)
    shown, _, unfolded = text.partition("<details>")
    assert "<b>phy_resets</b>" in shown
    assert "<b>2,000</b>" in shown
    assert "<b>+1,999</b>" in shown
    assert "unexpected, lab" in shown
    assert "the link was &lt;lost&gt;" in shown
    assert "2 changes that are expected or informational" in unfolded
    assert unfolded.index("kernel.link_lost") < unfolded.index("host_reads")
    assert "the test did (ata1: SError)" in unfolded
    assert "<b>" not in unfolded


def test_a_quiet_test_says_so() -> None:
    assert "No unexpected changes." in page(WORK)
    assert "<table>" not in page()


def test_a_comparison_over_several_tests_is_shown_with_each_and_names_them_all(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    for test in ("a", "<b>", "c"):
        example.start(test, "do nothing")
        example.finish(test, "pass")
    example.write(HealthCompared("c", [LOST], {}, "health/0001.json", "health/0002.json", ("a", "<b>")))
    compared = [record.health for record in read_run(example.close("pass", 0)).tests]
    assert len(compared) == 3
    for health in compared:
        assert health is not None
        assert health.changes == [LOST]
        text = health_compared_html(health)
        assert "These 3 tests asked nothing of the rack" in text
        assert "<li>a</li><li>&lt;b&gt;</li><li>c</li>" in text


def test_what_was_not_read_is_said_with_the_reason() -> None:
    text = page(before=None, servers="servers of <this> kind cannot be reached")
    assert "Health was not read." in text
    assert "servers: servers of &lt;this&gt; kind cannot be reached" in text
    assert "Nothing changed" not in text


def test_a_plot_has_a_lane_for_each_source_and_bars_as_wide_as_the_error() -> None:
    (axes,) = evidence_timeline(EVIDENCE, SOURCE).get_axes()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["switch (1)", "srv1 SEL (1)"]
    assert "(simulated)" in axes.get_title("left")
    marks = [line for line in axes.lines if line.get_marker() == "|"]
    assert [list(map(float, line.get_xdata())) for line in marks] == [[0.5], [1.0]]  # type: ignore[arg-type]
    spans = [np.asarray(collection.get_paths()[0].vertices)[:, 0].tolist() for collection in axes.collections]
    assert spans == [[0.5, 0.5], [0.5, 1.5]]


def test_the_time_of_lines_that_were_left_out_is_hatched_and_the_caption_says_so() -> None:
    figure = evidence_timeline(replace(EVIDENCE, left_out={"srv1 SEL": 7}), SOURCE)
    (axes,) = figure.get_axes()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["switch (1)", "srv1 SEL (1 of 8)"]
    (hatched,) = [patch for patch in axes.patches if isinstance(patch, Rectangle) and patch.get_hatch()]
    assert (hatched.get_x(), hatched.get_width(), round(hatched.get_y())) == (0.0, 1.0, 1)
    caption = " ".join(text.get_text().replace("\n", " ") for text in figure.texts)
    assert "Hatched: the time for which lines were left out, 7 in all" in caption
    assert [text.get_text() for legend in figure.legends for text in legend.get_texts()] == ["lines left out"]
    whole = evidence_timeline(EVIDENCE, SOURCE)
    assert "Hatched" not in " ".join(text.get_text() for text in whole.texts)
    assert not whole.get_axes()[0].patches


def test_a_gap_between_kept_lines_is_hatched_where_it_is() -> None:
    second_ns = 10**9
    gaps = [(EVIDENCE.began_ns + 2 * second_ns, EVIDENCE.began_ns + 5 * second_ns)]
    figure = evidence_timeline(replace(EVIDENCE, left_out={"srv1 SEL": 7}, gaps={"srv1 SEL": gaps}), SOURCE)
    (axes,) = figure.get_axes()
    (hatched,) = [patch for patch in axes.patches if isinstance(patch, Rectangle) and patch.get_hatch()]
    assert (hatched.get_x(), hatched.get_width()) == (2.0, 3.0)


@pytest.mark.parametrize(("lines", "kind"), [(3, "svg"), (201, "png")])
def test_the_page_of_a_test_that_failed_has_both(lines: int, kind: Literal["svg", "png"], tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.start("t", "try it")
    lanes = {"switch": [(5_000_000_000 + number, 0) for number in range(lines)]}
    example.write(HealthCompared("t", [LOST], {}, "health/0001.json", "health/0002.json"))
    example.write(EvidenceGathered("t", 5_000_000_000, 6_000_000_000, lanes, {"srv1 SEL": "not read"}))
    example.finish("t", "fail", cause="lab", reason="the rack's health changed")
    run = read_run(example.close("fail", 3))
    (test,) = run.tests
    assert test.health is not None
    assert test.health.changes == [LOST]
    (plot,) = RunPlots(run).plots_of([test])
    assert (plot.name, plot.kind) == ("Evidence: t (simulated)", kind)
    text = description_html(test, run, None)
    assert len(re.findall("<h4>Health of the rack, before and after</h4>", text)) == 1


def test_sources_without_a_moment_have_no_plot(tmp_path: Path) -> None:
    example = ExampleRun(tmp_path)
    example.start("t", "try it")
    example.write(EvidenceGathered("t", 0, 1, {}, {"srv1 SEL": "not read"}))
    example.finish("t", "unknown")
    run = read_run(example.close("unknown", 3))
    assert RunPlots(run).plots_of(run.tests) == []
