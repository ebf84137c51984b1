"""The PHYs that lead to an expander are taken away together, and by no path that means less than all of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rackloop.abilities import Completed, PortState
from rackloop.clock import Deadline
from rackloop.errors import LabError, NotSupported
from rackloop_drivers.phy import HostPhy, HostPhys, PhySwitchedOff, list_phys
from tests.deadlines import soon
from tests.unit.drivers.test_host_scripts import DRIVERS
from tests.unit.models.run_only_executor import RunOnlyExecutor

FIRST, SECOND = "0x500304801234567f", "0x50030480aaaaaaaa"
HBA = "sys/devices/pci0000:3a/0000:3b:00.0/host0"
PATH = f"pci-0000:3b:00.0-sas-exp{FIRST}"
WIDE = [f"phy-0:{number}" for number in range(4)]


class SasServer(RunOnlyExecutor):
    """A server by its /sys in a folder: an HBA of eight PHYs, of which four lead to an expander and one to another."""

    name = "srv1"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for number in range(8):
            self._add_phy(f"phy-0:{number}", f"{HBA}/phy-0:{number}")
        self.join(FIRST, 0, WIDE)
        self.join(SECOND, 1, ["phy-0:4"])
        self._add_phy("phy-0:0:7", f"{HBA}/port-0:0/expander-0:0/phy-0:0:7")

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        text = (DRIVERS / "phy/phy.sh").read_text(encoding="utf-8").replace("most_tries=500", "most_tries=1")
        for top in ("/sys/", "/run/"):
            text = text.replace(top, f"{self._folder}{top}")
        done = subprocess.run(
            ["sh", "-c", text, "phy", text, *argv[5:]],
            input=stdin,
            capture_output=True,
            text=True,
            env=dict(os.environ),
            timeout=deadline.remaining_s(),
            check=False,
        )
        return Completed(tuple(argv), done.returncode, done.stdout, done.stderr)

    def join(self, address: str, number: int, phys: Sequence[str]) -> None:
        """Have PHYs make a port that leads to an expander."""
        expander = self._folder / HBA / f"port-0:{number}" / f"expander-0:{number}/sas_device/expander-0:{number}"
        expander.mkdir(parents=True)
        (expander / "sas_address").write_text(f"{address}\n")
        entry = self._folder / "sys/class/sas_device" / expander.name
        entry.parent.mkdir(exist_ok=True)
        entry.symlink_to(expander)
        for phy in phys:
            (self._folder / HBA / phy / "port").symlink_to(f"../port-0:{number}")
            (self._folder / HBA / f"port-0:{number}" / phy).symlink_to(f"../{phy}")

    def lose_port(self, number: int) -> None:
        """Have the kernel forget a port whose PHYs have no link any more."""
        (self._folder / "sys/class/sas_device" / f"expander-0:{number}").unlink()
        for phy in (self._folder / HBA / f"port-0:{number}").glob("phy-*"):
            (self._folder / HBA / phy.name / "port").unlink()
            phy.unlink()

    def lose_count(self, phy: str) -> None:
        """Have the kernel refuse to say how often a PHY lost its signal."""
        (self._folder / "sys/class/sas_phy" / phy / "loss_of_dword_sync_count").unlink()

    def read(self, phy: str, attribute: str) -> str:
        return (self._folder / "sys/class/sas_phy" / phy / attribute).read_text().strip()

    def write(self, phy: str, **attributes: str) -> None:
        for name, value in attributes.items():
            (self._folder / "sys/class/sas_phy" / phy / name).write_text(f"{value}\n")

    def _add_phy(self, name: str, place: str) -> None:
        phy = self._folder / place / "sas_phy" / name
        phy.mkdir(parents=True)
        entry = self._folder / "sys/class/sas_phy" / name
        entry.parent.mkdir(parents=True, exist_ok=True)
        entry.symlink_to(phy)
        self.write(name, phy_identifier="0", loss_of_dword_sync_count="3", negotiated_linkrate="12.0 Gbit", enable="1")

    def read_file(self, path: str, deadline: Deadline) -> bytes:
        raise NotImplementedError

    def write_file(self, path: str, content: bytes, deadline: Deadline, *, mode: int = 0o600) -> None:
        raise NotImplementedError

    def give_up(self) -> None:
        raise NotImplementedError

    def reconnect(self, deadline: Deadline) -> int:
        raise NotImplementedError


@pytest.fixture
def server(tmp_path: Path) -> SasServer:
    return SasServer(tmp_path)


def found(server: SasServer, path: str) -> list[str]:
    return [phy.name for phy in HostPhy(server, path).among(list_phys(server, soon()))]


def test_a_path_to_an_expander_means_the_phys_that_lead_there(server: SasServer) -> None:
    assert found(server, PATH) == WIDE
    assert found(server, f"pci-0000:3b:00.0-sas-exp{SECOND}") == ["phy-0:4"]
    assert found(server, "pci-0000:3b:00.0-sas-phy6") == ["phy-0:6"]


def test_an_expander_that_went_with_its_phys_is_found_again(server: SasServer) -> None:
    off = PhySwitchedOff(HostPhy(server, PATH), {})
    note = off.prepare({"kind": "disabled"}, soon())
    assert note == {"phys": WIDE}
    # The made-up kernel follows before it is told: nothing of it acts by itself.
    for phy in WIDE:
        server.write(phy, negotiated_linkrate="Phy disabled")
    off.start(note, soon())
    server.lose_port(0)
    assert [server.read(phy, "enable") for phy in [*WIDE, "phy-0:4"]] == ["0", "0", "0", "0", "1"]
    assert found(server, PATH) == WIDE
    assert off.stands(note, soon())
    phys = HostPhys({1: HostPhy(server, PATH)})
    assert phys.port_states([1], soon()) == {1: PortState.DOWN}
    for phy in WIDE[1:]:
        server.write(phy, negotiated_linkrate="12.0 Gbit")
    assert phys.port_states([1], soon()) == {1: PortState.TRAIN}
    server.write(WIDE[0], negotiated_linkrate="12.0 Gbit")
    assert not off.stands(note, soon())


def test_a_wide_port_lost_its_signal_as_often_as_all_its_phys_did(server: SasServer) -> None:
    phys = HostPhys({1: HostPhy(server, PATH)})
    server.write(WIDE[0], loss_of_dword_sync_count="9")
    assert phys.drop_counts([1], soon()) == {1: 3}
    for phy in WIDE:
        server.write(phy, loss_of_dword_sync_count=str(int(server.read(phy, "loss_of_dword_sync_count")) + 1))
    assert phys.drop_counts([1], soon()) == {1: 4}


def test_a_phy_that_does_not_count_is_given_its_signal_back(server: SasServer) -> None:
    """As while its adapter is reset; and an expander's own PHYs may go while they are looked at."""
    off = PhySwitchedOff(HostPhy(server, PATH), {})
    note = off.prepare({"kind": "disabled"}, soon())
    for phy in WIDE:
        server.write(phy, negotiated_linkrate="Phy disabled")
    off.start(note, soon())
    server.lose_count(WIDE[1])
    server.lose_count("phy-0:0:7")
    phys = HostPhys({1: HostPhy(server, PATH), 2: HostPhy(server, "pci-0000:3b:00.0-sas-phy6")})
    with pytest.raises(LabError, match=r"does not say how often phy-0:1 lost its signal"):
        phys.drop_counts([1], soon())
    assert phys.drop_counts([2], soon()) == {2: 3}
    assert off.stands(note, soon())
    phys.restore([2], soon())
    for phy in WIDE:
        server.write(phy, negotiated_linkrate="12.0 Gbit")
    assert not off.stands(note, soon())


