"""Drive models held against published figures: what is measured, on which drives, and what is made of it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from rackloop.abilities import Completed
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import BadInput, ProtocolError, ToolError
from rackloop.lab import Profile, Published, load_profile
from rackloop_models.drives import Check, Curve, DriveSim, Idle, characterized, published_checks
from rackloop_reports.plots import ModelCurve, PublishedPoint, SimulatedDrive, drive_model_sheet
from tests.unit.models.run_only_executor import RunOnlyExecutor

SOON = Deadline.after(VirtualClock(), 60)
GIB = 1 << 30
MEAN_NS = 2_000_000.0


def figures(iops: float) -> dict[str, Any]:
    latency = {"mean": MEAN_NS, "min": 1, "p50": 2, "p90": 3, "p99": 5_000_000, "p99_9": 6, "max": 7}
    return {"requests": 10, "bytes": 4096, "iops": iops, "bytes_per_s": iops * 4096, "latency_ns": latency}


def answer(experiment: dict[str, Any]) -> dict[str, Any]:
    """A result as drivesim prints it: 100 IOPS for each request in flight, 3 ms for any seek."""
    named = {"name": experiment["name"], "kind": experiment["kind"]}
    match experiment["kind"]:
        case "load":
            arrivals = experiment["arrivals"]
            total = figures(arrivals["depth"] * 100 if "depth" in arrivals else arrivals["per_second"])
            interval = {"requests": 5, "bytes": 2048, "mean_latency_ns": 1, "max_latency_ns": 2}
            rest = {"start_s": 0, "seconds": 1, "errors": 0, "total": total, "reads": total, "writes": total}
            interval_s = experiment.get("interval_s")
            return named | rest | {"interval_s": interval_s, "intervals": [interval, interval] if interval_s else None}
        case "seek":
            asked = experiment.get("distances", [None])
            found = [
                {
                    "distance": distance,
                    "positioning_ns": 50_000 if distance == 0 else 3_050_000,
                    "least_positioning_ns": 50_000 if distance == 0 else 1_050_000,
                    "revolution_ns": 8_000_000,
                }
                for distance in asked
            ]
            return named | {"pairs": experiment["pairs"], "distances": found}
        case _:
            return named | {"end_s": 1.0}


@dataclass
class Host(RunOnlyExecutor):
    """An Executor that answers as drivesim would of a very simple drive, and remembers what it was asked."""

    status: int = 0
    stdout: str | None = None
    stderr: str = ""
    documents: list[dict[str, Any]] = field(default_factory=list)

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        assert deadline is SOON
        document = json.loads(stdin)
        self.documents.append(document)
        lines = "".join(json.dumps(answer(experiment)) + "\n" for experiment in document["experiments"])
        return Completed(tuple(argv), self.status, lines if self.stdout is None else self.stdout, self.stderr)


def with_published(name: str, *entries: Published) -> Profile:
    return load_profile(name).model_copy(update={"published": entries})


def published(figure: str, value: float, within: float = 0.1) -> Published:
    return Published.model_construct(figure=figure, value=value, within=within, source="a data sheet")


def sim(host: Host, profile: Profile) -> DriveSim:
    return DriveSim(host, profile, size_bytes=8 * GIB, seed=3, binary="drivesim")


@pytest.mark.parametrize(
    ("profile", "figure", "model"),
    [
        ("sata-hdd", "seek.read.average", 3e-3),
        ("sata-hdd", "seek.write.average", 3e-3),
        ("sata-hdd", "seek.track", 1e-3),
        ("sata-hdd", "seek.full", 1e-3),
        ("sata-hdd", "rotation.latency.average", 4e-3),
        ("sata-hdd", "sequential.read.inner", 400 * 4096),
        ("sata-hdd", "randread.iops.depth8.4KiB", 800),
        ("sata-hdd", "randread.latency.average.4KiB", MEAN_NS / 1e9),
        ("nvme-ssd", "sequential.write", 3200 * 4096),
        ("nvme-ssd", "randwrite.clean.iops.depth4.16KiB", 400),
        ("nvme-ssd", "randwrite.latency.average.4KiB", MEAN_NS / 1e9),
        ("nvme-ssd", "fragmented.write.ratio", 1.0),
        ("nvme-ssd", "mixed5.iops.loss", 0.0),
    ],
)
def test_a_figure_is_found_by_experiments_of_its_own(profile: str, figure: str, model: float) -> None:
    host = Host()
    (check,) = published_checks(sim(host, with_published(profile, published(figure, 1.0))), SOON)
    assert check.model == pytest.approx(model)
    assert all(document["seed"] == 3 and document["bytes"] == 8 * GIB for document in host.documents)


def test_a_figures_name_says_what_is_asked_of_the_drive() -> None:
    host = Host()
    published_checks(sim(host, with_published("nvme-ssd", published("randwrite.iops.depth64.16KiB", 1.0))), SOON)
    fill, overwrite, load = host.documents[-1]["experiments"]
    assert (fill["pattern"], fill["read_percent"], fill["until"]) == ("sequential", 0, {"passes": 1})
    assert (overwrite["pattern"], overwrite["block_bytes"], overwrite["read_percent"]) == ("random", 4096, 0)
    assert (load["arrivals"], load["block_bytes"], load["read_percent"]) == ({"depth": 64}, 16384, 0)


def test_a_drive_is_fragmented_once_and_others_are_each_as_new() -> None:
    host = Host()
    entries = [
        published(figure, 1.0)
        for figure in (
            "randwrite.iops.depth1.4KiB",
            "randwrite.iops.depth32.4KiB",
            "mixed5.iops.loss",
            "randread.iops.depth1.4KiB",
            "randwrite.clean.iops.depth1.4KiB",
        )
    ]
    published_checks(sim(host, with_published("nvme-ssd", *entries)), SOON)
    overwritten = [
        document for document in host.documents if any(act["name"] == "overwrite" for act in document["experiments"])
    ]
    # The first asks only whether the parameters are good ones.
    assert [bool(document["experiments"]) for document in host.documents] == [False, True, True, True]
    assert len(overwritten) == 1


@pytest.mark.parametrize(
    ("model", "is_met"), [(1.0, True), (1.099, True), (0.901, True), (1.101, False), (0.899, False)]
)
def test_a_figure_is_met_within_its_bounds(model: float, is_met: bool) -> None:
    check = Check(published("seek.track", 1000, within=0.1), model * 1000)
    assert check.is_met is is_met
    assert check.deviation == pytest.approx(model - 1)


@pytest.mark.parametrize(
    ("profile", "figure", "known"),
    [
        ("sata-hdd", "seek.sideways", "seek.track"),
        ("sata-hdd", "randread.iops.depthX.4KiB", "(rand|seq)(read|write)"),
        ("sata-hdd", "mixed5.iops.loss", "rotation.latency.average"),
        ("nvme-ssd", "randread.clean.iops.depth1.4KiB", "sequential.write"),
        ("nvme-ssd", "seek.track", "mixed5.iops.loss"),
    ],
)
def test_a_figure_that_nothing_measures_is_named(profile: str, figure: str, known: str) -> None:
    with pytest.raises(BadInput, match=f"profile {profile}: nothing measures .*{figure}.*known: .*{re.escape(known)}"):
        published_checks(sim(Host(), with_published(profile, published(figure, 1.0))), SOON)


@pytest.mark.parametrize(
    ("host", "error", "said"),
    [
        (Host(status=2, stderr="drivesim: timing: rpm is 0\n"), BadInput, "^profile sata-hdd: timing: rpm is 0$"),
        (Host(status=3, stderr="drivesim: the drive model idles\n"), ToolError, "status 3: drivesim: the drive model"),
        (Host(stdout="{}\n"), ProtocolError, "what is no result"),
        (Host(stdout=""), ProtocolError, "0 results for 1 experiments"),
    ],
)
def test_what_drivesim_says_is_judged(host: Host, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        sim(host, load_profile("sata-hdd")).run([Idle(name="rest", seconds=1)], SOON)


def curves_of(name: str, *entries: Published) -> tuple[Curve, ...]:
    told: list[tuple[int, int]] = []
    _, curves = characterized(sim(Host(), with_published(name, *entries)), SOON, lambda *at: told.append(at))
    assert [over for over, _ in told] == list(range(1, len(told) + 1))
    assert {of for _, of in told} == {len(told)}
    return curves


HDD = ("depth", "depth.latency", "seek", "zones", "cache", "load")
SSD = ("depth", "depth.latency", "blocks", "cliff", "mix", "load")
SMR = ("depth", "depth.latency", "seek", "zones", "shingled", "load")


@pytest.mark.parametrize(("name", "names"), [("sata-hdd", HDD), ("nvme-ssd", SSD), ("smr-hdd", SMR)])
def test_a_kind_has_its_curves_and_a_panel_for_each(name: str, names: tuple[str, ...]) -> None:
    curves = curves_of(name)
    assert tuple(curve.name for curve in curves) == names
    assert all(points for curve in curves for points in curve.lines.values())
    sheet = drive_model_sheet(
        [ModelCurve(curve.name, curve.lines, ()) for curve in curves], SimulatedDrive(name, "a drive", 8 * GIB, 3)
    )
    assert len([axes for axes in sheet.axes if axes.get_visible()]) == len(names)
    assert all(axes.get_xlabel() and axes.get_ylabel() for axes in sheet.axes if axes.get_visible())


def test_an_ideal_drive_has_no_curves() -> None:
    ideal = load_profile("nvme-ssd").model_copy(update={"timing": {"kind": "ideal"}, "published": ()})
    assert characterized(sim(Host(), ideal), SOON, lambda *_: None) == ((), ())


def test_the_load_goes_up_to_what_the_drive_serves() -> None:
    load = curves_of("sata-hdd")[-1]
    offered = [rate for rate, _ in load.lines["mean"]]
    assert offered == sorted(offered)
    # 32 in flight give 3200 IOPS here.
    assert offered[-1] == pytest.approx(0.95 * 3200)


@pytest.mark.parametrize(
    ("figure", "curve", "x"),
    [
        ("seek.full", "seek", 1.0),
        ("sequential.read.outer", "zones", 0.0),
        ("randread.iops.depth16.4KiB", "depth", 16.0),
        ("randread.latency.average.4KiB", "depth.latency", 1.0),
    ],
)
def test_a_published_figure_is_marked_where_it_lies(figure: str, curve: str, x: float) -> None:
    marks = {found.name: found.marks for found in curves_of("sata-hdd", published(figure, 5.0))}
    (mark,) = marks.pop(curve)
    assert (mark.figure, mark.x, mark.y, mark.source) == (figure, x, 5.0, "a data sheet")
    assert not any(marks.values())


def test_a_sheet_says_what_is_simulated_and_what_was_published() -> None:
    point = PublishedPoint("seek.full", 1.0, 16e-3, "product manual, section 2")
    curve = ModelCurve("seek", {"read": [(0.5, 10e-3), (1.0, 15e-3)]}, [point])
    sheet = drive_model_sheet([curve], SimulatedDrive("sata-hdd", "Drive X 4 TB", 8 * GIB, 3))
    said = " ".join(text.get_text().replace("\n", " ") for text in sheet.texts)
    assert "[1] product manual, section 2." in said
    assert "8 GiB, seed 3" in said
    assert sheet.get_suptitle() == "sata-hdd, like Drive X 4 TB (simulated)"
    axes = sheet.axes[0]
    assert axes.get_ylabel() == "Seek time, ms"
    line, mark = axes.lines
    assert np.asarray(line.get_xydata()).tolist() == [[50.0, 10.0], [100.0, 15.0]]
    assert np.asarray(mark.get_xydata()).tolist() == [[100.0, 16.0]]
    assert mark.get_marker() == "D"
