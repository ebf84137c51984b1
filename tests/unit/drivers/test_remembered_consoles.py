"""Consoles of Redfish controllers are found again without the controller being asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rackloop.clock import Deadline
from rackloop.errors import HostKeyMismatch, LoginRefused, NotConnected, RackloopError
from rackloop.lab import FileSecret, Secret
from rackloop_drivers.boxes import ConsoleOpening, Login
from rackloop_drivers.power.redfish import (
    RedfishBmcDriver,
    RedfishConsole,
    RedfishConsoleDriver,
    RedfishService,
)
from rackloop_drivers.remembered import Remembered
from tests.deadlines import soon
from tests.unit.harness.set_clock import SetClock

CLOCK = SetClock()
URL = "https://bmc1.example"
DAY_S = 86400.0
OFFERED = {"ServiceEnabled": True, "Port": 2200, "SharedWithManagerCLI": True, "ConsoleEntryCommand": "host-console"}


class Controller(RedfishService):
    """A service that has one system, and counts how often it is asked for it."""

    def __init__(self, url: str = URL, verify: Path | bool = True, **offered: Any) -> None:
        super().__init__(url, Login(url, "operator", FileSecret(Path("no.password"))), verify=verify)
        self.offered = {**OFFERED, **offered}
        self.asked = 0

    def get(self, path: str, deadline: Deadline) -> Mapping[str, Any]:
        system = {"@odata.id": "/one"}
        if path == system["@odata.id"]:
            self.asked += 1
            return {**system, "SerialConsole": {"SSH": self.offered}}
        return {"@odata.id": path, "Systems": {"@odata.id": "/all"}, "Members": [system]}


class Typed:
    """A stream that says nothing, and is lost when ``lose`` is called."""

    def __init__(self) -> None:
        self.typed = b""
        self.is_lost = False

    def read(self, timeout_s: float) -> bytes:
        if self.is_lost:
            raise NotConnected("the connection was lost")
        return b""

    def write(self, data: bytes, deadline: Deadline) -> None:
        self.typed += data

    def wake(self) -> None:
        pass

    def close(self) -> None:
        pass


class Shells:
    """Opens shells at ports, or fails there as ``wrong`` has it; keeps which were asked for."""

    def __init__(self, **wrong: RackloopError) -> None:
        self.wrong = wrong
        self.asked: list[tuple[str, int]] = []
        self.streams: list[Typed] = []

    def __call__(self, host: str, port: int, deadline: Deadline) -> Typed:
        assert not deadline.is_over()
        self.asked.append((host, port))
        if (error := self.wrong.get(f"at{port}")) is not None:
            raise error
        self.streams.append(Typed())
        return self.streams[-1]


@pytest.fixture
def remembered(tmp_path: Path) -> Remembered:
    return Remembered(tmp_path / "consoles.json", CLOCK, DAY_S)


def opened(controller: Controller, shells: Shells, remembered: Remembered) -> RedfishConsole:
    console = RedfishConsole(controller, shells, CLOCK, remembered)
    console.open(soon(clock=CLOCK))
    return console


def test_the_next_run_asks_no_controller(tmp_path: Path, remembered: Remembered) -> None:
    opened(Controller(), Shells(), remembered)
    again, shells = Controller(), Shells()
    opened(again, shells, Remembered(tmp_path / "consoles.json", CLOCK, DAY_S))
    assert again.asked == 0
    assert shells.asked == [("bmc1.example", 2200)]
    assert shells.streams[0].typed == b"host-console\r"


@pytest.mark.parametrize("error", [NotConnected("refused"), HostKeyMismatch("another key")])
def test_a_place_that_leads_to_no_console_is_asked_for_anew(error: RackloopError, remembered: Remembered) -> None:
    opened(Controller(), Shells(), remembered)
    moved, shells = Controller(Port=2201), Shells(at2200=error)
    opened(moved, shells, remembered)
    assert (moved.asked, shells.asked) == (1, [("bmc1.example", 2200), ("bmc1.example", 2201)])
    after = Controller()
    opened(after, Shells(at2200=error), remembered)
    assert after.asked == 0


def test_a_refused_account_is_tried_once_and_the_place_is_forgotten(remembered: Remembered) -> None:
    opened(Controller(), Shells(), remembered)
    moved, shells = Controller(Port=2201), Shells(at2200=LoginRefused("not here"))
    with pytest.raises(LoginRefused):
        opened(moved, shells, remembered)
    assert (moved.asked, len(shells.asked)) == (0, 1)
    opened(moved, shells, remembered)
    assert moved.asked == 1


def test_an_account_that_redfish_refused_is_not_shown_to_ssh(tmp_path: Path, remembered: Remembered) -> None:
    password = tmp_path / "bmc.password"
    password.write_text("right horse")
    known = {"address": URL, "user": "operator", "password": FileSecret(password)}
    bmc = RedfishBmcDriver(driver="redfish").model_copy(update=known)
    driver = RedfishConsoleDriver(driver="redfish").at({"known_hosts": str(tmp_path / "known_hosts")})
    remembered.keep(Controller().trusted_as, [2200, ""])
    asked: list[int] = []

    def shell(host: str, port: int, user: str, password: Secret | None, known_hosts: Path, deadline: Deadline) -> Typed:
        assert (host, user, password) == ("bmc1.example", "operator", bmc.password)
        assert known_hosts == tmp_path / "known_hosts"
        assert not deadline.is_over()
        asked.append(port)
        return Typed()

    with ExitStack() as stack:
        opening = ConsoleOpening(CLOCK, stack, bmc, shell, remembered)
        console = driver.open(opening)
        console.open(soon(clock=CLOCK))
        assert asked == [2200]
        console.close()
        bmc.login().refused("no such password")
        with pytest.raises(LoginRefused, match="not tried again"):
            driver.open(opening).open(soon(clock=CLOCK))
        assert asked == [2200]


def test_a_place_that_led_nowhere_is_not_kept(remembered: Remembered) -> None:
    with pytest.raises(NotConnected):
        opened(Controller(), Shells(at2200=NotConnected("refused")), remembered)
    again = Controller()
    opened(again, Shells(), remembered)
    assert again.asked == 1


def test_a_controller_is_asked_again_when_its_connection_was_lost(remembered: Remembered) -> None:
    opened(Controller(), Shells(), remembered)
    controller, shells = Controller(), Shells()
    console = opened(controller, shells, remembered)
    shells.streams[0].is_lost = True
    with pytest.raises(NotConnected):
        console.read(soon(clock=CLOCK))
    console.open(soon(clock=CLOCK))
    assert controller.asked == 1


@pytest.mark.parametrize(
    "other", [Controller("https://bmc2.example"), Controller(verify=False), Controller(verify=Path("other-ca.pem"))]
)
def test_another_address_or_authority_is_another_controller(other: Controller, remembered: Remembered) -> None:
    opened(Controller(), Shells(), remembered)
    opened(other, Shells(), remembered)
    assert other.asked == 1


def test_a_place_is_kept_for_a_day(tmp_path: Path) -> None:
    clock = SetClock()
    remembered = Remembered(tmp_path / "consoles.json", clock, DAY_S)
    opened(Controller(), Shells(), remembered)
    for set_by, asked in ((timedelta(hours=23), 0), (timedelta(hours=25), 1), (timedelta(0), 1)):
        clock.set_by = set_by
        controller = Controller()
        opened(controller, Shells(), remembered)
        assert controller.asked == asked, set_by


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "[]",
        '{"NAME": 7}',
        '{"NAME": {"at_s": "soon", "answer": [2222, ""]}}',
        '{"NAME": {"at_s": NOW, "answer": ["2222", ""]}}',
        '{"NAME": {"at_s": NOW, "answer": [2222, "reset\\r"]}}',
        '{"NAME": {"at_s": NOW, "answer": {"host": "elsewhere.example", "port": 2222}}}',
    ],
)
def test_a_file_that_is_damaged_tells_nothing(damage: str, tmp_path: Path) -> None:
    controller, shells = Controller(), Shells()
    now_s = str(CLOCK.wall().timestamp())
    text = damage.replace("NAME", controller.trusted_as).replace("NOW", now_s)
    (tmp_path / "consoles.json").write_text(text)
    opened(controller, shells, Remembered(tmp_path / "consoles.json", CLOCK, DAY_S))
    assert (controller.asked, shells.asked) == (1, [("bmc1.example", 2200)])


def test_the_file_is_its_owners_and_has_no_old_answers(tmp_path: Path) -> None:
    clock = SetClock()
    file = tmp_path / "consoles.json"
    remembered = Remembered(file, clock, DAY_S)
    opened(Controller(), Shells(), remembered)
    clock.set_by = timedelta(hours=25)
    opened(Controller("https://bmc2.example"), Shells(), remembered)
    assert [*json.loads(file.read_text())] == ["https://bmc2.example, verified by a public authority"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert [*tmp_path.iterdir()] == [file]


def test_a_directory_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    remembered = Remembered(tmp_path / "gone" / "consoles.json", CLOCK, DAY_S)
    for _ in range(2):
        controller = Controller()
        opened(controller, Shells(), remembered)
        assert controller.asked == 1
