"""Drives coming and going, by the events of their servers' kernels as they were recorded on a real one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Timer

import pytest

from rackloop.abilities import Applied
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import LabError, NotConnected
from rackloop.lab import Lab, load_lab
from rackloop.record import Stage
from rackloop_drivers.clock_rate import Exchange
from rackloop_drivers.host_clock import ClockUnknown, HostClock, Moment
from rackloop_drivers.workload import DeviceEvent
from rackloop_labs.uevent_log import SUBSYSTEMS, UeventLog
from tests.deadlines import soon
from tests.meta.tree import ROOT

RECORDED = ROOT / "native" / "crates" / "rackprobe" / "src" / "testdata" / "uevents-nvme-replug.txt"
S = 1_000_000_000
MS = 1_000_000
GUEST = ROOT / "tests" / "transcripts" / "recorded" / "virtual"
AHEAD_NS = 5_000 * S
# The drive went at 100.571636 s and came by another slot at 104.775709 s.
OLD, NEW = "pci-0000:01:00.0", "pci-0000:02:00.0"
NOW = Applied(7, 104 * S, 104 * S + MS)


def recorded() -> Iterator[DeviceEvent]:
    """The events of a pulled NVMe drive that was plugged in elsewhere, and udev's of its disk 30 ms behind each."""
    for block in RECORDED.read_text().split("\n\n"):
        head, *lines = block.splitlines() or [""]
        if not head.startswith("KERNEL["):
            continue
        told = dict(line.split("=", 1) for line in lines)
        event = DeviceEvent(
            t_ns=AHEAD_NS + round(float(head[7 : head.index("]")]) * S),
            waited_ns=0,
            source="kernel",
            action=told["ACTION"],
            subsystem=told["SUBSYSTEM"],
            devpath=told["DEVPATH"],
            devtype=told.get("DEVTYPE"),
            devname=told.get("DEVNAME"),
            devlinks=(),
            seqnum=int(told["SEQNUM"]),
        )
        yield event
        if event.devtype == "disk":
            address = event.devpath.split("/")[4]
            links = ("/dev/disk/by-id/nvme-x", f"/dev/disk/by-path/pci-{address}-nvme-1")
            yield replace(event, t_ns=event.t_ns + 30 * MS, source="udev", devlinks=links)


def by_multipath() -> Iterator[DeviceEvent]:
    """The same of a drive that may have several controllers: its disk is below its subsystem. Another comes meanwhile.

    The kernel tells nothing of the hidden disk below its controller.
    """
    for event in recorded():
        if event.devtype == "disk":
            name = event.devpath.rpartition("/")[2]
            yield replace(event, devpath=f"/devices/virtual/nvme-subsystem/nvme-subsys0/{name}")
        else:
            yield event
        if (event.subsystem, event.action) == ("nvme", "add"):
            yield replace(event, devpath="/devices/pci0000:00/0000:00:06.0/0000:03:00.0/nvme/nvme1", seqnum=1)


def of_a_guest(kind: str) -> Iterator[DeviceEvent]:
    """The events of a drive that came back to a guest of a virtual rack, 1 ms apart, and udev's 30 ms behind."""
    told = json.loads((GUEST / f"uevents-{kind}.json.out").read_text())
    came = sorted(
        (each for each in told["kernel"].values() if each["ACTION"] == "add"), key=lambda at: int(at["SEQNUM"])
    )
    disk = told["udev"]["add block disk"]
    for number, each in enumerate([*came, disk]):
        yield DeviceEvent(
            t_ns=AHEAD_NS + 105 * S + number * MS + (30 * MS if each is disk else 0),
            waited_ns=None,
            source="udev" if each is disk else "kernel",
            action="add",
            subsystem=each["SUBSYSTEM"],
            devpath=each["DEVPATH"],
            devtype=each.get("DEVTYPE"),
            devname=each.get("DEVNAME"),
            devlinks=tuple(each.get("DEVLINKS", "").split()),
            seqnum=int(each["SEQNUM"]),
        )


class Server:
    """The events of one server, whose clock is known to 1 ms."""

    def __init__(self, events: Callable[[], Iterator[DeviceEvent]] = recorded) -> None:
        self.events = events
        self.clock = HostClock("srv1")
        for at_ns in range(99 * S, 110 * S, S):
            self.clock.add(Exchange(at_ns - MS, AHEAD_NS + at_ns, at_ns + MS, "b", "c"))
        self.take: Callable[[DeviceEvent], None] = print
        self.ended: Callable[[str], None] = print
        self.is_closed = False

    def moment(self, event: DeviceEvent) -> Moment:
        return self.clock.moment(event.t_ns)

    def close(self) -> None:
        self.is_closed = True

    def tell(self) -> None:
        for event in self.events():
            if event.subsystem in SUBSYSTEMS:
                self.take(event)


