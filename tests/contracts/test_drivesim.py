"""The drive models, in virtual time: every profile meets what was published of its drive, and a wrong one is told."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import interference_reference
from generated import between
from rackloop.data import data_path
from rackloop.errors import BadInput
from rackloop.lab import Profile, load_profile, profile_names
from rackloop.native import find_binary
from rackloop_cli.main import main
from rackloop_drivers.host import LocalExecutor
from rackloop_models.drives import (
    Check,
    Depth,
    Done,
    DriveSim,
    Idle,
    Load,
    LoadResult,
    Passes,
    Rate,
    Region,
    Requests,
    Sanitize,
    Seconds,
    Seek,
    SeekResult,
    published_checks,
)
from tests.deadlines import soon

GIB = 1 << 30
# A hard disk costs as little at any size; an SSD costs memory and time by its size.
SIZES = {True: 8 * GIB, False: 4 * GIB}


def checked(executor: LocalExecutor, profile: Profile) -> tuple[Check, ...]:
    """Every published figure beside the model's."""
    sim = DriveSim(executor, profile, size_bytes=SIZES[profile.is_rotational], seed=1)
    checks = published_checks(sim, soon(300))
    assert len(checks) == len(profile.published)
    return checks


def missed(checks: tuple[Check, ...]) -> dict[str, str]:
    """The figures that the model misses, and by how much."""
    return {check.published.figure: f"{check.deviation:+.1%}" for check in checks if not check.is_met}


@pytest.mark.parametrize("name", profile_names())
def test_a_profile_meets_its_published_figures(executor: LocalExecutor, name: str) -> None:
    profile = load_profile(name)
    assert bool(profile.published) is (profile.timing["kind"] != "ideal"), "only a drive without a model has no figures"
    checks = checked(executor, profile)
    assert missed(checks) == {}
    if name == interference_reference.PROFILE:
        written = between(interference_reference.PAGE, interference_reference.BEGIN)
        assert written == interference_reference.table(checks), "run: python tools/interference_reference.py"


@pytest.mark.parametrize(
    ("name", "changes", "figures"),
    [
        ("sata-hdd", {"rpm": "5400"}, {"rotation.latency.average"}),
        ("sata-hdd", {"average_seek_ms": "7.5"}, {"seek.read.average", "seek.write.average"}),
        ("sata-hdd", {"inner_mb_s": "100"}, {"sequential.read.inner"}),
        ("nvme-ssd", {"interface_mb_s": "1500"}, {"sequential.read"}),
        ("nvme-ssd", {"channel_mb_s": "250"}, {"neighbour.read.depth1.bandwidth"}),
        ("nvme-ssd", {"read_us": "62"}, {"randread.latency.average.4KiB"}),
        ("nvme-ssd", {"program_us": "2500"}, {"neighbour.write.loss"}),
    ],
)
def test_a_wrong_parameter_is_told(
    executor: LocalExecutor, name: str, changes: Mapping[str, str], figures: set[str]
) -> None:
    profile = load_profile(name)
    published = tuple(entry for entry in profile.published if entry.figure in figures)
    wrong = profile.with_parameters(changes).model_copy(update={"published": published})
    assert missed(checked(executor, wrong)).keys() == figures


LIFE = (
    Load(
        name="fill", pattern="sequential", block_bytes=1 << 20, arrivals=Depth(4), until=Passes(0.125), read_percent=0
    ),
    Load(
        name="busy",
        pattern="random",
        block_bytes=4096,
        arrivals=Rate(50),
        warm_up=Seconds(1),
        until=Seconds(20),
        read_percent=70,
        region=Region(0, GIB),
        interval_s=5,
    ),
    Idle(name="rest", seconds=30),
    Seek(name="arm", operation="read", distances=(0.0, 1.0), pairs=5),
    Sanitize(name="as new"),
)


def test_a_life_gives_a_result_for_each_experiment(executor: LocalExecutor) -> None:
    sim = DriveSim(executor, load_profile("sata-hdd"), size_bytes=8 * GIB, seed=5)
    fill, busy, rest, arm, new = results = sim.run(LIFE, soon(300))
    assert [result.name for result in results] == ["fill", "busy", "rest", "arm", "as new"]
    assert isinstance(fill, LoadResult)
    assert (fill.writes.bytes, fill.reads.requests) == (GIB, 0)
    assert isinstance(busy, LoadResult)
    assert busy.seconds == 20
    assert busy.total.requests == pytest.approx(1000, rel=0.1)
    assert busy.reads.requests == pytest.approx(700, rel=0.1)
    assert [interval.requests > 200 for interval in busy.intervals or ()] == [True] * 4
    assert isinstance(rest, Done)
    assert rest.end_s >= busy.start_s + 50
    assert isinstance(arm, SeekResult)
    assert arm.distances[1].positioning_ns > arm.distances[0].positioning_ns + 10e6
    assert arm.distances[0].revolution_ns == pytest.approx(60e9 / 7200, rel=0.001)
    assert isinstance(new, Done)


