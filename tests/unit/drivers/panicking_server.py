"""A server that can be told to panic, seen by one process after another."""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from rackloop.abilities import Completed, Host
from rackloop.clock import Deadline
from rackloop.errors import LabError, NotConnected, RackloopError
from rackloop.record.acts import BreakPart
from rackloop.safety import HealReport, heal
from rackloop.safety.undo import Entry, Equipment, journalled
from rackloop_drivers.boxes import DiagnosticInterrupt
from rackloop_drivers.crash import HostCrash, ServerFaults
from rackloop_drivers.host_tools import HostFaults
from rackloop_labs.restart_notes import restart_notes
from tests.unit.harness.journalled_bench import Bench

NAME = "server:srv1"
KEY = "run-1/1"
BEFORE = {"panic": "10", "unknown_nmi_panic": "0", "panic_on_unrecovered_nmi": "1", "panic_on_io_nmi": "0"}
AT_NMI = dict.fromkeys(BEFORE, "1") | {"panic": "0"}


class Server:
    """A server whose commands run here, with a ``kernel`` whose settings are files; one that ``is_silent`` runs none.

    It answers again once somebody waits for it as long as it ``boots_within_s``; one that ``panics`` does so by SysRq.
    With a ``refusal`` its SSH server answers so. It is out of reach from a command on that has the words ``lost_at``.
    """

    name = "srv1"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.kernel = folder / "kernel"
        (self.kernel / "random").mkdir(parents=True)
        self.panics, self.boots_within_s = False, math.inf
        self.waits_s: list[float] = []
        self.refusal: LabError | None = None
        self.lost_at: str | None = None
        (self.kernel / "sysrq-trigger").touch()
        # It would wait for all that this machine has to write.
        (folder / "sync").symlink_to("/bin/true")
        self.boot("first")

    def add_watchdog(self, state: str | None, opened: str = "") -> None:
        """Give it a watchdog, whose kernel may not tell its ``state``; its first process has ``opened`` this file."""
        (self._folder / "watchdog/watchdog0").mkdir(parents=True)
        if state is not None:
            (self._folder / "watchdog/watchdog0/state").write_text(f"{state}\n")
        opens = self._folder / "proc/1/fd"
        opens.mkdir(parents=True)
        if opened:
            (opens / "7").symlink_to(opened)

    def boot(self, number: str, **settings: str) -> None:
        self.is_silent = False
        (self.kernel / "random/boot_id").write_text(number)
        for name, value in (BEFORE | settings).items():
            (self.kernel / name).write_text(value)

    @property
    def settings(self) -> dict[str, str]:
        return {name: (self.kernel / name).read_text().strip() for name in BEFORE}

    def run(self, argv: Sequence[str], _deadline: Deadline, *, stdin: str = "") -> Completed:
        self.is_silent |= self.lost_at is not None and any(self.lost_at in word for word in argv)
        if self.is_silent:
            raise self.refusal or NotConnected("srv1: no route to host")
        own = [word.replace("/proc/sys/kernel", str(self.kernel)) for word in argv]
        own = [word.replace("/sys/kernel/kexec", f"{self._folder}/kexec") for word in own]
        own = [word.replace("/sys/class/watchdog", f"{self._folder}/watchdog") for word in own]
        for processes in ("/proc/1/", "/proc/[0-9]*/"):
            own = [word.replace(processes, f"{self._folder}{processes}") for word in own]
        for folder in ("/run/rackloop-", "/var/lib/rackloop/"):
            own = [word.replace(folder, f"{self._folder}/run-") for word in own]
        env = {**os.environ, "PATH": f"{self._folder}:{os.environ['PATH']}"}
        done = subprocess.run(own, input=stdin, capture_output=True, text=True, timeout=60, check=False, env=env)
        self.is_silent = self.panics and (self.kernel / "sysrq-trigger").read_text() != ""
        return Completed(tuple(argv), done.returncode, done.stdout, done.stderr)

    def reconnect(self, deadline: Deadline) -> int:
        self.waits_s.append(deadline.remaining_s())
        if deadline.remaining_s() >= self.boots_within_s:
            self.is_silent = False
        if self.is_silent:
            raise self.refusal or NotConnected("srv1: no route to host")
        return 0


