"""What goes wrong in rackd on purpose: drives with faults, lost signals, lost power; and expanders."""

from __future__ import annotations

import pytest

from tests.deadlines import CLOCK
from tests.nbd_wire import EIO, ENOSPC, FLUSH, FUA, NO_HOLE, READ, TRIM, WRITE_ZEROES
from tests.rack_session import Rack, Start, mark_drives, pattern
from tests.rackd_process import drive

SECTOR = 512


@pytest.fixture
def rack(start: Start) -> Rack:
    return start()


def media_error(rack: Rack, **fields: object) -> int:
    fault = {"kind": "media_error", "lba": 8, "sectors": 4} | fields
    return int(rack.ask("fault", drive="d01", fault=fault)["fault_id"])


def test_a_media_error_once_hits_one_read_of_its_sectors(rack: Rack) -> None:
    fault_id = media_error(rack, mode="once")
    rack.wait_for("fault", drive="d01", fault_id=fault_id)
    with rack.open_export("drive.d01") as wire:
        assert wire.read(7 * SECTOR, SECTOR)[0] == 0
        assert wire.read(7 * SECTOR, 2 * SECTOR)[0] == EIO
        rack.wait_for("io_error", drive="d01", lba=8, errno=EIO)
        assert wire.read(7 * SECTOR, 2 * SECTOR)[0] == 0
    assert rack.ask("drive_stats", drive="d01")["media_errors"] == 1


def test_a_media_error_hits_as_often_as_it_says(rack: Rack) -> None:
    media_error(rack, mode="times", times=3, on="both")
    with rack.open_export("drive.d01") as wire:
        found = [wire.read(8 * SECTOR, 1)[0], wire.write(11 * SECTOR, b"x"), wire.read(12 * SECTOR, SECTOR)[0]]
        assert found == [EIO, EIO, 0]
        assert [wire.read(9 * SECTOR, SECTOR)[0] for _ in range(2)] == [EIO, 0]


def test_bad_sectors_heal_one_by_one_when_they_are_written(rack: Rack) -> None:
    media_error(rack, mode="until_rewritten")
    with rack.open_export("drive.d01") as wire:
        assert wire.write(8 * SECTOR, pattern(1, 2 * SECTOR)) == 0
        assert wire.read(8 * SECTOR, 2 * SECTOR) == (0, pattern(1, 2 * SECTOR))
        assert [wire.read(10 * SECTOR, SECTOR)[0] for _ in range(2)] == [EIO, EIO]
        assert wire.plain(WRITE_ZEROES, 10 * SECTOR, 2 * SECTOR) == 0
        assert wire.read(8 * SECTOR, 4 * SECTOR)[0] == 0


def test_an_error_on_writes_leaves_reads_alone_until_it_is_cleared(rack: Rack) -> None:
    fault_id = media_error(rack, mode="until_rewritten", on="write")
    with rack.open_export("drive.d01") as wire:
        assert wire.read(8 * SECTOR, SECTOR)[0] == 0
        assert wire.write(8 * SECTOR, pattern(1, SECTOR)) == EIO
    with rack.open_export("drive.d01") as wire:
        assert rack.ask("clear_fault", fault_id=fault_id)["cleared"] == [fault_id]
        rack.wait_for("fault_cleared", fault_id=fault_id)
        assert wire.write(8 * SECTOR, pattern(1, SECTOR)) == 0
    assert rack.ask("clear_fault", fault_id=fault_id)["cleared"] == []


def test_a_corrupt_drive_answers_flipped_bits_and_keeps_its_data(rack: Rack) -> None:
    mark_drives(rack, 1)
    rack.ask("fault", drive="d01", fault={"kind": "corrupt", "lba": 1, "sectors": 2})
    with rack.open_export("drive.d01") as wire:
        errno, data = wire.read(100, 2000)
        assert errno == 0
        assert data == pattern(1, SECTOR - 100) + pattern(0, 2 * SECTOR) + pattern(1, 2100 - 3 * SECTOR)
        rack.ask("clear_fault", drive="d01")
        assert wire.read(0, 4096) == (0, pattern(1))


