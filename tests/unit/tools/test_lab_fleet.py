"""Checking many descriptions: each on its own, all against one another, and what the command says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rackloop.errors import BadInput, DescriptionError
from rackloop.lab import Lab, check_files
from rackloop_cli.lab import check as lab_check

LABS = Path(__file__).parents[3] / "labs"

RACK = """\
name: NAME
kind: mock
fabric: {driver: flexfabric}
servers:
  srv1: {ports: {p0: 1}}
drives:
  d01: {profile: sata-ssd, serial: SERIAL, wwn: 5000c500a000WWN, size: 8 GiB, port: 3, scratch: true}
"""


def write(folder: Path, name: str, serial: str, wwn: str) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(RACK.replace("NAME", name).replace("SERIAL", serial).replace("WWN", wwn))
    return path


def test_the_labs_that_are_shipped_are_sound() -> None:
    checked = check_files([LABS])
    assert [path.name for path, _ in checked] == sorted(path.name for path in LABS.glob("*.yaml"))
    assert all(isinstance(lab, Lab) for _, lab in checked)


def test_a_fleet_has_each_name_and_each_drive_once(tmp_path: Path) -> None:
    first, second = write(tmp_path, "a", "S1", "0001"), write(tmp_path, "b", "S1", "0002")
    third = write(tmp_path, "c", "S3", "0001")
    third.write_text(third.read_text().replace("name: c", "name: a"))
    checked = dict(check_files([tmp_path]))
    assert isinstance(checked[first], Lab)
    assert str(checked[second]) == (
        f"{second}:7:36: drives.d01.serial: the serial S1 is already given at drives.d01.serial in {first}; "
        "a fleet has each once"
    )
    found = checked[third]
    assert isinstance(found, DescriptionError)
    assert [(problem.line, problem.path) for problem in found.problems] == [(1, "name"), (7, "drives.d01.wwn")]


def test_a_broken_rack_still_counts_in_its_fleet(tmp_path: Path) -> None:
    write(tmp_path, "a", "S1", "0001")
    broken = write(tmp_path, "b", "S1", "0002")
    broken.write_text(broken.read_text().replace("8 GiB", "8").replace("name: b", "name: 1"))
    found = dict(check_files([tmp_path]))[broken]
    assert isinstance(found, DescriptionError)
    assert [problem.path for problem in found.problems] == ["name", "drives.d01.serial", "drives.d01.size"]


def test_a_file_given_twice_does_not_clash_with_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "a", "S1", "0001")
    monkeypatch.chdir(tmp_path)
    assert [type(lab) for _, lab in check_files([path, Path("a.yaml"), tmp_path])] == [Lab]


def test_the_command_prints_a_line_a_problem_and_a_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "a", "S1", "0001")
    bad = write(tmp_path, "b", "S2", "0002")
    bad.write_text(bad.read_text().replace("size: 8 GiB", "siz: 8 GiB"))
    assert lab_check.run([str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == "2 files, 1 with problems, 2 problems\n"
    assert err.splitlines() == [
        f"{bad}:7:3: drives.d01.size: is missing: The size, such as 8 GiB or 1.92 TB.",
        f"{bad}:7:63: drives.d01.siz: unknown key; did you mean 'size'?",
    ]


def test_the_command_takes_names_and_is_content_with_sound_labs(capsys: pytest.CaptureFixture[str]) -> None:
    assert lab_check.run(["mock"]) == 0
    assert capsys.readouterr() == ("1 file, 0 with problems, 0 problems\n", "")


def test_the_command_answers_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = write(tmp_path, "a", "S1", "0001"), tmp_path / "b.yaml"
    bad.write_text("a: [\n")
    assert lab_check.run([str(tmp_path)], json=True) == 2
    out, err = capsys.readouterr()
    assert err == ""
    answer = json.loads(out)
    assert answer["files"][0] == {"file": str(good), "problems": [], "here": []}
    [problem] = answer["files"][1]["problems"]
    assert (problem["line"], problem["column"], problem["path"]) == (2, 1, "")


def test_the_command_needs_something_to_check(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nothing to check"):
        lab_check.run([])
    with pytest.raises(BadInput, match=r"no \.yaml file in"):
        lab_check.run([str(tmp_path)])
    with pytest.raises(BadInput, match="no lab description is named 'nowhere'"):
        lab_check.run(["nowhere"])
