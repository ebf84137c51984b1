"""What is typed at a console, and the escapes among it."""

from __future__ import annotations

import pytest

from rackloop_cli.console.keys import Command, KeyFilter

LEAVE, HELP = Command.LEAVE, Command.HELP


@pytest.mark.parametrize(
    ("typed", "sent", "commands"),
    [
        (b"ls\r", b"ls\r", []),
        (b"~.", b"", [LEAVE]),
        (b"ls ~.", b"ls ~.", []),
        (b"ls\r~.rm\r", b"ls\r", [LEAVE]),
        (b"~?x", b"x", [HELP]),
        (b"~~.", b"~.", []),
        (b"~a~.", b"~a~.", []),
        (b"\x03\n~.", b"\x03\n", [LEAVE]),
    ],
)
def test_escapes_count_at_the_beginning_of_a_line(typed: bytes, sent: bytes, commands: list[Command]) -> None:
    assert KeyFilter().feed(typed) == (sent, commands)
    keys, one_by_one, seen = KeyFilter(), b"", []
    for byte in typed:
        more, found = keys.feed(bytes([byte]))
        one_by_one += more
        seen += found
        if LEAVE in found:
            break
    assert (one_by_one, seen) == (sent, commands)
