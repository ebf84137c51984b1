"""What uses a drive by another path to it uses the drive: to the kernel, and to lsblk, that path is another disk."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from rackloop.errors import GuardRefused
from rackloop_drivers import host_tools
from rackloop_drivers.host_tools import identify_drive, list_disks
from rackloop_drivers.slot import HostSlot
from tests.deadlines import soon
from tests.unit.harness.recorded_server import RECORDED, RecordedServer

SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]
WWIDS = (
    "nvme0n1 eui.0025388b710116a1\nsda naa.5000c500a0000001\nsdb t10.ATA     A/B  SSD: 1\nsdd naa.5000c500a0000001\n"
)
THEIRS = {
    "name": "sdd",
    "kname": "sdd",
    "type": "disk",
    "size": 1,
    "rota": True,
    "mountpoints": [None],
    "children": [{"name": "sdd1", "kname": "sdd1", "type": "part", "size": 1, "rota": True, "mountpoints": ["/srv"]}],
}


def server(other: Mapping[str, Any], wwids: str = WWIDS) -> RecordedServer:
    """The recorded server, whose SAS drive sda has another path, as a JBOD with two cables has it."""
    recording = RECORDED["lsblk -"]
    listed = json.loads(recording.stdout)
    listed["blockdevices"].append(dict(other))
    found = RecordedServer(answers={**RECORDED, "lsblk -": replace(recording, stdout=json.dumps(listed))})
    found.listings["paths"] = wwids
    return found


def test_a_drive_that_is_mounted_by_another_path_is_in_use() -> None:
    host = server(THEIRS)
    claim = "sdd1 is mounted at /srv, and sdd is another path to it"
    assert identify_drive(host, "/dev/sda", soon()).usage.claims == (claim,)
    assert list_disks(host, ["/dev/sda", "/dev/sdb"], soon())["/dev/sda"].usage.claims == (claim,)
    assert identify_drive(host, "/dev/sdb", soon()).usage.claims == ()

    serial = identify_drive(host, "/dev/sda", soon()).identity.serial
    slot = HostSlot(host, "/dev/sda", drive_id="d01", serial=serial)
    with pytest.raises(GuardRefused, match=claim):
        slot.prepare({"kind": "device_off"}, soon())


def test_a_drive_that_the_machine_booted_from_by_another_path_is_the_boot_drive() -> None:
    assert identify_drive(server({**THEIRS, "mountpoints": ["/"]}), "/dev/sda", soon()).usage.is_boot_drive


@pytest.mark.parametrize(
    ("other", "wwids"),
    [
        (THEIRS, WWIDS.replace("sdd naa.5000c500a0000001", "sdd naa.5000c500a0000002")),
        (THEIRS, "sdb t10.x\nsdd naa.5000c500a0000001\n"),
        (THEIRS, ""),
        ({**THEIRS, "children": []}, WWIDS),
        ({**THEIRS, "kname": "sde"}, WWIDS),
    ],
    ids=["another drive", "unknown", "a kernel that tells nothing", "a path that nothing uses", "one that is gone"],
)
def test_what_is_no_other_path_in_use_is_no_reason(other: dict[str, Any], wwids: str) -> None:
    usage = identify_drive(server(other, wwids), "/dev/sda", soon()).usage
    assert (usage.claims, usage.is_boot_drive) == ((), False)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("given", "listed"),
    [("/dev/sda", {"sda", "sdd"}), ("/dev/sdb", {"sdb"}), ("/dev/nvme1n1", {"nvme1n1"}), ("", set())],
)
def test_who_uses_the_other_paths_of_the_drives_that_are_given_is_asked(
    tmp_path: Path, shell: str, given: str, listed: set[str]
) -> None:
    """Neither a namespace's hidden path, which has no node, nor a disk without an identifier is one."""
    wwids = {
        "sda/device": "naa.5000c500a0000001",
        "sdd/device": "naa.5000c500a0000001",
        "sdb/device": "t10.A  B/C ",
        "nvme1n1": "eui.01",
        "nvme1c0n1": "eui.01",
        "sdda/device": "t10.A B/C",
        "sde/device": "",
        "sdf/device": "\n",
    }
    for place, wwid in wwids.items():
        disk = place.partition("/")[0]
        (tmp_path / "sys/block" / place).mkdir(parents=True)
        (tmp_path / "sys/block" / place / "wwid").write_text(wwid and f"{wwid.rstrip()}\n")
        if disk != "nvme1c0n1":
            (tmp_path / "dev").mkdir(exist_ok=True)
            (tmp_path / "dev" / disk).touch()
    survey = files(host_tools).joinpath("survey.sh").read_text(encoding="utf-8")
    script = f'begin() {{ :; }}\nask() {{ echo "asked $*"; }}\nanswer() {{ :; }}\n{survey}'.replace(
        "/sys/", f"{tmp_path}/sys/"
    )
    script = script.replace('-e "/dev/', f'-e "{tmp_path}/dev/').replace("/dev/disk", f"{tmp_path}/dev/disk")
    argv = [shell, *(["sh"] if shell == "busybox" else []), "-c", script, "survey", "--usage", *given.split()]
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(argv, check=True, capture_output=True, text=True, env=environment)
    (asked,) = [line for line in done.stdout.splitlines() if line.startswith("asked lsblk")]
    assert {node.rpartition("/")[2] for node in asked.split(" ") if "/dev/" in node} == listed
    assert not done.stderr
