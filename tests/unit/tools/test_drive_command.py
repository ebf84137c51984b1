"""`rackloop model`: what can be said without simulating anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackloop.lab import profile_names
from rackloop_cli.main import main


def test_the_profiles_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "list"]) == 0
    shown = capsys.readouterr().out
    assert [name for name in profile_names() if name not in shown] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sata-hd"], "did you mean 'sata-hdd'?"),
        (["no/such.yaml"], "no drive profile at no/such.yaml"),
        (["sata-hdd", "--size", "much"], "--size: expected a quantity in B"),
        (["sata-hdd", "--size", "1 MiB"], "--size 1 MiB: give 4 GiB to 64 GiB"),
        (["sata-hdd", "--out", "{file}"], "name a directory that can be made"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()
    assert main(["model", "curves", *(word.format(file=file) for word in arguments)]) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""