def test_a_slow_drive_takes_its_time_without_holding_others_up(rack: Rack) -> None:
    mark_drives(rack, 1)
    rack.ask("fault", drive="d01", fault={"kind": "slow", "extra_us": 20_000})
    with rack.open_export("drive.d01") as wire:
        began_ns = CLOCK.now_ns()
        cookies = {wire.send(READ, 0, 4096) for _ in range(8)}
        assert {wire.reply(4096) for _ in cookies} == {(cookie, 0, pattern(1)) for cookie in cookies}
        assert CLOCK.now_ns() - began_ns >= 20_000_000
    rack.wait_lateness(8)


def test_a_slow_request_whose_link_is_lost_goes_to_the_next_drive(rack: Rack) -> None:
    mark_drives(rack, 1, 2)
    rack.map((1, 101))
    # Too slow to answer before it is taken away.
    rack.ask("fault", drive="d01", fault={"kind": "slow", "extra_us": 600_000_000})
    with rack.open_export("srv1.p0") as wire:
        wire.send(READ, 0, 4096)
        rack.map((1, 102))
        assert wire.reply(4096)[1:] == (0, pattern(2))


def test_a_hung_drive_answers_when_it_no_longer_hangs(rack: Rack) -> None:
    mark_drives(rack, 1)
    rack.map((1, 101))
    rack.ask("fault", drive="d01", fault={"kind": "hang"})
    with rack.open_export("srv1.p0") as through_port, rack.open_export("drive.d01") as direct:
        for wire in (through_port, direct):
            wire.send(READ, 0, 4096)
        rack.wait_held(2)
        rack.ask("clear_fault", drive="d01")
        for wire in (through_port, direct):
            assert wire.reply(4096)[1:] == (0, pattern(1))


def test_a_drive_that_hangs_for_the_link_timeout_fails(start: Start) -> None:
    rack = start(link_timeout_ms=50)
    rack.ask("fault", drive="d01", fault={"kind": "hang"})
    with rack.open_export("drive.d01") as wire:
        assert wire.read(0, 512)[0] == EIO


def test_a_dead_drive_fails_at_once_and_its_link_stays(rack: Rack) -> None:
    rack.map((1, 101))
    rack.ask("fault", drive="d01", fault={"kind": "dead"})
    with rack.open_export("srv1.p0") as wire:
        assert [wire.read(0, 512)[0], wire.write(0, b"x"), wire.plain(FLUSH)] == [EIO] * 3
    assert rack.ask("states", ports=[1])["states"] == {"1": "UP"}


def test_a_dropped_phy_trains_again_and_the_request_is_held_meanwhile(rack: Rack) -> None:
    mark_drives(rack, 1)
    rack.map((1, 101), (2, 102))
    with rack.open_export("srv1.p0") as wire:
        rack.ask("phy_drop", ports=[101], down_ms=600_000)
        assert rack.ask("states", ports=[1, 101, 2])["states"] == {"1": "DOWN", "101": "DOWN", "2": "UP"}
        wire.send(READ, 0, 4096)
        rack.wait_held(1)
        rack.wait_for("offline", switch_port=1)
        # Another ends it.
        rack.ask("phy_drop", ports=[101], down_ms=0.001)
        rack.wait_for("online", switch_port=1)
        assert wire.reply(4096)[1:] == (0, pattern(1))
    assert rack.ask("phy_counts", ports=[1, 101, 2])["counts"] == {"1": 1, "101": 1, "2": 0}
    assert rack.ask("drive_stats", drive="d01")["phy_resets"] == 2


def test_a_flapping_phy_drops_as_often_as_asked(rack: Rack) -> None:
    rack.map((1, 101))
    rack.ask("phy_flap", ports=[1], down_ms=2, up_ms=5, count=3)
    for _ in range(3):
        rack.wait_for("phy_down", switch_port=1)
        rack.wait_for("phy_up", switch_port=1)
    assert rack.ask("phy_counts", ports=[1])["counts"] == {"1": 3}


