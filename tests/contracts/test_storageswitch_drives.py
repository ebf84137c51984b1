"""The drives of a storage switch: files and devices by io_uring or threads, real drives by identity, models."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rackloop.errors import ToolError
from rackloop.lab import load_profile
from rackloop.native import find_binary
from rackloop.seed import stream
from tests.deadlines import soon
from tests.nbd_wire import EINVAL, FLUSH, FUA, TRIM, WRITE, WRITE_ZEROES, NbdWire
from tests.nbdkit_process import serving_unix
from tests.storageswitch_process import STOP_S, RunningSwitch, running_switch, two_tenants

SIZE = 8 << 20
SHARE = SIZE // 2
EPERM, ESHUTDOWN = 1, 108
SERIAL, WWN = "RL000001", "5000c500a0000001"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "drive.img"
    path.write_bytes(bytes(SIZE))
    return path


@pytest.mark.parametrize("access", ["ring", "threads"])
def test_a_file_is_reached_as_it_was_asked_for(access: str, image: Path) -> None:
    drive = {"kind": "file", "path": str(image), "access": access}
    data = stream(7, access).randbytes(64 << 10)
    with running_switch(two_tenants(drive=drive)) as switch, NbdWire(switch.nbd, "b") as b:
        state = switch.drive()
        assert (state["access"], state["fallback"], state["writable"]) == (access, None, True)
        assert b.write(8192, data) == 0
        # No multiple of a block: it goes through the page cache, which is of the same file.
        assert b.write(8192 + 100, b"x" * 13) == 0
        assert b.write(4096 * 9, b"y" * 4096, flags=FUA) == 0
        assert b.plain(WRITE_ZEROES, 4096 * 5, 4096) == 0
        assert b.plain(TRIM, 4096 * 6, 4096) == 0
        assert b.plain(FLUSH) == 0
        expected = bytearray(bytes(8192) + data)
        expected[8292:8305] = b"x" * 13
        expected[4096 * 9 : 4096 * 10] = b"y" * 4096
        expected[4096 * 5 : 4096 * 7] = bytes(8192)
        assert b.read(0, len(expected)) == (0, bytes(expected))
        assert b.read(8192 + 77, 1000) == (0, bytes(expected[8192 + 77 :][:1000]))
    assert image.read_bytes()[SHARE : SHARE + len(expected)] == bytes(expected)


def test_zeroes_are_written_at_their_price_where_a_scheduler_shares(image: Path) -> None:
    changes = {"drive": {"kind": "file", "path": str(image)}, "scheduler": {"kind": "gimbal"}}
    with running_switch(two_tenants(**changes)) as switch, NbdWire(switch.nbd, "a") as a:
        assert a.write(0, b"x" * 8192) == 0
        assert a.plain(WRITE_ZEROES, 0, 4096) == EINVAL
        listed = subprocess.run(["nbdinfo", "--json", switch.uri("a")], capture_output=True, check=True, timeout=60)
        offered = json.loads(listed.stdout)["exports"][0]
        assert (offered["can_zero"], offered["can_trim"], offered["can_flush"]) == (False, True, True)
        assert a.plain(TRIM, 4096, 4096) == 0
        # A client that copies a hole writes it.
        hole = image.with_name("hole")
        with hole.open("wb") as file:
            file.truncate(8192)
        subprocess.run(["nbdcopy", str(hole), switch.uri("a")], check=True, timeout=60)
        assert a.read(0, 8192) == (0, bytes(8192))
        assert switch.scheduler()["tenants"][0]["written_bytes"] == 2 * 8192


def test_a_ring_takes_more_requests_than_it_has_places(image: Path) -> None:
    drive = {"kind": "file", "path": str(image), "access": "ring", "depth": 3}
    with running_switch(two_tenants(drive=drive)) as switch:
        jobs = [f"--name={name} --uri={switch.uri(name)} --bs={bs}" for name, bs in (("a", "4k"), ("b", "48k"))]
        always = "--ioengine=nbd --rw=randwrite --iodepth=32 --verify=crc32c --verify_state_save=0"
        command = ["fio", *always.split(), f"--size={SHARE}", *" ".join(jobs).split()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr + done.stdout
        assert (switch.drive()["waiting"], switch.scheduler()["at_drive"]) == (0, 0)


def test_writes_to_one_page_beside_the_page_cache_and_through_it_fail_no_flush(image: Path) -> None:
    drive = {"kind": "file", "path": str(image), "access": "ring"}
    with running_switch(two_tenants(drive=drive)) as switch, NbdWire(switch.nbd, "a") as a:
        for _ in range(1000):
            for page in range(0, 4 * 4096, 4096):
                a.send(WRITE, page, 4096, bytes(4096))
                a.send(WRITE, page + 512, 512, bytes(512))
                a.send(FLUSH, 0, 0)
            assert {a.reply()[1] for _ in range(4 * 3)} == {0}
        assert a.plain(FLUSH) == 0


def test_a_file_that_shrinks_below_its_drive_fails_reads(image: Path) -> None:
    drive = {"kind": "file", "path": str(image), "access": "ring"}
    with running_switch(two_tenants(drive=drive)) as switch, NbdWire(switch.nbd, "a") as a:
        assert a.read(0, 4096) == (0, bytes(4096))
        with image.open("r+b") as file:
            file.truncate(0)
        errno, _ = a.read(0, 4096)
        assert errno == 5
        assert switch.scheduler()["tenants"][0]["failed"] == 1


MODEL = {"kind": "model", "bytes": 64 << 20, "sector_bytes": 4096}


def nvme() -> dict[str, Any]:
    return dict(load_profile("nvme-ssd").timing)


def passed_on(behind: RunningSwitch) -> dict[str, Any]:
    """A switch in front of a tenant's export of another."""
    return two_tenants(drive={"kind": "nbd", "uri": behind.uri("a")})


