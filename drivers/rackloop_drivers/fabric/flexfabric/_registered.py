"""The FlexFabric switch as lab descriptions name it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, NotConnected
from rackloop.lab import LabState
from rackloop.lab.yaml import Description, Endpoint, Flag, whole
from rackloop_drivers.boxes import FabricDriver, FabricOpening, OpenedFabric, SimulatedSwitch
from rackloop_drivers.serial_keys import Baud, SerialDevice

if TYPE_CHECKING:
    from rackloop_drivers.fabric.flexfabric._session import FlexFabricSession

REFERENCE_SWITCH_PORTS = 160
_HOW = "say where the switch answers, as in {tcp: 'switch.lab.example:5025'} or {serial: /dev/ttyUSB0}"


class Control(Description):
    """The place where the switch takes its commands."""

    tcp: Endpoint | None = None
    """The switch's TCP socket, 'host:port'; 'auto' lets a simulated lab choose."""
    serial: SerialDevice | None = None
    """The serial line the switch is on, such as /dev/ttyUSB0; 'auto' lets a simulated lab make a pseudo terminal."""
    baud: Baud = 115_200
    """The serial line's speed in bits per second, 8N1; that of a terminal server's line too."""


class FlexFabricDriver(FabricDriver):
    """The reference circuit switch."""

    is_simulated: ClassVar[bool] = True

    ports: Annotated[int, whole(2, 4096)] = REFERENCE_SWITCH_PORTS
    """The number of the switch's ports, which are numbered from 1."""
    control: Control = Control(tcp="auto", serial="auto")
    """The switch's addresses, such as {tcp: 'switch.lab.example:5025'}; a simulated lab makes both by default."""
    pace: Flag = False
    """True where a simulated serial line is held to the speed of its baud rate."""

    def lacking(self) -> Iterator[tuple[str, str]]:
        """Its control."""
        given = {key: value for key in ("tcp", "serial") if (value := getattr(self.control, key)) is not None}
        if not given or "control" not in self.model_fields_set:
            yield "control", f"is missing; {_HOW}"
            return
        for key in (key for key, value in given.items() if value == "auto"):
            yield f"control.{key}", f"auto is for simulated labs; {_HOW}"

    def at(self, endpoint: Mapping[str, Any]) -> Self:
        """The switch where its simulation answers."""
        return self.model_copy(update={"control": Control(tcp=endpoint["tcp"])})

    def where(self) -> tuple[str, str]:
        """The kind of the switch's address, tcp or serial, and the address."""
        return ("tcp", self.control.tcp) if self.control.tcp else ("serial", str(self.control.serial))

    def open(self, opening: FabricOpening) -> OpenedFabric:
        """The switch and its PHYs, by its serial line where both are given and it does not answer by TCP.

        Raises as :func:`open_flexfabric` does.
        """
        from rackloop_drivers.fabric.flexfabric._driver import FlexFabric, FlexFabricPhy, open_flexfabric

        def opened(url: str, deadline: Deadline) -> FlexFabricSession:
            token, on_exchange, baud = opening.token, opening.on_exchange, self.control.baud
            return open_flexfabric(url, opening.clock, deadline, token=token, on_exchange=on_exchange, baud=baud)

        how, address = self.where()
        url = f"tcp://{address}" if how == "tcp" else address
        if how == "tcp" and self.control.serial is not None:
            switch = _by_either(opened, url, self.control.serial, opening.deadline)
        else:
            switch = opened(url, opening.deadline)
        return OpenedFabric(FlexFabric(switch), FlexFabricPhy(switch))

    def own_address(self) -> tuple[str, str] | None:
        """The serial line of this machine, which nothing else may have."""
        serial = self.control.serial
        return None if serial in {None, "auto"} else ("control.serial", str(serial))

    async def simulated(self, state: LabState) -> SimulatedSwitch:
        """The switch, in a process of its own."""
        from rackloop_drivers.fabric.flexfabric.peer.process_link import SwitchLink

        control = self.control
        port = 0 if control.tcp in {None, "auto"} else int(str(control.tcp).rpartition(":")[2])
        return await SwitchLink.start(state, port=port, baud=control.baud, is_paced=self.pace)


def _by_either(
    opened: Callable[[str, Deadline], FlexFabricSession], url: str, serial: str, deadline: Deadline
) -> FlexFabricSession:
    """The switch by TCP at ``url``, or else by its serial line. Raises NotConnected where it answers by neither."""
    try:
        return opened(url, deadline.sooner(deadline.remaining_s() / 2))
    except (NotConnected, DeadlineExceeded) as error:
        by_tcp = error
    try:
        return opened(serial, deadline)
    except (NotConnected, DeadlineExceeded) as error:
        if isinstance(by_tcp, NotConnected) or deadline.is_over():
            raise NotConnected(f"{by_tcp}; nor does it by its serial line: {error}") from error
    # It may be slow to answer, and the line is of another machine.
    return opened(url, deadline)
