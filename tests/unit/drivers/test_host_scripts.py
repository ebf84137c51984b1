"""The scripts that run on servers, on a made-up /sys: which drive a path means, which tool a PHY needs."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rackloop.clock import Deadline
from tests.deadlines import CLOCK
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


def nvme_servers_sysfs(folder: Path, *, is_multipath: bool) -> dict[str, str]:
    """A server with an NVMe drive behind VMD and another whose address ends alike; returns the folder of each part."""
    places = {
        "own": "pci0000:00/0000:00:0e.0/pci10000:00/10000:00:02.0/10000:01:00.0",
        "other": "pci0000:00/0000:00:04.0/0000:01:00.0",
    }
    blocks = {"own": "nvme0c0n1" if is_multipath else "nvme0n1", "other": "nvme1n1"}
    parts: dict[str, str] = {}
    for made in ("sys/block", "sys/bus/pci/devices", "dev/disk/by-path"):
        (folder / made).mkdir(parents=True)
    for number, (part, place) in enumerate(places.items()):
        device, address = folder / "sys/devices" / place, place.rpartition("/")[2]
        block, slot = device / f"nvme/nvme{number}" / blocks[part], folder / f"sys/bus/pci/slots/{number}"
        block.mkdir(parents=True)
        slot.mkdir(parents=True)
        (slot / "address").write_text(address.rpartition(".")[0] + "\n")
        (folder / "sys/block" / block.name).symlink_to(block)
        (block / "device").symlink_to(block.parent)
        (folder / "sys/bus/pci/devices" / address).symlink_to(device)
        parts |= {part: f"{folder}/sys/bus/pci/devices/{address}", f"{part} slot": str(slot)}
    if is_multipath:
        head = folder / "sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1"
        head.mkdir(parents=True)
        (head / "device").symlink_to(head.parent)
        (head.parent / "nvme0").symlink_to(folder / "sys/devices" / places["own"] / "nvme/nvme0")
        (folder / "sys/block/nvme0n1").symlink_to(head)
    (folder / "dev/disk/by-path/pci-0000:00:0e.0-pci-10000:01:00.0-nvme-1").symlink_to("../../nvme0n1")
    return parts


@pytest.mark.parametrize("is_multipath", [False, True])
@pytest.mark.parametrize(
    ("part", "state", "status"),
    [
        ("own", "gone", 3),
        ("own slot", "gone", 3),
        ("other", "gone", 5),
        ("other slot", "gone", 5),
        # Having drives looked for takes none away.
        ("other", "there", 0),
    ],
)
def test_only_what_is_above_a_drive_is_written_to(
    tmp_path: Path, part: str, state: str, status: int, *, is_multipath: bool
) -> None:
    """The drive here stays, so what was written is waited for in vain."""
    file = f"{nvme_servers_sysfs(tmp_path, is_multipath=is_multipath)[part]}/remove"
    where = "pci-0000:00:0e.0-pci-10000:01:00.0"
    done = run(DRIVERS / "slot/slot.sh", tmp_path, "slot", "write", file, "1", state, where, "0")
    assert (done.returncode, Path(file).exists()) == (status, status != 5)
    assert ("is not above nvme0n1 in sysfs" in done.stderr) == (status == 5)


def multipath(folder: Path, addresses: list[str]) -> str:
    """A server whose kernel gives NVMe drives several controllers; where it has those of the one drive."""
    subsystem = folder / "sys/devices/virtual/nvme-subsystem/nvme-subsys0"
    head = subsystem / "nvme0n1"
    for made in (head, folder / "sys/block", folder / "dev/disk/by-path"):
        made.mkdir(parents=True)
    (head / "device").symlink_to(subsystem)
    (folder / "sys/block/nvme0n1").symlink_to(head)
    (folder / "dev/disk/by-path/pci-0000:3c:00.0-nvme-1").symlink_to("../../nvme0n1")
    controllers = []
    for number, address in enumerate(addresses):
        controller = folder / f"sys/devices/pci0000:3a/0000:3a:01.0/{address}/nvme/nvme{number}"
        controller.mkdir(parents=True)
        (subsystem / f"nvme{number}").symlink_to(controller)
        controllers.append(str(controller))
    return "\nalso ".join(controllers)


@pytest.mark.parametrize("addresses", [["0000:3c:00.0"], ["0000:3c:00.0", "0000:3d:00.0"]])
def test_a_drive_that_may_have_several_controllers_is_where_they_are(tmp_path: Path, addresses: list[str]) -> None:
    controllers = multipath(tmp_path, addresses)
    found = run(DRIVERS / "slot/slot.sh", tmp_path, "slot", "locate", "pci-0000:3c:00.0", "1")
    assert found.stdout.startswith(f"name nvme0n1\ndevice {controllers}\nblock "), found


def test_a_drive_whose_controllers_are_gone_is_not_there(tmp_path: Path) -> None:
    multipath(tmp_path, [])
    assert run(DRIVERS / "slot/slot.sh", tmp_path, "slot", "locate", "pci-0000:3c:00.0", "1").returncode == 4


SMP = """#!/bin/sh
echo "${0##*/} $*" >>"$(dirname "$0")/../asked"
state="$(dirname "$0")/../state"
case "$*" in
*--op=dis*) echo 1 >"$state" ;;
*--op=*) echo 10 >"$state" ;;
*--list*) echo "  neg_log_lrate=$(cat "$state")" ;;
esac
"""


def switched_by_smp(folder: Path, phy: str) -> None:
    """A server with a PHY that sysfs cannot switch, and smp_utils that can and note what they are asked."""
    attributes = folder / "sys/class/sas_phy" / phy
    for made in (attributes, folder / "bin"):
        made.mkdir(parents=True)
    (attributes / "negotiated_linkrate").write_text("6.0 Gbit\n")
    (folder / "state").write_text("10\n")
    for tool in ("smp_phy_control", "smp_discover"):
        (folder / "bin" / tool).write_text(SMP)
        (folder / "bin" / tool).chmod(0o755)


def controls(folder: Path) -> list[str]:
    """The operations that were asked for, in order."""
    asked = (folder / "asked").read_text().splitlines()
    return [line.partition("--op=")[2].partition(" ")[0] for line in asked if line.startswith("smp_phy_control")]


def swings(folder: Path) -> bool:
    """Whether a drop still runs on this server."""
    mine = str(folder).encode()
    return any(mine in words and b"swing" in words.split(b"\0") for words in map(command_line, Path("/proc").iterdir()))


def command_line(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def until(is_so: Callable[[], bool]) -> None:
    deadline = Deadline.after(CLOCK, 60)
    while not is_so():
        assert not deadline.is_over()
        CLOCK.sleep_until_ns(CLOCK.now_ns() + 5_000_000)


def test_a_drop_that_was_ended_does_not_touch_the_phy_again(tmp_path: Path) -> None:
    """What slept for an hour would reset the link of whoever uses it then."""
    switched_by_smp(tmp_path, "phy-0:0")
    begun = run(
        DRIVERS / "phy/phy.sh", tmp_path, "phy", "sysfs", "begin", "7", "1", "3600.000000", "0.000000", "phy-0:0"
    )
    assert (begun.returncode, controls(tmp_path), swings(tmp_path)) == (0, ["dis"], True), begun.stderr
    assert run(DRIVERS / "phy/phy.sh", tmp_path, "phy", "sysfs", "restore", "phy-0:0").returncode == 0
    until(lambda: not swings(tmp_path))
    assert controls(tmp_path) == ["dis", "lr"]


def test_a_drop_of_hours_is_not_forgotten_by_the_next_request(tmp_path: Path) -> None:
    switched_by_smp(tmp_path, "phy-0:0")
    switched_by_smp(tmp_path / "other", "phy-0:1")
    (tmp_path / "other/sys/class/sas_phy/phy-0:1").rename(tmp_path / "sys/class/sas_phy/phy-0:1")
    script = DRIVERS / "phy/phy.sh"
    run(script, tmp_path, "phy", "sysfs", "begin", "7", "1", "9999.000000", "0.000000", "phy-0:0")
    old = tmp_path / "run/rackloop-phy/7"
    over = tmp_path / "run/rackloop-phy/6"
    over.mkdir()
    for request in (old, over):
        os.utime(request, (1, 1))
    run(script, tmp_path, "phy", "sysfs", "begin", "8", "1", "0.001000", "0.000000", "phy-0:1")
    assert (old.is_dir(), over.exists()) == (True, False)
    run(script, tmp_path, "phy", "sysfs", "restore", "phy-0:0")
    until(lambda: not swings(tmp_path))


@pytest.mark.parametrize(
    ("name", "device"),
    [("phy-2:3", "--phy=3 {} /dev/bsg/sas_host2"), ("phy-2:0:7", "--phy=7 {} /dev/bsg/expander-2:0")],
)
def test_a_phy_that_sysfs_does_not_switch_is_told_by_smp(tmp_path: Path, name: str, device: str) -> None:
    switched_by_smp(tmp_path, name)
    for what in (("disable", name), ("enable", name), ("reset", "link", name), ("reset", "hard", name)):
        done = run(DRIVERS / "phy/phy.sh", tmp_path, "phy", "sysfs", *what)
        assert done.returncode == 0, done.stderr
    asked = (tmp_path / "asked").read_text().splitlines()
    told = [line for line in asked if line.startswith("smp_phy_control")]
    assert told == [f"smp_phy_control {device.format(f'--op={op}')}" for op in ("dis", "lr", "lr", "hr")]
    assert (tmp_path / "state").read_text() == "10\n"


def phy(folder: Path, *arguments: str, tries: int = 500) -> subprocess.CompletedProcess[str]:
    """The script of PHYs, which waits for a PHY so many times."""
    script = folder / "phy.sh"
    text = (DRIVERS / "phy/phy.sh").read_text(encoding="utf-8")
    script.write_text(text.replace("most_tries=500", f"most_tries={tries}"))
    return run(script, folder, "phy", "sysfs", *arguments)


def test_a_drop_that_is_ended_leaves_off_what_was_switched_off_since(tmp_path: Path) -> None:
    """The drop was over by itself: to end it now must not end another fault."""
    switched_by_smp(tmp_path, "phy-0:0")
    assert phy(tmp_path, "begin", "7", "1", "0.001000", "0.000000", "phy-0:0").returncode == 0
    until(lambda: not swings(tmp_path))
    assert phy(tmp_path, "disable", "phy-0:0").returncode == 0
    assert phy(tmp_path, "restore", "phy-0:0").returncode == 0
    assert (tmp_path / "state").read_text() == "1\n"
    assert phy(tmp_path, "enable", "phy-0:0").returncode == 0
    assert (tmp_path / "state").read_text() == "10\n"


def test_a_phy_that_is_switched_off_is_not_dropped(tmp_path: Path) -> None:
    switched_by_smp(tmp_path, "phy-0:0")
    drop = ("begin", "7", "1", "0.001000", "0.000000", "phy-0:0")
    assert phy(tmp_path, "disable", "phy-0:0").returncode == 0
    refused = phy(tmp_path, *drop)
    assert (refused.returncode, refused.stderr) == (6, "phy-0:0 is switched off: end that first\n")
    assert (tmp_path / "state").read_text() == "1\n"
    # A reset enables it, whatever was noted.
    (tmp_path / "state").write_text("10\n")
    assert phy(tmp_path, *drop).returncode == 0
    until(lambda: not swings(tmp_path))
    assert (tmp_path / "state").read_text() == "10\n"


def test_a_phy_that_is_dropped_is_not_switched_off(tmp_path: Path) -> None:
    switched_by_smp(tmp_path, "phy-0:0")
    assert phy(tmp_path, "free", "phy-0:0").returncode == 0
    phy(tmp_path, "begin", "7", "1", "3600.000000", "0.000000", "phy-0:0")
    for what in ("free", "disable"):
        refused = phy(tmp_path, what, "phy-0:0")
        assert (refused.returncode, refused.stderr) == (6, "a drop or a flap of phy-0:0 goes on: end that first\n")
    assert phy(tmp_path, "enable", "phy-0:0").returncode == 0
    assert (tmp_path / "state").read_text() == "1\n"
    assert phy(tmp_path, "restore", "phy-0:0").returncode == 0
    until(lambda: not swings(tmp_path))
    assert (tmp_path / "state").read_text() == "10\n"


@pytest.mark.parametrize("times", [("1", "3600.000000", "0.000000"), ("2", "0.001000", "3600.000000")])
@pytest.mark.parametrize("pid", [None, "self"])
def test_a_drop_or_a_flap_that_was_killed_keeps_no_other_from_the_phy(
    tmp_path: Path, times: tuple[str, ...], pid: str | None
) -> None:
    """In its pause, while the PHY is off or on; another process may have its number by now."""
    switched_by_smp(tmp_path, "phy-0:0")
    request = tmp_path / "run/rackloop-phy/7"
    assert phy(tmp_path, "begin", "7", *times, "phy-0:0").returncode == 0
    is_on = times[0] == "2"
    until(lambda: controls(tmp_path) == ["dis", "lr"][: 1 + is_on] and not list(request.glob("acting-*")))
    os.kill(int((request / "pid").read_text()), signal.SIGKILL)
    until(lambda: not swings(tmp_path))
    if pid is not None:
        (request / "pid").write_text(f"{os.getpid()}\n")
    assert phy(tmp_path, "free", "phy-0:0").returncode == 0
    done = phy(tmp_path, "begin", "8", "1", "0.001000", "0.000000", "phy-0:0")
    assert (done.returncode, done.stderr) == (0, "")
    until(lambda: not swings(tmp_path))
    assert (tmp_path / "state").read_text() == "10\n"
    assert phy(tmp_path, "begin", "7", *times, "phy-0:0").returncode == 0, "it was asked for before, and is not again"
    assert not swings(tmp_path)


def test_a_phy_that_a_killed_drop_left_off_is_given_back(tmp_path: Path) -> None:
    switched_by_smp(tmp_path, "phy-0:0")
    assert phy(tmp_path, "begin", "7", "1", "3600.000000", "0.000000", "phy-0:0").returncode == 0
    os.kill(int((tmp_path / "run/rackloop-phy/7/pid").read_text()), signal.SIGKILL)
    until(lambda: not swings(tmp_path))
    assert phy(tmp_path, "enable", "phy-0:0").returncode == 0
    assert (tmp_path / "state").read_text() == "10\n"


def test_a_phy_whose_first_command_fails_is_switched_on_by_the_next(tmp_path: Path) -> None:
    switched_by_smp(tmp_path, "phy-0:0")
    tool = tmp_path / "bin/smp_phy_control"
    tool.write_text(
        SMP.replace("*--op=*)", f"*--op=*) [ -e '{tmp_path}/failed' ] || {{ : >'{tmp_path}/failed'; exit 1; }};")
    )
    assert phy(tmp_path, "begin", "7", "1", "0.001000", "0.000000", "phy-0:0").returncode == 0
    until(lambda: not swings(tmp_path))
    assert (tmp_path / "state").read_text() == "10\n"
    assert controls(tmp_path) == ["dis", "lr", "lr"]


def test_a_drop_that_was_killed_is_ended_and_hinders_no_other(tmp_path: Path) -> None:
    switched_by_smp(tmp_path, "phy-0:0")
    (tmp_path / "state").write_text("1\n")
    request = tmp_path / "run/rackloop-phy/6"
    request.mkdir(parents=True)
    for left in ("phy-0:0", "acting-phy-0:0"):
        (request / left).touch()
    assert phy(tmp_path, "restore", "phy-0:0", tries=2).returncode == 0
    assert ((tmp_path / "state").read_text(), list(request.iterdir())) == ("10\n", [])
    assert phy(tmp_path, "begin", "7", "1", "0.001000", "0.000000", "phy-0:0").returncode == 0
    until(lambda: not swings(tmp_path))


@pytest.mark.parametrize("answer", ["exit 1", "echo phy vacant"])
@pytest.mark.parametrize("what", ["enable", "restore", "disable"])
def test_a_phy_that_nobody_can_tell_of_is_an_error(tmp_path: Path, what: str, answer: str) -> None:
    """It may be off still: that it was mended must not be said."""
    switched_by_smp(tmp_path, "phy-0:0")
    (tmp_path / "state").write_text("1\n")
    (tmp_path / "bin/smp_discover").write_text(f"#!/bin/sh\n{answer}\n")
    done = phy(tmp_path, what, "phy-0:0", tries=2)
    assert done.returncode == 3
    assert "cannot tell whether phy-0:0 is disabled" in done.stderr


def test_a_phy_that_sysfs_cannot_tell_of_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "sys/class/sas_phy/phy-0:0"
    folder.mkdir(parents=True)
    (folder / "enable").write_text("0\n")
    done = phy(tmp_path, "enable", "phy-0:0", tries=2)
    assert (done.returncode, (folder / "enable").read_text()) == (3, "0\n")


@pytest.mark.parametrize(
    ("ports", "behind"),
    [
        ({"port-0:0": ["phy-0:0"], "port-0:1": ["phy-0:1", "phy-0:2"]}, ["sda", "sdb"]),
        ({"port-0:0": ["phy-0:1"], "port-0:1": ["phy-0:0"]}, ["sdc"]),
        ({"port-0:0": [], "port-0:1": []}, ["sda", "sdb", "sdc"]),
        ({"port-0:1": ["phy-0:1"]}, []),
    ],
    ids=["its own port", "another port", "nobody says which", "no port"],
)
def test_what_is_behind_a_phy_is_told(tmp_path: Path, ports: dict[str, list[str]], behind: list[str]) -> None:
    host = tmp_path / "sys/devices/host0"
    drives = {
        "sda": host / "port-0:0/end_device-0:0/block/sda",
        "sdb": host / "port-0:0/expander-0:0/port-0:0:3/end_device-0:0:3/block/sdb",
        "sdc": host / "port-0:1/end_device-0:1/block/sdc",
        "sdd": tmp_path / "sys/devices/host1/port-1:0/block/sdd",
    }
    phy_folder = host / "phy-0:0/sas_phy/phy-0:0"
    for made in (phy_folder, *drives.values(), tmp_path / "sys/block", tmp_path / "sys/class/sas_phy"):
        made.mkdir(parents=True)
    (tmp_path / "sys/class/sas_phy/phy-0:0").symlink_to(phy_folder)
    for name, device in drives.items():
        (tmp_path / "sys/block" / name).symlink_to(device)
    for port, phys in ports.items():
        for of in phys:
            (host / of).mkdir(exist_ok=True)
            (host / port / of).symlink_to(host / of)
    told = phy(tmp_path, "behind", "phy-0:0")
    assert (told.returncode, told.stdout.split()) == (0, behind)


def test_a_phy_that_does_not_follow_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "sys/class/sas_phy/phy-0:0"
    folder.mkdir(parents=True)
    (folder / "enable").write_text("1\n")
    (folder / "negotiated_linkrate").write_text("6.0 Gbit\n")
    done = phy(tmp_path, "disable", "phy-0:0", tries=2)
    assert (done.returncode, done.stderr) == (3, "phy-0:0 does not follow: it reads 6.0 Gbit\n")


def test_a_server_without_smp_utils_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "sys/class/sas_phy/phy-0:0").mkdir(parents=True)
    script = tmp_path / "phy.sh"
    text = (DRIVERS / "phy/phy.sh").read_text(encoding="utf-8")
    script.write_text(text.replace("smp_phy_control", "no_such_program"))
    assert run(script, tmp_path, "phy", "sysfs", "disable", "phy-0:0").returncode == 5
