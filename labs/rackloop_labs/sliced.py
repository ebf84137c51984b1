"""A bench as the holder of a part of the rack has it: nothing of the rest is seen, judged or touched."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager

from rackloop.abilities import BlockDevice, Drive, DriveIdentity, Host, SystemEventLog
from rackloop.clock import Clock
from rackloop.errors import BadInput
from rackloop.lab import Lab, Part
from rackloop.safety.leases import HeldLease, fenced
from rackloop.safety.undo import Equipment
from rackloop_drivers.rackd import RecordedIo
from rackloop_labs.attach_log import AttachLog
from rackloop_labs.bench import Bench


class SlicedBench:
    """The :class:`~rackloop_labs.bench.Bench` of what a lease has, over that of the whole rack.

    Everything outside the lease is refused with BadInput. Of a rack without a switch no links can be dropped: their
    numbers are those of the whole rack's cabling.
    """

    def __init__(self, bench: Bench, held: HeldLease) -> None:
        self._bench = bench
        self._parts = held.parts
        self.lab: Lab = bench.lab.restricted(held.parts)
        self.clock: Clock = bench.clock
        self.is_new = False
        whole = bench.equipment
        fabric, phy = fenced(whole.fabric, whole.phy, held) if bench.lab.has_switch else (whole.fabric, None)
        self.equipment = Equipment(
            fabric,
            phy,
            power={name: port for name, port in whole.power.items() if held.parts.covers(Part.of_resource(name))},
            breakable={
                name: part for name, part in whole.breakable.items() if held.parts.covers(Part.of_resource(name))
            },
            registers=whole.registers,
            server_registers=tuple(
                register for register in whole.server_registers if any(map(self._has, register.parts))
            ),
        )

    def drive(self, server: str, port: str) -> Drive:
        """The drive that a port of a leased server sees now."""
        self._require_server(server)
        return self._bench.drive(server, port)

    def device(self, server: str, port: str) -> BlockDevice:
        """How I/O reaches it from the server."""
        self._require_server(server)
        return self._bench.device(server, port)

    def survey(self) -> list[DriveIdentity]:
        """Every drive of the whole rack: no two may be taken for each other, whoever has leased them."""
        return self._bench.survey()

    def host(self, server: str) -> Host:
        """A leased server by SSH."""
        self._require_server(server)
        return self._bench.host(server)

    @property
    def event_logs(self) -> Mapping[str, SystemEventLog]:
        """Those of the leased servers."""
        return {name: log for name, log in self._bench.event_logs.items() if name in self._parts.servers}

    def attach_log(self) -> AbstractContextManager[AttachLog]:
        """Drives coming and going on the whole rack."""
        return self._bench.attach_log()

    def announce(self, switch_ports: Collection[int]) -> None:
        """Tell leased servers that the drives behind these ports are about to change."""
        if not self._parts.switch_ports.issuperset(switch_ports):
            raise BadInput(f"ports {sorted(switch_ports)} are not all in the lease, which has {self._parts}")
        self._bench.announce(switch_ports)

    def recording_io(self, drive: str) -> AbstractContextManager[Callable[[], RecordedIo]]:
        """Have every request that reaches a leased drive recorded."""
        if drive not in self._parts.drives:
            raise BadInput(f"drive {drive} is not in the lease, which has {self._parts}")
        return self._bench.recording_io(drive)

    def lateness_s(self) -> float | None:
        """How late the whole rack was."""
        return self._bench.lateness_s()

    def close(self) -> None:
        """Close the whole rack's bench; the switch's lock is not held between acts."""
        self._bench.close()

    def _has(self, name: str) -> bool:
        return self._parts.covers(Part.of_resource(name))

    def _require_server(self, server: str) -> None:
        if server not in self._parts.servers:
            raise BadInput(f"server {server} is not in the lease, which has {self._parts}; lease it too")
