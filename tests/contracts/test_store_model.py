"""`rackloop model store` with the real drivesim: good input and bad."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rackloop.lab import load_profile
from rackloop_cli.main import main
from rackloop_drivers.host import LocalExecutor
from rackloop_models.client import Setup, StoreOutcome, stores
from rackloop_models.drives import DriveSim, State
from tests.deadlines import soon

SMALL_BYTES = 1 << 28
SHORT = ("--clients", "2", "--records", "4000", "--seconds", "0.02", "--warm-up", "0.02")
# As long as it takes to have ten gets of each client beyond the p99.9.
LONG = (*SHORT, "--seconds", "0.1")


def test_the_client_is_compared_with_itself_without_a_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = ("--scheduler", "none", "--scheduler", "gimbal")
    assert main(["model", "store", *LONG, *pair, "--mix", "b", "--out", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    rows = {(row["scheduler"], row["ablation"]): row for row in document["rows"]}
    assert list(rows) == [
        ("none", None),
        ("gimbal", None),
        *(("gimbal", part) for part in ("limiter off", "steering off", "both off", "one replica")),
    ]
    assert document["simulated"] is True
    for row in rows.values():
        assert row["operations_per_s"] > 0
        assert len(row["f_utils"]) == 2
        assert row["errors"] == 0
        assert row["get_p99_ns"] <= row["worst_get_p99_ns"]
    assert rows["none", None]["second_replica_share"] == 0, "it shows no credit"
    assert 0.2 < rows["gimbal", None]["second_replica_share"] < 0.8
    assert rows["gimbal", "steering off"]["second_replica_share"] == 0
    assert rows["gimbal", "one replica"]["second_replica_share"] == 0
    for name in ("store.svg", "store-client.svg"):
        assert (tmp_path / name).read_bytes().startswith(b"<?xml")
    assert json.loads((tmp_path / "store.json").read_text()) == document
    assert {claim["ours"] for claim in document["claims"]} == {"not measured"}, "none is not among the paper's systems"
    assert (tmp_path / "store.csv").read_text().startswith("mix,seed,scheduler,")


def test_the_papers_two_figures_stand_beside_ours_by_scheduler_and_mix(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--scheduler", "gimbal", "--scheduler", "parda", "--mix", "a", "--mix", "b")
    assert main(["model", "store", *LONG, *asked, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    of = {(row["mix"], row["scheduler"]): row for row in document["rows"] if row["ablation"] is None}
    rates = {mix: of[mix, "gimbal"]["operations_per_s"] / of[mix, "parda"]["operations_per_s"] for mix in ("a", "b")}
    throughput, tail = document["claims"]
    assert throughput["ours"] == f"over parda x{rates['a']:.2f} (A), x{rates['b']:.2f} (B)"
    less = 1 - of["a", "gimbal"]["get_p99_9_ns"] / of["a", "parda"]["get_p99_9_ns"]
    assert f"over parda {abs(less):.1%} {'less' if less >= 0 else 'more'} (A)" in tail["ours"]
    assert [one["verdict"] for one in document["claims"]] == ["unknown", "unknown"]


def test_a_seed_gives_the_same_again(capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for seed in ("1", "1", "2"):
        assert main(["model", "store", *SHORT, "--scheduler", "none", "--seed", seed, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["rows"])
    assert found[0] == found[1] != found[2]


def test_what_others_did_before_changes_nothing(executor: LocalExecutor) -> None:
    setup = Setup(mix="a", clients=2, records=4000, depth=8, seconds=0.02, warm_up_s=0.02)
    sim = DriveSim(executor, load_profile("nvme-ssd"), size_bytes=SMALL_BYTES, seed=1, drives=4)

    def last_of(*schedulers: str) -> StoreOutcome:
        kinds = {name: {"kind": name} for name in schedulers}
        return stores(sim, setup, kinds, State.FRAGMENTED, soon())[-1]

    assert last_of("parda") == last_of("none", "parda")


def test_mixes_and_seeds_are_rows_of_their_own_and_figures_their_means(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = ("--mix", "b", "--mix", "e", "--seeds", "2", "--seed", "3", "--scheduler", "gimbal", "--out", str(tmp_path))
    assert main(["model", "store", *LONG, *both, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["mixes"], document["seed"], document["seeds"]) == (["b", "e"], 3, 2)
    runs = {(row["mix"], row["seed"]) for row in document["rows"]}
    assert runs == {("b", 3), ("b", 4), ("e", 3), ("e", 4)}
    assert len(document["rows"]) == 4 * 5
    assert all(row["get_p99_ns"] is None for row in document["rows"] if row["mix"] == "e"), "it scans and gets nothing"
    parts = (tmp_path / "store-client.svg").read_text()
    assert "YCSB B" in parts
    assert "YCSB E" not in parts
    assert "means of seeds 3 to 4" in parts


def test_the_table_has_means_of_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    two = ["model", "store", *SHORT, "--seeds", "2", "--scheduler", "none"]
    assert main([*two, "--json"]) == 0
    rates = [row["operations_per_s"] for row in json.loads(capsys.readouterr().out)["rows"]]
    assert main(two) == 0
    shown = capsys.readouterr().out
    assert f" {sum(rates) / 2:.0f} " in shown
    assert "x1.7" in shown


@pytest.mark.parametrize("choice", [("--scheduler", "none"), ("--scheduler", "gimbal", "--mix", "e")])
def test_without_gimbal_or_without_gets_no_parts_are_drawn(
    choice: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["model", "store", *SHORT, *choice, "--out", str(tmp_path)]) == 0
    names = ["store.csv", "store.json", "store.png", "store.svg"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert "store.svg, store.png are in" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--scheduler", "gimbl"), "did you mean 'gimbal'?"),
        (("--mix", "g"), "--mix g: there is none of that name"),
        (("--condition", "cleen"), "did you mean 'clean'?"),
        (("--profile", "sata-hdd"), "is no SSD"),
        (("--records", "20000000"), "the records of all clients with their replicas are"),
    ],
)
def test_bad_input_is_refused(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str) -> None:
    assert main(["model", "store", *SHORT, *arguments]) == 2
    told = capsys.readouterr().err
    assert said in " ".join(told.split())
    assert "Traceback" not in told
