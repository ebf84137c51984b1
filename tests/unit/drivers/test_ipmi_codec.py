"""What ipmitool prints on the controllers of several makers is understood, and what is no entry is not passed over."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rackloop.abilities import SystemEvent
from rackloop.errors import ProtocolError
from rackloop_drivers.power.ipmi import _codec as codec

AT = datetime(2026, 11, 21, 4, 7, 31, tzinfo=UTC)

LINES = [
    (
        "1,11/21/26,04:07:31 GMT,Power Unit #0x01,Power off/down,Asserted",
        SystemEvent(1, AT, "Power Unit #0x01", "Power off/down, Asserted"),
    ),
    (
        "a,11/21/2026,04:07:31,Temperature CPU1,Upper Critical going high,Asserted",
        SystemEvent(10, AT, "Temperature CPU1", "Upper Critical going high, Asserted"),
    ),
    (
        "1f,Pre-Init,0000000006,Power Supply #0x51,Failure detected,Deasserted",
        SystemEvent(31, None, "Power Supply #0x51", "Failure detected, Deasserted"),
    ),
    ("20,OEM record e0,000137010a0b", SystemEvent(32, None, "OEM record e0", "000137010a0b")),
    (
        "21,11/21/26,04:07:31 UTC,OEM record c0,000157,0a0b0c0d0e0f",
        SystemEvent(33, AT, "OEM record c0", "000157, 0a0b0c0d0e0f"),
    ),
    ("22,02/31/26,04:07:31 UTC,Fan,x", SystemEvent(34, None, "Fan", "x")),
]


@pytest.mark.parametrize(("line", "event"), LINES, ids=[line[:2].strip(",") for line, _ in LINES])
def test_a_line_of_the_log(line: str, event: SystemEvent) -> None:
    assert codec.log_events(line + "\n") == [event]


def test_an_empty_log() -> None:
    assert codec.log_events("\n") == []


def test_a_line_that_is_no_entry_is_shown() -> None:
    with pytest.raises(ProtocolError, match=r"no entry: 'SEL Record ID"):
        codec.log_events("SEL Record ID          : 0001\n")


@pytest.mark.parametrize(("printed", "is_on"), [("Chassis Power is on\n", True), ("Chassis Power is off\n", False)])
def test_power(printed: str, is_on: bool) -> None:
    assert codec.power_state(printed) is is_on


def test_no_power_state_is_an_error() -> None:
    with pytest.raises(ProtocolError, match="printed no power state: 'Chassis Power is unknown'"):
        codec.power_state("Chassis Power is unknown")


@pytest.mark.parametrize("printed", ["11/21/26 04:07:31 GMT\n", "11/21/2026 04:07:31\n", "11/21/2026 04:07:31 UTC"])
def test_the_logs_clock(printed: str) -> None:
    assert codec.log_time(printed) == AT


def test_a_clock_that_is_not_set_is_an_error() -> None:
    with pytest.raises(ProtocolError, match="printed no time: 'Unspecified'"):
        codec.log_time("Unspecified")