def test_a_branch_goes_on_from_the_drive_as_it_was_left(executor: LocalExecutor) -> None:
    sim = DriveSim(executor, load_profile("sata-hdd"), size_bytes=8 * GIB, seed=5)
    fill, busy, *_ = LIFE
    write, read = replace(busy, name="write", read_percent=0), replace(busy, name="read", read_percent=100)
    found = sim.run([fill], soon(300), branches=[[write, read], [read], [write]])
    assert [one.name for one in found] == ["fill", "write", "read", "read", "write"]
    assert found[:3] == sim.run([fill, write, read], soon(300))
    assert found[3:4] == sim.run([fill, read], soon(300))[1:]
    assert found[3] != found[2]
    assert found[4] == found[1]


def test_a_seed_decides_everything(executor: LocalExecutor) -> None:
    profile = load_profile("sata-hdd")
    first, again, other = (
        DriveSim(executor, profile, size_bytes=8 * GIB, seed=seed).run(LIFE, soon(300)) for seed in (5, 5, 6)
    )
    assert first == again
    assert first != other


def test_more_load_waits_longer_and_depth_serves_more(executor: LocalExecutor) -> None:
    sim = DriveSim(executor, load_profile("sata-hdd"), size_bytes=8 * GIB, seed=5)

    def random_reads(arrivals: Depth | Rate) -> Load:
        return Load(name="x", pattern="random", block_bytes=4096, arrivals=arrivals, until=Requests(3000))

    alone, deep, slow, fast = sim.run([random_reads(a) for a in (Depth(1), Depth(32), Rate(10), Rate(60))], soon(300))
    assert isinstance(alone, LoadResult)
    assert isinstance(deep, LoadResult)
    assert isinstance(slow, LoadResult)
    assert isinstance(fast, LoadResult)
    assert alone.total.iops is not None
    assert deep.total.iops is not None
    assert deep.total.iops > 2 * alone.total.iops
    assert slow.total.latency_ns is not None
    assert fast.total.latency_ns is not None
    assert fast.total.latency_ns.mean > 1.5 * slow.total.latency_ns.mean


def test_a_parameter_that_no_drive_has_is_named(executor: LocalExecutor) -> None:
    profile = load_profile("sata-hdd").with_parameters({"rpm": "0"})
    sim = DriveSim(executor, profile, size_bytes=8 * GIB, seed=1)
    with pytest.raises(BadInput, match=r"profile sata-hdd: timing: rpm is 0"):
        sim.run(LIFE, soon(300))


def drivesim(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(find_binary("drivesim")), *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)


def document(**changes: Any) -> str:
    return json.dumps(
        {"schema": 1, "timing": {"kind": "ideal"}, "bytes": 1 << 20, "sector_bytes": 512, "experiments": []} | changes
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "standard input: EOF"),
        ("[]", "standard input"),
        (document(schema=2), "schema 2"),
        (document(colour="red"), "colour"),
        (document(timing={"kind": "tape"}), "tape"),
        (document(timing={"kind": "hdd"}), "missing field"),
        (document(bytes=1000), "bytes 1000"),
        (document(sector_bytes=520), "sector_bytes 520"),
        (document(experiments=[{"kind": "idle", "name": "x", "seconds": 0}]), 'experiment "x": seconds 0'),
        (document(branches=[[], [{"kind": "idle", "name": "y", "seconds": 0}]]), 'experiment "y": seconds 0'),
    ],
)
def test_bad_input_is_one_line(text: str, said: str) -> None:
    done = drivesim(text)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_help_shows_an_example_that_works() -> None:
    shown = drivesim("", "--help").stdout
    example = shown.partition("drivesim <<'END'\n")[2].partition("  END")[0]
    results = [json.loads(line) for line in drivesim(example).stdout.splitlines()]
    assert [result["name"] for result in results] == ["fill", "busy", "arm", "rest", "as new"]


def test_the_command_says_what_is_missed_and_leaves_its_curves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (data_path("labs") / "profiles" / "sata-hdd.yaml").read_text(encoding="utf-8")
    slow = tmp_path / "slow-hdd.yaml"
    changed = re.sub(r"rpm: 7200", "rpm: 5400", text.replace("profile: sata-hdd", "profile: slow-hdd"))
    slow.write_text(changed, encoding="utf-8")
    out = tmp_path / "curves"
    assert main(["model", "curves", str(slow), "--out", str(out), "--size", "4 GiB", "--seed", "9"]) == 1
    shown = capsys.readouterr().out
    assert "simulated slow-hdd" in shown
    assert re.search(r"rotation\.latency\.average +5\.56 ms +4\.16 ms +3% +\+33\.\d% +missed", shown)
    found = json.loads((out / "curves.json").read_text(encoding="utf-8"))
    assert (found["simulated"], found["bytes"], found["seed"]) == (True, 4 * GIB, 9)
    verdicts = {entry["figure"]: entry["verdict"] for entry in found["figures"]}
    assert verdicts["rotation.latency.average"] == "missed"
    assert verdicts["sequential.read.outer"] == "met"
    assert (out / "curves.svg").read_bytes().startswith(b"<?xml")
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")
