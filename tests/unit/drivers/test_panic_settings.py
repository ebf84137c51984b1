"""The settings by which a kernel panics and stays so: given back by whoever mends, unless it panicked."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from rackloop.abilities import Completed, Host
from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, LabError, NotConnected, NotSupported, RackloopError
from rackloop.safety import HealReport, heal
from rackloop.safety.undo import Equipment, journalled
from rackloop_drivers.boxes import DiagnosticInterrupt
from rackloop_drivers.crash import HostCrash, ServerFaults
from rackloop_drivers.host_tools import HostFaults, SeveralWays
from tests.unit.harness.journalled_bench import Bench

NAME = "server:srv1"
BEFORE = {"panic": "10", "unknown_nmi_panic": "0", "panic_on_unrecovered_nmi": "1", "panic_on_io_nmi": "0"}
AT_NMI = dict.fromkeys(BEFORE, "1") | {"panic": "0"}


class Server:
    """A server whose commands run here, with a ``kernel`` whose settings are files; ``is_silent`` where none does."""

    name = "srv1"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.kernel = folder / "kernel"
        (self.kernel / "random").mkdir(parents=True)
        (self.kernel / "sysrq-trigger").touch()
        # It would wait for all that this machine has to write.
        (folder / "sync").symlink_to("/bin/true")
        self.boot("first")

    def boot(self, number: str, **settings: str) -> None:
        self.is_silent = False
        (self.kernel / "random/boot_id").write_text(number)
        for name, value in (BEFORE | settings).items():
            (self.kernel / name).write_text(value)

    @property
    def settings(self) -> dict[str, str]:
        return {name: (self.kernel / name).read_text().strip() for name in BEFORE}

    def run(self, argv: Sequence[str], _deadline: Deadline, *, stdin: str = "") -> Completed:
        if self.is_silent:
            raise NotConnected("srv1: no route to host")
        own = [word.replace("/proc/sys/kernel", str(self.kernel)) for word in argv]
        own = [word.replace("/sys/kernel/kexec", f"{self._folder}/kexec") for word in own]
        for folder in ("/run/rackloop-", "/var/lib/rackloop/"):
            own = [word.replace(folder, f"{self._folder}/run-") for word in own]
        env = {**os.environ, "PATH": f"{self._folder}:{os.environ['PATH']}"}
        done = subprocess.run(own, input=stdin, capture_output=True, text=True, timeout=60, check=False, env=env)
        return Completed(tuple(argv), done.returncode, done.stdout, done.stderr)

    def reconnect(self, _deadline: Deadline) -> None:
        if self.is_silent:
            raise NotConnected("srv1: no route to host")


class Power:
    """Power that is on; ``told`` has what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def is_on(self, _deadline: Deadline) -> bool:
        return True

    def turn_on(self, _deadline: Deadline) -> None:
        self.told.append("on")

    def turn_off(self, _deadline: Deadline) -> None:
        self.told.append("off")


class Controller:
    """A controller that ends a pulse with ``error``; the server is silent afterwards where it ``silences`` it."""

    def __init__(self, server: Server, error: RackloopError | None = None, *, silences: bool = False) -> None:
        self._server, self._error, self._silences = server, error, silences
        self.impossible: RackloopError | None = None
        self.seen: dict[str, str] | None = None

    def require_possible(self, _deadline: Deadline) -> None:
        if self.impossible is not None:
            raise self.impossible

    def interrupt(self, _deadline: Deadline) -> None:
        self.seen = self._server.settings
        self._server.is_silent = self._silences
        if self._error is not None:
            raise self._error


class World(Bench):
    """A bench whose ``server:srv1`` has a kernel, and a driver for each process that asks for one."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.server, self.outlet = Server(folder / "srv1"), Power()

    def equipment(self, controller: DiagnosticInterrupt | None = None) -> Equipment:
        host = cast("Host", self.server)
        trigger = str(self.server.kernel / "sysrq-trigger")
        crash = HostCrash(host, NAME, self.outlet, controller or Controller(self.server), trigger=trigger)
        part = ServerFaults(crash, HostFaults(host, NAME, SeveralWays()))
        return replace(self.rack.equipment, breakable={NAME: part})

    def break_as(self, kind: str, controller: DiagnosticInterrupt | None = None) -> None:
        """Break it as a run does that is killed then: what is left is heal's to undo."""
        acting = journalled(self.equipment(controller), self.recorder)
        acting.breakable[NAME].break_as("run-1/1", {"kind": kind}, self.deadline)

    def entries(self) -> list[str]:
        return [entry.state.value for entry in self.journal.since(0)]

    def heal_anew(self) -> HealReport:
        return heal(self.lab, self.journal, self.equipment(), self.clock, self.deadline)


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
    assert world.entries() == ["failed"]


@pytest.mark.parametrize("error", [NONE, SILENT], ids=repr)
def test_what_cannot_be_given_back_at_once_stands_until_heal_gives_it_back(world: World, error: RackloopError) -> None:
    with pytest.raises(LabError, match=f"{error}; srv1 may still be set to panic: srv1: no route"):
        world.break_as("nmi", Controller(world.server, error, silences=True))
    world.server.is_silent = False
    assert world.server.settings == AT_NMI
    assert world.entries() == ["intended"]
    assert world.equipment().breakable[NAME].standing(world.deadline) == {"run-1/1": {"kind": "nmi"}}
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
    world.equipment().breakable[NAME].mend("run-1/1", world.deadline)
    assert world.server.settings == BEFORE | {"panic": "20"}


def test_a_kernel_without_any_of_the_settings_is_left_alone(world: World) -> None:
    for name in BEFORE.keys() - {"panic"}:
        (world.server.kernel / name).unlink()
    with pytest.raises(NotSupported, match="srv1 has no setting by which it panics at an NMI"):
        world.break_as("nmi")
    assert (world.server.kernel / "panic").read_text() == "10"
