"""What rackd records of the requests that a drive was asked, and when."""

from __future__ import annotations

import pytest

from rackloop.clock import Deadline
from rackloop_drivers.rackd import RecordedIo
from tests.deadlines import CLOCK
from tests.nbd_wire import EIO, FLUSH, READ, TRIM
from tests.rack_session import SLOW_S, Rack, Start, pattern


@pytest.fixture
def rack(start: Start) -> Rack:
    return start()


def record(rack: Rack, drive: str = "d01", *, on: bool = True) -> None:
    rack.control.record_io(drive, Deadline.after(CLOCK, SLOW_S), on=on)


def recorded(rack: Rack, drive: str = "d01") -> RecordedIo:
    return rack.control.recorded_io(drive, Deadline.after(CLOCK, SLOW_S))


def test_every_request_is_recorded_with_when_it_came_and_was_answered(rack: Rack) -> None:
    with rack.open_export("drive.d01") as wire:
        wire.write(0, pattern(1))
        assert recorded(rack).requests == []
        record(rack)
        began_ns = CLOCK.now_ns()
        wire.write(8192, pattern(2))
        wire.read(8192, 512)
        wire.plain(TRIM, 4096, 4096)
        wire.plain(FLUSH)
        record(rack, on=False)
        wire.read(0, 512)
    found = recorded(rack)
    asked = [(one.kind, one.offset, one.length) for one in found.requests]
    assert asked == [("write", 8192, 4096), ("read", 8192, 512), ("trim", 4096, 4096), ("flush", 0, 0)]
    stamps = [stamp for one in found.requests for stamp in (one.arrived_ns, one.answered_ns)]
    assert stamps == sorted(stamps)
    assert began_ns < stamps[0]
    assert found.lost == 0


def test_a_slow_drive_is_recorded_with_the_time_it_took_and_failures_are_there(rack: Rack) -> None:
    rack.ask("fault", drive="d01", fault={"kind": "slow", "extra_us": 2000})
    rack.ask("fault", drive="d01", fault={"kind": "media_error", "lba": 0, "sectors": 1, "mode": "once"})
    record(rack)
    with rack.open_export("drive.d01") as wire:
        assert wire.read(0, 512)[0] == EIO
    (one,) = recorded(rack).requests
    assert one.answered_ns - one.arrived_ns >= 2_000_000


def test_through_whatever_export_a_drive_is_reached_it_records(rack: Rack) -> None:
    rack.map((1, 101))
    record(rack)
    with rack.open_export("srv1.p0") as through_port, rack.open_export("drive.d01") as direct:
        through_port.read(512, 512)
        direct.read(1024, 512)
    assert [one.offset for one in recorded(rack).requests] == [512, 1024]
    assert recorded(rack, "d02").requests == []


def test_more_records_than_one_answer_holds_come_whole_and_in_order(rack: Rack) -> None:
    record(rack)
    count = 25_000
    with rack.open_export("drive.d01") as wire:
        for first in range(0, count, 100):
            for number in range(first, first + 100):
                wire.send(READ, number * 8, 8)
            for _ in range(100):
                wire.reply(8)
    assert [one.offset for one in recorded(rack).requests] == [number * 8 for number in range(count)]


def test_beginning_anew_forgets_what_was_recorded(rack: Rack) -> None:
    record(rack)
    with rack.open_export("drive.d01") as wire:
        wire.read(0, 512)
        record(rack)
        wire.read(512, 512)
    assert [one.offset for one in recorded(rack).requests] == [512]
    assert rack.refused("record_io", drive="d77", on=True) == "unknown_drive"
    assert rack.refused("recorded_io", drive="d01", **{"from": -1}) == "bad_request"
