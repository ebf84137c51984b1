"""The settings by which a kernel panics and stays so: given back by whoever mends, unless it panicked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from rackloop.abilities import Completed, Host
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import DeadlineExceeded, LabError, NotConnected, NotSupported, RackloopError
from rackloop_drivers.crash import HostCrash
from tests.unit.drivers.panicking_server import AT_NMI, BEFORE, KEY, NAME, Controller, Power, World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with closing(World(tmp_path)) as world:
        yield world


NONE = NotSupported("the controller pulses no NMI: its resets are On, ForceOff")
SILENT = NotConnected("bmc-srv1: no answer")


@pytest.mark.parametrize(("error", "entry"), [(NONE, "failed"), (SILENT, "intended"), (None, "intended")], ids=repr)
def test_a_kernel_that_did_not_panic_at_an_interrupt_has_its_settings_back_at_once(
    world: World, error: RackloopError | None, entry: str
) -> None:
    controller = Controller(world.server, error)
    with pytest.raises(
        RackloopError, match="srv1 was told to panic, and still answers" if error is None else str(error)
    ):
        world.break_as("nmi", controller)
    assert controller.seen == AT_NMI
    assert world.server.settings == BEFORE
    assert world.entries() == [entry]
    assert world.heal_anew().is_healed
    assert world.journal.standing(world.lab.name) == []
    assert world.outlet.told == []


def test_a_kernel_that_takes_the_key_and_goes_on_reboots_by_itself_as_before(world: World) -> None:
    with pytest.raises(DeadlineExceeded, match="srv1 was told to panic, and still answers"):
        world.break_as("crash")
    assert (world.server.kernel / "sysrq-trigger").read_text() == "c\n"
    assert world.server.settings == BEFORE


def test_a_controller_that_says_it_pulses_none_is_asked_before_a_setting_is_changed(world: World) -> None:
    controller = Controller(world.server)
    controller.impossible = NONE
    with pytest.raises(NotSupported, match="pulses no NMI"):
        world.break_as("nmi", controller)
    assert controller.seen is None
    assert not (world.folder / "srv1/run-panics").exists()
    assert (world.entries(), world.standing()) == (["failed"], [])


@pytest.mark.parametrize("error", [NONE, SILENT], ids=repr)
def test_what_cannot_be_given_back_at_once_stands_until_heal_gives_it_back(world: World, error: RackloopError) -> None:
    with pytest.raises(LabError, match=f"{error}; srv1 may still be set to panic: srv1: no route"):
        world.break_as("nmi", Controller(world.server, error, silences=True))
    world.server.is_silent = False
    assert world.server.settings == AT_NMI
    assert world.entries() == ["intended"]
    assert world.equipment().breakable[NAME].standing(world.deadline) == {KEY: {"kind": "nmi"}}
    report = world.heal_anew()
    assert (report.problems, len(report.undone)) == ((), 1)
    assert world.server.settings == BEFORE
    assert world.equipment().breakable[NAME].standing(world.deadline) == {}
    assert world.outlet.told == []


def test_settings_of_a_kernel_that_panicked_are_those_of_its_next_boot(world: World) -> None:
    world.break_as("nmi", Controller(world.server, silences=True))
    assert world.heal_anew().is_healed
    assert world.outlet.told == ["off", "on"]
    world.server.boot("second", panic="20")
    assert world.equipment().breakable[NAME].standing(world.deadline) == {}
    world.equipment().breakable[NAME].mend(KEY, world.deadline)
    assert world.server.settings == BEFORE | {"panic": "20"}


def test_a_kernel_without_any_of_the_settings_is_left_alone(world: World) -> None:
    for name in BEFORE.keys() - {"panic"}:
        (world.server.kernel / name).unlink()
    with pytest.raises(NotSupported, match="srv1 has no setting by which it panics at an NMI"):
        world.break_as("nmi")
    assert (world.server.kernel / "panic").read_text() == "10"


class BehindAFirewall:
    """A server that is well, and whose connection of before carries nothing any more."""

    name = "srv1"

    def __init__(self, clock: VirtualClock) -> None:
        self._clock, self._is_new = clock, False

    def run(self, argv: Sequence[str], deadline: Deadline) -> Completed:
        if not self._is_new:
            self._clock.advance(deadline.remaining_s())
            raise DeadlineExceeded("srv1: true was not done in time")
        return Completed(tuple(argv), 0, "", "")

    def reconnect(self, deadline: Deadline) -> int:
        assert not deadline.is_over()
        self._is_new = True
        return 0


def test_a_server_is_not_taken_for_crashed_because_its_connection_is_gone() -> None:
    clock = VirtualClock()
    crash = HostCrash(cast("Host", BehindAFirewall(clock)), NAME, Power(), None)
    assert crash.answers(Deadline.after(clock, 600))
