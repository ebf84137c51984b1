"""Every driver of power, and every event log, keeps its contract against the simulated box it is for, and real ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from rackloop.abilities import PowerPort, SystemEventLog
from rackloop.clock import Deadline
from rackloop.contracts import power_port, system_event_log
from rackloop.contracts.system_event_log import EventLogArm
from rackloop.errors import DeadlineExceeded, LabError
from rackloop.lab import load_lab
from rackloop_drivers.boxes import DiagnosticInterrupt, EventKind
from rackloop_drivers.power.ipmi import IpmiEventLog, IpmiInterrupt, IpmiPowerPort
from rackloop_drivers.power.redfish import RedfishEventLog, RedfishInterrupt, RedfishOutlet, RedfishPowerPort
from rackloop_drivers.power.snmp import ApcOutlet, CyberPowerOutlet
from rackloop_labs.power_ports import RackPower
from tests.deadlines import CLOCK, soon
from tests.power_boxes import FEEDING, USER, PowerBoxes, power_boxes

REAL_POWER = "RACKLOOP_REAL_POWER"
"""A lab description and the name of a power port in it that may be switched at any moment, as ``FILE#server:srv1``."""


@pytest.fixture(scope="module")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PowerBoxes]:
    with power_boxes(tmp_path_factory.mktemp("boxes")) as boxes:
        yield boxes


def redfish(boxes: PowerBoxes, stack: ExitStack) -> PowerPort:
    return RedfishPowerPort(stack.enter_context(boxes.redfish()))


def redfish_outlet(boxes: PowerBoxes, stack: ExitStack) -> PowerPort:
    return RedfishOutlet(stack.enter_context(boxes.redfish(pdu=True)), FEEDING)


def ipmi(boxes: PowerBoxes, _stack: ExitStack) -> PowerPort:
    return IpmiPowerPort(boxes.ipmitool())


def apc(boxes: PowerBoxes, _stack: ExitStack) -> PowerPort:
    return ApcOutlet(boxes.agent(boxes.apc), FEEDING)


def apc_by_version_3(boxes: PowerBoxes, _stack: ExitStack) -> PowerPort:
    return ApcOutlet(boxes.agent(boxes.apc, user=USER), FEEDING)


def cyberpower(boxes: PowerBoxes, _stack: ExitStack) -> PowerPort:
    return CyberPowerOutlet(boxes.agent(boxes.cyberpower), FEEDING)


def real(_boxes: PowerBoxes, stack: ExitStack) -> PowerPort:
    file, _, name = os.environ.get(REAL_POWER, "").partition("#")
    if not name:
        pytest.skip(f"no real power to switch: set {REAL_POWER} to FILE#PORT, such as racks/mine.yaml#server:srv1")
    rack = RackPower(load_lab(file), CLOCK)
    stack.callback(rack.close)
    return rack.ports[name]


@pytest.mark.parametrize("clause", power_port.CONTRACT, ids=lambda clause: clause.__name__)
@pytest.mark.parametrize("driver", [redfish, redfish_outlet, ipmi, apc, apc_by_version_3, cyberpower, real])
def test_power_port(
    clause: Callable[[power_port.PowerPortFactory], None],
    driver: Callable[[PowerBoxes, ExitStack], PowerPort],
    boxes: PowerBoxes,
    stack: ExitStack,
) -> None:
    clause(lambda: driver(boxes, stack))


def redfish_log(boxes: PowerBoxes, stack: ExitStack) -> SystemEventLog:
    return RedfishEventLog(stack.enter_context(boxes.redfish()))


def ipmi_log(boxes: PowerBoxes, _stack: ExitStack) -> SystemEventLog:
    return IpmiEventLog(boxes.ipmitool())


@pytest.mark.parametrize("clause", system_event_log.CONTRACT, ids=lambda clause: clause.__name__)
@pytest.mark.parametrize(("log", "power"), [(redfish_log, redfish), (ipmi_log, ipmi)], ids=["redfish", "ipmi"])
def test_event_log(
    clause: Callable[[EventLogArm], None],
    log: Callable[[PowerBoxes, ExitStack], SystemEventLog],
    power: Callable[[PowerBoxes, ExitStack], PowerPort],
    boxes: PowerBoxes,
    stack: ExitStack,
) -> None:
    def cycle() -> None:
        port = power(boxes, stack)
        port.turn_off(soon())
        port.turn_on(soon())

    clause(EventLogArm(make=lambda: log(boxes, stack), provoke=cycle))


def redfish_interrupt(boxes: PowerBoxes, stack: ExitStack) -> DiagnosticInterrupt:
    return RedfishInterrupt(stack.enter_context(boxes.redfish()))


def ipmi_interrupt(boxes: PowerBoxes, _stack: ExitStack) -> DiagnosticInterrupt:
    return IpmiInterrupt(boxes.ipmitool())


@pytest.mark.parametrize("driver", [redfish_interrupt, ipmi_interrupt])
def test_an_interrupt_reaches_a_server_with_power_alone(
    driver: Callable[[PowerBoxes, ExitStack], DiagnosticInterrupt], boxes: PowerBoxes, stack: ExitStack
) -> None:
    interrupts: list[EventKind] = []
    boxes.loop.call(lambda: setattr(boxes.chassis, "on_interrupt", lambda: interrupts.append(EventKind.INTERRUPT)))
    interrupt = driver(boxes, stack)
    interrupt.require_possible(soon())
    assert interrupts == []
    interrupt.interrupt(soon())
    assert len(interrupts) == 1
    with pytest.raises(DeadlineExceeded):
        interrupt.interrupt(Deadline.after(CLOCK, 0))
    boxes.loop.run(boxes.chassis.turn_off())
    try:
        with pytest.raises(LabError, match="has no power, and takes no NMI"):
            interrupt.require_possible(soon())
        with pytest.raises(LabError, match="has no power, and takes no NMI"):
            interrupt.interrupt(soon())
    finally:
        boxes.loop.run(boxes.chassis.turn_on())
    assert len(interrupts) == 1
