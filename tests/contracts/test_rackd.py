"""rackd as its clients meet it: I/O across map changes, and the map itself."""

from __future__ import annotations

import json
import signal
import socket
from contextlib import ExitStack
from typing import Any

import pytest

from rackloop.clock import Deadline
from tests.deadlines import CLOCK
from tests.nbd_wire import EIO, FUA, READ, WRITE
from tests.rack_session import SLOW_S, Rack, Start, mark_drives, pattern
from tests.rackd_process import drive


@pytest.fixture
def rack(start: Start) -> Rack:
    return start()


def test_a_held_request_goes_to_the_drive_that_comes_online(rack: Rack) -> None:
    mark_drives(rack, 1, 2)
    rack.map((1, 101))
    with rack.open_export("srv1.p0") as wire:
        assert wire.read(0, 4096) == (0, pattern(1))
        rack.ask("open", ports=[1])
        reading, writing = wire.send(READ, 0, 4096), wire.send(WRITE, 8192, 4096, pattern(9))
        rack.wait_held(2)
        rack.map((1, 102))
        assert wire.reply(4096) == (reading, 0, pattern(2))
        assert wire.reply() == (writing, 0, b"")
    with rack.open_export("drive.d02") as wire:
        assert wire.read(8192, 4096) == (0, pattern(9))
    with rack.open_export("drive.d01") as wire:
        assert wire.read(8192, 4096) == (0, pattern(0))
    assert rack.ask("stats")["held"] == 0


def test_what_rackd_was_late_by_reaches_to_the_answers_that_it_gave_late(start: Start) -> None:
    # All drives are online at one moment. So one act answers what is held for all, one port after the other.
    at_once = {"online_ms": 0.1, "spread_ms": 0, "phy_us": [400, 400]}
    server = {"stack": "at_once", "ports": {f"p{n}": 1 + n for n in range(4)}}
    rack = start(stacks={"at_once": at_once}, servers={"srv1": server})
    with ExitStack() as stack:
        for port in server["ports"]:
            wire = stack.enter_context(rack.open_export(f"srv1.{port}"))
            for _ in range(8):
                wire.send(READ, 0, 1 << 20)
        rack.wait_held(32)
        rack.map((1, 101), (2, 102), (3, 103), (4, 104))
        answered_ns = [rack.wait_for("answered")["t_ns"] for _ in range(4)]
    online_ns = {record["due_ns"] for record in rack.records_until_settled() if record["event"] == "online"}
    assert len(online_ns) == 1
    rack.wait_late(max(answered_ns) - online_ns.pop())


def test_the_first_answer_is_that_of_a_write_that_was_flushed_to_a_file(start: Start) -> None:
    rack = start(drives=[drive(1, backing={"kind": "file", "path": "d01.img"})])
    with rack.open_export("srv1.p0") as wire:
        written = wire.send(WRITE, 8192, 4096, pattern(9), flags=FUA)
        rack.wait_held(1)
        rack.map((1, 101))
        assert wire.reply() == (written, 0, b"")
        assert wire.read(0, 512) == (0, bytes(512))
    answered = rack.wait_for("answered")
    assert (answered["kind"], answered["offset"], answered["length"]) == ("write", 8192, 4096)


def test_a_request_that_was_meant_for_another_drive_is_not_the_first_answer(rack: Rack) -> None:
    with rack.open_export("srv1.p0.by-id.RL000001") as stranger, rack.open_export("srv1.p0") as wire:
        rack.map((1, 102))
        assert stranger.read(0, 512) == (EIO, b"")
        assert wire.read(4096, 512) == (0, bytes(512))
        answered = [record["offset"] for record in rack.records_until_settled() if record["event"] == "answered"]
    assert answered == [4096]