def test_a_model_takes_the_time_of_its_profile() -> None:
    drive = MODEL | {"timing": nvme(), "prepare": prepared(("sequential", 1))}
    with running_switch(two_tenants(drive=drive)) as switch, NbdWire(switch.nbd, "a") as a:
        assert a.write(0, b"a" * 8192) == 0
        assert a.read(0, 8192) == (0, b"a" * 8192)
        assert a.write(512, b"a" * 512) == EINVAL
        # None continues the one before, for which the drive would read ahead.
        for number in range(51):
            assert a.read(number * 7 * 4096, 4096)[0] == 0
        latency = switch.tenant("a")["latency"]["read"]["drive_ns"]
        # The model's own time, which does not depend on how busy this machine is: some 67 us a read.
        assert 20_000 < latency["mean"] < 200_000
        state = switch.drive()
        assert (state["access"], state["bytes"]) == ("model", 64 << 20)
        # The lateness of a completion includes its reply: that of the last of 53 may not be counted yet.
        assert state["lateness_ns"]["n"] >= 52


def prepared(*passes: tuple[str, float]) -> list[dict[str, Any]]:
    loads = [
        {
            "kind": "load",
            "name": pattern,
            "pattern": pattern,
            "read_percent": 0,
            "block_bytes": 4096 if pattern == "random" else 131072,
            "arrivals": {"depth": 128 if pattern == "random" else 32},
            "until": {"passes": count},
        }
        for pattern, count in passes
    ]
    return [*loads, {"kind": "idle", "name": "rest", "seconds": 10}]


# So slow that this machine keeps it busy however busy it is itself: one die, and hardly any buffer.
SLOW = {"channels": 1, "dies_per_channel": 1, "planes": 1, "page_kib": 16, "program_us": 1000, "write_buffer_kib": 64}


def test_blocks_of_a_drive_behind_nbd_are_those_of_its_server() -> None:
    model = two_tenants(drive=MODEL | {"timing": {"kind": "ideal"}})
    with running_switch(model) as behind, running_switch(passed_on(behind)) as switch:
        asked = [subprocess.check_output(["nbdinfo", "--json", one.uri("a")], timeout=60) for one in (behind, switch)]
    found = [json.loads(said)["exports"][0]["block_size_minimum"] for said in asked]
    assert found == [4096, 4096]


