"""Options of `lab quarantine` that contradict each other."""

from __future__ import annotations

import pytest

from rackloop_cli.main import main


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--retest", "d01", "--lift", "d02"], "give one of them"),
        (["--retest", "d01", "--json"], "leave it out with --retest"),
        (["--lift", "d01", "--json"], "leave it out with --lift"),
        (["--reason", "a new cable"], "give it with --lift NAME"),
        (["--retest", "d01", "--reason", "a new cable"], "give it with --lift NAME"),
    ],
)
def test_an_option_that_would_have_no_effect_is_refused(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", "quarantine", "mock", *options]) == 2
    assert said in capsys.readouterr().err