def test_no_request_begun_after_a_map_change_reaches_the_old_drive(rack: Rack) -> None:
    mark_drives(rack, 1, 2)
    rack.map((1, 101))
    with rack.open_export("srv1.p0") as wire:
        for drive_number in [2, 1] * 10:
            rack.ask("map", pairs=[[1, 100 + drive_number]])
            assert wire.read(0, 4096) == (0, pattern(drive_number))


def test_many_requests_in_flight_each_execute_on_one_drive(rack: Rack) -> None:
    for number in (1, 2):
        with rack.open_export(f"drive.d{number:02}") as wire:
            assert wire.write(0, pattern(number, 1 << 20)) == 0
    rack.map((1, 101))
    with rack.open_export("srv1.p0") as wire:
        for turn in range(10):
            for _ in range(16):
                wire.send(READ, 0, 1 << 20)
            rack.ask("map", pairs=[[1, 101 + turn % 2]])
            answers = [wire.reply(1 << 20) for _ in range(16)]
            assert {errno for _, errno, _ in answers} == {0}
            assert all(data in {pattern(1, 1 << 20), pattern(2, 1 << 20)} for _, _, data in answers)


def test_an_unmapped_port_fails_after_the_link_timeout_and_stays_connected(start: Start) -> None:
    rack = start(link_timeout_ms=50)
    with rack.open_export("srv1.p0") as wire:
        sent_ns = CLOCK.now_ns()
        assert wire.read(0, 4096) == (EIO, b"")
        assert CLOCK.now_ns() - sent_ns >= 50_000_000
        assert wire.write(0, pattern(1)) == EIO
        rack.wait_for("held_timeout", export="srv1.p0", kind="read", offset=0, length=4096)
        rack.wait_for("held_timeout", export="srv1.p0", kind="write")
        rack.map((1, 101))
        assert wire.write(0, pattern(1)) == 0
    assert rack.ask("stats")["held_timeouts"] == 2


def test_requests_behind_a_held_one_time_out_with_it(start: Start) -> None:
    rack = start(link_timeout_ms=300)
    with rack.open_export("srv1.p0") as wire:
        cookies = {wire.send(READ, 0, 512) for _ in range(200)}
        began_ns = CLOCK.now_ns()
        assert {wire.reply()[:2] for _ in cookies} == {(cookie, EIO) for cookie in cookies}
        assert CLOCK.now_ns() - began_ns < 200 * 300_000_000


def test_a_client_that_leaves_takes_its_held_requests_with_it(rack: Rack) -> None:
    with rack.open_export("srv1.p0") as wire:
        wire.send(WRITE, 0, 4096, pattern(9))
        rack.wait_held(1)
    deadline = Deadline.after(CLOCK, SLOW_S)
    while rack.ask("stats")["held"]:
        assert not deadline.is_over()
    rack.map((1, 101))
    with rack.open_export("drive.d01") as wire:
        assert wire.read(0, 4096) == (0, pattern(0))


def test_only_disturbed_ports_lose_their_phy(rack: Rack) -> None:
    rack.map((1, 101), (2, 102), (5, 103))
    rack.map((1, 101), (2, 104), (5, 103), full=True)
    assert rack.ask("phy_counts", ports=[1, 2, 5, 101, 102, 103, 104])["counts"] == {
        "1": 0, "2": 1, "5": 0, "101": 0, "102": 1, "103": 0, "104": 0,
    }  # fmt: skip
    records = rack.records_until_settled()
    assert {record["switch_port"] for record in records if record["event"] == "phy_down"} == {2, 102}


def test_the_timeline_of_a_remap_is_in_order(rack: Rack) -> None:
    generation = rack.map((1, 101))
    events = [record for record in rack.records_until_settled() if record.get("generation") == generation]
    assert [record["event"] for record in events if record.get("switch_port") in {None, 1}] == [
        "executed", "phy_train", "phy_up", "online",
    ]  # fmt: skip
    stamps = [record["t_ns"] for record in events]
    assert stamps == sorted(stamps)
    executed, online = events[0], events[-1]
    assert online["t_ns"] >= online["due_ns"] > executed["t_ns"]
    assert {online[key] for key in ("server", "port", "drive")} == {"srv1", "p0", "d01"}


