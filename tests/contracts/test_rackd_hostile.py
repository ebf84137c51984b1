"""Bytes that no client should send, and configurations nobody should write, do rackd no harm."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rackloop.lab import load_profile
from rackloop.native import find_binary
from rackloop.seed import stream
from tests import nbd_wire
from tests.nbd_wire import EINVAL, ENOSPC, NbdWire, info_data
from tests.rack_session import SLOW_S, Rack, Start
from tests.rackd_process import drive, running_rackd, small_rack, tell

LARGEST = 64 << 20


@pytest.fixture
def rack(start: Start) -> Rack:
    return start(drives=[drive(1, bytes=2 * LARGEST)])


def still_serves(rack: Rack) -> bool:
    with rack.open_export("drive.d01") as wire:
        return wire.write(0, b"alive") == 0 and wire.read(0, 5) == (0, b"alive") and rack.ask("hello")["ports"] == 160


def control_lines(rack: Rack, sent: bytes, answers: int) -> list[dict[str, Any]]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(SLOW_S)
        connection.connect(str(rack.process.control))
        connection.sendall(sent)
        with connection.makefile("rb") as lines:
            return [json.loads(lines.readline()) for _ in range(answers)]


@pytest.mark.parametrize(
    "line",
    [
        b"hello",
        b"[]",
        b"{}",
        b'{"id":1}',
        b'{"id":null,"op":"hello"}',
        b'{"op":"hello"}',
        b'{"id":1,"op":7}',
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"id":1,"op":"' + b"x" * (2 << 20) + b'"}',
    ],
    ids=lambda line: repr(line[:20]),
)
def test_a_line_that_is_no_request_is_answered_and_the_next_one_works(rack: Rack, line: bytes) -> None:
    refused, answered = control_lines(rack, line + b'\n\n{"id":"x","op":"hello"}\n', 2)
    assert (refused["id"], refused["ok"], refused["error"]["code"]) == (None, False, "bad_request")
    assert (answered["id"], answered["ok"]) == ("x", True)


def test_noise_on_the_control_socket_does_no_harm(rack: Rack) -> None:
    noise = stream(1, "control")
    for _ in range(50):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(str(rack.process.control))
            connection.sendall(noise.randbytes(noise.randrange(1, 5000)))
    assert still_serves(rack)


def test_noise_on_the_nbd_socket_does_no_harm(rack: Rack) -> None:
    noise = stream(1, "nbd")
    for turn in range(60):
        with NbdWire(rack.process.nbd) as wire:
            if turn % 3:
                wire.send_flags()
            if turn % 3 == 2:
                wire.go("drive.d01")
            try:
                wire.socket.sendall(noise.randbytes(noise.randrange(1, 5000)))
            except OSError:
                continue  # rackd has closed already
    assert still_serves(rack)


@pytest.mark.parametrize("cut", range(1, 44, 3))
def test_a_client_may_leave_in_the_middle_of_anything(rack: Rack, cut: int) -> None:
    with NbdWire(rack.process.nbd) as wire:
        data = info_data("drive.d01", 3)
        wire.socket.sendall((struct.pack(">IQII", 3, nbd_wire.OPT_MAGIC, nbd_wire.OPT_GO, len(data)) + data)[:cut])
    with rack.open_export("drive.d01") as wire:
        wire.socket.sendall(struct.pack(">IHHQQI", nbd_wire.REQUEST_MAGIC, 0, 1, 1, 0, 100)[:cut] + b"x" * (cut % 28))
    assert still_serves(rack)


def test_wrong_options_are_refused_and_the_negotiation_goes_on(rack: Rack) -> None:
    with NbdWire(rack.process.nbd) as wire:
        wire.send_flags()
        for option, data, kind in (
            (99, b"", nbd_wire.REP_ERR_UNSUP),
            (nbd_wire.OPT_LIST, b"x", nbd_wire.REP_ERR_INVALID),
            (nbd_wire.OPT_STRUCTURED_REPLY, b"x", nbd_wire.REP_ERR_INVALID),
            (nbd_wire.OPT_INFO, b"", nbd_wire.REP_ERR_INVALID),
            (nbd_wire.OPT_GO, struct.pack(">I", 2**32 - 1) + b"\0\0", nbd_wire.REP_ERR_INVALID),
            (nbd_wire.OPT_GO, info_data("drive.d99"), nbd_wire.REP_ERR_UNKNOWN),
            (nbd_wire.OPT_INFO, b"\0\0\0\2\xff\xfe\0\0", nbd_wire.REP_ERR_UNKNOWN),
            (nbd_wire.OPT_GO, b"x" * 100_000, nbd_wire.REP_ERR_TOO_BIG),
        ):
            assert wire.option(option, data) == (kind, [])
        kind, names = wire.option(nbd_wire.OPT_LIST)
        assert (kind, len(names)) == (nbd_wire.REP_ACK, 18)
        kind, found = wire.option(nbd_wire.OPT_INFO, info_data("drive.d01", 1, 3))
        assert kind == nbd_wire.REP_ACK
        assert {data[:2]: data[2:] for data in found} == {
            b"\0\0": struct.pack(">QH", 2 * LARGEST, 0b1_0110_1101),
            b"\0\1": b"drive.d01",
            b"\0\3": struct.pack(">III", 1, 4096, LARGEST),
        }
        wire.go("drive.d01")
        assert wire.read(0, 4) == (0, bytes(4))


def test_abort_and_export_name_work_the_old_way(rack: Rack) -> None:
    with NbdWire(rack.process.nbd) as wire:
        wire.send_flags()
        assert wire.option(nbd_wire.OPT_ABORT) == (nbd_wire.REP_ACK, [])
        with pytest.raises(EOFError):
            wire.receive(1)
    for flags, zeroes in ((1, 124), (3, 0)):
        with NbdWire(rack.process.nbd) as wire:
            wire.send_flags(flags)
            wire.send_option(nbd_wire.OPT_EXPORT_NAME, b"drive.d01")
            assert struct.unpack(">Q", wire.receive(8)) == (2 * LARGEST,)
            assert wire.receive(2 + zeroes)[2:] == bytes(zeroes)
            assert wire.read(0, 4) == (0, bytes(4))
    with NbdWire(rack.process.nbd) as wire:
        wire.send_flags()
        wire.send_option(nbd_wire.OPT_EXPORT_NAME, b"drive.d99")
        with pytest.raises(EOFError):
            wire.receive(1)


def test_wrong_requests_fail_one_by_one(rack: Rack) -> None:
    end = 2 * LARGEST
    with rack.open_export("drive.d01") as wire:
        assert wire.plain(17) == EINVAL
        assert wire.read(end - 1, 2)[0] == EINVAL
        assert wire.read(2**64 - 1, 2)[0] == EINVAL
        assert wire.read(0, LARGEST + 1)[0] == EINVAL
        assert wire.write(end - 1, b"xy") == ENOSPC
        assert wire.write(0, bytes(LARGEST + 1)) == EINVAL
        assert wire.plain(nbd_wire.WRITE_ZEROES, end, 1) == ENOSPC
        assert wire.plain(nbd_wire.TRIM, 0, 512, flags=0x8000) == EINVAL
        assert wire.plain(nbd_wire.TRIM, 0, end) == 0
        assert wire.read(0, 0) == (0, b"")
        assert wire.write(end - LARGEST, b"\7" * LARGEST) == 0
        assert wire.read(end - LARGEST, LARGEST) == (0, b"\7" * LARGEST)
    assert still_serves(rack)


def test_a_client_that_never_reads_holds_nobody_else_up(rack: Rack) -> None:
    with rack.open_export("drive.d01") as greedy:
        for _ in range(20):
            greedy.send(nbd_wire.READ, 0, LARGEST)
        assert still_serves(rack)


def test_a_client_that_has_gone_keeps_no_disk_busy(start: Start) -> None:
    timing = dict(load_profile("sata-hdd").timing)
    rack = start(drives=[drive(1, bytes=64 << 30, rotational=True, timing=timing)])
    with rack.open_export("drive.d01") as gone:
        for _ in range(5):
            gone.send(nbd_wire.WRITE_ZEROES, 0, (4 << 30) - 4096)
        # A trim has no place in the queue: its answer says that the disk has all of them.
        gone.send(nbd_wire.TRIM, 32 << 30, 4096)
        assert gone.reply()[1] == 0
    # The zeroes take the disk half a minute each.
    with rack.open_export("drive.d01") as wire:
        assert wire.read(48 << 30, 4096)[0] == 0


@pytest.mark.parametrize("kind", ["ideal", "ssd"])
@pytest.mark.parametrize("backing", ["sparse", "file"])
@pytest.mark.parametrize(("command", "flags"), [(nbd_wire.WRITE_ZEROES, nbd_wire.NO_HOLE), (nbd_wire.TRIM, 0)])
def test_gigabytes_are_erased_to_the_byte(start: Start, kind: str, backing: str, command: int, flags: int) -> None:
    timing = {"kind": "ideal"} if kind == "ideal" else dict(load_profile("nvme-ssd").timing)
    where = {"kind": backing} | ({"path": "d01.img"} if backing == "file" else {})
    rack = start(drives=[drive(1, bytes=1 << 30, timing=timing, backing=where)])
    piece = 4 << 20
    with rack.open_export("drive.d01") as wire:
        for offset in (0, (1 << 30) - piece):
            assert wire.write(offset, b"\1" * piece, flags=nbd_wire.FUA) == 0
        assert wire.plain(command, 1000, (1 << 30) - 3000, flags=flags | nbd_wire.FUA) == 0
        assert wire.read(0, piece) == (0, b"\1" * 1000 + bytes(piece - 1000))
        assert wire.read((1 << 30) - piece, piece) == (0, bytes(piece - 2000) + b"\1" * 2000)


def test_records_that_find_no_room_are_counted(start: Start) -> None:
    rack = start(truth_log="/dev/full")
    rack.map((1, 101))
    rack.ask("settle")
    stats = rack.ask("stats")
    assert stats["truth_lost"] > 0
    # What is lost to the file is heard by those who follow it.
    assert rack.map((1, 102)) == 3


@pytest.mark.parametrize("cut", ["", '{"t_ns":2,"event":"ann', '{"t_ns":2,"event":"announce","ports":[' + "1," * 9000])
def test_a_record_that_was_cut_off_does_not_spoil_the_next(tmp_path: Path, cut: str) -> None:
    whole = {"t_ns": 1, "event": "announce", "ports": [1]}
    (tmp_path / "truth.jsonl").write_text(f"{json.dumps(whole)}\n{cut}")
    with running_rackd(tmp_path) as rackd:
        tell(rackd, "settle")
        first, second, *_ = rackd.truth()
    assert (first, second["event"]) == (whole, "executed")


def refusal(tmp_path: Path, config: object, *options: str) -> str:
    """What rackd says about a configuration it must refuse."""
    path = tmp_path / "rack.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    arguments = [str(find_binary("rackd")), "--config", str(path), *options]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=SLOW_S, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_one_that_cannot_say_that_it_answers_ends_and_leaves_no_socket(tmp_path: Path) -> None:
    path = tmp_path / "rack.json"
    path.write_text(json.dumps(good_config(tmp_path)))
    with Path("/dev/full").open("wb") as full:
        command = [str(find_binary("rackd")), "--config", str(path)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=SLOW_S, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "rackd: standard output: No space left" in done.stderr
    assert not {"c.sock", "n.sock"} & {one.name for one in tmp_path.iterdir()}


def good_config(tmp_path: Path, **changes: Any) -> dict[str, Any]:
    files = {"state_dir": str(tmp_path), "control": "c.sock", "nbd": "n.sock", "truth_log": "truth.jsonl"}
    return small_rack() | files | changes


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"schema": 2}, "schema 2"),
        ({"prots": 1}, "prots"),
        ({"ports": 100}, "ports 1 to 100"),
        ({"ports": "many"}, "line 1 column"),
        ({"servers": {"srv1": {"stack": "warp", "ports": {}}}}, "warp"),
        ({"servers": {"drive": {"stack": "vanilla", "ports": {}}}}, "drive"),
        ({"servers": {"a.b": {"stack": "vanilla", "ports": {}}}}, "a.b"),
        ({"servers": {"srv1": {"stack": "vanilla", "ports": {"p0": 101}}}}, "port 101 is taken"),
        ({"drives": [drive(1), drive(1, port=102)]}, "two are called d01"),
        ({"drives": [drive(1, bytes=1000)]}, "multiple of sector_bytes"),
        ({"drives": [drive(1, sector_bytes=0)]}, "power of two"),
        ({"drives": [drive(1) | {"expander": "exp1", "slot": 0}]}, "give port, or expander"),
        ({"drives": [drive(1, backing={"kind": "tape"})]}, "tape"),
        ({"drives": [drive(1, timing={"kind": "warp"})]}, "warp"),
        ({"drives": [drive(1, backing={"kind": "file", "path": "/nowhere/d01"})]}, "d01"),
        ({"map": [[1, 2], [2, 3]]}, "port 2 used twice"),
        ({"map": [[1, 161]]}, "not 161"),
        ({"link_timeout_ms": -1}, "link_timeout_ms"),
        ({"nbd_tcp": "0.0.0.0:0"}, "loopback"),
        ({"stacks": {"warp": {"online_ms": 0, "spread_ms": 0, "phy_us": [1, 2]}}}, "stacks.warp"),
        ({"control": "x" * 200}, "x" * 200),
    ],
    ids=lambda value: json.dumps(value)[:40],
)
def test_a_bad_configuration_gets_one_clear_line(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    assert said in refusal(tmp_path, good_config(tmp_path, **changes))


def test_a_file_that_is_no_configuration_gets_one_clear_line(tmp_path: Path) -> None:
    assert "line 1 column" in refusal(tmp_path, "{")
    assert "--nonsense" in refusal(tmp_path, {}, "--nonsense")
    (tmp_path / "saved_map.json").write_text('{"pairs": [[1, 1]]}')
    assert "saved_map.json" in refusal(tmp_path, good_config(tmp_path))
    assert not list(tmp_path.glob("*.sock"))


def test_a_second_rackd_refuses_the_first_ones_sockets(rack: Rack, tmp_path: Path) -> None:
    taken = good_config(tmp_path, control=str(rack.process.control), nbd=str(tmp_path / "n.sock"))
    assert "another process answers" in refusal(tmp_path, taken)
    assert still_serves(rack)


def test_ending_removes_the_sockets(rack: Rack) -> None:
    assert rack.process.stop() == 0
    assert not rack.process.control.exists()
    assert not rack.process.nbd.exists()


def test_rackd_ends_with_its_parent(tmp_path: Path) -> None:
    config = tmp_path / "rack.json"
    config.write_text(
        json.dumps(
            good_config(tmp_path, control=f"/tmp/rackd-{os.getpid()}.sock", nbd=f"/tmp/rackn-{os.getpid()}.sock")
        )
    )
    script = f"{find_binary('rackd')} --config {config} --exit-with-parent & read line; kill -9 $$"
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdin is not None
        assert b"ready" in parent.stdout.readline()
        parent.stdin.write(b"\n")
        parent.stdin.flush()
        # The end of rackd closes the last descriptor of its standard output.
        assert parent.stdout.read() == b""


def test_help_and_version() -> None:
    def said(option: str) -> str:
        return subprocess.run([find_binary("rackd"), option], capture_output=True, text=True, check=True).stdout

    assert "example" in said("--help")
    assert said("--version").startswith("rackd ")
