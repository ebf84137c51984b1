"""The physical lab: the rack itself, reached by its description."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager

from rackloop.abilities import BlockDevice, Drive, DriveIdentity, Executor, Fabric, PhyControl
from rackloop.clock import Clock, Deadline
from rackloop.errors import NotSupported
from rackloop.journalled import Equipment
from rackloop.lab import Lab
from rackloop_drivers.fabric.flexfabric import Exchange, FlexFabric, FlexFabricPhy, open_flexfabric
from rackloop_drivers.fabric.static import StaticFabric
from rackloop_drivers.rackd import RecordedIo
from rackloop_labs.attach_log import AttachLog
from rackloop_labs.bench import release_lock

_CONNECT_S = 10.0
_NO_HOSTS = "servers of a physical lab cannot be reached yet: what needs one is skipped"


class PhysicalBench:
    """The :class:`~rackloop_labs.bench.Bench` of a physical rack: its switch can be asked, its servers not yet.

    Every act on it is refused by the journalled abilities while there are no leases.
    """

    def __init__(
        self, lab: Lab, clock: Clock, token: int | None, on_exchange: Callable[[Exchange], None] | None
    ) -> None:
        self.lab = lab
        self.clock = clock
        self._token = token
        fabric: Fabric
        phy: PhyControl | None = None
        if lab.has_switch:
            control = lab.fabric.control
            url = f"tcp://{control.tcp}" if control.tcp else str(control.serial)
            deadline = Deadline.after(clock, _CONNECT_S)
            switch = open_flexfabric(url, clock, deadline, token=token, on_exchange=on_exchange, baud=control.baud)
            fabric, phy = FlexFabric(switch), FlexFabricPhy(switch)
        else:
            fabric = StaticFabric(lab.baseline_map())
        self.equipment = Equipment(fabric, phy)

    def drive(self, server: str, port: str) -> Drive:
        """Not supported yet."""
        raise NotSupported(f"{server}.{port}: {_NO_HOSTS}")

    def device(self, server: str, port: str) -> BlockDevice:
        """Not supported yet."""
        raise NotSupported(f"{server}.{port}: {_NO_HOSTS}")

    def survey(self) -> list[DriveIdentity]:
        """Not supported yet."""
        raise NotSupported(f"drives are seen by servers: {_NO_HOSTS}")

    def executor(self, server: str) -> Executor:
        """Not supported yet."""
        raise NotSupported(f"{server}: {_NO_HOSTS}")

    def attach_log(self) -> AbstractContextManager[AttachLog]:
        """Not supported yet."""
        raise NotSupported(f"drives coming online are seen by servers: {_NO_HOSTS}")

    def announce(self, switch_ports: Collection[int]) -> None:
        """Not supported yet."""
        raise NotSupported(f"{len(switch_ports)} ports to announce: {_NO_HOSTS}")

    def recording_io(self, drive: str) -> AbstractContextManager[Callable[[], RecordedIo]]:
        """Not supported: a real drive keeps no record of its requests."""
        raise NotSupported(f"{drive} is a real drive, and keeps no record of its requests")

    def close(self) -> None:
        """Let go of the switch's lock and close the connection."""
        release_lock(self.equipment.fabric, self._token, self.clock)
        self.equipment.fabric.close()
