"""Virtual labs without their guests: what is refused, and how a rack that is up is described."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, get_args

import pytest

from rackloop.clock import VirtualClock
from rackloop.errors import BadInput, LabError
from rackloop.lab import Lab, LabKind, LabState, TimeName, load_lab
from rackloop_cli.lab import check
from rackloop_drivers.clock_access import ClockAccess
from rackloop_labs.power_ports import RackPower
from rackloop_labs.ssh_access import ssh_accesses
from rackloop_labs.virtual import VirtualLab
from rackloop_labs.virtual_rack.described_rack import as_equipment, not_virtual, rehearsal
from rackloop_labs.virtual_rack.guest_cache import GuestCache
from rackloop_labs.virtual_rack.image import build_image, image_digest, making_of
from rackloop_labs.virtual_rack.machine import MachineFiles, machine_arguments
from rackloop_labs.virtual_rack.prerequisites import (
    require_memory,
    require_name_space,
    require_programs,
    require_room,
)
from rackloop_labs.virtual_rack.recipe import GuestRecipe


def endpoints(lab: Lab, state: Path) -> dict[str, Any]:
    """Those of a lab as if it were up."""
    secret = str(state / "password")
    return {
        "rehearsal": str(state / "rehearsal.yaml"),
        "switch": {"tcp": "127.0.0.1:5025", "tty": "/dev/pts/9"},
        "ssh": {
            "user": "root",
            "account": "labuser",
            "key_file": str(state / "guest_key"),
            "known_hosts": str(state / "known_hosts"),
        },
        "pdu": {
            name: _controller(pdu.driver, secret, 90 + number) for number, (name, pdu) in enumerate(lab.pdus.items())
        },
        "servers": {
            name: {
                "bmc": None if server.bmc is None else _controller(server.bmc.driver, secret, number),
                "ssh": f"127.0.0.1:{2200 + number}",
                "clock": f"127.0.0.1:{6200 + number}",
                "paths": {port: f"pci-0000:{slot + 1:02x}:00.0" for slot, port in enumerate(server.ports)},
                "console": {"address": f"127.0.0.1:{2300 + number}"},
            }
            for number, (name, server) in enumerate(lab.servers.items())
        },
    }


def _controller(driver: str, password_file: str, number: int) -> dict[str, str]:
    address = f"https://127.0.0.1:{4400 + number}" if driver == "redfish" else f"127.0.0.1:{6300 + number}"
    return {"driver": driver, "address": address, "user": "admin", "password_file": password_file}


@pytest.mark.parametrize("name", ["virtual", "virtual-direct"])
def test_the_shipped_labs_have_only_what_a_virtual_rack_can_have(name: str) -> None:
    lab = load_lab(name)
    assert lab.kind is LabKind.VIRTUAL
    assert list(not_virtual(lab)) == []


def test_what_a_virtual_rack_cannot_have_yet_is_named_with_its_place() -> None:
    lab = load_lab("mock").model_copy(update={"kind": LabKind.VIRTUAL})
    found = {".".join(map(str, path)): message for path, message in not_virtual(lab)}
    assert found.keys() >= {"expanders", "servers.srv1.console"}
    assert not found.keys() & {"pdus", "servers.srv1.bmc", "servers.srv1.outlet"}
    assert found["drives.d01.profile"].startswith("is sata, which QEMU cannot move while guests run")
    assert found["drives.d09.model"].endswith("write profile: qemu-nvme")
    assert found["drives.d09.eui64"] == "QEMU's nvme drives report none; delete the key"


def test_the_check_of_a_description_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rack.yaml"
    file.write_text(load_lab("virtual").source.read_text().replace("console: ser2net", "console: tty"))
    assert check.run([str(file)]) == 2
    said = capsys.readouterr()
    assert "rack.yaml:12:88: servers.srv1.console: is tty: a guest's console is reached as by ser2net" in said.err
    assert said.out == "1 file, 1 with problems, 3 problems\n"


def test_such_a_lab_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    lab = load_lab("mock").model_copy(update={"kind": LabKind.VIRTUAL})
    with pytest.raises(BadInput, match=r"mock\.yaml:\d+:\d+: expanders: a virtual rack has none yet"):
        VirtualLab(lab, VirtualClock(), LabState(tmp_path)).build(print)


def test_a_rack_that_is_up_is_opened_by_the_description_of_a_physical_one(tmp_path: Path) -> None:
    lab = load_lab("virtual")
    described = as_equipment(lab, endpoints(lab, tmp_path))
    access = ssh_accesses(described)["srv2"]
    assert (access.host, access.port, access.user) == ("127.0.0.1", 2201, "root")
    assert access.known_hosts == tmp_path / "known_hosts"
    assert access.clock == ClockAccess("127.0.0.1", 6201)
    assert described.servers["srv1"].paths["p3"] == "pci-0000:04:00.0"
    assert described.fabric.where() == ("tcp", "127.0.0.1:5025")  # type: ignore[attr-defined]
    assert described.servers["srv3"].console.address == "127.0.0.1:2302"  # type: ignore[union-attr]
    (tmp_path / "password").write_text("right horse")
    power = RackPower(described, VirtualClock())
    assert power.ports.keys() >= {"server:srv1", "outlet:pdu1/1", "server:srv3", "outlet:pdu2/2", "outlet:pdu1/8"}
    assert described.servers["srv1"].bmc.login().password() == "right horse"  # type: ignore[union-attr]
    power.close()


def described_drives(lab: Lab) -> dict[str, object]:
    """What both descriptions of a rack say of each drive."""
    said = ("profile", "serial", "wwn", "size", "model", "port", "attached", "scratch")
    return {name: [getattr(drive, key) for key in said] for name, drive in lab.drives.items()}


@pytest.mark.parametrize("name", ["virtual", "virtual-direct"])
def test_the_rehearsal_is_a_sound_description_of_the_same_rack(name: str, tmp_path: Path) -> None:
    lab = load_lab(name)
    lab = lab.model_copy(update={"times": lab.times.model_copy(update={"boot": 1234.5678})})
    file = tmp_path / "rehearsal.yaml"
    file.write_text(rehearsal(lab, endpoints(lab, tmp_path)))
    again = load_lab(file)
    assert (again.name[:-4], again.kind) == (f"{name}-rehearsal-", LabKind.PHYSICAL)
    assert {server: again.joined(server) for server in again.servers} == {
        server: lab.joined(server) for server in lab.servers
    }
    assert described_drives(again) == described_drives(lab)
    assert {time: again.time_s(time) for time in get_args(TimeName)} == {
        time: lab.time_s(time) for time in get_args(TimeName)
    }
    assert {access.key_file for access in ssh_accesses(again).values()} == {tmp_path / "guest_key"}
    first, *others = (access.user for access in ssh_accesses(again).values())
    assert first == "labuser"
    assert set(others) <= {"root"}
    assert {access.clock for access in ssh_accesses(again).values()} == {
        ClockAccess("127.0.0.1", 6200 + number) for number in range(len(lab.servers))
    }
    assert (again.fabric.outlet, again.pdus.keys()) == (lab.fabric.outlet, lab.pdus.keys())
    assert [server.outlet for server in again.servers.values()] == [server.outlet for server in lab.servers.values()]
    assert [server.bmc is None for server in again.servers.values()] == [
        server.bmc is None for server in lab.servers.values()
    ]
    RackPower(again, VirtualClock()).close()


def test_programs_that_are_missing_are_named_with_the_command() -> None:
    with pytest.raises(
        BadInput, match=r"needs qemu-system-x86_64 and mmdebstrap, .*apt-get install .* qemu-system-x86 mmd"
    ):
        require_programs(
            to_build=True, find=lambda name: None if name in {"qemu-system-x86_64", "mmdebstrap"} else name
        )
    require_programs(to_build=False, find=lambda name: None if name == "mmdebstrap" else name)


def test_too_little_memory_and_too_little_room_are_said(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 4194304 kB\nMemAvailable:    1048576 kB\n")
    require_memory(1, 640, meminfo)
    with pytest.raises(BadInput, match=r"3 guests of 640 MiB need 2496 MiB of memory, and 1024 MiB are free"):
        require_memory(3, 640, meminfo)
    with pytest.raises(BadInput, match=r"the image needs 4096 MiB in .*, and 100 MiB are free"):
        require_room(tmp_path, 4096, "the image", lambda _: 100 << 20)


def test_a_machine_that_refuses_the_name_space_of_an_image_is_told_before_it_is_made() -> None:
    with pytest.raises(BadInput, match=r"a name space of its own, refused here \(unshare: Operation not permitted\): "):
        require_name_space("unshare: Operation not permitted")
    require_name_space("")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            "E: Failed to fetch http://deb.debian.org/InRelease  Temporary failure resolving 'deb.debian.org'",
            r"packages cannot be downloaded: Failed to fetch .*resolving 'deb\.debian\.org'; is there a network\?$",
        ),
        ("E: cannot find a mirror", r"mmdebstrap ended with status 25: E: cannot find a mirror$"),
    ],
)
def test_an_image_that_cannot_be_made_says_why(
    said: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in, folder = tmp_path / "mmdebstrap", tmp_path / "image"
    folder.mkdir()
    stand_in.write_text(f"#!/bin/sh\necho 'I: running apt-get update...' >&2\necho \"{said}\" >&2\nexit 25\n")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(LabError, match=message):
        build_image(GuestRecipe(), folder, VirtualClock(), lambda _: None)


def test_an_image_is_mounted_in_a_name_space_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("only root mounts without a name space, and not every root may have one")
    stand_in, folder = tmp_path / "mmdebstrap", tmp_path / "image"
    folder.mkdir()
    stand_in.write_text('#!/bin/sh\necho "E: $(readlink /proc/self/ns/mnt)" >&2\nexit 25\n')
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(LabError, match=r"E: mnt:\[[0-9]+\]$") as refused:
        build_image(GuestRecipe(), folder, VirtualClock(), lambda _: None)
    assert str(Path("/proc/self/ns/mnt").readlink()) not in str(refused.value)


def test_a_saved_guest_without_its_kernel_is_built_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in ("qemu-system-x86_64", "vde_switch"):
        stand_in = tmp_path / program
        stand_in.write_text("#!/bin/sh\necho QEMU emulator version 9.9\n")
        stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    cache = GuestCache(VirtualClock(), root=tmp_path / "guests")
    folder = cache.booted()
    folder.mkdir(parents=True)
    for part in ("about.json", "disk.raw", "initrd", "memory.raw", "state", "vmlinuz"):
        (folder / part).write_text('{"host_key": "ssh-ed25519 AAAA", "slot_buses": [1, 2]}')
    assert cache.require("virtual").slot_buses == (1, 2)
    (folder / "vmlinuz").unlink()
    with pytest.raises(LabError, match=r"are not built yet, for QEMU 9\.9: `rackloop lab build virtual`"):
        cache.require("virtual")


def test_guests_that_are_not_built_are_not_brought_up(tmp_path: Path) -> None:
    cache = GuestCache(VirtualClock(), root=tmp_path)
    with pytest.raises((LabError, BadInput), match=r"rackloop lab build virtual|apt-get install"):
        cache.require("virtual")


def test_another_recipe_is_another_image_and_another_machine_another_guest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cached(recipe: GuestRecipe, version: str = "7.2") -> GuestCache:
        emulator = tmp_path / "qemu-system-x86_64"
        emulator.write_text(f"#!/bin/sh\necho QEMU emulator version {version}\n")
        emulator.chmod(0o755)
        return GuestCache(VirtualClock(), recipe, tmp_path)

    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    recipe, larger = GuestRecipe(), GuestRecipe(memory_mib=768)
    assert cached(recipe).image == cached(larger).image
    assert cached(GuestRecipe(packages=("fio",))).image != cached(recipe).image
    folders = [cached(recipe).booted(), cached(larger).booted(), cached(recipe, "8.0").booted()]
    assert len(set(folders)) == 3


def test_an_image_that_is_made_otherwise_is_another() -> None:
    recipe = GuestRecipe()
    making = making_of(recipe)
    assert all(part in making for part in ("--variant=apt", "mkfs.ext4", "apt-get download", recipe.masked[0]))
    assert image_digest(recipe, making) != image_digest(recipe, making.replace("mkfs.ext4 -q", "mkfs.ext4"))
    cache = GuestCache(VirtualClock(), recipe, Path("guests"))
    assert cache.image == Path(f"guests/image-{image_digest(recipe, making)}")


def test_a_guest_that_is_resumed_leaves_what_was_saved_as_it_is(tmp_path: Path) -> None:
    files = MachineFiles(tmp_path / "a,b", tmp_path / "console")
    first = machine_arguments(GuestRecipe(), files, is_resumed=False)
    again = machine_arguments(GuestRecipe(), files, is_resumed=True)
    changed = set(again) - set(first)
    assert changed >= {"-S", "-incoming", "defer"}
    assert any(text.endswith("a,,b/memory.raw,share=off") for text in changed)
    assert any("a,,b/disk.raw" in text and text.endswith("snapshot=on") for text in changed)
    assert ("-no-reboot" in first, "-no-reboot" in again) == (True, False)
    assert "reboot=reset,shutdown=pause,panic=none" in again