@pytest.fixture
def lab() -> Lab:
    lab = load_lab("mock")
    servers = {
        name: server.model_copy(update={"paths": {"p0": OLD, "p1": NEW} if name == "srv1" else {}})
        for name, server in lab.servers.items()
    }
    return lab.model_copy(update={"servers": servers})


@contextmanager
def following(lab: Lab, server: Server) -> Iterator[UeventLog]:
    def follow(name: str, take: Callable[[DeviceEvent], None], ended: Callable[[str], None]) -> Server:
        assert name == "srv1", "the others have no paths to tell ports by"
        server.take, server.ended = take, ended
        return server

    with UeventLog(lab, lab.servers, follow) as log:
        yield log
    assert server.is_closed


@pytest.mark.parametrize("events", [recorded, by_multipath])
def test_a_drive_that_comes_is_told_stage_by_stage_with_what_is_not_known_of_the_clock(
    lab: Lab, events: Callable[[], Iterator[DeviceEvent]]
) -> None:
    server = Server(events)
    with following(lab, server) as log:
        server.tell()
        stages = log.stages(NOW, lab.switch_port("srv1", "p1"), soon())
    assert [stage.name for stage in stages] == ["link", "device", "online", "named"]
    seconds = {"link": 104.607165, "device": 104.630750, "online": 104.775709, "named": 104.805709}
    for stage in stages:
        true_ns = round(seconds[stage.name] * S)
        assert stage.clock == "kernel"
        assert stage.at_ns - stage.error_ns <= true_ns <= stage.at_ns
        assert stage.error_ns < 3 * MS


def test_a_disk_of_a_controller_that_was_there_before_has_no_stages_of_it(lab: Lab) -> None:
    server = Server(lambda: (event for event in by_multipath() if event.subsystem == "block"))
    with following(lab, server) as log:
        server.tell()
        stages = log.stages(NOW, lab.switch_port("srv1", "p1"), soon())
    assert [stage.name for stage in stages] == ["online", "named"]


def test_what_the_probe_waited_for_a_core_is_in_the_error_of_an_events_stage(lab: Lab) -> None:
    def late() -> Iterator[DeviceEvent]:
        for event in recorded():
            yield replace(event, t_ns=event.t_ns + 40 * MS, waited_ns=40 * MS)

    server = Server(late)
    with following(lab, server) as log:
        server.tell()
        online = next(
            stage for stage in log.stages(NOW, lab.switch_port("srv1", "p1"), soon()) if stage.name == "online"
        )
        lost = log.first_loss({"offline"}, {("srv1", "p0")}, set(), 100 * S)
    assert lost is not None
    for stage, true_ns in ((online, 104_775_709_000), (lost, 100_571_636_000)):
        # It was as late as it is stamped, at most, and as early as it would have been on an idle server.
        assert stage.at_ns - stage.error_ns <= true_ns <= stage.at_ns
        assert 40 * MS <= stage.error_ns < 43 * MS


@pytest.mark.parametrize(
    ("kind", "path"),
    [("nvme", "pci-0000:01:00.0"), ("sas", "pci-0000:02:00.0"), ("sata", "pci-0000:00:1f.2-ata-1")],
)
def test_each_kind_of_drive_comes_by_the_same_stages(lab: Lab, kind: str, path: str) -> None:
    server = Server(lambda: of_a_guest(kind))
    paths = {"srv1": lab.servers["srv1"].model_copy(update={"paths": {"p1": path}})}
    with following(lab.model_copy(update={"servers": {**lab.servers, **paths}}), server) as log:
        server.tell()
        stages = log.stages(NOW, lab.switch_port("srv1", "p1"), soon(), until="named")
    assert [stage.name for stage in stages] == ["link", "device", "online", "named"]


def test_a_log_waits_for_a_drive_that_is_still_to_come(lab: Lab) -> None:
    server = Server()
    with following(lab, server) as log:
        later = Timer(0.0, server.tell)
        later.start()
        assert log.stages(NOW, lab.switch_port("srv1", "p1"), soon())[-1].name == "named"
        later.join()


