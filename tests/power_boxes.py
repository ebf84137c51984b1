"""Simulated management controllers and PDUs on loopback, with right and wrong logins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rackloop.lab import FileSecret
from rackloop_drivers.boxes import Account, Chassis, Login, MemorySwitching, Outlets
from rackloop_drivers.power.ipmi import IpmiBmc, Ipmitool
from rackloop_drivers.power.redfish import RedfishBmc, RedfishPdu, RedfishService, serve_tls
from rackloop_drivers.power.snmp import APC, CYBERPOWER, SnmpAgent, SnmpPdu
from tests.deadlines import CLOCK
from tests.loop_thread import LoopThread, loop_thread

T = TypeVar("T")
USER = "operator"
PASSWORD = "right horse"  # noqa: S105 - of boxes that live as long as a test
READ_COMMUNITY = "may look"
OUTLETS = 4
FEEDING = 2
"""The outlet that feeds the server; no other feeds anything."""


@dataclass
class PowerBoxes:
    """One server with two controllers, and three PDUs of which each could feed it; the APC one does."""

    loop: LoopThread
    folder: Path
    ca_file: Path
    chassis: Chassis
    outlets: dict[str, Outlets]
    account: Account
    redfish_bmc: RedfishBmc
    redfish_pdu: RedfishPdu
    ipmi_bmc: IpmiBmc
    apc: SnmpPdu
    cyberpower: SnmpPdu

    def login(self, where: str, user: str | None = USER, password: str = PASSWORD) -> Login:
        path = self.folder / f"{password}.password"
        path.write_text(password)
        return Login(where, user, FileSecret(path))

    @contextmanager
    def redfish(self, password: str = PASSWORD, *, pdu: bool = False) -> Iterator[RedfishService]:
        """The controller's service, or the PDU's; logged out with the block."""
        url = (self.redfish_pdu if pdu else self.redfish_bmc).url
        service = RedfishService(url, self.login(url, password=password), verify=self.ca_file)
        try:
            yield service
        finally:
            service.close()

    def ipmitool(self, password: str = PASSWORD) -> Ipmitool:
        return Ipmitool(self.ipmi_bmc.address, self.login(self.ipmi_bmc.address, password=password))

    def agent(self, pdu: SnmpPdu, password: str = PASSWORD, user: str | None = None) -> SnmpAgent:
        return SnmpAgent(pdu.address, self.login(pdu.address, user, password))

    def hang(self, *, is_hung: bool = True) -> None:
        """Have every box take what it is sent and answer nothing, or all of them answer again."""

        def hang() -> None:
            for box in (self.redfish_bmc, self.redfish_pdu, self.ipmi_bmc, self.apc, self.cyberpower):
                box.is_hung = is_hung

        self.loop.call(hang)

    def is_on(self) -> bool:
        """Whether the server has power."""
        return self.loop.run(self.chassis.is_on())

    def feed(self, *, on: bool) -> None:
        """Switch what feeds the server and its controllers."""
        self.loop.run(self.chassis.feed(on=on))


@contextmanager
def power_boxes(folder: Path) -> Iterator[PowerBoxes]:
    """The boxes, running while the block lasts."""
    ca_file, context = serve_tls(folder, CLOCK)
    account = Account(USER, PASSWORD, CLOCK)
    with loop_thread() as loop, ExitStack() as stack:
        chassis = Chassis("srv1", MemorySwitching(), CLOCK)
        outlets = {
            name: Outlets(name, OUTLETS, {FEEDING: chassis} if name == "apc" else {})
            for name in ("redfish", "apc", "cyberpower")
        }

        for unit in outlets.values():
            stack.callback(loop.call, unit.close)

        def running(make: Callable[[], AbstractAsyncContextManager[T]]) -> T:
            return stack.enter_context(loop.entered(loop.call(make)))

        boxes = PowerBoxes(
            loop=loop,
            folder=folder,
            ca_file=ca_file,
            chassis=chassis,
            outlets=outlets,
            account=account,
            redfish_bmc=running(lambda: RedfishBmc(chassis, account, context)),
            redfish_pdu=running(lambda: RedfishPdu(outlets["redfish"], account, context)),
            ipmi_bmc=running(lambda: IpmiBmc(chassis, account)),
            apc=running(lambda: SnmpPdu(outlets["apc"], APC, PASSWORD, user=USER, read_community=READ_COMMUNITY)),
            cyberpower=running(lambda: SnmpPdu(outlets["cyberpower"], CYBERPOWER, PASSWORD)),
        )
        yield boxes
