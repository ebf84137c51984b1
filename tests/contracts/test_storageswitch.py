"""The storage switch: clients that others wrote share one drive through it, each on its own part."""

from __future__ import annotations

import json
import operator
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rackloop.errors import ToolError
from rackloop.seed import stream
from tests.deadlines import soon
from tests.nbd_wire import EINVAL, FLUSH, FUA, TRIM, WRITE_ZEROES, NbdWire
from tests.nbdkit_process import PauseControl, serving_tcp, serving_unix
from tests.storageswitch_process import RunningSwitch, running_switch, two_tenants
from tests.tcp_relay import relaying

SIZE = 8 << 20
SHARE = SIZE // 2
EPERM, ESHUTDOWN = 1, 108
SCHEDULERS = ("none", "reflex", "parda", "flashfq", "gimbal")
RUN_S = 60.0


@contextmanager
def drive_of(kind: str, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """The configuration of a drive of 8 MiB, and what it needs."""
    image = tmp_path / "drive.img"
    match kind:
        case "memory":
            yield {"kind": "memory", "bytes": SIZE}
        case "file":
            image.touch()
            with image.open("r+b") as file:
                file.truncate(SIZE)
            yield {"kind": "file", "path": str(image), "threads": 4}
        case _:
            with serving_unix(tmp_path / "upstream.sock", ["memory", str(SIZE)]) as path:
                yield {"kind": "nbd", "uri": f"nbd+unix:///?socket={path}", "connections": 3}


@pytest.fixture(params=["memory", "file", "nbd"])
def switch(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunningSwitch]:
    with (
        drive_of(request.param, tmp_path) as drive,
        running_switch(two_tenants(drive=drive, scheduler={"kind": "gimbal"})) as running,
    ):
        yield running


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}{done.stdout}"
    return done.stdout


def refused(**changes: Any) -> str:
    """What the switch says of a configuration that it does not take."""
    with pytest.raises(ToolError) as error, running_switch(two_tenants(**changes)):
        pass
    return str(error.value)