def test_a_fragmented_model_writes_more_slowly_than_a_clean_one() -> None:
    means = []
    for prepare in (prepared(("sequential", 1)), prepared(("sequential", 1), ("random", 3))):
        drive = MODEL | {"timing": nvme() | SLOW, "seed": 7, "prepare": prepare}
        with running_switch(two_tenants(drive=drive)) as switch, NbdWire(switch.nbd, "a") as a:
            places = stream(7, "writes")
            for _ in range(20):
                for _ in range(64):
                    a.send(1, places.randrange((32 << 20) // 4096) * 4096, 4096, bytes(4096))
                for _ in range(64):
                    assert a.reply()[1] == 0
            means.append(switch.tenant("a")["latency"]["write"]["drive_ns"]["mean"])
    clean, fragmented = means
    assert fragmented > 1.5 * clean


def test_a_signal_ends_it_while_a_drive_is_prepared(tmp_path: Path) -> None:
    timing = nvme() | SLOW
    for_ever = {**prepared(("random", 1))[0], "until": {"requests": 2**62}}
    drive = MODEL | {"timing": timing, "prepare": [for_ever]}
    config = two_tenants(drive=drive, control=str(tmp_path / "control"), nbd=str(tmp_path / "nbd"))
    path = tmp_path / "switch.json"
    path.write_text(json.dumps(config))
    switch = subprocess.Popen([find_binary("storageswitch"), "--config", path])
    try:
        status = Path("/proc", str(switch.pid), "status")
        # Before it catches the signal, that kills it.
        soon().poll(lambda: caught_signals(status), lambda mask: bool(mask >> (signal.SIGTERM - 1) & 1), every_s=0.01)
        switch.terminate()
        assert switch.wait(timeout=STOP_S) == 0
    finally:
        switch.kill()
        switch.wait()


def caught_signals(status: Path) -> int:
    """The mask of the signals that a process has handlers for."""
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("SigCgt:"))
    return int(line.split()[1], 16)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"timing": {"kind": "tape"}}, "drive.timing: unknown variant `tape`"),
        ({"timing": {"kind": "ideal"}, "bytes": 1000}, "bytes 1000 is not a number of sectors"),
        ({"timing": {"kind": "ideal"}, "sector_bytes": 520}, "sector_bytes 520"),
        ({"timing": {"kind": "ideal"}, "prepare": [{"kind": "sanitize", "name": "new"}]}, "its kind only measures"),
        ({"timing": {"kind": "ideal"}, "prepare": [{"kind": "nap"}]}, "drive.prepare: unknown variant `nap`"),
    ],
)
def test_a_bad_model_is_refused_in_one_line(changes: dict[str, Any], part: str) -> None:
    with pytest.raises(ToolError) as error, running_switch(two_tenants(drive=MODEL | changes)):
        pass
    assert part in str(error.value)


