"""What ipmitool says becomes one error of ours, and an account is given up only where the account was refused."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from pathlib import Path

import pytest

from rackloop.clock import Deadline, RealClock
from rackloop.errors import DeadlineExceeded, LabError, LoginRefused, NotConnected
from rackloop.lab import FileSecret, Secret
from rackloop_drivers.boxes import ConsoleOpening, Login
from rackloop_drivers.power.ipmi import IpmiBmcDriver, IpmiConsoleDriver, Ipmitool
from rackloop_drivers.remembered import Remembered
from rackloop_drivers.stream_console import Stream

LOST = "Error: Unable to establish IPMI v2 / RMCP+ session"


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the ipmitool on PATH writes to standard error; it appends its command line to ``argv`` beside it."""
    said = tmp_path / "said"
    program = tmp_path / "ipmitool"
    lines = (f'echo "$@" >> {shlex.quote(str(tmp_path / "argv"))}', f"/bin/cat {shlex.quote(str(said))} >&2", "exit 1")
    program.write_text("\n".join(("#!/bin/sh", *lines, "")))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    return said


def no_shell(host: str, port: int, user: str, password: Secret | None, known_hosts: Path, deadline: Deadline) -> Stream:
    raise AssertionError


def ipmitool(folder: Path) -> Ipmitool:
    (folder / "password").write_text("right horse")
    return Ipmitool("bmc1:6230", Login("bmc1", "operator", FileSecret(folder / "password")))


@pytest.mark.parametrize(
    ("text", "kind", "match", "is_final"),
    [
        ("> RAKP 2 HMAC is invalid", LoginRefused, "RAKP 2 HMAC is invalid", True),
        ("RAKP 2 message indicates an error : unauthorized name", LoginRefused, "unauthorized name", True),
        ("RAKP 2 message indicates an error : insufficient resources for session", LabError, "no session", False),
        ("Error in open session response message : no matching cipher suite", LabError, "cipher suite 17", False),
        ("Get Auth Capabilities error", NotConnected, "nothing answers", False),
        ("Could not open socket!", NotConnected, "nothing answers", False),
        ("Set Session Privilege Level to OPERATOR failed", DeadlineExceeded, "hung", False),
        ("Set Session Privilege Level to OPERATOR failed: Unknown (0x81)", LoginRefused, "0x81", True),
        ("the moon is full", LabError, "Unable to establish", False),
    ],
)
def test_what_it_says(text: str, kind: type[LabError], match: str, is_final: bool, said: Path) -> None:
    said.write_text(f"Loading IANA PEN Registry...\n{text}\n{LOST}\n")
    tool = ipmitool(said.parent)
    for _ in range(2):
        with pytest.raises(LabError, match=match) as caught:
            tool.run("chassis", "power", "status", deadline=Deadline.after(RealClock(), 30))
        assert type(caught.value) is kind
    runs = (said.parent / "argv").read_text().splitlines()
    assert len(runs) == (1 if is_final else 2)


def test_the_password_is_not_on_the_command_line(said: Path) -> None:
    said.write_text(LOST)
    with pytest.raises(LabError):
        ipmitool(said.parent).run("mc", "info", deadline=Deadline.after(RealClock(), 30))
    (argv,) = (said.parent / "argv").read_text().splitlines()
    assert "-H bmc1 -p 6230 -U operator -E" in argv
    assert "horse" not in argv


@pytest.mark.parametrize(
    ("of_the_console", "used"), [(None, 3), (0, 0), (17, 17)], ids=["that of the bmc", "zero", "another"]
)
def test_a_console_logs_in_with_the_cipher_suite_it_is_given(of_the_console: int | None, used: int, said: Path) -> None:
    said.write_text(f"Error in open session response message : no matching cipher suite\n{LOST}\n")
    (said.parent / "password").write_text("right horse")
    login = {"address": "bmc1", "user": "operator", "password": FileSecret(said.parent / "password")}
    bmc = IpmiBmcDriver(driver="ipmi").model_copy(update={**login, "cipher_suite": 3})
    driver = IpmiConsoleDriver(driver="ipmi").model_copy(update={"cipher_suite": of_the_console})
    clock = RealClock()
    with ExitStack() as stack:
        remembered = Remembered(said.parent / "consoles.json", clock, 60.0)
        console = driver.open(ConsoleOpening(clock, stack, bmc, no_shell, remembered))
        with pytest.raises(LabError, match=f"the controller has no cipher suite {used};"):
            console.open(Deadline.after(clock, 30))
