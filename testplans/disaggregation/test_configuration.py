"""Configuration disaggregation: one rack deployed in several shapes, whose maps survive losing power."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from rackloop.errors import BadInput, LabError, NotSupported, ProductFailed
from rackloop.lab import Lab
from rackloop.parameters import choice, size, whole
from rackloop.portmap import Full, PortMap
from rackloop_drivers.block.nbd_session import NbdSession
from rackloop_fixtures import Labels, Measure, Progress, Rack, StorageParts, drives_in, require_rules
from rackloop_labs.bench import drive_in_slot
from rackloop_labs.scratch_ports import kept_circuits
from rackloop_models.disaggregation import (
    Configuration,
    History,
    Mapped,
    Place,
    PowerCycled,
    Reconfiguring,
    Shape,
    Unmapped,
    Wipe,
    Wiped,
    changes,
    configuration,
    configuration_rules,
    with_servers,
)

PARAMETERS = {
    "servers": whole([2, 1, 2], "number of servers with drives in each shape, the first as the last", most=1000),
    "wipe": choice("sanitize", "method of wiping drives between servers", among=["sanitize", "overwrite", "none"]),
    "marked_bytes": size(1 << 20, "marked bytes of each drive", least=4096, most=1 << 40, multiple=4096),
    "power": choice(
        ["switch", "rack"], "equipment whose power is cut in each shape, or none", among=["switch", "rack", "none"]
    ),
}
MEASURES = {
    "configuration.reconfigure": "s",
    "configuration.wipe": "s",
    "configuration.power_cycle": "s",
    "configuration.drives_per_server": "1",
    "configuration.wrong_drives": "1",
    "configuration.marks_left": "1",
    "configuration.rule_broken": "1",
}
HEADLINES = ("configuration.reconfigure",)
BLOCK_BYTES = 4096
MARK = b"rackloop" * (BLOCK_BYTES // 8)
# A drive's own time, whatever the rack: for one request of zeroes, and for an erasure of a few gigabytes.
ERASED_S = 30.0
# Zeroed by one request: a hard disk does so in seconds.
ZEROED_BYTES = 256 << 20
POLL_NS = 5_000_000

pytestmark = pytest.mark.rackloop(
    purpose="deploy one rack in several shapes, wipe the drives that change hands, and cut power in each shape",
    requires=["fabric.remap", "probe", "remap.announce", "blocks.harness", "expander.slots"],
    destructive=True,
    time_class="seconds",
)


def drives_erased(lab: Lab, _parameters: Mapping[str, Any]) -> list[str]:
    """The drives in the expanders."""
    return [drive for expander in _shape(lab).drives for drive in drives_in(lab, expander)]


def check(lab: Lab, parameters: Mapping[str, Any]) -> None:
    """Raise BadInput for shapes that the rack cannot have or that show nothing, and for marks that do not fit.

    Raises NotSupported where the rack has ports for fewer expanders than servers are to share them.
    """
    counts = parameters["servers"]
    if counts[0] != counts[-1]:
        raise BadInput(f"servers: {counts} must end as it begins, to show that the rack comes back")
    if len(set(counts)) < 2:
        raise BadInput(f"servers: {counts} is one shape alone, from which nothing comes back; give another in between")
    if max(counts) > (has := len(StorageParts.of(lab).servers)):
        raise BadInput(f"servers: {counts} asks for {max(counts)}, and lab {lab.name} has {has}")
    if max(counts) > (shared := len(_shape(lab).drives)):
        raise NotSupported(
            f"{max(counts)} servers cannot share {shared} expanders, half as many as the ports that the servers of lab "
            f"{lab.name} have for them"
        )
    least = min(lab.drives[drive].size for drive in drives_erased(lab, parameters))
    if (marked := parameters["marked_bytes"]) > least:
        raise BadInput(f"marked_bytes: {marked} bytes are to be marked, and a drive in an expander has {least}")


def faults(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """Power is cut in each shape. Raises NotSupported where a drive that is not scratch would lose its link by that."""
    cuts = _cuts(parameters)
    if cuts and kept_circuits(lab):
        raise NotSupported(
            f"a drive of lab {lab.name} that is not scratch: true would lose its link with the power of the "
            f"{' and the '.join(cuts)}; power: [none] leaves that out"
        )
    return [f"the {what} without power in each of {len(parameters['servers'])} shapes" for what in cuts]


def _cuts(parameters: Mapping[str, Any]) -> list[str]:
    return [what for what in parameters["power"] if what != "none"]


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """A second a shape, a fifth of a second a drive, and the power cycles; simulated ones are faster."""
    cuts_s = len(_cuts(parameters)) * (0.6 if lab.kind == "mock" else 2.0)
    return float(2 + len(parameters["servers"]) * (1 + cuts_s + 0.2 * len(drives_erased(lab, parameters))))


def _shape(lab: Lab) -> Shape:
    parts = StorageParts.of(lab)
    wanted = max(1, len(parts.ports) // 2)
    if len(parts.expanders) < max(2, wanted):
        raise NotSupported(
            f"lab {lab.name} has {len(parts.expanders)} expanders with scratch drives; this wants {wanted}"
        )
    return configuration(parts.servers, parts.ports, parts.expanders)


@dataclass
class Deployment:
    """A rack that is deployed in one shape after another."""

    rack: Rack
    labels: Labels
    shape: Shape
    history: History
    wipe: Wipe
    marked_bytes: int
    measure: Measure
    now: Configuration | None = None

    def deploy(self, wanted: Configuration) -> None:
        """Wipe the drives that will go to another server, have the map be this configuration, keep it for power-on."""
        began_s = self._now_s()
        self.history.note(Reconfiguring(began_s, wanted.name, is_on=True))
        if self.now is None:
            moved = dict(wanted.at)
        else:
            moves = changes(self.shape, self.now, wanted)
            moved = {move.drive: move.target for move in moves}
            if self.wipe is not Wipe.NONE:
                self._wipe({move.drive: move.source for move in moves if move.source is not None})
            for move in moves:
                if move.source is not None:
                    self.history.note(Unmapped(self._now_s(), move.drive, move.source[0]))
        lab = self.rack.lab
        pairs = PortMap.of((lab.switch_port(*place), _uplink(lab, expander)) for expander, place in wanted.at.items())
        self.rack.bench.announce(pairs.ports())
        mapped_s = self._now_s()
        self.rack.fabric.apply(Full(kept_circuits(lab).joined(pairs)), self.rack.deadline())
        for expander, place in moved.items():
            self.history.note(Mapped(mapped_s, expander, *place))
        wrong = self._wrong_drives(wanted)
        self.measure("configuration.wrong_drives", len(wrong), configuration=wanted.name)
        if self.now is not None and self.wipe is not Wipe.NONE:
            self.measure("configuration.marks_left", self._marks_left(moved), configuration=wanted.name)
        self.rack.fabric.save_boot_map(self.rack.deadline())
        self.history.note(Reconfiguring(self._now_s(), wanted.name, is_on=False))
        self.measure("configuration.reconfigure", self._now_s() - began_s, configuration=wanted.name)
        drives = sum(len(drives_in(lab, expander)) for expander in wanted.at)
        self.measure("configuration.drives_per_server", drives / wanted.servers(), configuration=wanted.name)
        self.now = wanted
        self._mark(wanted)

    def cut_power(self, what: str) -> None:
        """Take the power of the switch, or of the switch and all servers, and give it back.

        Raises ProductFailed where the map is another then: a server that has lost its drives is no fault of the lab's.
        """
        rack = self.rack
        ports = ["switch", *(f"server:{name}" for name in rack.lab.servers if what == "rack")]
        before = rack.fabric.live_map(rack.deadline()).pairs
        began_s = self._now_s()
        for port in ports:
            rack.power(port).turn_off(rack.deadline())
        for port in reversed(ports):
            rack.power(port).turn_on(rack.deadline())
        after = self._map_after_power_on()
        for name in rack.lab.servers if what == "rack" else ():
            rack.bench.host(name).reconnect(rack.deadline(rack.lab.time_s("boot")))
        self.history.note(PowerCycled(self._now_s(), what, before.pairs, after.pairs))
        if differ := set(before.pairs) ^ set(after.pairs):
            raise ProductFailed(f"after the {what} had no power {len(differ)} pairs of the map differ")
        assert self.now is not None
        wrong = self._wrong_drives(self.now)
        self.measure("configuration.wrong_drives", len(wrong), configuration=self.now.name, after=what)
        self.measure("configuration.power_cycle", self._now_s() - began_s, what=what, configuration=self.now.name)

    def _map_after_power_on(self) -> PortMap:
        deadline = self.rack.deadline(self.rack.lab.time_s("boot"))
        while True:
            try:
                return self.rack.fabric.live_map(deadline).pairs
            except LabError:
                if deadline.is_over():
                    raise
                self._pause()

    def _wrong_drives(self, wanted: Configuration) -> list[str]:
        """The drives that are not in their slot at the server that should have them, after time to come online."""
        deadline = self.rack.deadline(self.rack.lab.time_s("spin_up"))
        wrong = []
        for drive, place, slot in self._slots(wanted.at):
            path, _ = drive_in_slot(self.rack.bench, *place, slot)
            while True:
                try:
                    serial = path.identify(deadline).serial
                except LabError:
                    if deadline.is_over():
                        raise
                    self._pause()
                else:
                    break
            if serial != self.rack.lab.drives[drive].serial:
                wrong.append(drive)
        return wrong

    def _mark(self, at: Configuration) -> None:
        """Write what a wipe has to take away."""
        for drive, place, slot in self._slots(at.at):
            path, device = drive_in_slot(self.rack.bench, *place, slot)
            with (
                self.labels.writable_through(drive, path, device) as permit,
                NbdSession(permit, self.rack.clock) as session,
            ):
                self.labels.forget(drive)
                for offset in self._zones(session):
                    session.write(offset, MARK * (self.marked_bytes // len(MARK)))
                session.flush()

    def _wipe(self, leaving: Mapping[str, Place]) -> None:
        """Erase the drives of these expanders at the servers that still have them, and read them back there."""
        for drive, place, slot in self._slots(leaving):
            path, device = drive_in_slot(self.rack.bench, *place, slot)
            began_s = self._now_s()
            method = str(self.wipe)
            with (
                self.labels.writable_through(drive, path, device) as permit,
                NbdSession(permit, self.rack.clock, within_s=ERASED_S) as session,
            ):
                was_marked = all(content.startswith(MARK) for content in self._zone_contents(session))
                if self.wipe is Wipe.SANITIZE:
                    method = str(path.methods(self.rack.deadline())[0])
                    path.sanitize(permit, path.methods(self.rack.deadline())[0], self.rack.deadline(ERASED_S))
                else:
                    for offset in range(0, session.size_bytes, ZEROED_BYTES):
                        session.write_zeroes(offset, min(ZEROED_BYTES, session.size_bytes - offset))
                    session.flush()
                is_erased = all(content == bytes(self.marked_bytes) for content in self._zone_contents(session))
            # What carried nothing shows nothing by being empty.
            self.history.note(Wiped(self._now_s(), drive, method, is_clean=was_marked and is_erased))
            self.measure("configuration.wipe", self._now_s() - began_s, drive=drive, method=method)

    def _marks_left(self, at: Mapping[str, Place]) -> int:
        """In how many zones of these expanders' drives the servers that have them now find anything."""
        left = 0
        for _, place, slot in self._slots(at):
            _, device = drive_in_slot(self.rack.bench, *place, slot)
            with NbdSession(device, self.rack.clock) as session:
                left += sum(content != bytes(self.marked_bytes) for content in self._zone_contents(session))
        return left

    def _zones(self, session: NbdSession) -> tuple[int, int, int]:
        """The zones of marks: at the start of a drive, in the middle and at its end, ``marked_bytes`` each."""
        last = session.size_bytes - self.marked_bytes
        return 0, last // 2 // BLOCK_BYTES * BLOCK_BYTES, last // BLOCK_BYTES * BLOCK_BYTES

    def _zone_contents(self, session: NbdSession) -> list[bytes]:
        return [session.read(offset, self.marked_bytes) for offset in self._zones(session)]

    def _slots(self, at: Mapping[str, Place]) -> Iterable[tuple[str, Place, int]]:
        """Each drive of these expanders, with the place of the expander and its slot in it."""
        for expander, place in at.items():
            for drive in drives_in(self.rack.lab, expander):
                yield drive, place, self.rack.lab.drives[drive].expander_slot or 0

    def _now_s(self) -> float:
        return self.rack.clock.now_ns() / 1e9

    def _pause(self) -> None:
        self.rack.clock.sleep_until_ns(self.rack.clock.now_ns() + POLL_NS)


def _uplink(lab: Lab, expander: str) -> int:
    port = lab.expanders[expander].port
    assert port is not None  # a rack with a switch has every uplink on it
    return port


def test_configuration(
    rack: Rack, labels: Labels, parameters: Mapping[str, Any], measure: Measure, progress: Progress
) -> None:
    """Deploy each shape in turn from the one description of the rack, and cut its power there."""
    shape, wipe = _shape(rack.lab), Wipe(parameters["wipe"])
    history = History()
    deployment = Deployment(rack, labels, shape, history, wipe, parameters["marked_bytes"], measure)
    counts = parameters["servers"]
    for number, count in enumerate(counts):
        deployment.deploy(with_servers(shape, count))
        for what in _cuts(parameters):
            deployment.cut_power(what)
        progress(number + 1, len(counts), "shapes")
    inside = {expander: drives_in(rack.lab, expander) for expander in shape.drives}
    require_rules(
        measure,
        "configuration.rule_broken",
        configuration_rules(inside, wipe, power_cut=bool(_cuts(parameters))),
        history,
    )
