"""`rackloop model tenancy` with the real drivesim: good input and bad."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rackloop.lab import load_profile
from rackloop_cli.main import main
from rackloop_drivers.host import LocalExecutor
from rackloop_models.drives import Depth, DriveSim
from rackloop_models.tenancy import CONDITIONS, Condition, Outcome, Scenario, TenantKind, Timing, measured
from tests.deadlines import soon

SHORT = ("--tenants", "4", "--seconds", "0.05", "--warm-up", "0.05")
SMALL_BYTES = 1 << 28
CLEAN = ("--scenario", "sizes", "--condition", "clean", *SHORT)


def test_the_schedulers_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    pair = ("--scheduler", "none", "--scheduler", "gimbal:thresh_max_us=2000")
    assert main(["model", "tenancy", *CLEAN, *pair, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "sizes, clean, 4 tenants" in said
    assert "fairer in mixes than no scheduler" in said
    document = json.loads((out / "tenancy.json").read_text())
    assert document["simulated"] is True
    assert {row["scheduler"] for row in document["rows"]} == {"none", "gimbal:thresh_max_us=2000"}
    assert all(row["kind_bytes_per_s"] > 0 and 0 < row["jain"] <= 1 for row in document["rows"])
    assert [line["condition"] for line in document["time_lines"]] == ["clean"]
    assert document["sweeps"] == document["boxes"] == document["box_interference"] == []
    clean = document["time_lines"][0]
    cost = [value for _, value in clean["write_cost"]]
    assert cost[0] == 9
    assert min(cost) < 5, "writes that the buffer absorbs become cheap"
    before = [rate for at_s, rate in clean["bandwidths"]["writes"] if at_s < 0.9]
    assert set(before) == {0}
    for name in ("fairness", "tenants", "utilisation", "tail-latency", "distribution", "interference", "time-lines"):
        assert (out / f"{name}.svg").read_bytes().startswith(b"<?xml")
        assert f"![{name}]({name}.svg)" in (out / "index.md").read_text()


# Their parts are tests of their own: the curves of boxes, a drive behind a box's cores.
@pytest.mark.nightly
def test_sweeps_draw_boxes_of_the_same_drive(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["model", "tenancy", *CLEAN, "--scheduler", "none", "--sweeps", "--out", str(out)]) == 0
    document = json.loads((out / "tenancy.json").read_text())
    assert [box["name"] for box in document["boxes"]] == ["gimbal-smartnic", "x86-server"]
    assert len(document["sweeps"]) == 2
    cases = [(one["box"], one["case"], one["scheduler"]) for one in document["box_interference"]]
    assert cases[::2] == [
        (box, case, "none") for box in ("gimbal-smartnic", "x86-server") for case in ("its drive", "a core", "the link")
    ]
    assert all(one["loss"] == 1 - one["beside"] / one["alone"] for one in document["box_interference"])
    for name in ("sweeps", "iops-by-cores", "unloaded-latency", "interference-in-boxes"):
        assert (out / f"{name}.svg").read_bytes().startswith(b"<?xml")
        assert f"![{name}]({name}.svg)" in (out / "index.md").read_text()


def test_a_seed_gives_the_same_again(capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for seed in ("1", "1", "2"):
        assert main(["model", "tenancy", *CLEAN, "--scheduler", "gimbal", "--seed", seed, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["rows"])
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_what_others_did_before_changes_nothing(executor: LocalExecutor, condition: Condition) -> None:
    writer = TenantKind(name="writer", block_bytes=4096, arrivals=Depth(8), read_percent=0.0)
    scenario = Scenario("writers", condition, (writer,))
    sims = {1: DriveSim(executor, load_profile("nvme-ssd"), size_bytes=SMALL_BYTES, seed=1)}

    def last_of(*schedulers: str) -> Outcome:
        kinds = {name: {"kind": name} for name in schedulers}
        return measured(sims, (scenario,), (2,), kinds, Timing(0.01, 0.05), soon(), lambda *_: None)[-1]

    assert last_of("gimbal") == last_of("none", "parda", "gimbal")


TIGHT = """\
scenarios:
  - name: tight
    tenants:
      - {name: web, block: 4 KiB, depth: 8, slo: {iops: 900000, p95_us: 500}}
      - {name: batch, block: 4 KiB, depth: 8, read_percent: 0}
"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--scheduler", "gimbl"), "did you mean 'gimbal'?"),
        (
            ("--scheduler", "gimbal:thresh_maxus=1"),
            'unknown parameter "thresh_maxus" of scheduler gimbal; did you mean',
        ),
        (("--scheduler", "gimbal:thresh_max_us=-1"), "thresh_max_us is -1; give above 0"),
        (("--scheduler", "gimbal:thresh_max_us"), "is not NAME=VALUE"),
        (("--scheduler", "gimbal:thresh_max_us=much"), "'much', the value of thresh_max_us, is not JSON"),
        (("--scheduler", "flashfq:read_cost.base=1"), 'unknown parameter "base" of scheduler flashfq; did you mean'),
        (("--scheduler", "gimbal:priority_quotas=[16,4,2,0]"), "priority_quotas is 0; give 1 to 65536"),
        (("--scheduler", 'reflex:curve=[{"p95_us":5000}]'), "missing field"),
        (
            ("--scheduler", 'reflex:curve=[{"p95_us":5000,"tokens_per_s":1,"read_only_tokens_per_s":1}]'),
            "no tenant is served in the measured time, all together, by reflex",
        ),
        (("--scenario", "size"), "did you mean 'sizes'?"),
        (("--condition", "cleen"), "did you mean 'clean'?"),
        (("--profile", "sata-hdd"), "is of kind hdd"),
        (("--size", "1 GiB"), "give 4 GiB to 64 GiB"),
    ],
)
def test_bad_input_is_refused(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str) -> None:
    assert main(["model", "tenancy", *CLEAN, *arguments]) == 2
    told = capsys.readouterr().err
    assert said in " ".join(told.split())
    assert "Traceback" not in told
    assert "standard input" not in told


def test_an_objective_that_cannot_be_met_is_refused_with_its_sum(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tight.yaml"
    path.write_text(TIGHT)
    assert main(["model", "tenancy", str(path), *SHORT, "--scheduler", "reflex"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "CANTMEETSLO" in told
    assert "a read-only load has 850000 tokens/s at p95 500 us" in told
