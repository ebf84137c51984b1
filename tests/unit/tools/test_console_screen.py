"""The output of `rackloop console`, where a disk does not take it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rackloop_cli.console.verb import Screen
from rackloop_labs.console_lines import ConsoleLine, ConsoleLog
from tests.deadlines import CLOCK

LINES = (ConsoleLine(0, 0, "one"), ConsoleLine(0, 0, "two"))


def test_a_log_that_takes_no_more_is_told_and_what_is_heard_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "log"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    screen = Screen(is_terminal=False)
    screen.log = ConsoleLog(pipe, "a console", CLOCK)
    screen.take(LINES[:1])
    os.close(reader)
    screen.take(LINES[1:])
    screen.take(LINES)
    said = capsys.readouterr()
    assert said.out == "one\ntwo\none\ntwo\n"
    assert said.err == "[rackloop: the log cannot be written: Broken pipe; what comes now is not in it]\n"
    assert screen.is_unwritten
    screen.close_log()


def test_a_log_on_a_disk_with_room_is_written(tmp_path: Path) -> None:
    screen = Screen(is_terminal=False)
    screen.log = ConsoleLog(tmp_path / "log", "a console", CLOCK)
    screen.take(LINES)
    screen.close_log()
    assert not screen.is_unwritten
    assert [line.split()[-1] for line in (tmp_path / "log").read_text().splitlines()[-2:]] == ["one", "two"]
