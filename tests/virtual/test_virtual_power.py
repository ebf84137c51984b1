"""The power of a guest, by the boxes that a rack has: each off and on is one of a machine, which boots anew.

The tests are of one rack with one guest, and in order: each finds it as the one before left it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rackloop.contracts import power_port
from rackloop.lab import Lab, LabState, load_lab
from rackloop_labs.power_ports import RackPower
from rackloop_labs.virtual import VirtualLab
from tests.deadlines import CLOCK, soon
from tests.e2e.command_line import CommandLine
from tests.virtual.guest_login import answers, tell
from tests.virtual.one_guest import SERVER, WITHIN_S, boot_of, console

# Each clause boots a guest, which takes a minute or more.
pytestmark = pytest.mark.nightly

OUTLET = "outlet:pdu1/1"


@pytest.fixture(scope="module")
def power(one: CommandLine, file: Path) -> Iterator[RackPower]:
    lab = load_lab(file)
    power = RackPower(VirtualLab(lab, CLOCK, LabState(one.state_home / "labs" / lab.name)).described(), CLOCK)
    yield power
    power.close()


def test_a_guest_without_power_does_not_run_and_its_lab_is_up(one: CommandLine, file: Path, power: RackPower) -> None:
    before = boot_of(one, file)
    ended = one("power", file, "off", SERVER)
    assert ended.status == 0, ended
    assert not power.ports[f"server:{SERVER}"].is_on(soon())
    assert not answers(one, file, SERVER)
    assert one.endpoints(str(file))["up"]
    # A guest without power is not asked to let go: the drive is out of one slot and in the other at once.
    assert one("fabric", file, "map", f"{SERVER}.p2=d01").status == 0
    healed = one("power", file, "on", SERVER)
    assert healed.status == 0, healed
    assert boot_of(one, file) != before


def test_it_has_booted_with_its_own_name_and_the_drives_of_then(one: CommandLine, file: Path, lab: Lab) -> None:
    assert tell(one, file, SERVER, "hostname").strip() == SERVER
    paths = one.endpoints(str(file))["servers"][SERVER]["paths"]
    seen = tell(one, file, SERVER, "grep -H . /sys/class/nvme/nvme*/address; cat /sys/class/nvme/nvme*/serial")
    assert paths["p2"].removeprefix("pci-") in seen
    assert paths["p0"].removeprefix("pci-") not in seen
    assert all(drive.serial in seen for drive in lab.drives.values())
    skew_s = CLOCK.wall().timestamp() - float(tell(one, file, SERVER, "date +%s.%N"))
    assert abs(skew_s) < 60


def test_it_is_healed(one: CommandLine, file: Path) -> None:
    healed = one("heal", file)
    assert healed.status == 0, healed


@pytest.fixture(scope="module")
def lab(file: Path) -> Lab:
    return load_lab(file)


# Whichever box is asked, it is one machine that is switched.
_CLAUSES = [(port, clause) for port in (f"server:{SERVER}", OUTLET) for clause in power_port.CONTRACT]


@pytest.mark.parametrize(("port", "clause"), _CLAUSES)
def test_its_boxes_keep_the_contract_of_power(
    port: str, clause: Callable[[power_port.PowerPortFactory], None], power: RackPower
) -> None:
    clause(lambda: power.ports[port])


def test_a_guest_that_turns_itself_off_is_off_until_it_is_healed(
    one: CommandLine, file: Path, power: RackPower
) -> None:
    before, port = boot_of(one, file), power.ports[f"server:{SERVER}"]
    tell(one, file, SERVER, "systemctl poweroff")
    assert soon(WITHIN_S).poll(lambda: not port.is_on(soon()), every_s=1.0), console(one, file)[-500:]
    assert one.endpoints(str(file))["up"]
    told = one("heal", file)
    assert (told.status, f"server:{SERVER}" in told.out) == (3, True), told
    assert one("power", file, "on", SERVER).status == 0
    assert boot_of(one, file) != before
