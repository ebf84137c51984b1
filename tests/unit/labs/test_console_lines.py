"""Lines made of what a console says, with their moments, and the file of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackloop.abilities import Heard
from rackloop.clock import VirtualClock
from rackloop_labs.console_lines import ConsoleLine, ConsoleLog, LineAssembler


def test_a_line_has_the_moment_of_its_first_byte() -> None:
    lines = LineAssembler()
    assert list(lines.feed(Heard(b"one\r\ntw", 100, 200))) == [ConsoleLine(150, 50, "one")]
    assert list(lines.feed(Heard(b"o\r\n", 900, 1000))) == [ConsoleLine(150, 50, "two")]


def test_a_prompt_is_told_when_asked_for() -> None:
    lines = LineAssembler()
    assert list(lines.feed(Heard(b"srv1 login: ", 0, 20))) == []
    assert list(lines.flush()) == [ConsoleLine(10, 10, "srv1 login:")]
    assert list(lines.flush()) == []


def test_terminal_controls_are_left_out() -> None:
    said = b"\x1b[1;31mKernel\x1b[0m panic\x07\x00 - not\xff syncing\x1b(B\r\n"
    assert [line.text for line in LineAssembler().feed(Heard(said, 0, 0))] == ["Kernel panic - not\ufffd syncing"]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        # A shell sets a window's title, systemd marks who logs in and asks the terminal for its name.
        (b"\x1b]0;root@srv1: ~\x07root@srv1:~# ", "root@srv1:~#"),
        (b"\x1b]3008;start=c0ffee;type=boot\x1b\\srv1 login: ", "srv1 login:"),
        (b"\x1bP+q544e\x1b\\[  OK  ] Started ssh", "[  OK  ] Started ssh"),
        # One that does not end leaves what it holds.
        (b"\x1b]Kernel panic", "Kernel panic"),
        # The one character that begins a control as ESC [ does.
        ("\u009b31mred".encode(), "31mred"),
    ],
)
def test_controls_that_hold_text_are_left_out_with_it(said: bytes, text: str) -> None:
    assert [line.text for line in LineAssembler().feed(Heard(said + b"\r\n", 0, 0))] == [text]


def test_secrets_are_covered_up() -> None:
    lines = LineAssembler(("swordfish",))
    heard = [*lines.feed(Heard(b"ipmitool -P sword", 0, 0)), *lines.feed(Heard(b"fish sol\r\n", 0, 0))]
    assert [line.text for line in heard] == ["ipmitool -P *** sol"]


def test_what_never_ends_a_line_is_told_in_pieces() -> None:
    lines = list(LineAssembler().feed(Heard(b"x" * 5000 + b"\n", 0, 0)))
    assert "".join(line.text for line in lines) == "x" * 5000


def test_the_file_has_both_clocks_and_the_bound(tmp_path: Path) -> None:
    clock = VirtualClock(start_ns=5_000_000_000)
    log = ConsoleLog(tmp_path / "console" / "srv1.log", "Console of srv1", clock)
    remark = ConsoleLine(7_000_000_000, 0, "gap: lost", is_remark=True)
    log.write([ConsoleLine(6_500_000_000, 25_000_000, "[    1.0] text"), remark])
    # A run that is killed leaves every line that was handed over.
    title, columns, *lines = (tmp_path / "console" / "srv1.log").read_text().splitlines()
    log.close()
    assert title == "# Console of srv1"
    assert "give or take" in columns
    assert lines == [
        "2026-01-01T00:00:06.500000Z         6.500000 ±0.025000  [    1.0] text",
        "2026-01-01T00:00:07.000000Z         7.000000 ±0.000000  --- gap: lost ---",
    ]
