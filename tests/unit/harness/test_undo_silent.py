"""A server that is silent takes the time from nothing else that is to be undone, and what takes long keeps its time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import pytest

from rackloop.abilities import Applied, FabricFilter, LiveMap, PortState
from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, NotConnected, ToolError
from rackloop.portmap import MapChange, Open, Partial, PortMap
from rackloop.safety.undo import undo
from tests.deadlines import soon
from tests.unit.harness.journalled_bench import Bench
from tests.unit.harness.sim_rack import BASELINE, SimOutlet, SimPart, SimRegister

HEAL_S = 630.0
"""The time that a physical rack's heal has: that of a boot, and half a minute."""


class Hurried(FabricFilter):
    """A switch that answers nobody whose time is over."""

    def live_map(self, deadline: Deadline) -> LiveMap:
        require_time(deadline)
        return super().live_map(deadline)

    def apply(self, change: MapChange, deadline: Deadline, *, on: LiveMap | None = None) -> Applied:
        require_time(deadline)
        return super().apply(change, deadline, on=on)

    def port_states(self, ports: Collection[int], deadline: Deadline) -> dict[int, PortState]:
        require_time(deadline)
        return super().port_states(ports, deadline)


class Server:
    """A server that ``answers``, or hangs: a question to it takes all the time that it is given.

    From ``boots_s`` before it ``answers_at_ns`` it refuses connections.
    """

    boots_s = 20.0

    def __init__(self) -> None:
        self.answers = True
        self.answers_at_ns: int | None = None
        self.asked = 0

    def question(self, deadline: Deadline) -> None:
        self.asked += 1
        if self.answers_at_ns is not None:
            if deadline.clock.now_ns() < self.answers_at_ns:
                raise NotConnected("connection refused")
        elif not self.answers:
            deadline.clock.sleep_until_ns(deadline.at_ns)
            raise DeadlineExceeded("its SSH did not answer in time; is it hung?")
        require_time(deadline)


class OnServer(SimPart):
    """A part that its server is asked about; mending it ``takes_s``."""

    def __init__(self, server: Server, kind: str, takes_s: float = 0.0) -> None:
        super().__init__(kind)
        self.server = server
        self.takes_s = takes_s

    def mend(self, key: str, deadline: Deadline) -> None:
        self.server.question(deadline)
        take(self.takes_s, deadline)
        super().mend(key, deadline)

    def standing(self, deadline: Deadline) -> dict[str, Mapping[str, Any]]:
        self.server.question(deadline)
        return super().standing(deadline)


class CrashedServer(SimPart):
    """A server whose power is cut and given back, which ``takes_s``; its boot is not waited for."""

    def __init__(self, server: Server, takes_s: float) -> None:
        super().__init__("crash")
        self.server = server
        self.takes_s = takes_s

    def mend(self, key: str, deadline: Deadline) -> None:
        take(self.takes_s, deadline)
        self.server.answers_at_ns = deadline.clock.now_ns() + round(self.server.boots_s * 1e9)
        super().mend(key, deadline)


class StuckServer(SimPart):
    """A server that cannot be given a new start."""

    def mend(self, key: str, deadline: Deadline) -> None:
        raise ToolError("the outlet does not switch")


class DeadDrive(OnServer):
    """A slot whose drive does not come, on a server that answers."""

    def mend(self, key: str, deadline: Deadline) -> None:
        self.server.question(deadline)
        deadline.clock.sleep_until_ns(deadline.at_ns)
        raise DeadlineExceeded("the drive did not come in time; look at dmesg")


class OfServer(SimRegister):
    """What stands on a server, by its own notes."""

    def __init__(self, server: Server, parts: Mapping[str, SimPart]) -> None:
        super().__init__(parts)
        self.server = server

    def standing(self, deadline: Deadline) -> dict[str, dict[str, Mapping[str, Any]]]:
        try:
            self.server.question(deadline)
        except DeadlineExceeded as error:
            raise NotConnected(str(error)) from error
        return super().standing(deadline)


def require_time(deadline: Deadline) -> None:
    if deadline.is_over():
        raise DeadlineExceeded("there was no time left")


def take(seconds: float, deadline: Deadline) -> None:
    """Let the time pass, where there is so much."""
    if deadline.remaining_s() < seconds:
        raise DeadlineExceeded(f"it takes {seconds:.0f} s")
    deadline.clock.sleep_until_ns(deadline.clock.now_ns() + round(seconds * 1e9))


@pytest.fixture
def srv1() -> Server:
    return Server()


@pytest.fixture
def srv2() -> Server:
    return Server()


def broken(bench: Bench, **parts: SimPart) -> None:
    """Have these parts in the rack, and break each, in their order: ``slot_srv1_p0`` is slot:srv1/p0."""
    bench.rack.equipment = replace(bench.rack.equipment, fabric=Hurried(bench.switch))
    for written, part in parts.items():
        kind, *names = written.split("_")
        name = f"{kind}:{'/'.join(names)}"
        bench.rack.parts[name] = part
        (fault,) = part.kinds
        bench.acting.breakable[name].break_as("k", {"kind": fault}, bench.deadline)


def standing(bench: Bench) -> set[str]:
    return {entry.resource for entry in bench.journal.standing("bench")}


