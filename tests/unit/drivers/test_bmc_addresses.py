"""The places that the address of a management controller stands for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rackloop.clock import Deadline, VirtualClock
from rackloop.lab import Secret
from rackloop_drivers.boxes import BmcDriver, ConsoleOpening, Opening
from rackloop_drivers.power.ipmi import IpmiBmcDriver, IpmiConsoleDriver
from rackloop_drivers.power.redfish import RedfishBmcDriver
from rackloop_drivers.remembered import Remembered
from rackloop_drivers.stream_console import Stream

CLOCK = VirtualClock()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def no_shell(host: str, port: int, user: str, password: Secret | None, known_hosts: Path, deadline: Deadline) -> Stream:
    raise AssertionError


def ipmi_console(bmc: BmcDriver, stack: ExitStack, folder: Path, address: str | None = None) -> str:
    remembered = Remembered(folder / "consoles.json", CLOCK, 60.0)
    driver = IpmiConsoleDriver(driver="ipmi").model_copy(update={"address": address})
    return driver.open(ConsoleOpening(CLOCK, stack, bmc, no_shell, remembered)).where


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("bmc1", "https://bmc1"),
        ("bmc1:8443", "https://bmc1:8443"),
        ("2001:db8::7", "https://[2001:db8::7]"),
        ("[2001:db8::7]:8443", "https://[2001:db8::7]:8443"),
        ("https://bmc1:8443/", "https://bmc1:8443"),
    ],
)
def test_a_redfish_service_is_at_its_address(address: str, url: str, stack: ExitStack) -> None:
    bmc = RedfishBmcDriver(driver="redfish").model_copy(update={"address": address, "verify": False})
    assert bmc.service(Opening(CLOCK, stack)).url == url


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("bmc1", "bmc1"),
        ("bmc1:8443", "bmc1"),
        ("https://bmc1:8443", "bmc1"),
        ("2001:db8::7", "2001:db8::7"),
        ("[2001:db8::7]:8443", "2001:db8::7"),
    ],
)
def test_ipmi_is_at_the_host_of_a_redfish_service_and_not_at_its_port(
    address: str, host: str, stack: ExitStack, tmp_path: Path
) -> None:
    bmc = RedfishBmcDriver(driver="redfish").model_copy(update={"address": address})
    assert ipmi_console(bmc, stack, tmp_path) == f"serial over LAN at {host}"
    assert ipmi_console(bmc, stack, tmp_path, "console1:6230") == "serial over LAN at console1:6230"


def test_a_console_by_ipmi_is_at_the_port_of_an_ipmi_controller(stack: ExitStack, tmp_path: Path) -> None:
    bmc = IpmiBmcDriver(driver="ipmi").model_copy(update={"address": "bmc1:6230"})
    assert ipmi_console(bmc, stack, tmp_path) == "serial over LAN at bmc1:6230"
