"""A bench without the parts that are out of service."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace

from rackloop.abilities import BlockDevice, Drive, DriveIdentity, Host, SystemEventLog
from rackloop.clock import Clock
from rackloop.journalled import Equipment
from rackloop.lab import Lab
from rackloop.upkeep import Gear, lab_without
from rackloop_drivers.rackd import RecordedIo
from rackloop_labs.attach_log import AttachLog
from rackloop_labs.bench import Bench


class BenchInService:
    """``whole`` as a :class:`~rackloop_labs.bench.Bench` whose description lacks the parts that were taken out.

    Who chooses among what the description names cannot choose them. Their power and their faults are not offered
    either; the switch is the whole rack's, and their circuits stay as they are.
    """

    def __init__(self, whole: Bench, out: Collection[Gear] = ()) -> None:
        self.whole = whole
        self._out: frozenset[Gear] = frozenset()
        self._lab = whole.lab
        self.take_out(out)

    @property
    def out(self) -> frozenset[Gear]:
        """What was taken out."""
        return self._out

    def take_out(self, gear: Collection[Gear]) -> None:
        """Use these parts no more."""
        self._out |= frozenset(gear)
        self._lab = lab_without(self.whole.lab, self._out)

    def put_back(self, gear: Collection[Gear]) -> None:
        """Use these parts again."""
        self._out -= frozenset(gear)
        self._lab = lab_without(self.whole.lab, self._out)

    @property
    def lab(self) -> Lab:
        """The description of what is in service."""
        return self._lab

    @property
    def clock(self) -> Clock:  # noqa: D102 - as of the whole bench
        return self.whole.clock

    @property
    def equipment(self) -> Equipment:
        """The equipment, without what acts on a part that is out."""
        equipment, gone = self.whole.equipment, frozenset(map(str, self._out))
        if not gone:
            return equipment
        return replace(
            equipment,
            power={name: port for name, port in equipment.power.items() if name not in gone},
            breakable={name: part for name, part in equipment.breakable.items() if _victim(name) not in gone},
        )

    def drive(self, server: str, port: str) -> Drive:  # noqa: D102
        return self.whole.drive(server, port)

    def device(self, server: str, port: str) -> BlockDevice:  # noqa: D102
        return self.whole.device(server, port)

    def survey(self) -> list[DriveIdentity]:  # noqa: D102
        return self.whole.survey()

    def host(self, server: str) -> Host:  # noqa: D102
        return self.whole.host(server)

    @property
    def event_logs(self) -> Mapping[str, SystemEventLog]:  # noqa: D102
        return {name: log for name, log in self.whole.event_logs.items() if name in self._lab.servers}

    def attach_log(self) -> AbstractContextManager[AttachLog]:  # noqa: D102
        return self.whole.attach_log()

    def announce(self, switch_ports: Collection[int]) -> None:  # noqa: D102
        self.whole.announce(switch_ports)

    def recording_io(self, drive: str) -> AbstractContextManager[Callable[[], RecordedIo]]:  # noqa: D102
        return self.whole.recording_io(drive)

    def close(self) -> None:  # noqa: D102
        self.whole.close()


def _victim(resource: str) -> str:
    """The part that feels it: what breaks a server's network or its controller breaks the server."""
    kind, _, name = resource.partition(":")
    return f"server:{name.partition('/')[0]}" if kind in {"network", "bmc", "slot", "phy"} else resource
