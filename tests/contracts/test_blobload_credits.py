"""blobload with real storage switches in front of model drives, whose credits change under it."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

from rackloop.lab import load_profile
from tests.blobload_process import RECORDS, blobload, document, running
from tests.deadlines import soon
from tests.storageswitch_process import RunningSwitch, running_switch

# So slow that this machine keeps it busy however busy it is itself.
SLOWED = {"channels": 1, "dies_per_channel": 2, "write_buffer_kib": 256}
SLOWEST = {"channels": 1, "dies_per_channel": 1, "program_us": 100_000, "write_buffer_kib": 64}
#: Eight slots of one tenant: each has 1 to 32 requests of 4 KiB or more.
LEAST_CREDIT, MOST_CREDIT = 8, 256


def switch_of(slowed: dict[str, Any], **scheduler: Any) -> dict[str, Any]:
    """A configuration: Gimbal in front of a drive model, and a tenant a."""
    timing = dict(load_profile("nvme-ssd").timing) | slowed
    return {
        "schema": 1,
        "drive": {"kind": "model", "timing": timing, "bytes": 64 << 20, "sector_bytes": 4096, "seed": 1},
        "scheduler": {"kind": "gimbal"} | scheduler,
        "tenants": [{"name": "a"}],
    }


@contextmanager
def two_switches(*configs: dict[str, Any]) -> Iterator[list[RunningSwitch]]:
    """Two switches of these configurations, or of a slowed drive each."""
    with ExitStack() as stack:
        chosen = configs or (switch_of(SLOWED), switch_of(SLOWED))
        yield [stack.enter_context(running_switch(config)) for config in chosen]


@contextmanager
def without_watch(switch: RunningSwitch) -> Iterator[RunningSwitch]:
    """The switch behind a control socket that has no ``watch``."""

    class Control(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            # Its client may go at any time.
            with suppress(OSError):
                for line in self.rfile:
                    self.wfile.write(json.dumps(self.answer(line.decode())).encode() + b"\n")

        def answer(self, line: str) -> dict[str, Any]:
            asked = json.loads(line)
            if asked["op"] != "watch":
                return switch.ask(line)
            error = {"code": "bad_request", "message": 'there is no op "watch"; known: state'}
            return {"id": asked["id"], "ok": False, "error": error}

    path = switch.control.with_name("older.sock")
    with socketserver.ThreadingUnixStreamServer(str(path), Control) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield replace(switch, control=path)
        finally:
            server.shutdown()
            thread.join()


def result_of(switches: Sequence[RunningSwitch], **changes: Any) -> dict[str, Any]:
    """The result of a run that went well, which each switch has seen as the client has."""
    done = blobload(document(switches, **{"depth": 32, "operations": 10_000} | changes))
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert (result["errors"], result["mismatch"], done.stderr) == (0, None, "")
    for switch, drive in zip(switches, result["drives"], strict=True):
        latency = switch.tenant("a")["latency"]
        assert latency["read"]["total_ns"]["n"] == drive["reads"] > 0
        assert latency["write"]["total_ns"]["n"] > 0
    return result


def arrived(switch: RunningSwitch) -> int:
    return sum(tenant["arrived"] for tenant in switch.scheduler()["tenants"])


def test_credits_change_and_are_watched() -> None:
    with two_switches() as switches:
        result = result_of(switches)
    assert result["gets"]["count"] + result["puts"]["count"] == 10_000
    assert result["verified_bytes"] >= 4096 * result["counters"]["blocks_read"] > 0
    for drive in result["drives"]:
        told = drive["credits"]
        assert told["by"] == "watch"
        assert LEAST_CREDIT <= told["least"] <= drive["credit"] <= told["most"] <= MOST_CREDIT
        assert told["least"] < told["most"]
        assert told["changes"] > 2
    assert result["credit_updates"] == sum(drive["credits"]["changes"] for drive in result["drives"])


def test_a_switch_without_watch_is_polled() -> None:
    with two_switches() as (one, other), without_watch(other) as older:
        result = result_of([one, older])
    watched, polled = (drive["credits"] for drive in result["drives"])
    assert (watched["by"], polled["by"]) == ("watch", "state")
    assert LEAST_CREDIT <= polled["least"] < polled["most"] <= MOST_CREDIT


def test_a_credit_is_told_once() -> None:
    """Ideal drives whose one slot is filled by one request: the credit never changes again."""
    ideal = switch_of({}, virtual_slots=1, slot_kib=4) | {"drive": {"kind": "memory", "bytes": 64 << 20}}
    with two_switches(ideal, ideal) as (one, other), without_watch(other) as older:
        result = result_of([one, older])
    for drive in result["drives"]:
        assert (drive["credit"], drive["credits"]["least"]) == (1, 1)
        assert drive["credits"]["changes"] <= 2


def test_reads_go_where_there_is_more_credit() -> None:
    with two_switches(switch_of(SLOWED), switch_of(SLOWED, virtual_slots=1)) as switches:
        much, little = result_of(switches)["drives"]
    assert little["credits"]["most"] <= MOST_CREDIT / 8
    assert much["reads"] > 2 * little["reads"]
    with two_switches(switch_of(SLOWED), switch_of(SLOWED, virtual_slots=1)) as switches:
        much, little = result_of(switches, options={"steering": "first"})["drives"]
    assert much["reads"] < 2 * little["reads"]


def test_reads_go_on_and_writes_fail_when_a_switch_dies() -> None:
    with two_switches() as switches:
        text = document(switches, depth=32, operations=50_000, progress_every=500)
        with running(text) as (process, lines):
            assert next(lines)["event"] == "loaded"
            before = next(lines)
            switches[1].process.kill()
            *_, result = lines
            assert process.stderr is not None
            said = process.stderr.read()
    assert process.returncode == 1
    assert result["operations"] == 50_000
    assert result["gets"]["errors"] == 0
    assert result["gets"]["count"] > before["operations"]
    assert result["errors"] == result["puts"]["errors"] > 0
    kept, lost = result["drives"]
    assert kept["lost"] is None
    assert kept["reads"] > lost["reads"]
    assert said.startswith(f"blobload: {result['errors']} of 50000 operations failed: ")
    assert "a write failed on drives [1] of its replicas" in said
    assert f"drive 1, {switches[1].uri('a')}, was lost ({lost['lost']}): start its switch" in said
    assert switches[0].uri("a") not in said


def test_a_switch_that_dies_during_the_load_is_no_bad_input() -> None:
    with two_switches(switch_of(SLOWED), switch_of(SLOWEST)) as switches:
        text = document(switches, records=4 * RECORDS)
        with running(text) as (process, lines):
            soon().poll(lambda: arrived(switches[1]), bool, every_s=0.01)
            switches[1].process.kill()
            assert list(lines) == []
            assert process.stderr is not None
            said = process.stderr.read()
    assert process.returncode == 1
    assert said.startswith("blobload: the records are not stored: ")
    assert f"drive 1, {switches[1].uri('a')}, was lost" in said