def test_attach_times_come_from_the_seed(start: Start) -> None:
    def due_after_ns(rack: Rack) -> int:
        executed = rack.ask("map", pairs=[[5, 101]])["t_ns"]
        return int(rack.wait_for("online")["due_ns"]) - int(executed)

    first, same, other = (due_after_ns(start(seed=seed)) for seed in (1, 1, 2))
    assert first == same != other
    assert 100_000_000 < first < 400_000_000


def test_only_a_server_that_was_told_has_a_comreset_on_notice(rack: Rack) -> None:
    def due_after_ns(server_port: int, drive_port: int) -> int:
        answer = rack.ask("map", pairs=[[server_port, drive_port]])
        online = rack.wait_for("online", generation=answer["generation"])
        return int(online["due_ns"]) - int(answer["t_ns"])

    rack.ask("announce", ports=[1, 101])
    told, forgotten, never = due_after_ns(1, 101), due_after_ns(1, 102), due_after_ns(2, 103)
    assert told < 3_000_000 < 5_000_000 < min(forgotten, never)


def test_the_generation_guard_refuses_a_stale_controller(rack: Rack) -> None:
    generation = rack.map((1, 101))
    assert rack.refused("map", pairs=[[1, 102]], generation=generation - 1) == "stale_generation"
    assert rack.refused("open", ports="all", generation=generation + 1) == "stale_generation"
    assert rack.ask("get_map")["pairs"] == [[1, 101]]
    assert rack.ask("map", pairs=[[1, 102]], generation=generation)["generation"] == generation + 1


@pytest.mark.parametrize(
    ("op", "fields", "code"),
    [
        ("map", {"pairs": [[1, 161]]}, "unknown_port"),
        ("map", {"pairs": [[0, 1]]}, "unknown_port"),
        ("map", {"pairs": [[1, 2], [2, 3]]}, "bad_map"),
        ("map", {"pairs": [[1, 1]]}, "bad_map"),
        ("map", {"pairs": [[1, 2, 3]]}, "bad_request"),
        ("map", {"pair": []}, "bad_request"),
        ("open", {"ports": [161]}, "unknown_port"),
        ("open", {"ports": "some"}, "bad_request"),
        ("states", {"ports": [99999]}, "bad_request"),
        ("phy_drop", {"ports": [1], "down_ms": -1}, "out_of_range"),
        ("phy_drop", {"ports": [1], "down_ms": 1, "count": 2}, "bad_request"),
        ("phy_flap", {"ports": [1], "down_ms": 1, "up_ms": 1, "count": 0}, "out_of_range"),
        ("phy_flap", {"ports": [1], "down_ms": 1}, "bad_request"),
        # Drops without a time in between would be one.
        ("phy_flap", {"ports": [1], "down_ms": 1, "up_ms": 0, "count": 2}, "out_of_range"),
        ("phy_flap", {"ports": [1], "down_ms": 1, "up_ms": 1e-6, "count": 2}, "out_of_range"),
        ("phy_flap", {"ports": [1], "down_ms": 1e9, "up_ms": 1e9, "count": 10_000}, "out_of_range"),
        ("miswire", {"ports": [1, 1]}, "bad_request"),
        ("power", {"target": "server:nobody", "on": True}, "unknown_server"),
        ("power", {"target": "drive:d99", "on": True}, "unknown_drive"),
        ("power", {"target": "toaster", "on": True}, "bad_request"),
        ("fault", {"drive": "d99", "fault": {"kind": "dead"}}, "unknown_drive"),
        ("fault", {"drive": "d01", "fault": {"kind": "melted"}}, "bad_request"),
        ("fault", {"drive": "d01", "fault": {"kind": "slow", "factor": 4}}, "bad_request"),
        ("fault", {"drive": "d01", "fault": {"kind": "corrupt", "lba": 131072, "sectors": 1}}, "out_of_range"),
        ("identify", {"server": "srv1", "port": "p9"}, "unknown_port"),
        ("identify", {"server": "srv9", "port": "p0"}, "unknown_server"),
        ("identify", {}, "bad_request"),
        ("drive_stats", {"drive": "d99"}, "unknown_drive"),
        ("explode", {}, "unknown_op"),
    ],
)
def test_a_wrong_request_is_refused_by_code(rack: Rack, op: str, fields: dict[str, Any], code: str) -> None:
    assert rack.refused(op, **fields) == code
    assert rack.ask("hello")["generation"] == 1