def test_what_came_before_the_command_or_to_another_port_is_not_told(lab: Lab) -> None:
    server = Server()
    with following(lab, server) as log:
        server.tell()
        none = soon(0)
        assert log.stages(Applied(8, 105 * S, 105 * S), lab.switch_port("srv1", "p1"), none) == []
        assert log.stages(NOW, lab.switch_port("srv1", "p0"), none) == []
        assert log.stages(NOW, lab.switch_port("srv2", "p0"), none) == []


def test_a_drive_that_goes_is_lost_at_its_port(lab: Lab) -> None:
    server = Server()
    with following(lab, server) as log:
        server.tell()

        def first(place: tuple[str, str], since_ns: int, event: str = "offline") -> Stage | None:
            return log.first_loss({event}, {place}, set(), since_ns)

        lost = first(("srv1", "p0"), 100 * S)
        assert lost is not None
        assert (lost.name, lost.clock) == ("offline", "kernel")
        assert lost.at_ns - lost.error_ns <= 100_571_636_000 <= lost.at_ns
        assert first(("srv1", "p0"), 101 * S) is None
        assert first(("srv1", "p1"), 0) is None
        assert first(("srv2", "p0"), 0) is None
        assert first(("srv1", "p0"), 0, "io_error") is None


def test_a_clock_that_jumped_tells_no_stages(lab: Lab) -> None:
    server = Server()
    with following(lab, server) as log:
        server.tell()
        server.clock.add(Exchange(110 * S, AHEAD_NS + 111 * S, 110 * S + MS, "b", "c"))
        with pytest.raises(ClockUnknown, match="the clock of srv1 jumped"):
            log.stages(NOW, lab.switch_port("srv1", "p1"), soon())


@pytest.mark.parametrize(("answer_s", "told_s"), [(0.5, 2.0), (7.0, 7.0)])
def test_what_was_told_of_a_drive_that_answered_is_waited_for_as_the_lab_says(
    lab: Lab, answer_s: float, told_s: float
) -> None:
    slow = lab.model_copy(update={"times": lab.times.model_copy(update={"answer": answer_s})})
    clock = VirtualClock()
    asked_s: list[float] = []

    class Asked(Deadline):
        def sooner(self, seconds: float) -> Deadline:
            asked_s.append(seconds)
            return soon(0)

    with following(slow, Server()) as log:
        assert log.stages(NOW, slow.switch_port("srv1", "p1"), Asked.after(clock, 60), until="answered") == []
    assert asked_s == [told_s]


def test_a_drive_that_is_attached_for_good_is_lost_at_its_own_path() -> None:
    direct = load_lab("direct-attached")
    node = direct.servers["node1"].model_copy(update={"paths": {}})
    fast = direct.drives["fast1"].model_copy(update={"by_path": f"{OLD}-nvme-1"})
    lab = direct.model_copy(
        update={"servers": {**direct.servers, "node1": node}, "drives": {**direct.drives, "fast1": fast}}
    )
    server = Server()

    def follow(name: str, take: Callable[[DeviceEvent], None], ended: Callable[[str], None]) -> Server:
        assert name == "node1"
        server.take, server.ended = take, ended
        return server

    with UeventLog(lab, lab.servers, follow) as log:
        server.tell()
        lost = log.first_loss({"offline"}, {("node1", "p1")}, set(), 0)
    assert lost is not None
    assert lost.at_ns - lost.error_ns <= 100_571_636_000 <= lost.at_ns


def test_events_that_ended_are_not_taken_for_a_drive_that_did_not_come(lab: Lab) -> None:
    server = Server()
    with following(lab, server) as log:
        server.ended("the connection was lost")
        with pytest.raises(LabError, match="the device events of srv1 are not known: the connection was lost"):
            log.stages(NOW, lab.switch_port("srv1", "p1"), soon())


def test_a_server_that_cannot_be_followed_is_named_when_it_is_asked_about(lab: Lab) -> None:
    def refuse(name: str, _take: object, _ended: object) -> Server:
        raise NotConnected(f"{name} does not answer")

    with UeventLog(lab, lab.servers, refuse) as log:
        assert log.stages(NOW, lab.switch_port("srv2", "p0"), soon(0)) == []
        with pytest.raises(LabError, match="not known: srv1 does not answer"):
            log.stages(NOW, lab.switch_port("srv1", "p1"), soon())