class Killed(BaseException):
    """The end of the process that told the power something."""


class Power:
    """Power that is on at first; ``told`` has what it was told, unless it ``refuses`` that, ``on`` or ``off``.

    What it ``does_unheard`` it does, and its answer is lost. One that ``is_silent`` does not say whether it is on.
    Either way it ``raises``.
    """

    def __init__(self) -> None:
        self.told: list[str] = []
        self.refuses = self.does_unheard = ""
        self.is_silent = False
        self.raises: type[BaseException] = NotConnected

    def is_on(self, _deadline: Deadline) -> bool:
        if self.is_silent:
            raise NotConnected("bmc-srv1: no answer")
        return self.told[-1:] != ["off"]

    def turn_on(self, _deadline: Deadline) -> None:
        self._tell("on")

    def turn_off(self, _deadline: Deadline) -> None:
        self._tell("off")

    def _tell(self, what: str) -> None:
        if what == self.refuses:
            raise self.raises("bmc-srv1: no answer")
        self.told.append(what)
        if what == self.does_unheard:
            raise self.raises("bmc-srv1: its answer was lost")


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


class Held:
    """A fault of the kind ``hang`` that stands while it is held, and changes nothing."""

    kinds = frozenset({"hang"})

    def __init__(self) -> None:
        self.is_held = False

    def prepare(self, _fault: Mapping[str, Any], _deadline: Deadline) -> dict[str, Any]:
        return {}

    def start(self, _note: Mapping[str, Any], _deadline: Deadline) -> None:
        self.is_held = True

    def stands(self, _note: Mapping[str, Any], _deadline: Deadline) -> bool:
        return self.is_held

    def end(self, _note: Mapping[str, Any], _deadline: Deadline) -> None:
        self.is_held = False


def _is_untold(fault: BreakPart) -> bool:
    return bool(fault.fault["kind"] == "untold")


class World(Bench):
    """A bench whose ``server:srv1`` has a kernel and may hang, and a driver for each process that asks for one."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.server, self.outlet, self.hang = Server(folder / "srv1"), Power(), Held()

    def equipment(self, controller: DiagnosticInterrupt | None = None) -> Equipment:
        host = cast("Host", self.server)
        trigger = str(self.server.kernel / "sysrq-trigger")
        note = restart_notes(self.journal, self.lab.name, NAME, None)
        pulses = controller or Controller(self.server)
        crash = HostCrash(host, NAME, self.outlet, pulses, trigger=trigger, note=note)
        part = ServerFaults(crash, HostFaults(host, NAME, self.hang))
        return replace(self.rack.equipment, power={NAME: self.outlet}, breakable={NAME: part})

    def part(self) -> ServerFaults:
        """The server, as a new process sees it."""
        part = self.equipment().breakable[NAME]
        assert isinstance(part, ServerFaults)
        return part

    def break_as(self, kind: str, controller: DiagnosticInterrupt | None = None, *, key: str = KEY) -> None:
        """Break it as a run does that is killed then: what is left is heal's to undo."""
        acting = journalled(self.equipment(controller), self.recorder)
        acting.breakable[NAME].break_as(key, {"kind": kind}, self.deadline)

    def entries(self) -> list[str]:
        """The states of the faults in the journal, without the notes that none was told to the kernel yet."""
        made = self.journal.since(0)
        return [each.state.value for each in made if not (isinstance(each.what, BreakPart) and _is_untold(each.what))]

    def standing(self) -> list[Entry]:
        """What stands in the journal."""
        return self.journal.standing(self.lab.name)

    def heal_anew(self) -> HealReport:
        return heal(self.lab, self.journal, self.equipment(), self.clock, self.deadline)
