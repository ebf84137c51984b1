"""The consoles of a mock lab, heard by the drivers that ship: what servers print, and who may type."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rackloop.abilities import Console
from rackloop.errors import LabError
from rackloop_drivers.console import Ser2netConsole, TtyConsole
from rackloop_drivers.power.ipmi import IpmiConsole
from rackloop_drivers.power.redfish import RedfishConsole
from rackloop_labs.consoles import RackConsoles, opened_consoles
from tests.deadlines import CLOCK, soon
from tests.mock_rack import MockRack, running_mock_rack

KINDS = {"srv1": RedfishConsole, "srv2": Ser2netConsole, "srv3": IpmiConsole, "srv4": TtyConsole}


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockRack]:
    with running_mock_rack(tmp_path_factory.mktemp("consoles")) as rack:
        yield rack


@pytest.fixture
def consoles(rack: MockRack) -> Iterator[RackConsoles]:
    with opened_consoles(rack.lab, CLOCK, rack.state) as consoles:
        yield consoles


def listen(console: Console) -> None:
    """Open it, and wait until it answers a key: its box has the line by then."""
    console.open(soon())

    def answered() -> bool:
        console.send(b"\r", soon())
        return console.read(soon(1)) is not None

    assert soon().poll(answered, every_s=0.01)


def hear(console: Console, wanted: bytes) -> bytes:
    """What it says up to ``wanted``."""
    said = b""
    deadline = soon()
    while wanted not in said:
        heard = console.read(deadline)
        assert heard is not None, f"{wanted!r} is not in {said!r}"
        said += heard.data
    return said


@pytest.mark.parametrize("server", KINDS)
def test_a_crash_and_a_boot_are_heard(server: str, rack: MockRack, consoles: RackConsoles) -> None:
    console = consoles.by_server[server]
    assert isinstance(console, KINDS[server])
    listen(console)
    rack.control.crash(server, soon())
    assert b"Kernel panic - not syncing: sysrq triggered crash\r\n" in hear(console, b"---[ end Kernel panic")
    rack.control.boot(server, soon())
    booted = hear(console, f"{server} login: ".encode())
    assert booted.index(b"BIOS") < booted.index(b"Linux version") < booted.index(b"Attached SCSI disk")


def test_a_drive_that_comes_is_heard(rack: MockRack, consoles: RackConsoles) -> None:
    console = consoles.by_server["srv2"]
    listen(console)
    with rack.rackd() as rackd:
        rackd.request("phy_drop", soon(), ports=[5], down_ms=20.0)
    assert b"hard resetting link" in hear(console, b"Attached SCSI disk")


def test_passwords_of_controllers_are_secrets_of_the_rack(rack: MockRack, consoles: RackConsoles) -> None:
    known = {Path(server["bmc"]["password_file"]).read_text() for server in rack.endpoints["servers"].values()}
    assert known <= set(consoles.secrets())


def test_a_lab_that_is_not_up_has_no_consoles(rack: MockRack, tmp_path: Path) -> None:
    state = type(rack.state).of(rack.lab.name, root=tmp_path)
    with pytest.raises(LabError, match="is not up"), opened_consoles(rack.lab, CLOCK, state):
        pass
