"""A rack in memory that records calls, refuses what a switch refuses, and fails on demand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from rackloop.abilities import Applied, BoxIdentity, DriveIdentity, LiveMap, PortState, Staged
from rackloop.clock import Clock, Deadline
from rackloop.errors import FabricError, LabError, LockedOut, NotSupported, StaleGeneration
from rackloop.lab import Lab, LabKind, load_lab
from rackloop.portmap import MapChange, PortMap
from rackloop.safety.undo import Equipment

LAB = """
name: bench
kind: mock
fabric: {driver: flexfabric, ports: 160}
servers:
  srv1: {ports: {p0: 1, p1: 2, p2: 3}}
  srv2: {ports: {p0: 5, p1: 6, p2: 7}}
drives:
  d01: {profile: sata-ssd, serial: RL000001, wwn: 5000c500a0000001, size: 8 GiB, port: 101, scratch: true}
  d02: {profile: nvme-ssd, serial: '00123456', eui64: 0025385b71b00001, nguid: 0025385b71b000010000000000000001,
        size: 4 GiB, port: 102, scratch: true}
  d03: {profile: sata-ssd, serial: RL000003, wwn: 5000c500a0000003, size: 8 GiB, port: 103, scratch: false}
  d04: {profile: sas-hdd, serial: RL000004, wwn: 5000c500a0000004, size: 8 GiB, port: 104, scratch: true}
