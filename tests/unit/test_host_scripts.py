"""The scripts that run on servers, on a made-up /sys: which drive a path means, which tool a PHY needs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.meta.tree import ROOT

DRIVERS = ROOT / "drivers" / "rackloop_drivers"


def run(script: Path, folder: Path, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script with ``folder`` in front of every path of the machine, and first on PATH for its tools."""
    text = script.read_text(encoding="utf-8")
    for top in ("/sys/", "/dev/disk/", "/run/"):
        text = text.replace(top, f"{folder}{top}")
    environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}"}
    given = [text, *arguments] if name == "phy" else list(arguments)
    return subprocess.run(
        ["sh", "-c", text, name, *given], capture_output=True, text=True, env=environment, timeout=60, check=False
    )


def drive(folder: Path, name: str, by_path: str) -> None:
    device = folder / "sys/devices" / name / "0:0:0:0"
    for made in (device, folder / "sys/block" / name, folder / "dev/disk/by-path"):
        made.mkdir(parents=True, exist_ok=True)
    (folder / "sys/block" / name / "device").symlink_to(device)
    (folder / "dev/disk/by-path" / by_path).symlink_to(f"../../{name}")


@pytest.fixture
def server(tmp_path: Path) -> Path:
    drive(tmp_path, "sda", "pci-0000:00:17.0-ata-10")
    drive(tmp_path, "sdb", "pci-0000:00:17.0-ata-1")
    (tmp_path / "dev/disk/by-path/pci-0000:00:17.0-ata-1-part1").symlink_to("../../sdb1")
    return tmp_path


@pytest.mark.parametrize(("path", "name"), [("ata-1", "sdb"), ("ata-10", "sda")])
def test_a_path_means_its_own_drive_alone(server: Path, path: str, name: str) -> None:
    """Taking away the drive of port 10 for that of port 1 would be taking away somebody's data."""
    found = run(DRIVERS / "slot/slot.sh", server, "slot", "locate", f"pci-0000:00:17.0-{path}", "1")
    assert found.stdout.splitlines()[0] == f"name {name}"


def test_a_drive_is_gone_while_that_of_port_10_is_there(server: Path) -> None:
    for link in (server / "dev/disk/by-path").glob("*-ata-1*"):
        if "ata-10" not in link.name:
            link.unlink()
    assert run(DRIVERS / "slot/slot.sh", server, "slot", "locate", "pci-0000:00:17.0-ata-1", "1").returncode == 4
    gone = run(DRIVERS / "slot/slot.sh", server, "slot", "await", "gone", "pci-0000:00:17.0-ata-1", "1")
    assert gone.returncode == 0


SMP = """#!/bin/sh
echo "${0##*/} $*" >>"$(dirname "$0")/../asked"
state="$(dirname "$0")/../state"
case "$*" in
*--op=dis*) echo 1 >"$state" ;;
*--op=*) echo 10 >"$state" ;;
*--list*) echo "  neg_log_lrate=$(cat "$state")" ;;
esac
"""


@pytest.mark.parametrize(
    ("phy", "device"), [("phy-2:3", "--phy=3 {} /dev/bsg/sas_host2"), ("phy-2:0:7", "--phy=7 {} /dev/bsg/expander-2:0")]
)
def test_a_phy_that_sysfs_does_not_switch_is_told_by_smp(tmp_path: Path, phy: str, device: str) -> None:
    folder = tmp_path / "sys/class/sas_phy" / phy
    for made in (folder, tmp_path / "bin"):
        made.mkdir(parents=True)
    (tmp_path / "state").write_text("10\n")
    for tool in ("smp_phy_control", "smp_discover"):
        (tmp_path / "bin" / tool).write_text(SMP)
        (tmp_path / "bin" / tool).chmod(0o755)
    for what in (("disable", phy), ("enable", phy), ("reset", "link", phy), ("reset", "hard", phy)):
        done = run(DRIVERS / "phy/phy.sh", tmp_path, "phy", "sysfs", *what)
        assert done.returncode == 0, done.stderr
    asked = (tmp_path / "asked").read_text().splitlines()
    controls = [line for line in asked if line.startswith("smp_phy_control")]
    assert controls == [f"smp_phy_control {device.format(f'--op={op}')}" for op in ("dis", "lr", "lr", "hr")]
    assert (tmp_path / "state").read_text() == "10\n"


def test_a_phy_that_does_not_follow_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "sys/class/sas_phy/phy-0:0"
    folder.mkdir(parents=True)
    (folder / "enable").write_text("1\n")
    (folder / "negotiated_linkrate").write_text("6.0 Gbit\n")
    text = (DRIVERS / "phy/phy.sh").read_text(encoding="utf-8")
    script = tmp_path / "phy.sh"
    script.write_text(text.replace("most_tries=500", "most_tries=2"))
    done = run(script, tmp_path, "phy", "sysfs", "disable", "phy-0:0")
    assert (done.returncode, done.stderr) == (3, "phy-0:0 does not follow: it reads 6.0 Gbit\n")


def test_a_server_without_smp_utils_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "sys/class/sas_phy/phy-0:0").mkdir(parents=True)
    script = tmp_path / "phy.sh"
    text = (DRIVERS / "phy/phy.sh").read_text(encoding="utf-8")
    script.write_text(text.replace("smp_phy_control", "no_such_program"))
    assert run(script, tmp_path, "phy", "sysfs", "disable", "phy-0:0").returncode == 5