def scheduler_once(switch: RunningSwitch, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The first state of the scheduler that fits."""
    return soon().poll(switch.scheduler, fits, every_s=0.01)


def arrived(scheduler: Mapping[str, Any]) -> int:
    return sum(tenant["arrived"] for tenant in scheduler["tenants"])


def test_each_tenant_has_its_share_and_its_bytes(switch: RunningSwitch, tmp_path: Path) -> None:
    images = {}
    for name in "ab":
        images[name] = tmp_path / name
        images[name].write_bytes(stream(7, name).randbytes(SHARE))
        run("nbdcopy", "--flush", images[name], switch.uri(name))
    for name, image in images.items():
        found = json.loads(run("nbdinfo", "--json", switch.uri(name)))["exports"][0]
        assert found["export-size"] == SHARE
        run("nbdcopy", switch.uri(name), tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == image.read_bytes()


def test_exports_are_listed(switch: RunningSwitch) -> None:
    listed = json.loads(run("nbdinfo", "--json", "--list", switch.uri("")))["exports"]
    assert [export["export-name"] for export in listed] == ["a", "b"]


def test_a_tenant_reaches_no_other_region(switch: RunningSwitch) -> None:
    with NbdWire(switch.nbd, "b") as b, NbdWire(switch.nbd, "a") as a:
        assert b.write(0, b"b" * 4096, flags=FUA) == 0
        assert a.read(SHARE, 4096) == (EINVAL, b"")
        assert a.read(SHARE - 4096, 8192) == (EINVAL, b"")
        assert a.plain(FLUSH) == 0
        assert a.read(SHARE - 4096, 4096) == (0, bytes(4096))
        assert b.read(0, 4096) == (0, b"b" * 4096)


@pytest.mark.parametrize(("kind", "errno"), [("memory", 0), ("file", 0), ("nbd", EINVAL)])
def test_what_the_drive_cannot_do_is_refused_and_the_rest_is_done(kind: str, errno: int, tmp_path: Path) -> None:
    with (
        drive_of(kind, tmp_path) as drive,
        running_switch(two_tenants(drive=drive)) as switch,
        NbdWire(switch.nbd, "a") as a,
    ):
        assert a.write(0, b"x" * 8192) == 0
        assert a.plain(TRIM, 0, 4096) == errno
        assert a.plain(WRITE_ZEROES, 4096, 4096) == errno
        assert a.read(0, 8192) == (0, b"x" * 8192 if errno else bytes(8192))


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_fio_of_both_tenants_verifies_under_every_scheduler(kind: str, tmp_path: Path) -> None:
    with drive_of("file", tmp_path) as drive:
        for chosen in (drive, {"kind": "memory", "bytes": SIZE}):
            with running_switch(two_tenants(drive=chosen, scheduler={"kind": kind})) as switch:
                jobs = [f"--name={name} --uri={switch.uri(name)} --bs={bs}" for name, bs in (("a", "4k"), ("b", "64k"))]
                always = "--ioengine=nbd --rw=randwrite --iodepth=32 --verify=crc32c --verify_state_save=0"
                run("fio", *always.split(), f"--size={SHARE}", *" ".join(jobs).split())
                for name in "ab":
                    latency = switch.tenant(name)["latency"]
                    assert latency["write"]["drive_ns"]["n"] == latency["read"]["drive_ns"]["n"] > 0
                    assert latency["read"]["total_ns"]["p50"] >= latency["read"]["drive_ns"]["p50"] > 0


def test_the_state_names_scheduler_and_tenants() -> None:
    config = two_tenants(scheduler={"kind": "gimbal", "virtual_slots": 4})
    with running_switch(config) as switch, NbdWire(switch.nbd, "a") as a:
        assert a.read(0, 4096) == (0, bytes(4096))
        state = switch.state()
        (drive,) = state["drives"]
        assert (drive["name"], drive["access"], drive["writable"], drive["bytes"]) == ("drive", "memory", True, SIZE)
        scheduler = drive["scheduler"]
        assert (scheduler["scheduler"], scheduler["at_drive"]) == ("gimbal", 0)
        assert [tenant["completed"] for tenant in scheduler["tenants"]] == [1]
        one, other = state["tenants"]
        assert (one["name"], one["connections"], other["connections"]) == ("a", 1, 0)
        assert one["region"] == {"offset": 0, "bytes": SHARE}
        assert one["view"]["credit"] == one["credit"] >= 1
        assert other["view"] is None


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("{", "no JSON object"),
        ('{"op": "state"}', "no id"),
        ('{"id": 1, "op": "stats"}', "known: state, view, watch"),
        ('{"id": 1, "op": "state", "of": "a"}', "takes no field"),
        ('{"id": 1, "op": "view"}', "there is no tenant"),
        ('{"id": 1, "op": "view", "tenant": 7}', "tenant is 7"),
        ('{"id": 1, "op": "view", "tenant": "tenant-aa"}', 'unknown tenant "tenant-aa"'),
        ('{"id": 1, "op": "watch", "tenant": "a", "every_us": -1}', "every_us is -1"),
    ],
)
def test_requests_of_the_control_socket_are_refused_by_name(line: str, part: str) -> None:
    with running_switch(two_tenants()) as switch:
        answer = switch.ask(line)
        assert answer["ok"] is False
        assert part in answer["error"]["message"]
        assert switch.state()["ok"]


def test_a_view_is_of_a_connected_tenant() -> None:
    with running_switch(two_tenants(scheduler={"kind": "gimbal"})) as switch, NbdWire(switch.nbd, "a") as a:
        assert a.read(0, 4096) == (0, bytes(4096))
        view = switch.ask('{"id": 7, "op": "view", "tenant": "a"}')
        assert (view["id"], view["ok"], view["tenant"], view["connected"]) == (7, True, "a", True)
        assert view["credit"] == view["view"]["credit"] > 0
        assert view["view"]["target_rate"] > 0
        other = switch.ask('{"id": 8, "op": "view", "tenant": "b"}')
        assert (other["connected"], other["credit"], other["view"]) == (False, None, None)


def test_a_watch_tells_of_each_change_to_the_tenant_it_is_of() -> None:
    watch = '{"id": 3, "op": "watch", "tenant": "a", "every_us": 0}'
    with running_switch(two_tenants(scheduler={"kind": "gimbal"})) as switch, switch.lines(watch) as lines:
        first = next(lines)
        assert (first["id"], first["ok"], first["connected"]) == (3, True, False)
        with NbdWire(switch.nbd, "a") as a:
            joined = next(lines)
            assert (joined["event"], joined["id"], joined["tenant"]) == ("view", 3, "a")
            assert joined["connected"]
            credit = joined["credit"]
            # Each completion changes the target rate.
            assert a.write(0, bytes(1 << 20)) == 0
            changed = next(line for line in lines if line["credit"] != credit or line["view"] != joined["view"])
            assert changed["t_ns"] > joined["t_ns"]
        gone = next(line for line in lines if not line["connected"])
        assert (gone["credit"], gone["view"]) == (None, None)


def test_a_watch_ends_with_its_connection() -> None:
    with running_switch(two_tenants(scheduler={"kind": "gimbal"})) as switch:
        with switch.lines('{"id": 3, "op": "watch", "tenant": "a"}') as lines:
            assert next(lines)["ok"]
        with NbdWire(switch.nbd, "a") as a:
            assert a.read(0, 4096) == (0, bytes(4096))
        view = '{"id": 4, "op": "view", "tenant": "a"}'
        # The switch may hear of a client's end a moment after the client.
        soon().poll(lambda: switch.ask(view)["connected"], lambda is_connected: not is_connected, every_s=0.01)


def two_drives(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with the tenants a on the drive d0 and b on d1."""
    drives = [{"name": "d0"} | dict(one), {"name": "d1"} | dict(other)]
    tenants = [{"name": "a", "drive": "d0"}, {"name": "b", "drive": "d1"}]
    rest = {name: value for name, value in two_tenants().items() if name != "drive"}
    return rest | {"drives": drives, "tenants": tenants}


def test_each_drive_has_its_own_scheduler_and_its_tenants_all_of_it() -> None:
    memory = {"kind": "memory", "bytes": SIZE}
    with (
        running_switch(two_drives(memory, memory | {"bytes": SHARE})) as switch,
        NbdWire(switch.nbd, "a") as a,
        NbdWire(switch.nbd, "b") as b,
    ):
        assert a.write(0, b"a" * 4096) == 0
        assert b.read(0, 4096) == (0, bytes(4096))
        assert [arrived(switch.scheduler(name)) for name in ("d0", "d1")] == [1, 1]
        regions = [(tenant["drive"], tenant["region"]["bytes"]) for tenant in switch.state()["tenants"]]
        assert regions == [("d0", SIZE), ("d1", SHARE)]


def test_a_drive_that_hangs_does_not_stop_the_other(tmp_path: Path) -> None:
    control = tmp_path / "pause.sock"
    arguments = ["--filter=pause", "memory", str(SIZE), f"pause-control={control}"]
    with serving_unix(tmp_path / "upstream.sock", arguments) as path:
        hangs = {"kind": "nbd", "uri": f"nbd+unix:///?socket={path}"}
        with (
            running_switch(two_drives(hangs, {"kind": "memory", "bytes": SIZE})) as switch,
            NbdWire(switch.nbd, "a") as a,
            NbdWire(switch.nbd, "b") as b,
        ):
            pause = PauseControl(control)
            pause.pause()
            for number in range(300):
                a.send(0, number * 4096, 4096)
            soon().poll(lambda: arrived(switch.scheduler("d0")), lambda count: count == 300, every_s=0.01)
            for number in range(100):
                assert b.write(number * 4096, b"b" * 4096) == 0
            # 4 connections of 32 each are full, the rest waits in the switch.
            soon().poll(lambda: switch.drive("d0")["waiting"], lambda count: count == 300 - 4 * 32, every_s=0.01)
            assert switch.scheduler("d0")["at_drive"] == 300
            pause.resume()
            for _ in range(300):
                assert a.reply(4096)[1] == 0


def test_a_request_that_is_held_leaves_the_other_connection_to_others(tmp_path: Path) -> None:
    held = tmp_path / "held"
    os.mkfifo(held)
    pread = f"pread=test $4 = 4096 && read _ < {held}; head -c $3 /dev/zero"
    server = ["eval", "thread_model=echo parallel", "can_multi_conn=exit 0", f"get_size=echo {SIZE}", pread]
    # Closed at last, which lets go of what is held.
    with held.open("r+b", buffering=0), serving_unix(tmp_path / "upstream.sock", server) as path:
        drive = {"kind": "nbd", "uri": f"nbd+unix:///?socket={path}", "connections": 2, "depth": 1}
        with running_switch(two_tenants(drive=drive)) as switch, NbdWire(switch.nbd, "a") as a:
            a.send(0, 4096, 512)
            for number in range(50):
                assert a.read(number * 8192, 512) == (0, bytes(512))


def test_waiting_for_a_free_connection_is_not_the_latency_of_the_drive(tmp_path: Path) -> None:
    arguments = ["--filter=delay", "memory", str(SIZE), "delay-read=50ms"]
    with serving_unix(tmp_path / "upstream.sock", arguments) as path:
        drive = {"kind": "nbd", "uri": f"nbd+unix:///?socket={path}", "connections": 1, "depth": 1}
        with running_switch(two_tenants(drive=drive)) as switch, NbdWire(switch.nbd, "a") as a:
            for number in range(10):
                a.send(0, number * 4096, 4096)
            for _ in range(10):
                assert a.reply(4096)[1] == 0
            latency = switch.tenant("a")["latency"]["read"]
            # The last waits for nine others at this depth: ten times the drive's own time.
            assert latency["total_ns"]["max"] >= 10 * 50e6
            assert latency["drive_ns"]["mean"] <= latency["total_ns"]["mean"] / 2


def test_a_tenant_that_never_writes_cannot() -> None:
    tenants = [{"name": "a", "read_only": True}, {"name": "b"}]
    with running_switch(two_tenants(tenants=tenants)) as switch, NbdWire(switch.nbd, "a") as a:
        assert a.write(0, b"x" * 512) == EPERM
        assert a.read(0, 512) == (0, bytes(512))


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_a_tenant_that_disconnects_in_the_middle_leaves_the_others_alone(kind: str, tmp_path: Path) -> None:
    control, count = tmp_path / "pause.sock", 40
    arguments = ["--filter=pause", "memory", str(SIZE), f"pause-control={control}"]
    with serving_unix(tmp_path / "upstream.sock", arguments) as path:
        drive = {"kind": "nbd", "uri": f"nbd+unix:///?socket={path}", "connections": 2}
        with running_switch(two_tenants(drive=drive, scheduler={"kind": kind})) as switch:
            pause = PauseControl(control)
            with NbdWire(switch.nbd, "b") as b:
                pause.pause()
                with NbdWire(switch.nbd, "a") as a:
                    for number in range(count):
                        a.send(0, number * 4096, 4096)
                    b.send(0, 0, 4096)
                    scheduler_once(switch, lambda state: arrived(state) == count + 1)
                soon().poll(lambda: switch.tenant("a")["connections"], lambda count: count == 0, every_s=0.01)
                pause.resume()
                assert b.reply(4096) == (1, 0, bytes(4096))
                scheduler_once(switch, lambda state: not state["queued"] and not state["at_drive"])
                with NbdWire(switch.nbd, "a") as again:
                    assert again.read(0, 4096) == (0, bytes(4096))


def test_a_connection_that_breaks_fails_no_request_of_the_others() -> None:
    with serving_tcp(["memory", str(SIZE)]) as server, relaying(server) as relay:
        drive = {"kind": "nbd", "uri": f"nbd://127.0.0.1:{relay.port}/", "connections": 4}
        with running_switch(two_tenants(drive=drive)) as switch, NbdWire(switch.nbd, "a") as a:
            before = _descriptors(switch)
            with relay.refusing(lost=1):
                # What is sent on it before the end of it is seen fails with it.
                soon().poll(lambda: _descriptors(switch), lambda count: count < before, every_s=0.001)
                assert [a.read(number * 4096, 4096)[0] for number in range(100)] == [0] * 100
                for number in range(200):
                    a.send(0, number * 4096, 4096)
                assert {a.reply(4096)[1] for _ in range(200)} == {0}
            with relay.refusing():
                assert a.read(0, 4096)[0] == ESHUTDOWN
            soon().poll(lambda: a.read(0, 4096)[0], lambda errno: errno == 0, every_s=0.01)


def _descriptors(switch: RunningSwitch) -> int:
    return len(list(Path(f"/proc/{switch.process.pid}/fd").iterdir()))


def test_a_client_that_finds_no_descriptor_left_is_no_connection_of_its_tenant() -> None:
    with running_switch(two_tenants(), before=("prlimit", "--nofile=40:40")) as switch, ExitStack() as idle:
        while (taken := _descriptors(switch)) < 38:
            idle.enter_context(NbdWire(switch.nbd))
            soon().poll(partial(_descriptors, switch), partial(operator.lt, taken), every_s=0.001)
        # What is left takes the client, and not the second descriptor of its socket, for the answers.
        for _ in range(3):
            with NbdWire(switch.nbd, "a") as a, pytest.raises((EOFError, ConnectionError)):
                a.read(0, 4096)
        idle.close()
        soon().poll(lambda: switch.tenant("a")["connections"], lambda count: count == 0, every_s=0.01)
        with NbdWire(switch.nbd, "a") as a:
            assert a.read(0, 4096)[0] == 0


def test_an_upstream_that_goes_away_fails_requests_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "upstream.sock"
    drive = {"kind": "nbd", "uri": f"nbd+unix:///?socket={path}", "connections": 1}
    with ExitStack() as lives:
        with serving_unix(path, ["memory", str(SIZE)]):
            switch = lives.enter_context(running_switch(two_tenants(drive=drive)))
            a = lives.enter_context(NbdWire(switch.nbd, "a"))
            assert a.read(0, 512) == (0, bytes(512))
        path.unlink()
        assert a.read(0, 512) == (ESHUTDOWN, b"")
        lives.enter_context(serving_unix(path, ["memory", str(SIZE)]))
        assert a.read(0, 512) == (0, bytes(512))


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"scheduler": {"kind": "gimball"}}, 'did you mean "gimbal"'),
        ({"scheduler": {"kind": "gimbal", "virtual_slot": 8}}, 'did you mean "virtual_slots"'),
        ({"tenants": [{"name": "a", "weight": 0}]}, "weight is 0"),
        ({"tenants": [{"name": "a"}, {"name": "a"}]}, 'tenants: the name "a" is given twice'),
        ({"tenants": []}, "tenants is empty"),
        ({"drive": {"kind": "memory", "bytes": 4096}}, "less than 4096 for each of its 2 tenants"),
        (
            {
                "tenants": [
                    {"name": "a", "region": {"offset": 0, "bytes": 8192}},
                    {"name": "b", "region": {"offset": 4096, "bytes": 8192}},
                ]
            },
            'the regions of the tenants "a" and "b" overlap at byte 4096',
        ),
        ({"tenants": [{"name": "a", "drive": "d1"}]}, 'unknown drive "d1" of tenant "a"'),
        ({"drives": [{"name": "d", "kind": "memory", "bytes": SIZE}]}, "both drive and drives"),
        (
            {"tenants": [{"name": "a", "region": {"offset": 0, "bytes": SIZE + 4096}}]},
            'tenant "a": region: it ends beyond the drive',
        ),
        ({"drive": {"kind": "file", "path": "/nowhere/drive"}}, "drive.path /nowhere/drive: No such file"),
        ({"drive": {"kind": "file", "path": "/dev/null"}}, "neither a file nor a block device"),
        ({"drive": {"kind": "nbd", "uri": "nbd+unix:///?socket=/nowhere"}}, "drive.uri nbd+unix:///?socket=/nowhere"),
        ({"drive": {"kind": "nbd", "uri": "nowhere"}}, "is no NBD URI"),
        ({"schema": 2}, "schema 2"),
        ({"tenant": []}, "unknown field `tenant`"),
    ],
)
def test_a_bad_configuration_is_refused_in_one_line(changes: Mapping[str, Any], part: str) -> None:
    said = refused(**changes)
    assert part in said
    assert "\n" not in said.removeprefix("storageswitch did not start: ")


def test_an_objective_that_cannot_be_met_is_refused_with_the_arithmetic() -> None:
    slo = {"iops": 1e8, "read_percent": 100, "p95_us": 500}
    said = refused(scheduler={"kind": "reflex"}, tenants=[{"name": "a", "slo": slo}])
    assert 'tenant "a": CANTMEETSLO' in said


def test_a_tenant_has_no_more_than_its_connections(switch: RunningSwitch) -> None:
    with ExitStack() as stack:
        for _ in range(128):
            client = stack.enter_context(NbdWire(switch.nbd, "a"))
            # It counts once it is served, which may be after its handshake.
            assert client.read(0, 4096)[0] == 0
        with NbdWire(switch.nbd, "a") as one_more, pytest.raises((EOFError, ConnectionError)):
            one_more.read(0, 4096)
        with NbdWire(switch.nbd, "b") as b:
            assert b.read(0, 4096)[0] == 0