def test_a_hung_server_takes_no_time_from_the_others_and_from_the_map(bench: Bench, srv1: Server, srv2: Server) -> None:
    slot, phy = OnServer(srv1, "removed"), OnServer(srv1, "disabled")
    broken(
        bench,
        slot_srv2_p0=OnServer(srv2, "removed", takes_s=60.0),
        slot_srv1_p0=slot,
        phy_srv1_p1=phy,
        drive_d04=SimPart("slow"),
    )
    registers = (OfServer(srv1, {"slot:srv1/p0": slot}),)
    bench.rack.equipment = replace(bench.rack.equipment, server_registers=registers)
    bench.acting.fabric.apply(Partial(PortMap.of([(1, 108)])), bench.deadline)
    bench.switch.apply(Open(frozenset({5})), bench.deadline)
    srv1.answers = False
    report = bench.heal(HEAL_S)
    assert standing(bench) == {"slot:srv1/p0", "phy:srv1/p1"}
    assert bench.switch.live == BASELINE
    assert [problem.partition(": ")[0] for problem in report.problems] == [
        "phy:srv1/p1",
        "slot:srv1/p0",
        "server srv1 does not answer",
    ]
    # Once at first, once when nothing else was left to do, and by its register.
    assert srv1.asked == 3
    assert bench.clock.now_ns() < HEAL_S * 1e9
    srv1.answers = True
    assert bench.heal(HEAL_S).is_healed


def test_a_server_keeps_the_time_to_boot_and_what_is_on_it_is_mended_then(bench: Bench, srv1: Server) -> None:
    broken(bench, server_srv1=CrashedServer(srv1, takes_s=480.0), slot_srv1_p0=OnServer(srv1, "removed"))
    srv1.answers = False
    assert bench.heal(HEAL_S).is_healed
    assert standing(bench) == set()


def test_a_server_that_was_given_no_new_start_is_not_waited_for(bench: Bench) -> None:
    class Off(Server):
        def question(self, deadline: Deadline) -> None:
            if not self.answers:
                raise NotConnected("connection refused")
            super().question(deadline)

    off = Off()
    broken(bench, server_srv1=StuckServer("crash"), slot_srv1_p0=OnServer(off, "removed"))
    off.answers = False
    assert set(bench.heal(HEAL_S).problems) >= {
        "server:srv1: the outlet does not switch",
        "slot:srv1/p0: connection refused",
    }
    assert bench.clock.now_ns() == 0


def test_a_drive_that_does_not_come_keeps_nothing_else_on_its_server_broken(bench: Bench, srv1: Server) -> None:
    dead = DeadDrive(srv1, "removed")
    broken(bench, slot_srv1_p1=OnServer(srv1, "slot_power_off", takes_s=60.0), phy_srv1_p2=OnServer(srv1, "disabled"))
    broken(bench, slot_srv1_p0=dead)
    report = bench.heal(HEAL_S)
    assert standing(bench) == {"slot:srv1/p0"}
    assert report.problems[0] == "slot:srv1/p0: the drive did not come in time; look at dmesg"


def test_a_server_that_refuses_connections_is_asked_for_the_first_of_its_parts_alone(bench: Bench) -> None:
    class Off(Server):
        def question(self, deadline: Deadline) -> None:
            self.asked += 1
            if not self.answers:
                raise NotConnected("connection refused")

    off = Off()
    broken(bench, slot_srv1_p0=OnServer(off, "removed"), phy_srv1_p1=OnServer(off, "disabled"))
    broken(bench, slot_srv1_p2=OnServer(off, "removed"))
    off.answers, off.asked = False, 0
    report = bench.heal(HEAL_S)
    assert [problem for problem in report.problems if "refused" in problem] == [
        "slot:srv1/p2: connection refused",
        "phy:srv1/p1: connection refused",
        "slot:srv1/p0: connection refused",
    ]
    assert off.asked == 2
    assert bench.clock.now_ns() == 0


def test_a_drive_whose_servers_do_not_all_answer_leaves_the_others_their_share(
    bench: Bench, srv1: Server, srv2: Server
) -> None:
    """One server after the other is asked for what is noted of a drive."""
    broken(bench, drive_d04=OnServer(srv2, "slow", takes_s=60.0), drive_d02=OnServer(srv1, "media_error"))
    srv1.answers = False
    bench.heal(HEAL_S)
    assert standing(bench) == {"drive:d02"}


def test_a_dead_controller_leaves_the_other_ports_the_parts_and_the_map_their_time(bench: Bench, srv1: Server) -> None:
    class Controlled(SimOutlet):
        """A power port that is off, whose controller is asked each time; turning it on takes a minute."""

        def __init__(self, controller: Server) -> None:
            super().__init__()
            self.on = False
            self.controller = controller

        def is_on(self, deadline: Deadline) -> bool:
            self.controller.question(deadline)
            return super().is_on(deadline)

        def turn_on(self, deadline: Deadline) -> None:
            take(60.0, deadline)
            super().turn_on(deadline)

    controllers = {name: Server() for name in ("srv2", "srv1")}
    broken(bench, server_srv1=CrashedServer(srv1, takes_s=100.0))
    bench.acting.fabric.apply(Partial(PortMap.of([(1, 108)])), bench.deadline)
    for name, controller in controllers.items():
        bench.acting.power[name].turn_off(bench.deadline)
        bench.rack.outlets[name] = Controlled(controller)
    controllers["srv1"].answers = False
    outcome = undo(bench.journal.standing("bench"), bench.rack.equipment, bench.journal, soon(HEAL_S, bench.clock))
    assert outcome.problems == ("power port srv1: its SSH did not answer in time; is it hung?",)
    assert standing(bench) == {"srv1"}
    assert (bench.rack.outlets["srv2"].on, bench.switch.live) == (True, BASELINE)


def test_a_part_that_cannot_say_what_stands_is_mended_all_the_same(bench: Bench) -> None:
    """As where the fault itself keeps the drive away that would be asked."""

    class Gone(SimPart):
        def standing(self, deadline: Deadline) -> dict[str, Mapping[str, Any]]:
            if self.broken:
                raise ToolError("no drive is there")
            return {}

    broken(bench, slot_srv1_p0=Gone("removed"))
    assert bench.heal(HEAL_S).is_healed