def test_an_expander_that_is_not_there_is_the_racks_fault(server: SasServer) -> None:
    with pytest.raises(LabError, match="no PHY leads there now; has the expander power"):
        found(server, "pci-0000:3b:00.0-sas-exp0x5003048000000000")


def test_a_driver_that_names_no_ports_cannot_take_an_expander_away(server: SasServer) -> None:
    phys = [replace(phy, expanders=None) for phy in list_phys(server, soon())]
    with pytest.raises(NotSupported, match="does not say which of the HBA's PHYs lead to that expander"):
        HostPhy(server, PATH).among(phys)
    (alone, *_) = phys
    assert HostPhy(server, PATH).among([alone]) == [alone]


def test_a_place_inside_an_expander_does_not_take_all_of_it_away(server: SasServer) -> None:
    with pytest.raises(NotSupported, match="inside an expander"):
        found(server, f"{PATH}-phy5-lun-0")


def test_the_advice_for_one_of_several_phys_helps(server: SasServer) -> None:
    with pytest.raises(LabError, match=r"phy-0:0, .* which of them, as in pci-0000:3b:00\.0-sas-phy0$"):
        found(server, "pci-0000:3b:00.0-sas-0x5000c500d2000004-lun-0")
    assert found(server, "pci-0000:3b:00.0-sas-phy0") == ["phy-0:0"]
