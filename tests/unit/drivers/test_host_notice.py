"""The notice that drives are about to be switched, on a made-up /sys: what is looked at, and for how long."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.deadlines import soon
from tests.meta.tree import ROOT

SCRIPT = ROOT / "drivers" / "rackloop_drivers" / "host_tools" / "notice.sh"
AHCI = "pci-0000:00:17.0-ata-1"
SAS = "pci-0000:3b:00.0-sas-phy0-lun-0"
RAID = "pci-0000:5e:00.0-scsi-0:2:0:0"
NVME = "pci-0000:10:00.0"
VMD = "pci-0000:00:0e.0-pci-10000:01:00.0"


class Server:
    """A folder that stands before every path of a server, and the first on its PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        functions = folder / "sys/bus/pci/devices"
        self.rescan = self._file(folder / "sys/bus/pci/rescan")
        self.bus = self._file(folder / "sys/class/pci_bus/0000:10/rescan")
        # The drive's own, in the domain of the controller, and the one that the controller is on.
        self.vmd = self._file(folder / "sys/class/pci_bus/10000:01/rescan")
        self.root = self._file(folder / "sys/class/pci_bus/0000:00/rescan")
        self.scans = {
            number: self._file(functions / f"0000:00:17.0/ata{number}/host{number}/scsi_host/host{number}/scan")
            for number in (3, 12)
        }
        for number, port in ((3, 1), (12, 10)):
            self._file(functions / f"0000:00:17.0/ata{number}/ata_port/ata{number}/port_no", f"{port}\n")
        self.sas = self._file(functions / "0000:3b:00.0/host6/scsi_host/host6/scan")
        self._file(functions / "0000:3b:00.0/host6/sas_host/host6/uevent")
        self.raid = self._file(functions / "0000:5e:00.0/host7/scsi_host/host7/scan")

    def plug(self, path: str, name: str, diskseq: int) -> None:
        self._file(self.folder / f"sys/block/{name}/diskseq", f"{diskseq}\n")
        self._file(self.folder / "dev" / name)
        link = self.folder / "dev/disk/by-path" / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(f"../../{name}")

    def naps(self, script: str) -> None:
        """What happens at the server while it pauses, in place of the pause; each is noted."""
        sleep = self._file(self.folder / "bin/sleep", f'#!/bin/sh\ncd "{self.folder}"\necho "$1" >>naps\n{script}\n')
        sleep.chmod(0o755)

    @property
    def napped(self) -> list[str]:
        naps = self.folder / "naps"
        return naps.read_text().split() if naps.exists() else []

    @property
    def told(self) -> dict[str, str]:
        """What was written to each file by which the kernel looks for drives that are not of the AHCI controller."""
        files = {
            "rescan": self.rescan,
            "bus": self.bus,
            "vmd": self.vmd,
            "root": self.root,
            "sas": self.sas,
            "raid": self.raid,
        }
        return {name: text for name, file in files.items() if (text := file.read_text())}

    def run(self, what: str, for_s: int, *paths: str, was: str = "") -> subprocess.CompletedProcess[str]:
        text = SCRIPT.read_text(encoding="utf-8")
        for top in ("/sys/", "/dev/disk/"):
            text = text.replace(top, f"{self.folder}{top}")
        environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}", "RACKLOOP_WAS": was}
        argv = ["sh", "-c", text, "notice", text, what, str(for_s), *paths]
        return subprocess.run(argv, capture_output=True, text=True, env=environment, timeout=60, check=False)

    def _file(self, path: Path, text: str = "") -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


@pytest.fixture
def server(tmp_path: Path) -> Server:
    made = Server(tmp_path)
    made.plug(AHCI, "sda", 4)
    made.plug(f"{AHCI}0", "sdb", 5)
    return made


def test_of_an_ahci_controller_the_port_that_is_meant_is_reset_and_no_other(server: Server) -> None:
    assert server.run("watch", 1, AHCI).returncode == 0
    assert (server.scans[3].read_text(), server.scans[12].read_text()) == ("- - -\n", "")
    assert server.told == {}
    assert server.napped == [], "another drive was there at once"


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (RAID, {"raid": "2 0 0\n"}),
        (NVME, {"bus": "1\n"}),
        (VMD, {"vmd": "1\n"}),
        ("pci-0000:20:00.0-nvme-1", {"rescan": "1\n"}),
    ],
)
def test_each_kind_of_controller_is_asked_in_its_own_way(server: Server, path: str, told: dict[str, str]) -> None:
    server.plug(f"{path}-x", "sdc", 9)
    server.run("watch", 1, path)
    assert server.told == told


def test_a_sas_hba_finds_a_drive_by_itself_and_is_not_told_to_find_removed_ones_again(server: Server) -> None:
    server.naps("")
    assert [server.run(what, 1, SAS).returncode for what in ("begin", "watch")] == [0, 0]
    assert server.told == {}


def test_it_is_looked_for_more_and_more_rarely_until_another_drive_is_there(server: Server) -> None:
    server.naps('[ "$(wc -l <naps)" -lt 4 ] || echo 6 >sys/block/sda/diskseq')
    server.run("watch", 10, AHCI, was="4")
    assert server.napped == ["0.020", "0.040", "0.080", "0.160"]


def test_it_is_looked_for_no_longer_than_told(server: Server) -> None:
    server.naps("")
    assert server.run("watch", 10, AHCI, was="4").returncode == 0
    assert sum(map(float, server.napped)) == pytest.approx(10, abs=1.5)
    assert max(map(float, server.napped)) < 1.5


def test_a_port_that_nothing_is_at_is_looked_at_too(server: Server) -> None:
    (server.folder / "dev/disk/by-path" / AHCI).unlink()
    server.naps(f'echo 7 >sys/block/sda/diskseq; ln -s ../../sda "dev/disk/by-path/{AHCI}"')
    server.run("watch", 10, AHCI)
    assert server.napped == ["0.020"]


def test_who_tells_does_not_wait_for_the_drive(server: Server) -> None:
    server.naps("n=0; until [ -e go ] || [ $n -ge 2000 ]; do n=$((n + 1)); /bin/sleep 0.01; done; rm sys/block/sda/*")
    begun = server.run("begin", 1, AHCI)
    assert (begun.returncode, begun.stderr) == (0, "")
    assert soon().poll(lambda: server.napped, every_s=0.01) == ["0.020"]
    assert server.scans[3].read_text() == "- - -\n"
    (server.folder / "go").touch()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to every file")
def test_who_may_not_look_says_so_at_once(server: Server) -> None:
    server.scans[3].chmod(0o444)
    begun = server.run("begin", 10, AHCI)
    assert begun.returncode == 3
    assert begun.stderr.endswith("host3/scan cannot be written\n")
