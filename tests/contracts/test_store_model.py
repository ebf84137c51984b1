"""`rackloop model store` with the real drivesim: good input and bad."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rackloop_cli.main import main

SHORT = ("--clients", "2", "--records", "4000", "--seconds", "0.02", "--warm-up", "0.02")


def test_the_client_is_compared_with_itself_without_a_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = ("--scheduler", "none", "--scheduler", "gimbal")
    assert main(["model", "store", *SHORT, *pair, "--mix", "b", "--out", str(tmp_path), "--json"]) == 0
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
    assert (tmp_path / "store.svg").read_bytes().startswith(b"<?xml")


def test_a_seed_gives_the_same_again(capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for seed in ("1", "1", "2"):
        assert main(["model", "store", *SHORT, "--scheduler", "none", "--seed", seed, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["rows"])
    assert found[0] == found[1] != found[2]


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
