"""`rackloop model cost`: the shipped inputs, those of a file, and files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rackloop.data import data_path
from rackloop_cli.main import main

SHIPPED = data_path("labs") / "costs" / "smartnic-box.yaml"


def test_the_costs_of_two_boxes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "cost", "--out", str(tmp_path / "out")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "smartnic saves 38.1% of the total of x86, and 0.0% of its purchase; published: 44 % of the total" in said
    document = json.loads((tmp_path / "out" / "cost.json").read_text())
    ends = {row["box"]: row for row in document["rows"] if row["years"] == 10}
    assert ends["x86"]["purchase_usd"] + ends["x86"]["operation_usd"] == pytest.approx(ends["x86"]["total_usd"])
    assert 1 - ends["smartnic"]["total_usd"] / ends["x86"]["total_usd"] == pytest.approx(
        document["saving_percent"] / 100
    )
    assert (tmp_path / "out" / "cost.svg").read_bytes().startswith(b"<?xml")


def test_other_inputs_give_another_saving(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dear.yaml"
    path.write_text(SHIPPED.read_text().replace("{value: 0.10,", "{value: 0.30,"))
    found = []
    for arguments in ([], ["--inputs", str(path)]):
        assert main(["model", "cost", *arguments, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[1]["saving_percent"] > 44 > found[0]["saving_percent"]
    assert found[1]["inputs"]["energy_usd_per_kwh"]["value"] == 0.3


def test_a_file_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "cost", "--inputs", str(tmp_path / "none.yaml")]) == 2
    told = capsys.readouterr().err
    assert "none.yaml" in told
    assert "Traceback" not in told
