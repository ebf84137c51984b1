"""What a mock server prints on its serial line."""

from __future__ import annotations

import pytest

from rackloop_drivers.boxes import SerialLine
from rackloop_labs.mock_hosts._console import KILLED_INIT, SYSRQ, MockConsole
from rackloop_labs.mock_hosts._view import KernelLine


@pytest.fixture
def line() -> SerialLine:
    return SerialLine()


@pytest.fixture
def said(line: SerialLine) -> bytearray:
    said = bytearray()
    line.listen(said.extend)
    return said


def test_the_kernels_messages_are_printed_but_those_for_debugging(line: SerialLine, said: bytearray) -> None:
    MockConsole("srv1", line).tell([KernelLine(1_500_000, "one", 3), KernelLine(1_600_000, "two", 7)])
    assert said == b"[    1.500000] one\r\n"


def test_nobody_can_log_in_and_no_password_is_echoed(line: SerialLine, said: bytearray) -> None:
    MockConsole("srv1", line).up()
    said.clear()
    line.type(b"roox\x7ft\rsecret\r")
    assert said == b"roox\b \bt\r\nPassword: \r\n\r\nLogin incorrect\r\nsrv1 login: "


@pytest.mark.parametrize("why", [SYSRQ, KILLED_INIT])
def test_a_kernel_that_panics_says_so_and_nothing_more(line: SerialLine, said: bytearray, why: str) -> None:
    console = MockConsole("srv1", line)
    console.up()
    console.panic(2_000_000, why)
    assert f"[    2.000000] Kernel panic - not syncing: {why}\r\n".encode() in said
    said.clear()
    line.type(b"\r")
    assert not said


def test_a_halt_is_no_panic(line: SerialLine, said: bytearray) -> None:
    MockConsole("srv1", line).halt(1_000_000)
    assert said == b"[    1.000000] reboot: System halted\r\n"