@pytest.mark.parametrize("op", [[], {}, None, 7, True])
def test_an_op_that_is_no_text_is_refused_and_the_next_line_heard(rack: Rack, op: object) -> None:
    with socket.socket(socket.AF_UNIX) as wire, wire.makefile("rb") as answers:
        wire.settimeout(SLOW_S)
        wire.connect(str(rack.process.control))
        wire.sendall(json.dumps({"id": 1, "op": op}).encode() + b"\n")
        error = json.loads(answers.readline())["error"]
        assert (error["code"], error["message"]) == ("bad_request", "the request has no op")
        wire.sendall(b'{"id": 2, "op": "hello"}\n')
        assert json.loads(answers.readline())["generation"] == 1
    assert rack.ask("hello")["generation"] == 1


def test_a_stuck_port_keeps_its_circuit(rack: Rack) -> None:
    rack.map((1, 101), (2, 102))
    rack.ask("stick", port=1, stuck=True)
    rack.ask("map", pairs=[[1, 102], [2, 103]])
    assert rack.ask("get_map")["pairs"] == [[1, 101], [2, 103]]
    rack.ask("open", ports="all")
    assert rack.ask("get_map")["pairs"] == [[1, 101]]
    rack.ask("stick", port=1, stuck=False)
    rack.ask("open", ports="all")
    assert rack.ask("get_map")["pairs"] == []


def test_miswired_ports_swap_what_is_plugged_in_until_swapped_back(rack: Rack) -> None:
    mark_drives(rack, 1, 2)
    rack.map((1, 101))
    with rack.open_export("srv1.p0") as wire:
        for number in (2, 1):
            rack.ask("miswire", ports=[101, 102])
            assert wire.read(0, 4096) == (0, pattern(number))
            assert rack.ask("identify", server="srv1", port="p0")["drive"] == f"d{number:02}"
    assert rack.ask("get_map") | {"t_ns": 0} == {"generation": 2, "pairs": [[1, 101]], "t_ns": 0}


def test_the_saved_map_survives_the_switch_and_rackd(start: Start) -> None:
    rack = start()
    rack.map((1, 101))
    rack.ask("save_map")
    generation = rack.map((1, 102), (2, 103))
    rack.ask("power", target="switch", on=False)
    assert rack.refused("map", pairs=[[1, 103]]) == "busy"
    assert set(rack.ask("states", ports=[1, 2, 102])["states"].values()) == {"DOWN"}
    rack.ask("power", target="switch", on=True)
    live = rack.ask("get_map")
    assert (live["generation"], live["pairs"]) == (generation + 1, [[1, 101]])
    assert rack.process.stop() == 0
    again = start(map=[[4, 104]])
    assert again.ask("saved_map")["pairs"] == again.ask("get_map")["pairs"] == [[1, 101]]


def test_what_was_not_saved_is_gone_after_a_kill(start: Start) -> None:
    rack = start(map=[[1, 101]])
    rack.map((1, 102))
    rack.process.stop(signal.SIGKILL)
    assert start(map=[[1, 101]]).ask("get_map")["pairs"] == [[1, 101]]