class FakeServer:
    """A server with drives, sda first, for which regular files stand, seen through mount namespaces."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("dev", "sys/class/block", "sys/dev/block"):
            (root / folder).mkdir(parents=True)
        self.node = self.add_drive("sda", "8:0", SERIAL, WWN)

    def add_drive(self, name: str, number: str, serial: str, wwn: str) -> Path:
        """A further drive; its node."""
        node = self.root / "dev" / name
        node.write_bytes(bytes(SIZE))
        drive = self.root / "sys/devices" / name
        (drive / "device").mkdir(parents=True)
        (drive / "dev").write_text(f"{number}\n")
        (drive / "size").write_text(f"{SIZE // 512}\n")
        (drive / "device/vpd_pg80").write_bytes(b"\0\x80\0\x08" + serial.encode())
        (drive / "device/wwid").write_text(f"naa.{wwn}\n")
        (self.root / "sys/class/block" / name).symlink_to(f"../../devices/{name}")
        (self.root / "sys/dev/block" / number).symlink_to(f"../../devices/{name}")
        return node

    @property
    def inside(self) -> tuple[str, ...]:
        """The start of a command that runs on the server."""
        binds = ("--bind", f"{self.root}/sys", "/sys", "--bind", f"{self.root}/dev", "/dev")
        return ("bwrap", "--die-with-parent", "--dev-bind", "/", "/", *binds)


@pytest.fixture
def server(tmp_path: Path) -> FakeServer:
    return FakeServer(tmp_path / "server")


def real_drive(**changes: Any) -> dict[str, Any]:
    drive = {"kind": "device", "node": "/dev/sda", "serial": SERIAL, "size": SIZE, "wwn": WWN}
    return two_tenants(drive=drive | changes)


@pytest.fixture(params=["ring", "threads"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_real_drive_is_only_read_without_the_guard_s_permission(server: FakeServer, way: str) -> None:
    server.node.write_bytes(b"\x07" * SIZE)
    with (
        running_switch(real_drive(access=way), before=server.inside) as switch,
        NbdWire(switch.nbd, "a") as a,
    ):
        assert a.write(0, b"x" * 4096) == EPERM
        assert a.plain(TRIM, 0, 4096) == EPERM
        assert a.read(4096, 8192) == (0, b"\x07" * 8192)
        assert not switch.drive()["writable"]
    assert server.node.read_bytes() == b"\x07" * SIZE


@pytest.fixture
def written(server: FakeServer, way: str) -> Iterator[RunningSwitch]:
    permission = (f"--allow-write={SERIAL}", "--claimed")
    with running_switch(real_drive(access=way), before=server.inside, options=permission) as switch:
        yield switch


def test_one_permission_is_for_every_tenant_of_the_drive(written: RunningSwitch, server: FakeServer) -> None:
    with NbdWire(written.nbd, "a") as a, NbdWire(written.nbd, "b") as b:
        assert a.write(0, b"a" * 4096) == 0
        assert b.write(0, b"b" * 4096, flags=FUA) == 0
        # Beside the page cache there is no smaller block.
        assert a.write(100, b"x" * 13) == EINVAL
        assert a.plain(WRITE_ZEROES, 512, 512) == 0
        assert written.drive()["writable"]
    content = server.node.read_bytes()
    assert content[:4096] == b"a" * 512 + bytes(512) + b"a" * 3072
    assert content[SHARE : SHARE + 4096] == b"b" * 4096


def test_each_of_several_drives_is_written_by_its_own_permission(server: FakeServer, way: str) -> None:
    other = server.add_drive("sdb", "8:16", "RL000002", "5000c500a0000002")
    drives = [
        {"name": "d01", "kind": "device", "node": "/dev/sda", "serial": SERIAL, "size": SIZE, "access": way},
        {"name": "d02", "kind": "device", "node": "/dev/sdb", "serial": "RL000002", "size": SIZE, "access": way},
    ]
    tenants = [{"name": f"{tenant}.{drive}", "drive": drive} for drive in ("d01", "d02") for tenant in "ab"]
    config = {"schema": 1, "drives": drives, "scheduler": {"kind": "none"}, "tenants": tenants}
    for permitted, errno in (((SERIAL,), EPERM), ((SERIAL, "RL000002"), 0)):
        options = (*(f"--allow-write={serial}" for serial in permitted), "--claimed")
        with (
            running_switch(config, before=server.inside, options=options) as switch,
            NbdWire(switch.nbd, "b.d01") as of_one,
            NbdWire(switch.nbd, "b.d02") as of_other,
        ):
            assert of_one.write(0, b"1" * 4096) == 0
            assert of_other.write(0, b"2" * 4096) == errno
    assert server.node.read_bytes()[SHARE : SHARE + 4096] == b"1" * 4096
    assert other.read_bytes()[SHARE : SHARE + 4096] == b"2" * 4096


def test_a_drive_that_goes_away_fails_what_cannot_be_done_any_more(written: RunningSwitch, server: FakeServer) -> None:
    with NbdWire(written.nbd, "a") as a:
        assert a.read(0, 4096) == (0, bytes(4096))
        (server.root / "sys/devices/sda").rename(server.root / "sys/devices/gone")
        with server.node.open("r+b") as node:
            node.truncate(0)
        assert a.read(0, 4096) == (ESHUTDOWN, b"")


def test_a_drive_that_another_holds_is_not_written(server: FakeServer) -> None:
    permission = (f"--allow-write={SERIAL}",)
    with (
        running_switch(real_drive(), before=server.inside, options=permission),
        pytest.raises(ToolError) as error,
        running_switch(real_drive(), before=server.inside, options=permission),
    ):
        pass
    assert "drive.node /dev/sda: it is in use" in str(error.value)


def test_a_simulated_drive_is_the_export_that_its_node_names(server: FakeServer, tmp_path: Path) -> None:
    with serving_unix(tmp_path / "drive.sock", ["memory", str(SIZE)]) as path:
        server.node.write_text(f"nbd+unix:///?socket={path}\n")
        for options, errno in (((), EPERM), ((f"--allow-write={SERIAL}", "--claimed"), 0)):
            with (
                running_switch(real_drive(), before=server.inside, options=options) as switch,
                NbdWire(switch.nbd, "b") as b,
            ):
                assert b.write(0, b"b" * 4096) == errno
                assert (switch.drive()["access"], switch.drive()["bytes"]) == ("nbd", SIZE)


@pytest.mark.parametrize(
    ("changes", "options", "part"),
    [
        ({"serial": "OTHER"}, (), "its serial is RL000001, not OTHER"),
        ({"wwn": "5000c500a00000ff"}, (), "its wwid is naa.5000c500a0000001"),
        ({"size": SIZE * 2}, (), f"it has {SIZE} bytes, not {SIZE * 2}"),
        ({"node": "/dev/sdz"}, (), "is it plugged in?"),
        ({}, ("--allow-write=OTHER", "--claimed"), "--allow-write is for drive OTHER"),
        ({}, ("--claimed",), "--claimed says nothing without --allow-write"),
        ({"size": 0}, (), "size is 0"),
    ],
)
def test_another_drive_is_neither_read_nor_written(
    changes: dict[str, Any], options: tuple[str, ...], part: str, server: FakeServer
) -> None:
    with (
        pytest.raises(ToolError) as error,
        running_switch(real_drive(**changes), before=server.inside, options=options),
    ):
        pass
    assert part in str(error.value)


def test_an_unknown_option_is_refused_by_name() -> None:
    with pytest.raises(ToolError) as error, running_switch(two_tenants(), options=("--alow-write=A",)):
        pass
    assert "--alow-write" in str(error.value)


def test_where_there_is_no_ring_the_state_says_why(image: Path) -> None:
    drive = {"kind": "file", "path": str(image)}
    with running_switch(two_tenants(drive=drive)) as switch:
        drive_state = switch.drive()
        assert (drive_state["access"] == "ring") == (drive_state["fallback"] is None), json.dumps(drive_state)
