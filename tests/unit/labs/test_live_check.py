"""A live check of a rack: the time that it may take, and what it says of a clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rackloop.abilities import Completed
from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, LabError, NotConnected, NotSupported
from rackloop.lab import load_lab
from rackloop_drivers.block import HostPath
from rackloop_drivers.clock_access import ClockAccess
from rackloop_labs.live_check import _device, _here, _means, _require_clock, _servers, live_check_s
from tests.deadlines import CLOCK, soon
from tests.unit.models.run_only_executor import RunOnlyExecutor

KINDS = frozenset({"disabled", "hang", "partition", "md_array"})
HBA = "/sys/devices/pci0000:00/0000:0a:00.0/host0"
PHYS = f"""\
phy-0:1 0 {HBA}/phy-0:1 , 12.0 Gbit
phy-0:2 0 {HBA}/phy-0:2 ? Unknown
phy-0:1:1 0 /sys/devices/b ? 12.0 Gbit
"""
MEANS = {
    "has nft": "install its package nftables there",
    "has mdadm": "install its package mdadm there",
    "has losetup": "install its package util-linux there",
    "can switch its SAS PHYs off, by its kernel or smp_phy_control": "install its package smp-utils there",
    "can have its programs held for server_hang, by control groups of version 2": "no control groups",
    "mounts ext4 for remap.mount": "the kernel of srv1 has no ext4",
}


class Server(RunOnlyExecutor):
    """A server that has no tool, one PHY that its kernel does not switch, and no control groups; or all it needs."""

    name = "srv1"

    def __init__(self, *, lacks: bool) -> None:
        self.lacks = lacks

    def find(self, program: str) -> str | None:
        return None if self.lacks else program

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        assert not stdin
        assert not deadline.is_over()
        lacking = (1, "")
        match argv[3:]:
            case ["phy", _, "sysfs", "list"]:
                return Completed(tuple(argv), 0, PHYS, "")
            case ["phy", _, "sysfs", "able", *names]:
                # An expander's PHYs are those of its enclosure.
                assert names == ["phy-0:1", "phy-0:2"]
                lacking = (5, "")
            case ["hang", _, _, "look"]:
                lacking = (5, "/sys/fs/cgroup has no control groups of version 2")
        status, error = lacking if self.lacks else (0, "")
        return Completed(tuple(argv), status, "", error)


def problems(name: str, kinds: frozenset[str], *, lacks: bool) -> Mapping[str, str | None]:
    """What a server is found to have and to lack, on a lab of this name."""
    server: Any = Server(lacks=lacks)
    return {attempt.did: attempt.problem for attempt in _means(load_lab(name), server, kinds, soon())}


def test_each_ability_that_a_description_offers_is_looked_for_on_its_servers() -> None:
    lacking = problems("example-rack", KINDS, lacks=True)
    assert lacking.keys() == MEANS.keys()
    for did, why in lacking.items():
        assert why is not None
        assert MEANS[did] in why
    assert problems("example-rack", KINDS, lacks=False) == dict.fromkeys(MEANS)


def test_it_is_known_beforehand_which_phys_a_port_is_of() -> None:
    lab = load_lab("direct-attached")
    node2 = lab.servers["node2"]

    def said(path: str) -> list[tuple[str, str | None]]:
        described = node2.model_copy(update={"paths": {"p0": path}})
        server: Any = Server(lacks=False)
        server.name = "node2"
        rack = lab.model_copy(update={"servers": {**lab.servers, "node2": described}})
        tried = _means(rack, server, frozenset({"disabled"}), soon())
        return [(attempt.did, attempt.problem) for attempt in tried if attempt.part == "node2.p0"]

    assert said("pci-0000:0a:00.0-sas-phy1") == [("could lose its signal by phy-0:1", None)]
    ((did, problem),) = said("pci-0000:0b:00.0")
    assert (did.startswith("cannot lose its signal (node2:pci-0000:0b:00.0: the controller"), problem) == (True, None)
    ((_, problem),) = said("pci-0000:0a:00.0-sas-exp0x500304801234567f")
    assert problem is not None
    assert "no PHY leads there now" in problem


def test_what_no_part_of_a_server_can_do_is_not_looked_for() -> None:
    assert problems("example-rack", frozenset(), lacks=True).keys() == {"mounts ext4 for remap.mount"}
    # A simulated server hangs in the simulation, and mounts nothing.
    assert problems("mock", frozenset({"hang"}), lacks=True) == {}


def test_file_systems_are_made_on_this_machine_where_drives_are_mounted() -> None:
    def looked_for(name: str) -> list[tuple[str, str]]:
        bench: Any = SimpleNamespace(lab=load_lab(name))
        return [(attempt.part, attempt.did) for attempt in _here(bench)]

    assert looked_for("mock") == []
    assert looked_for("virtual") == [("this machine", "has mkfs.ext4 for remap.mount")]


def test_a_drive_in_an_expander_is_read_by_its_wwn_whatever_path_its_port_has() -> None:
    lab = load_lab("direct-attached")
    bench: Any = SimpleNamespace(lab=lab, clock=CLOCK, host=lambda _: Server(lacks=False))
    device = _device(bench, "node2", "p0")
    assert isinstance(device, HostPath)
    assert device.port_target() == "/dev/disk/by-id/wwn-0x5000c500d2000004"


def test_a_check_has_the_time_of_the_description_for_a_survey_and_each_port(tmp_path: Path) -> None:
    path = tmp_path / "rack.yaml"
    path.write_text(
        "name: rack\nkind: mock\nfabric: {driver: flexfabric, ports: 40}\ntimes: {tools: 7 min}\n"
        "servers:\n  srv1: {ports: {p0: 1, p1: 2, p2: 3}}\n  srv2: {ports: {p0: 4}}\n"
        "drives:\n  d1: {profile: sata-ssd, serial: S1, wwn: 5000c500a0000001, size: 8 GiB, port: 21, scratch: true}\n"
    )
    assert live_check_s(load_lab(path)) == 4 * 7 * 60


class Rack:
    """As much of a bench as its servers are checked by; ``drive`` raises what ``refuses`` says of its server."""

    def __init__(self, refuses: Mapping[str, Exception]) -> None:
        self.lab = load_lab("direct-attached")
        self.clock = CLOCK
        self.equipment = SimpleNamespace(breakable={})
        self.refuses = refuses

    def host(self, name: str) -> Any:
        server = Server(lacks=False)
        server.name = name
        return server

    def drive(self, server: str, port: str) -> Any:
        raise self.refuses.get(server, LabError(f"no drive is at {server}.{port}"))

    def device(self, server: str, port: str) -> Any:
        raise LabError(f"no drive is at {server}.{port}")


def test_a_drive_that_cannot_be_asked_takes_no_answer_of_a_server_with_it() -> None:
    bench: Any = Rack({"node1": NotSupported("node1.p0: add paths: to node1")})
    said = list(_servers(bench, soon()))
    for server, ports in bench.lab.servers.items():
        its = [(one.part, one.did) for one in said if one.part.split(".")[0] == server]
        assert its[0] == (server, "logs in and runs a command")
        assert [part for part, did in its if did == "reads a sector"] == [f"{server}.{port}" for port in ports.ports]
    problems = {one.part: one.problem for one in said if one.did == "says what it is"}
    assert problems["node1.p0"] == "node1.p0: add paths: to node1"


def test_an_error_of_a_server_ends_the_check_of_that_one_alone() -> None:
    class Lost(Server):
        name = "node1"

        @property
        def clock_access(self) -> ClockAccess | None:
            raise LabError("the connection was lost")

    class Losing(Rack):
        def host(self, name: str) -> Any:
            return Lost(lacks=False) if name == "node1" else super().host(name)

    bench: Any = Losing({})
    said = list(_servers(bench, soon()))
    of_lost = [str(one) for one in said if one.part.startswith("node1")]
    assert of_lost[0] == "node1: logs in and runs a command: ok"
    assert of_lost[-1] == "node1: is checked to the end: the connection was lost"
    whole: Any = Rack({})
    assert [one for one in said if one.part.startswith("node2")] == [
        one for one in _servers(whole, soon()) if one.part.startswith("node2")
    ]


def test_what_was_done_before_a_server_was_late_is_told_and_so_is_all_of_the_others() -> None:
    def late(hosts: Sequence[Any], use: Callable[[Any, Deadline], object], deadline: Deadline) -> None:
        for host in hosts:
            use(host, deadline)
        raise NotConnected("1 of 2 servers failed:", {"node2": DeadlineExceeded("the work did not end in time")})

    bench: Any = Rack({})
    said = list(_servers(bench, soon(), late))
    in_time = list(_servers(bench, soon()))
    assert said[:-1] == in_time
    assert str(said[-1]) == "node2: answers in time: the work did not end in time"


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (None, "its TCP port 6170 is not reached at rack1:7001: let it through the firewall, or take clock"),
        ("Address in use", r"rackprobe cannot have its TCP port 6170 \(Address in use\): free it, or take clock"),
    ],
)
def test_a_clock_that_is_not_shown_is_told_with_its_reason(refusal: str | None, said: str) -> None:
    clock = SimpleNamespace(is_own=False)
    session = SimpleNamespace(is_clock_shown=False, host_clock=clock, clock_refusal=refusal)
    probe: Any = SimpleNamespace(device_events=lambda *_: nullcontext(session))
    access = ClockAccess("rack1", 7001, listens_at=6170)
    with pytest.raises(LabError, match=said):
        _require_clock(probe, access, soon())
    clock.is_own = True
    _require_clock(probe, access, soon())
