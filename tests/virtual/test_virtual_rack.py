"""A virtual rack from its image to its end: Linux kernels that see drives come and go as the switch's map says.

The tests are of one rack, and in order: each finds it as the one before left it.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from rackloop.errors import GuardRefused
from rackloop.lab import Drive, Lab, LabState, load_lab, once_online
from rackloop.portmap import Full, Partial, PortMap
from rackloop.safety import Guard
from rackloop.safety.leases import LeaseTerms, leased
from rackloop.safety.store import open_store
from rackloop_drivers.workload import FILE_SYSTEM, SECTOR_BEHIND, Expected, ProbeTarget, RackProbe
from rackloop_labs import open_leased
from tests.deadlines import CLOCK, soon
from tests.e2e.command_line import CommandLine, wait_until
from tests.virtual.guests import comes, comes_all, tell

SERVERS = ("srv1", "srv2", "srv3")
# Between the switch's answer and the kernel's by-path name lies the guest's work, in software.
COMES_WITHIN_S = 120.0


def nvme_drives(lab: Lab, server: str) -> list[Drive]:
    return [drive for drive in map(lab.drives.__getitem__, lab.drives_of(server)) if drive.traits.protocol == "nvme"]


def test_the_guests_are_built_once(rackloop: CommandLine) -> None:
    ended = rackloop("lab", "build", "virtual")
    assert ended.status == 0, ended
    again = rackloop("lab", "build", "virtual")
    assert (again.status, again.err) == (0, ""), again
    assert "are built already" in again.out


def test_a_rack_that_is_up_says_where_everything_answers(up: CommandLine) -> None:
    endpoints = up.endpoints("virtual")
    assert (endpoints["up"], endpoints["kind"]) == (True, "virtual")
    up("lab", "up", "virtual").refused(2, "is up already")
    shown = up("lab", "status", "virtual")
    assert "lab virtual (virtual) is up" in shown.out


@pytest.mark.parametrize("server", SERVERS)
def test_each_guest_is_a_linux_of_its_own_name(up: CommandLine, server: str) -> None:
    assert tell(up, server, "hostname").strip() == server
    assert tell(up, server, "uname -s; systemctl is-system-running || true").startswith("Linux\n")
    behind = CLOCK.wall().timestamp() - float(tell(up, server, "date +%s.%N"))
    assert abs(behind) < 60


def test_its_tools_see_the_drives_of_the_baseline(up: CommandLine) -> None:
    lab = load_lab("virtual")
    for server in SERVERS:
        comes_all(up, lab, server)
    listed = json.loads(tell(up, "srv1", "nvme list -o json"))["Devices"]
    assert {drive["SerialNumber"]: drive["ModelNumber"] for drive in listed} == {
        drive.serial: drive.model for drive in nvme_drives(lab, "srv1")
    }
    blocks: list[dict[str, Any]] = json.loads(tell(up, "srv2", "lsblk -J -b -d -o NAME,SERIAL,SIZE,TRAN"))[
        "blockdevices"
    ]
    assert {drive["serial"]: drive["size"] for drive in blocks if drive["tran"] == "nvme"} == {
        drive.serial: drive.size for drive in nvme_drives(lab, "srv2")
    }


def test_the_cables_are_as_described(up: CommandLine) -> None:
    ended = up("lab", "cabling", "virtual")
    assert (ended.status, "18 ports, 0 disagreements" in ended.out) == (0, True), ended


def test_a_change_of_the_map_moves_a_drive_from_one_kernel_to_another(up: CommandLine) -> None:
    serial = load_lab("virtual").drives["d01"].serial
    ended = up("fabric", "virtual", "map", "srv2.p2=d01")
    assert ended.status == 0, ended
    comes(up, "srv2", "p2", serial)
    comes(up, "srv1", "p0", None)
    assert f"/{serial}" not in tell(up, "srv1", "ls /dev/disk/by-id")
    assert serial in tell(up, "srv2", "ls /dev/disk/by-id")
    shown = json.loads(up("fabric", "virtual", "show", "--json").out)
    assert any("d01" in json.dumps(port) and "srv2" in json.dumps(port) for port in shown["ports"])
    assert up("heal", "virtual").status == 0
    comes(up, "srv1", "p0", serial)


def test_a_drive_is_written_and_read_on_its_guest_wherever_it_is(up: CommandLine, tmp_path: Path) -> None:
    lab = load_lab("virtual")
    state = LabState(up.state_home / "labs" / "virtual")
    store = open_store(tmp_path / "store.sqlite", CLOCK)
    with leased(lab, store, LeaseTerms()) as held, open_leased(lab, CLOCK, state, held, bring_up=False) as bench:
        guard = Guard(bench.lab, held, seen=bench.survey())
        drive, device = bench.drive("srv1", "p0"), bench.device("srv1", "p0")
        once_online(drive, soon(COMES_WITHIN_S))
        probe = RackProbe(bench.host("srv1"), CLOCK)
        with guard.writable("d01", drive, device, soon(COMES_WITHIN_S)) as permit:
            probe.write(permit, soon(COMES_WITHIN_S), sectors=64, generation=3, seed=5)
        applied = bench.equipment.fabric.apply(Partial(PortMap.of([(lab.switch_port("srv3", "p2"), 101)])), soon())
        assert applied.generation > 1
        elsewhere = once_online(bench.drive("srv3", "p2"), soon(COMES_WITHIN_S))
        assert elsewhere.serial == lab.drives["d01"].serial
        found = RackProbe(bench.host("srv3"), CLOCK).verify(
            bench.device("srv3", "p2"), Expected(elsewhere.serial, 3, 5), soon(COMES_WITHIN_S), sectors=64
        )
        assert found.is_right, found
        # The guard knows it again where the switch has brought it.
        moved = bench.drive("srv3", "p2"), bench.device("srv3", "p2")
        with guard.writable("d01", *moved, soon(COMES_WITHIN_S)) as permit:
            RackProbe(bench.host("srv3"), CLOCK).write(permit, soon(COMES_WITHIN_S), sectors=64, generation=4, seed=5)
        bench.equipment.fabric.apply(Full(lab.baseline_map()), soon())
        once_online(drive, soon(COMES_WITHIN_S))
    store.close()


@pytest.mark.nightly
def test_a_port_is_armed_before_its_drive_is_there_which_is_mounted_then(up: CommandLine, tmp_path: Path) -> None:
    lab = load_lab("virtual")
    state, expected = LabState(up.state_home / "labs" / "virtual"), Expected(lab.drives["d01"].serial, 4, 5)
    store = open_store(tmp_path / "store.sqlite", CLOCK)
    with leased(lab, store, LeaseTerms()) as held, open_leased(lab, CLOCK, state, held, bring_up=False) as bench:
        drive = bench.drive("srv1", "p0")
        once_online(drive, soon(COMES_WITHIN_S))
        guard = Guard(bench.lab, held, seen=bench.survey())
        with guard.writable("d01", drive, bench.device("srv1", "p0"), soon(COMES_WITHIN_S)) as permit:
            RackProbe(bench.host("srv1"), CLOCK).make_mountable(permit, expected, soon(COMES_WITHIN_S))
        empty = bench.device("srv2", "p2").probe_target()
        assert empty == f"/dev/disk/by-path/{bench.lab.servers['srv2'].paths['p2']}"
        target = ProbeTarget("p2", empty, lba=SECTOR_BEHIND, file_system=FILE_SYSTEM)
        probe = RackProbe(bench.host("srv2"), CLOCK)
        with probe.remap_session([target], soon(COMES_WITHIN_S)) as session:
            arm = session.arm("p2", expected, soon(COMES_WITHIN_S), timeout_s=COMES_WITHIN_S)
            moved = Partial(PortMap.of([(lab.switch_port("srv2", "p2"), 101)]))
            applied = bench.equipment.fabric.apply(moved, soon())
            read = session.wait_verified(arm, soon(2 * COMES_WITHIN_S))
        assert (read.mount_error, read.wrong_drive) == (None, 0)
        assert applied.commanded_ns < read.t_ns < (read.mounted_ns or 0)
        # Nothing has it mounted any more, and it is taken away as any other.
        bench.equipment.fabric.apply(Full(lab.baseline_map()), soon())
        once_online(drive, soon(COMES_WITHIN_S))
    store.close()


def test_somebodys_data_is_not_written(up: CommandLine, tmp_path: Path) -> None:
    lab = load_lab("virtual")
    state = LabState(up.state_home / "labs" / "virtual")
    store = open_store(tmp_path / "store.sqlite", CLOCK)
    with leased(lab, store, LeaseTerms()) as held, open_leased(lab, CLOCK, state, held, bring_up=False) as bench:
        drive, device = bench.drive("srv3", "p1"), bench.device("srv3", "p1")
        once_online(drive, soon(COMES_WITHIN_S))
        with pytest.raises(GuardRefused, match="scratch"):
            Guard(bench.lab, held, seen=bench.survey()).writable("d06", drive, device, soon(COMES_WITHIN_S))
    store.close()


def test_a_drive_that_a_loop_device_stands_on_is_not_written(up: CommandLine, tmp_path: Path) -> None:
    lab = load_lab("virtual")
    state = LabState(up.state_home / "labs" / "virtual")
    store = open_store(tmp_path / "store.sqlite", CLOCK)
    with leased(lab, store, LeaseTerms()) as held, open_leased(lab, CLOCK, state, held, bring_up=False) as bench:
        drive, device, host = bench.drive("srv3", "p0"), bench.device("srv3", "p0"), bench.host("srv3")
        once_online(drive, soon(COMES_WITHIN_S))
        guard, name = Guard(bench.lab, held), lab.baseline["srv3"]["p0"]
        script = 'modprobe loop && losetup --find --show --offset 1048576 "$0"'
        made = host.run(("sh", "-c", script, device.probe_target()), soon(COMES_WITHIN_S))
        assert made.status == 0, made
        try:
            with pytest.raises(GuardRefused, match=f"backs {made.stdout.strip().removeprefix('/dev/')}"):
                guard.writable(name, drive, device, soon(COMES_WITHIN_S))
        finally:
            host.run(("losetup", "--detach", made.stdout.strip()), soon(COMES_WITHIN_S))
        guard.writable(name, drive, device, soon(COMES_WITHIN_S)).close()
    store.close()


@pytest.mark.nightly  # The rehearsal does.
def test_as_a_rack_that_is_simply_there_it_is_checked_discovered_and_mapped(up: CommandLine, rehearsal: str) -> None:
    checked = up("lab", "check", rehearsal)
    assert checked.status == 0, checked
    found = up("lab", "discover", rehearsal, "--name", "found", "--force")
    assert (found.status, "3 servers, 9 drives" in found.out) == (0, True), found
    text = (up.directory / "found.yaml").read_text()
    lab = load_lab("virtual")
    assert all(lab.drives[drive].serial in text for server in SERVERS for drive in lab.drives_of(server))
    assert up("lab", "cabling", rehearsal).status == 0
    assert up("fabric", rehearsal, "show").status == 0
    assert up("fabric", rehearsal, "map", "srv3.p3=d03").status == 0
    comes(up, "srv3", "p3", load_lab("virtual").drives["d03"].serial)
    assert up("heal", rehearsal).status == 0
    comes(up, "srv2", "p0", load_lab("virtual").drives["d03"].serial)


def test_the_console_is_kept(up: CommandLine) -> None:
    server = up.endpoints("virtual")["servers"]["srv2"]
    tell(up, "srv2", "echo rackloop was here >/dev/ttyS0")
    wait_until(lambda: "rackloop was here" in Path(server["console_log"]).read_text(), lambda: "the log lacks it")


@pytest.mark.nightly
def test_two_labs_of_one_machine_do_not_meet(up: CommandLine) -> None:
    text = load_lab("virtual").source.read_text().replace("name: virtual\n", "name: second\n")
    kept = [line for line in text.splitlines() if not line.strip().startswith(("srv2:", "srv3:"))]
    second = up.directory / "second.yaml"
    second.write_text("\n".join(kept))
    assert up("lab", "up", second).status == 0
    try:
        assert up.endpoints(str(second))["servers"]["srv1"]["ssh"] != up.endpoints("virtual")["servers"]["srv1"]["ssh"]
        assert tell(up, "srv1", "hostname").strip() == "srv1"
    finally:
        assert up("lab", "down", second).status == 0
    assert up("lab", "status", "virtual").status == 0


@pytest.mark.nightly
def test_a_lab_that_is_killed_leaves_no_guest_and_comes_up_again(up: CommandLine) -> None:
    os.kill(up.endpoints("virtual")["pid"], signal.SIGKILL)
    up.wait_until_deserted()
    assert up("lab", "status", "virtual").status == 3
    assert up("lab", "down", "virtual").out.strip() == "lab virtual was not up"
    ended = up("lab", "up", "virtual")
    assert ended.status == 0, ended
    comes_all(up, load_lab("virtual"), "srv1")


@pytest.mark.nightly
def test_a_guest_that_ends_takes_the_lab_down_and_says_so(up: CommandLine) -> None:
    guest = next(
        pid for pid, line in up.processes().items() if line.startswith("/usr/bin/qemu") or "qemu-system" in line
    )
    os.kill(guest, signal.SIGKILL)
    up.wait_until_deserted()
    assert "ended by itself: guest srv" in LabState(up.state_home / "labs" / "virtual").last_words()
    assert up("lab", "up", "virtual").status == 0


def test_down_leaves_nothing(up: CommandLine) -> None:
    assert up("lab", "down", "virtual").out.strip() == "lab virtual is down"
    up.wait_until_deserted()
    left = {path.name for path in (up.state_home / "labs" / "virtual").iterdir()}
    assert not left & {"endpoints.json", "rehearsal.yaml", "guest_key", "known_hosts", "switch.tty", "nbd.sock"}
