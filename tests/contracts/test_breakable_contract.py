"""Everything of a mock rack that can be broken keeps the contract, and is broken in truth, not in name."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rackloop.clock import Deadline
from rackloop.contracts import breakable
from rackloop.contracts.breakable import BreakableArm
from rackloop.errors import BadInput, LabError
from rackloop_drivers.breakable import RackdBreakable
from rackloop_labs.labd_control import HostState
from rackloop_labs.mock import MockBench
from rackloop_labs.mock_faults.breakables import KINDS, LabdBreakable
from tests.deadlines import CLOCK, soon
from tests.mock_rack import MockRack
from tests.nbd_wire import NbdWire

# How long something that answers nothing is listened to: one that answers does it in milliseconds.
SILENCE_S = 0.2
SECTOR = 512
SLOW_US = 300_000
SLOW_FACTOR = 100.0
# Of a mock rack's links each trains in 300 to 700 us.
LONG_TRAINING_NS = 10_000_000
FREE_PORTS = [60, 61]


@pytest.fixture(scope="module")
def bench(rack: MockRack) -> Iterator[MockBench]:
    bench = MockBench(rack.lab, CLOCK, rack.state, None, None)
    yield bench
    bench.close()


Truth = Callable[[MockRack, MockBench], bool]
"""Whether the equipment shows a fault at this moment."""


def first_read(rack: MockRack) -> tuple[int, bytes] | None:
    """The status and data of a read of d01, None where it is not answered."""
    with NbdWire(Path(rack.endpoints["nbd"]), "drive.d01") as wire:
        wire.socket.settimeout(SILENCE_S)
        with suppress(TimeoutError):
            return wire.read(0, SECTOR)
    return None


def does_not_answer(rack: MockRack, _bench: MockBench) -> bool:
    return first_read(rack) is None


def fails(rack: MockRack, _bench: MockBench) -> bool:
    answer = first_read(rack)
    return answer is not None and answer[0] != 0


def answers_flipped_bits(rack: MockRack, _bench: MockBench) -> bool:
    return first_read(rack) == (0, b"\1" * SECTOR)


def takes_its_time(rack: MockRack, bench: MockBench) -> bool:
    with bench.recording_io("d01") as recorded, NbdWire(Path(rack.endpoints["nbd"]), "drive.d01") as wire:
        wire.read(0, SECTOR)
        (request,) = recorded().requests
    return request.answered_ns - request.arrived_ns >= SLOW_US * 1000


def crashes_when_its_link_is_lost(rack: MockRack, bench: MockBench) -> bool:
    drop(bench, 101)
    return does_not_answer(rack, bench)


def ignores_a_map(_rack: MockRack, bench: MockBench) -> bool:
    bench.rackd.request("map", soon(), pairs=[FREE_PORTS], full=False)
    follows = FREE_PORTS in bench.rackd.request("get_map", soon())["pairs"]
    bench.rackd.request("open", soon(), ports=FREE_PORTS)
    return not follows


def trains_for_long(_rack: MockRack, bench: MockBench) -> bool:
    return drop(bench, 101) > LONG_TRAINING_NS


def drop(bench: MockBench, port: int) -> int:
    """Drop a port's signal for a moment, and wait until it is up; how many ns it trained."""
    with bench.rackd.subscribe() as truth:
        bench.rackd.request("phy_drop", soon(), ports=[port], down_ms=0.1)
        began_ns = 0
        while True:
            record = truth.next_before(soon())
            if record.get("switch_port") == port and record["event"] == "phy_train":
                began_ns = record["due_ns"]
            if record.get("switch_port") == port and record["event"] == "phy_up":
                return int(record["due_ns"]) - began_ns


def has_the_other_drive(_rack: MockRack, bench: MockBench) -> bool:
    seen = bench.rackd.request("identify", soon(), server="srv1", port="p0")["drive"]
    return bool(seen == "d02")


def switch_answer(rack: MockRack) -> bytes:
    """What the switch says when it is asked who it is, empty where it says nothing."""
    host, _, port = rack.endpoints["switch"]["tcp"].rpartition(":")
    with socket.create_connection((host, int(port)), timeout=SILENCE_S) as wire, suppress(TimeoutError):
        wire.sendall(b"*IDN?\n")
        return wire.recv(200)
    return b""


