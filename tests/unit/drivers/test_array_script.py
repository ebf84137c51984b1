"""The script that makes and takes apart arrays, on a made-up /sys with mdadm and losetup that change that."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.drivers.test_host_scripts import DRIVERS, run

SCRIPT = DRIVERS / "md/array.sh"
UUID = "8b2c1f5e-3a90-4f0e-9d1c-0123456789ab"
OFFSET = str(2 << 30)
DRIVES = ("nvme1n1", "nvme2n1", "sda", "sdb")

LOSETUP = """#!/bin/sh
cd {folder}/sys/block || exit
case $1 in
--find)
    number=0
    while [ -e loop$number/loop ]; do number=$((number + 1)); done
    echo /dev/loop$number
    ;;
--offset)
    loop=${{6##*/}}
    mkdir -p "$loop/loop" "$loop/holders"
    echo "$2" >"$loop/loop/offset"
    echo "/dev/$(basename "$(readlink -f "$7")")" >"$loop/loop/backing_file"
    ;;
--detach) rm -r "${{2##*/}}" ;;
esac
"""
# Once after it was stopped, udev puts the array together again from what is still written on its members.
MDADM = """#!/bin/sh
cd {folder}/sys/block || exit
echo "$*" >>{folder}/told
together() {{
    mkdir -p md127/md
    echo {uuid} >md127/md/uuid
    echo 65536 >md127/size
    for loop in loop*; do mkdir -p "$loop/holders/md127"; done
}}
case $* in
*--create*) together ;;
*--stop*)
    rm -r md127 loop*/holders/*
    [ ! -e {folder}/udev ] || {{ rm {folder}/udev && together; }}
    ;;
esac
"""


@pytest.fixture
def server(tmp_path: Path) -> Path:
    for folder in ("bin", "run", "sys/block", "sys/module/raid456", "dev/disk/by-id"):
        (tmp_path / folder).mkdir(parents=True)
    for drive in DRIVES:
        (tmp_path / "dev" / drive).touch()
        (tmp_path / "dev/disk/by-id" / f"by-{drive}").symlink_to(f"../../{drive}")
    for name, text in (("losetup", LOSETUP), ("mdadm", MDADM), ("modprobe", "#!/bin/sh\n")):
        tool = tmp_path / "bin" / name
        tool.write_text(text.format(folder=tmp_path, uuid=UUID))
        tool.chmod(0o755)
    return tmp_path


def begun(server: Path) -> None:
    devices = [f"{server}/dev/disk/by-id/by-{drive}" for drive in DRIVES]
    made = run(SCRIPT, server, "array", "begin", "x", "5", "16", OFFSET, str(16 << 20), "3", *devices)
    assert made.returncode == 0, made.stderr


def told(server: Path) -> list[str]:
    return (server / "told").read_text().splitlines()


def test_an_array_is_of_a_region_of_each_drive_and_the_last_is_a_spare(server: Path) -> None:
    assert run(SCRIPT, server, "array", "look", "x").returncode == 0
    begun(server)
    create = next(line for line in told(server) if "--create" in line)
    assert (
        "--level=5 --chunk=16 --raid-devices=3 --spare-devices=1 /dev/loop0 /dev/loop1 /dev/loop2 /dev/loop3" in create
    )
    shown = run(SCRIPT, server, "array", "show", "x").stdout.splitlines()
    assert shown == [
        f"array md127 {UUID} 65536",
        *(f"drive loop{at} {name} {OFFSET}" for at, name in enumerate(DRIVES)),
    ]
    again = run(SCRIPT, server, "array", "look", "x")
    assert (again.returncode, again.stderr) == (1, "there is an array x, or what is left of one\n")


@pytest.mark.parametrize("is_put_together_again", [False, True])
def test_nothing_is_left_of_an_array(server: Path, is_put_together_again: bool) -> None:
    begun(server)
    if is_put_together_again:
        (server / "udev").touch()
    assert run(SCRIPT, server, "array", "stands", "x").stdout == "yes\n"
    ended = run(SCRIPT, server, "array", "end", "x")
    assert ended.returncode == 0, ended.stderr
    assert list((server / "sys/block").iterdir()) == []
    erased = {line.rpartition(" ")[2] for line in told(server) if "--zero-superblock" in line}
    assert erased == {f"/dev/loop{at}" for at in range(len(DRIVES))}
    assert run(SCRIPT, server, "array", "stands", "x").stdout == ""
    assert run(SCRIPT, server, "array", "end", "x").returncode == 0


def test_a_loop_device_that_is_anothers_by_now_is_left_alone(server: Path) -> None:
    begun(server)
    (server / "sys/block/loop1/loop/backing_file").write_text("/dev/nvme9n1\n")
    (server / "sys/block/loop2/loop/offset").write_text("0\n")
    assert run(SCRIPT, server, "array", "end", "x").returncode == 0
    assert sorted(each.name for each in (server / "sys/block").iterdir()) == ["loop1", "loop2"]


def test_what_is_lacking_is_named(server: Path) -> None:
    (server / "sys/module/raid456").rmdir()
    without = run(SCRIPT, server, "array", "look", "x")
    assert (without.returncode, without.stderr) == (6, "its kernel has no raid456\n")
