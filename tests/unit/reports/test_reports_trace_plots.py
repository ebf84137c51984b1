"""The page and the tables of a trace, by what is on them; and the verb that makes them."""

import json
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch
from rich.console import Console

from rackloop.data import data_path
from rackloop.errors import EXIT_BAD_INPUT, EXIT_PASS
from rackloop_cli.main import main as rackloop
from rackloop_reports.plots import encode, trace_page
from rackloop_reports.trace_report import tables, write_report
from rackloop_traces import HeatMap, Op, Statistics, TraceMeter
from tests.unit.traces.trace_frames import Row, frame

MS, S = 10**6, 10**9
DEMO = data_path("traces") / "demo.csv.gz"


def metered(rows: list[Row]) -> tuple[Statistics, HeatMap]:
    meter = TraceMeter()
    meter.add(frame(rows))
    return meter.result(), meter.heat_map


def page(rows: list[Row]) -> Figure:
    return trace_page(*metered(rows), "example.csv")


def panel(figure: Figure, title: str) -> Axes:
    return next(axes for axes in figure.axes if axes.get_title(loc="left").startswith(title))


MIXED: list[Row] = [
    (i * 10 * MS, Op.READ if i % 4 else Op.WRITE, (i % 50) << 20, 4096 if i % 2 else 8192) for i in range(1000)
]


def test_the_rate_adds_up_to_all_requests() -> None:
    axes = panel(page(MIXED), "Rate")
    reads, writes = (entry for entry in axes.patches if isinstance(entry, StepPatch))
    values, edges, baseline = writes.get_data()
    assert np.sum(np.diff(edges) * values) == pytest.approx(1000)
    assert np.allclose(np.asarray(baseline), reads.get_data()[0])
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["reads", "writes"]
    assert any(text.get_text() == "mean 100" for text in axes.texts)


def test_a_trace_may_have_any_file_name() -> None:
    drawn = trace_page(*metered(MIXED), "\udcff of $\\foo$.csv")
    assert encode(drawn, "svg").startswith(b"<?xml")
    assert any(r"\udcff of $\foo$.csv" in text.get_text() for text in drawn.texts)


def test_the_heat_map_counts_every_request_at_its_place() -> None:
    (mesh,) = (entry for entry in panel(page(MIXED), "Where requests go").collections if isinstance(entry, QuadMesh))
    counts = mesh.get_array()
    assert counts is not None
    assert counts.sum() == 1000
    assert counts.shape[0] == 50
    assert panel(page(MIXED), "Where requests go").get_ylabel() == "Offset, MiB"


def test_sizes_and_gaps_climb_to_a_hundred_percent() -> None:
    figure = page(MIXED)
    for title, lines in (("Sizes", 2), ("Time between arrivals", 3)):
        drawn = panel(figure, title).lines
        assert len(drawn) == lines
        for line in drawn:
            heights = np.asarray(line.get_ydata(), dtype=float)
            assert heights[-1] == pytest.approx(100)
            assert (np.diff(heights) >= 0).all()
    reads = panel(figure, "Sizes").lines[0]
    assert list(zip(np.asarray(reads.get_xdata()), np.asarray(reads.get_ydata()), strict=True))[1] == (
        4096,
        pytest.approx(100 * 2 / 3, abs=0.1),
    )


def test_the_caption_says_the_doubts_and_what_is_estimated() -> None:
    figure = page([(second * S, Op.READ, 0, 512) for second in range(20)])
    caption = " ".join(text.get_text().replace("\n", " ") for text in figure.texts)
    assert "Trace example.csv, 20 requests." in caption
    assert "Every time is a multiple of 1 s" in caption


@pytest.mark.parametrize(
    "rows",
    [
        [(0, Op.READ, 0, 512)],
        [(0, Op.FLUSH, 0, 0)],
        [(0, Op.TRIM, 1 << 42, 1 << 30), (9, Op.TRIM, 0, 512)],
        [(0, Op.WRITE, 0, 512)] * 5,
        [(0, Op.READ, 0, 512), (30 * 86400 * S, Op.WRITE, 1 << 20, 512)],
    ],
)
def test_a_trace_of_hardly_anything_has_a_page_and_tables(rows: list[Row]) -> None:
    statistics, heat_map = metered(rows)
    assert encode(trace_page(statistics, heat_map, "tiny"), "svg").startswith(b"<?xml")
    console = Console(width=100, file=StringIO())
    console.print(tables(statistics))


def test_a_report_is_the_same_for_the_same_trace(tmp_path: Path) -> None:
    statistics, heat_map = metered(MIXED)
    once, again = (write_report(statistics, heat_map, "x", tmp_path / name) for name in ("once", "again"))
    assert [path.name for path in once] == ["statistics.json", "trace.svg"]
    assert [path.read_bytes() for path in once] == [path.read_bytes() for path in again]


def test_stat_prints_the_figures_and_leaves_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "look"
    assert rackloop(["trace", "stat", str(DEMO), "--out", str(out)]) == EXIT_PASS
    said = capsys.readouterr().out
    assert "MSR Cambridge" in said
    assert "3,600 in 18 s, 200" in said
    assert "Burstiness by interval" in said
    assert json.loads((out / "statistics.json").read_text())["requests"] == 3600
    assert b"<svg" in (out / "trace.svg").read_bytes()


def test_json_is_all_of_standard_output_and_doubts_go_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = DEMO.parent.joinpath("spc.csv").read_text().splitlines()[:50]
    broken = tmp_path / "broken.spc"
    broken.write_text("\n".join([*lines[:20], "0,what,4096,r,1", *lines[20:]]) + "\n")
    assert rackloop(["trace", "stat", str(broken), "--json", "--from", "spc"]) == EXIT_PASS
    captured = capsys.readouterr()
    assert json.loads(captured.out)["requests"] == 50
    assert "malformed: 1 of 51 lines left out" in captured.err
    assert "line 21" in captured.err


@pytest.mark.parametrize("name", ["missing.csv", "empty.csv", "a-folder", "binary.csv", "cut.csv.gz"])
def test_what_is_no_trace_is_one_message_and_nothing_is_left(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, out = tmp_path / name, tmp_path / "look"
    match name:
        case "empty.csv":
            trace.touch()
        case "a-folder":
            trace.mkdir()
        case "binary.csv":
            trace.write_bytes(bytes(range(256)) * 64)
        case "cut.csv.gz":
            trace.write_bytes(DEMO.read_bytes()[:20_000])
    assert rackloop(["trace", "stat", str(trace), "--out", str(out)]) == EXIT_BAD_INPUT
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("rackloop: ")
    assert name in said
    assert not out.exists()


def test_a_volume_that_is_not_there_and_an_out_that_is_a_file_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rackloop(["trace", "stat", str(DEMO), "--volume", "nowhere"]) == EXIT_BAD_INPUT
    assert "nowhere" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert rackloop(["trace", "stat", str(DEMO), "--out", str(tmp_path / "file")]) == EXIT_BAD_INPUT
    assert "is a file" in capsys.readouterr().err