def test_a_server_without_power_has_its_requests_held(rack: Rack) -> None:
    mark_drives(rack, 1)
    rack.map((1, 101), (5, 102))
    rack.ask("power", target="server:srv1", on=False)
    rack.wait_for("power", target="server:srv1", on=False)
    assert [rack.ask("power", target=target)["on"] for target in ("server:srv1", "server:srv2", "switch")] == [
        False,
        True,
        True,
    ]
    assert rack.ask("states", ports=[1, 101, 5])["states"] == {"1": "DOWN", "101": "DOWN", "5": "UP"}
    with rack.open_export("srv1.p0") as wire:
        wire.send(READ, 0, 4096)
        rack.wait_held(1)
        rack.ask("power", target="server:srv1", on=True)
        assert wire.reply(4096)[1:] == (0, pattern(1))


def test_a_drive_without_power_answers_nowhere_and_keeps_its_data(rack: Rack) -> None:
    mark_drives(rack, 1)
    rack.map((1, 101))
    rack.ask("power", target="drive:d01", on=False)
    assert rack.ask("identify", server="srv1", port="p0")["drive"] is None
    with rack.open_export("srv1.p0") as through_port, rack.open_export("drive.d01") as direct:
        for wire in (through_port, direct):
            wire.send(READ, 0, 4096)
        rack.wait_held(2)
        rack.ask("power", target="drive:d01", on=True)
        for wire in (through_port, direct):
            assert wire.reply(4096)[1:] == (0, pattern(1))
    stats = rack.ask("drive_stats", drive="d01")
    assert stats["power_cycles"] == 2
    assert stats["power_on_ns"] > 0


def test_an_expander_shows_its_slots_through_one_port(start: Start) -> None:
    shelf = [drive(n, port=None) | {"port": None, "expander": "exp1", "slot": n - 1} for n in (1, 2)]
    rack = start(expanders={"exp1": {"port": 150}}, drives=[*shelf, drive(3)])
    mark_drives(rack, 1, 2, 3)
    rack.ask("map", pairs=[[1, 150], [2, 103]])
    for _ in shelf:
        rack.wait_for("online", switch_port=1)
    for export, number in (("srv1.p0", 1), ("srv1.p0.s0", 1), ("srv1.p0.s1", 2), ("srv1.p1", 3)):
        with rack.open_export(export) as wire:
            assert wire.read(0, 4096) == (0, pattern(number))
    assert rack.ask("identify", server="srv1", port="p0", slot=1)["drive"] == "d02"
    assert rack.ask("identify", server="srv1", port="p1", slot=1)["drive"] is None
    rack.ask("power", target="drive:d02", on=False)
    rack.wait_for("offline", drive="d02", slot=1)
    assert rack.ask("states", ports=[1])["states"] == {"1": "UP"}
    with rack.open_export("srv1.p0.s1") as wire:
        wire.send(READ, 0, 4096)
        rack.ask("power", target="drive:d02", on=True)
        assert wire.reply(4096)[1:] == (0, pattern(2))
    assert rack.ask("phy_counts", ports=[1])["counts"] == {"1": 0}


def test_counters_follow_what_the_drive_did(rack: Rack) -> None:
    with rack.open_export("drive.d01") as wire:
        assert wire.write(0, pattern(7), FUA) == 0
        assert wire.plain(WRITE_ZEROES, 0, 512, NO_HOLE) == 0
        assert wire.plain(TRIM, 1024, 512) == 0
        assert wire.plain(FLUSH) == 0
        assert wire.read(0, 2048) == (0, pattern(0, 512) + pattern(7, 512) + pattern(0, 512) + pattern(7, 512))
    stats = rack.ask("drive_stats", drive="d01")
    expected = {"reads": 1, "writes": 2, "bytes_read": 2048, "bytes_written": 4608, "flushes": 1, "trims": 1}
    assert {name: stats[name] for name in expected} == expected
    assert expected.items() <= rack.ask("stats").items()


def test_requests_beyond_a_smaller_drive_fail_and_the_rest_works(start: Start) -> None:
    rack = start(drives=[drive(1, bytes=1 << 20), drive(2)])
    rack.map((1, 101))
    with rack.open_export("srv1.p0") as wire:
        assert wire.size == 64 << 20
        assert wire.write((1 << 20) - 1, b"xy") == ENOSPC
        assert wire.read((1 << 20) - 1, 2)[0] == EIO
        assert wire.plain(WRITE_ZEROES, 1 << 20, 512) == ENOSPC
        assert wire.read((1 << 20) - 1, 1) == (0, b"\0")