def hears_nothing(rack: MockRack, _bench: MockBench) -> bool:
    return switch_answer(rack) == b""


def answers_with_noise(rack: MockRack, _bench: MockBench) -> bool:
    return not switch_answer(rack).isascii()


def cannot_be_connected_to(rack: MockRack, _bench: MockBench) -> bool:
    try:
        with socket.create_connection(rack.address("srv1"), timeout=SILENCE_S) as wire:
            return wire.recv(4) != b"SSH-"
    except TimeoutError:
        return True


def has_crashed(rack: MockRack, _bench: MockBench) -> bool:
    return rack.control.states(soon())["srv1"] is HostState.CRASHED


def hangs(rack: MockRack, _bench: MockBench) -> bool:
    return rack.control.states(soon())["srv1"] is HostState.HUNG


def says_nothing_of_power(server: str) -> Truth:
    def truth(_rack: MockRack, bench: MockBench) -> bool:
        try:
            return not bench.equipment.power[f"server:{server}"].is_on(Deadline.after(CLOCK, 1.0))
        except LabError:
            return True

    return truth


FAULTS: list[tuple[str, Mapping[str, Any], Truth]] = [
    ("drive:d01", {"kind": "media_error", "lba": 0, "sectors": 8, "mode": "until_rewritten"}, fails),
    ("drive:d01", {"kind": "slow", "extra_us": SLOW_US}, takes_its_time),
    ("drive:d01", {"kind": "hang"}, does_not_answer),
    ("drive:d01", {"kind": "dead"}, fails),
    ("drive:d01", {"kind": "corrupt", "lba": 0, "sectors": 8}, answers_flipped_bits),
    ("drive:d01", {"kind": "crash_on_remap"}, crashes_when_its_link_is_lost),
    ("switch_port:60", {"kind": "stuck"}, ignores_a_map),
    ("switch_port:101", {"kind": "slow_training", "factor": SLOW_FACTOR}, trains_for_long),
    ("cabling", {"kind": "miswire", "ports": [101, 102]}, has_the_other_drive),
    ("server:srv1", {"kind": "crash"}, has_crashed),
    ("server:srv1", {"kind": "nmi"}, has_crashed),
    ("server:srv1", {"kind": "hang"}, hangs),
    ("network:srv1", {"kind": "partition"}, cannot_be_connected_to),
    ("control", {"kind": "lost"}, hears_nothing),
    ("control", {"kind": "garbled"}, answers_with_noise),
    ("bmc:srv1", {"kind": "unreachable"}, says_nothing_of_power("srv1")),
    ("bmc:srv3", {"kind": "unreachable"}, says_nothing_of_power("srv3")),
]


@pytest.mark.parametrize("clause", breakable.CONTRACT, ids=lambda clause: clause.__name__)
@pytest.mark.parametrize(
    ("resource", "fault", "truth"), FAULTS, ids=[f"{name}-{fault['kind']}" for name, fault, _ in FAULTS]
)
def test_breakable(
    clause: Callable[[BreakableArm], None],
    resource: str,
    fault: Mapping[str, Any],
    truth: Truth,
    rack: MockRack,
    bench: MockBench,
) -> None:
    def make() -> RackdBreakable | LabdBreakable:
        kind, _, name = resource.partition(":")
        return RackdBreakable(bench.rackd, name) if kind == "drive" else LabdBreakable(rack.control, resource)

    clause(BreakableArm(make, fault, lambda: truth(rack, bench), stands_once=resource == "cabling"))


def test_every_kind_of_a_mock_rack_is_tried_here(bench: MockBench) -> None:
    assert {(name.partition(":")[0], fault["kind"]) for name, fault, _ in FAULTS} == {
        *((name, kind) for name, kinds in KINDS.items() for kind in kinds),
        *(("drive", kind) for kind in RackdBreakable.kinds),
    }
    # What servers break of themselves is tried in test_switched_breakables.
    of_servers = {"phy", "slot"}
    assert {name.partition(":")[0] for name in bench.equipment.breakable} == {*KINDS, "drive"} | of_servers


def test_a_part_that_is_not_there_is_refused_by_its_name(rack: MockRack) -> None:
    with pytest.raises(BadInput, match="server:srv9"):
        LabdBreakable(rack.control, "server:srv9").break_as("key", {"kind": "hang"}, soon())