baseline: {srv1: {p0: d01, p1: d02}, srv2: {p0: d03, p1: d04}}
"""
DRIVE_FAULTS = ("media_error", "slow", "hang", "dead", "corrupt", "crash_on_remap")
BASELINE = PortMap.of([(1, 101), (2, 102), (5, 103), (6, 104)])


def described(folder: Path, kind: LabKind = LabKind.MOCK) -> Lab:
    """The lab the unit tests use, read from a file as users write it."""
    path = folder / "bench.yaml"
    path.write_text(LAB)
    return load_lab(path).model_copy(update={"kind": kind})


def identity_of(lab: Lab, drive_id: str) -> DriveIdentity:
    """What the drive says of itself where it is the one the description means."""
    drive = lab.drives[drive_id]
    return DriveIdentity(
        drive.model, drive.serial, drive.firmware, drive.traits.protocol, drive.size, dict(drive.identifiers)
    )


class SimSwitch:
    """A Fabric and a PhyControl over one map. ``before`` and ``after`` are called around each executed act.

    ``asking`` is called with the name of each question about a map.
    """

    def __init__(self, clock: Clock, live: PortMap) -> None:
        self.clock = clock
        self.live = live
        self.saved = live
        self.generation = 1
        self.applied: list[MapChange] = []
        self.stuck: set[int] = set()
        self.dark: set[int] = set()
        self.locked = False
        self.reachable = True
        self.drops: list[tuple[tuple[int, ...], int]] = []
        self.staged: Staged | None = None
        self.before_staging: Callable[[], None] = lambda: None
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None
        self.asking: Callable[[str], None] = lambda _name: None

    def identify(self, deadline: Deadline) -> BoxIdentity:
        return BoxIdentity("Rackloop", "simulated", "1", "1")

    def port_count(self, deadline: Deadline) -> int:
        return 160

    def live_map(self, deadline: Deadline) -> LiveMap:
        self._answer()
        self.asking("live_map")
        return LiveMap(self.generation, self.live)

    def apply(self, change: MapChange, deadline: Deadline, *, on: LiveMap | None = None) -> Applied:
        self._answer()
        if self.locked:
            raise LockedOut("another controller holds the lock", code=-203)
        self._require_generation(on)
        self.before()
        wanted = change.after(self.live)
        kept = tuple(pair for pair in self.live if self.stuck.intersection(pair))
        taken = {port for pair in kept for port in pair}
        self.live = PortMap.of((*kept, *(pair for pair in wanted if not (self.stuck | taken).intersection(pair))))
        self.generation += 1
        self.applied.append(change)
        self.after()
        if self.live != wanted:
            raise FabricError("ports did not follow")
        return Applied(self.generation, self.clock.now_ns(), self.clock.now_ns())

    def stage(self, change: MapChange, deadline: Deadline, *, on: LiveMap | None = None) -> Staged:
        self._answer()
        if self.locked:
            raise LockedOut("another controller holds the lock", code=-203)
        self._require_generation(on)
        self.before_staging()
        self.staged = Staged(change, self.generation)
        return self.staged

    def trigger(self, staged: Staged, deadline: Deadline) -> Applied:
        if self.staged is not staged:
            raise FabricError("nothing is staged", code=-211)
        return self.apply(staged.change, deadline, on=LiveMap(staged.generation, self.live))

    def port_states(self, ports: Collection[int], deadline: Deadline) -> dict[int, PortState]:
        self._answer()
        mapped = self.live.ports() - self.dark
        now_ns = self.clock.now_ns()
        mapped -= {port for ports_down, until_ns in self.drops if until_ns > now_ns for port in ports_down}
        return {port: PortState.UP if port in mapped else PortState.DOWN for port in ports}

    def take_lock(self, token: int, deadline: Deadline) -> None:
        self.locked = False

    def release_lock(self, token: int, deadline: Deadline) -> None:
        self.locked = False

    def save_boot_map(self, deadline: Deadline) -> None:
        self._answer()
        self.saved = self.live

    def boot_map(self, deadline: Deadline) -> PortMap:
        self.asking("boot_map")
        return self.saved

    def close(self) -> None:
        self.reachable = False

    def drop(self, ports: Collection[int], down_s: float, deadline: Deadline, *, request_id: int) -> None:
        self._answer()
        self.before()
        self.drops.append((tuple(ports), self.clock.now_ns() + round(down_s * 1e9)))
        self.after()

    def flap(
        self, ports: Collection[int], down_s: float, up_s: float, count: int, deadline: Deadline, *, request_id: int
    ) -> None:
        self.drop(ports, (down_s + up_s) * count, deadline, request_id=request_id)

    def drop_counts(self, ports: Collection[int], deadline: Deadline) -> dict[int, int]:
        return {port: sum(port in dropped for dropped, _ in self.drops) for port in ports}

    def lose_power(self) -> None:
        self.reachable = False

    def get_power(self) -> None:
        self.reachable = True
        self.live = self.saved
        self.generation += 1

    def _answer(self) -> None:
        if not self.reachable:
            raise LabError("the switch does not answer")

    def _require_generation(self, on: LiveMap | None) -> None:
        if on is not None and on.generation != self.generation:
            raise StaleGeneration(f"generation {self.generation}, not {on.generation}", code=-221)


class RestoringPhy:
    """A PhyControl whose drops can be ended; ``restored`` has the ports it was told."""

    def __init__(self, switch: SimSwitch) -> None:
        self._switch = switch
        self.restored: list[tuple[int, ...]] = []
        self.refuses = False

    def drop(self, ports: Collection[int], down_s: float, deadline: Deadline, *, request_id: int) -> None:
        self._switch.drop(ports, down_s, deadline, request_id=request_id)

    def flap(
        self, ports: Collection[int], down_s: float, up_s: float, count: int, deadline: Deadline, *, request_id: int
    ) -> None:
        self._switch.flap(ports, down_s, up_s, count, deadline, request_id=request_id)

    def drop_counts(self, ports: Collection[int], deadline: Deadline) -> dict[int, int]:
        return self._switch.drop_counts(ports, deadline)

    def restore(self, ports: Collection[int], deadline: Deadline) -> None:
        if self.refuses:
            raise LabError("the switch is busy")
        self.restored.append(tuple(sorted(ports)))
        self._switch.drops.clear()


class SimOutlet:
    """A PowerPort; ``broken`` makes it ignore what it is told, ``asking`` is called when it is asked."""

    def __init__(self, on_change: Callable[[bool], None] = lambda _: None) -> None:
        self.on = True
        self.broken = False
        self.told: list[bool] = []
        self.asking: Callable[[], None] = lambda: None
        self._on_change = on_change

    def turn_on(self, deadline: Deadline) -> None:
        self._switch(True)

    def turn_off(self, deadline: Deadline) -> None:
        self._switch(False)

    def is_on(self, deadline: Deadline) -> bool:
        self.asking()
        return self.on

    def _switch(self, on: bool) -> None:
        self.told.append(on)
        if not self.broken and on != self.on:
            self.on = on
            self._on_change(on)


class SimPart:
    """A Breakable; ``broken`` has what stands, ``told`` every call that changed it. ``stays`` makes mending fail.

    ``mending`` is called before anything is mended; what it raises, ``mend`` raises.
    """

    def __init__(self, *kinds: str, log: list[str] | None = None, name: str = "") -> None:
        self.broken: dict[str, Mapping[str, Any]] = {}
        self.told: list[str] = log if log is not None else []
        self.stays = False
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None
        self.mending: Callable[[], None] = lambda: None
        self._kinds = frozenset(kinds)
        self._name = name

    @property
    def kinds(self) -> frozenset[str]:
        return self._kinds

    def break_as(self, key: str, fault: Mapping[str, Any], deadline: Deadline) -> None:
        if fault["kind"] not in self._kinds:
            raise NotSupported(f"{self._name} cannot be broken as {fault['kind']}")
        self.before()
        if self.broken.setdefault(key, fault) is fault:
            self.told.append(f"break {self._name}")
        self.after()

    def mend(self, key: str, deadline: Deadline) -> None:
        self.mending()
        if not self.stays and self.broken.pop(key, None) is not None:
            self.told.append(f"mend {self._name}")

    def standing(self, deadline: Deadline) -> dict[str, Mapping[str, Any]]:
        return dict(self.broken)


class SimRegister:
    """A FaultRegister of these parts; one that ``is_silent`` cannot be read."""

    def __init__(self, parts: Mapping[str, SimPart]) -> None:
        self.is_silent = False
        self._parts = parts

    @property
    def parts(self) -> frozenset[str]:
        return frozenset(self._parts)

    def standing(self, deadline: Deadline) -> dict[str, dict[str, Mapping[str, Any]]]:
        if self.is_silent:
            raise LabError("nobody answers")
        return {name: dict(part.broken) for name, part in self._parts.items() if part.broken}


class SimRack:
    """A switch, its PHYs, three outlets and breakable parts, at the baseline of :func:`described`.

    ``told`` has the calls that broke or mended a part, in order.
    """

    def __init__(self, clock: Clock) -> None:
        self.switch = SimSwitch(clock, BASELINE)
        self.outlets = {
            "srv1": SimOutlet(),
            "srv2": SimOutlet(),
            "switch": SimOutlet(lambda on: self.switch.get_power() if on else self.switch.lose_power()),
        }
        self.told: list[str] = []
        kinds = {
            "drive:d01": DRIVE_FAULTS,
            "drive:d03": DRIVE_FAULTS,
            "switch_port:101": ("stuck", "slow_training"),
            "cabling": ("miswire",),
            "server:srv1": ("crash", "hang"),
            "network:srv1": ("partition",),
            "control": ("lost", "garbled"),
            "bmc:srv1": ("unreachable",),
        }
        self.parts = {name: SimPart(*its_kinds, log=self.told, name=name) for name, its_kinds in kinds.items()}
        self.register = SimRegister(self.parts)
        self.equipment = Equipment(
            self.switch,
            self.switch,
            self.outlets,
            switch_power="switch",
            breakable=self.parts,
            registers=(self.register,),
        )
