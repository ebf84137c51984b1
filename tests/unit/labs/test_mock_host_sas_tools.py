"""Emulated ``dmesg``, ``lsblk``, ``lsscsi``, ``sg_ses`` and ``smp_*`` as functions of what a server sees."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from rackloop.lab import Drive
from rackloop_labs.mock_hosts._kernel import Kernel
from rackloop_labs.mock_hosts._kernel_log import attached
from rackloop_labs.mock_hosts._sysfs import obey
from rackloop_labs.mock_hosts._sysfs_ports import build_tree
from rackloop_labs.mock_hosts._view import HbaPort, KernelLine
from tests.transcripts.enclosure import EXPANDER, SERVER
from tests.transcripts.guest import GUEST, PORTS, SAS, RecordedActs, run

LOGGED = replace(
    GUEST,
    kernel_log=(KernelLine(0, "Linux version 6", 5), KernelLine(12_345_678, 'critical medium error, dev "sda"', 3)),
)


def test_the_kernel_log_is_printed_with_the_time_since_the_boot() -> None:
    assert run("dmesg", view=LOGGED).stdout == (
        '[    0.000000] Linux version 6\n[   12.345678] critical medium error, dev "sda"\n'
    )


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["-T"], '[Fri Nov 20 20:59:40 2026] critical medium error, dev "sda"'),
        (["--time-format", "iso"], '2026-11-20T20:59:40,345678+00:00 critical medium error, dev "sda"'),
        (["--time-format=iso", "--color=never"], '2026-11-20T20:59:40,345678+00:00 critical medium error, dev "sda"'),
        (["-t"], 'critical medium error, dev "sda"'),
        (["-x"], 'kern  :err   : [   12.345678] critical medium error, dev "sda"'),
        (["-r"], '<3>[   12.345678] critical medium error, dev "sda"'),
    ],
)
def test_the_kernel_log_has_the_formats_of_dmesg(options: list[str], line: str) -> None:
    assert GUEST.booted_at == GUEST.now - timedelta(seconds=20)
    answer = run("dmesg", *options, "-l", "err,crit", view=LOGGED)
    assert (answer.stdout, answer.status) == (f"{line}\n", 0)


def test_the_kernel_log_as_json() -> None:
    document = json.loads(run("dmesg", "-J", view=LOGGED).stdout)
    assert document["dmesg"][1] == {"pri": 3, "time": 12.345678, "msg": 'critical medium error, dev "sda"'}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-w"], "dmesg: following is not supported by the kernel log of a mock server"),
        (["-C"], "dmesg: clear kernel buffer failed: Operation not permitted"),
        (["-l", "loud"], "dmesg: unknown level 'loud'"),
        (["--time-format=stardate"], "dmesg: unknown time format: stardate"),
        (["-Q"], "dmesg: invalid option -- 'Q'"),
        (["--level"], "dmesg: option '--level' requires an argument"),
        (["sda"], "dmesg: bad usage"),
    ],
)
def test_dmesg_says_what_it_cannot_do(options: list[str], message: str) -> None:
    answer = run("dmesg", *options, view=LOGGED)
    assert (answer.stdout, answer.stderr.splitlines()[0], answer.status) == ("", message, 1)


@pytest.mark.parametrize(
    ("devices", "found", "stderr", "status"),
    [
        (["/dev/sda"], ["sda"], "", 0),
        (["/dev/disk/by-path/pci-0000:10:00.0-sas-phy0-lun-0"], ["sda"], "", 0),
        (["/dev/nvme0n1", "/dev/sdb"], ["sdb", "nvme0n1"], "", 0),
        (["/dev/sdz"], [], "lsblk: /dev/sdz: not a block device\n", 32),
        (["/dev/sda", "/dev/sdz"], ["sda"], "lsblk: /dev/sdz: not a block device\n", 64),
    ],
)
def test_lsblk_shows_the_devices_it_is_asked_for(
    devices: list[str], found: list[str], stderr: str, status: int
) -> None:
    answer = run("lsblk", "-J", *devices)
    assert [entry["name"] for entry in json.loads(answer.stdout)["blockdevices"]] == found
    assert (answer.stderr, answer.status) == (stderr, status)


def test_lsblk_sorts_and_filters() -> None:
    assert run("lsblk", "-ndo", "NAME", "-x", "SERIAL").stdout.split() == ["nvme0n1", "sda", "sdb", "sdc"]
    assert run("lsblk", "-no", "name", "-I", "259").stdout == "nvme0n1\n"
    assert run("lsblk", "-no", "name", "-e", "8").stdout == "nvme0n1\n"
    assert run("lsblk", "-So", "name,tran").stdout == "NAME TRAN\nsda  sas\nsdb  sata\nsdc  sata\n"


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0B"), (1023, "1023B"), (1 << 20, "1M"), (1536 << 20, "1.5G"), (4_000_787_030_016, "3.6T"), (2047, "2K")],
)
def test_lsblk_rounds_sizes_to_a_tenth(size: int, text: str) -> None:
    view = replace(GUEST, drives=(replace(SAS, size_bytes=size),))
    assert run("lsblk", "-no", "SIZE", view=view).stdout.strip() == text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "NAME,SPEED"], "lsblk: unknown column: SPEED"),
        (["-x", "SPEED"], "lsblk: unknown column: SPEED"),
        (["-I", "eight"], "lsblk: failed to parse list 'eight'"),
        (["-M"], "lsblk: --merge is not supported on a mock server"),
        (["--speed"], "lsblk: unrecognized option '--speed'"),
    ],
)
def test_lsblk_refuses_what_it_does_not_know(options: list[str], message: str) -> None:
    answer = run("lsblk", *options)
    assert (answer.stdout, answer.stderr.splitlines()[0], answer.status) == ("", message, 1)


@pytest.mark.parametrize(
    ("which", "found"),
    [("1", ["1:0:0:0"]), ("*:0:0:0", ["0:0:0:0", "1:0:0:0", "2:0:0:0"]), ("N:0", ["N:0:0:1"]), ("7:0:0:0", [])],
)
def test_lsscsi_filters_by_address(which: str, found: list[str]) -> None:
    lines = run("lsscsi", which).stdout.splitlines()
    assert [line.partition("]")[0].removeprefix("[") for line in lines] == found


def test_lsscsi_refuses_what_it_does_not_do() -> None:
    assert run("lsscsi", "sda").stderr == "cannot decode sda as an integer\n"
    assert run("lsscsi", "--lunhex").stderr == "lsscsi: --lunhex is not supported on a mock server\n"
    assert run("lsscsi", "-tl").status == 1


def test_a_slot_is_switched_off_and_on_by_its_element() -> None:
    acts = RecordedActs()
    for change in ("--set=devoff", "--clear=devoff", "--set=3:4:1", "--set=devoff=0"):
        assert run("sg_ses", "--dev-slot-num=2", change, "/dev/sg0", view=SERVER, acts=acts).status == 0
    assert acts.asked == [("power_slot", f"exp1/2/{is_on}") for is_on in (False, True, False, True)]


def test_nothing_else_of_an_enclosure_can_be_set() -> None:
    acts = RecordedActs()
    answer = run("sg_ses", "--index=2", "--set=ident", "/dev/sg0", view=SERVER, acts=acts)
    assert (answer.status, acts.asked) == (99, [])
    assert answer.stderr.startswith("the enclosure of a mock server has no ident to set, only devoff")


@pytest.mark.parametrize(
    ("op", "asked"),
    [("lr", ["reset_link"]), ("hr", ["reset_link"]), ("2", ["reset_link"]), ("dis", ["disable_link"]), ("nop", [])],
)
@pytest.mark.parametrize(("device", "phy"), [("expander-1:0", "8"), ("sas_host1", "0")])
def test_the_link_of_an_hba_port_is_reset_from_either_end(op: str, asked: list[str], device: str, phy: str) -> None:
    acts = RecordedActs()
    answer = run("smp_phy_control", f"--phy={phy}", f"--op={op}", f"/dev/bsg/{device}", view=SERVER, acts=acts)
    assert answer.status == 0
    assert acts.asked == [(act, "p1") for act in asked]


def test_an_hba_port_discovers_its_expander_and_a_disabled_link() -> None:
    summary = run("smp_discover", "/dev/bsg/sas_host1", view=SERVER).stdout
    assert summary == f"  phy   0:D:attached:[{EXPANDER.sas_address}:00 exp  t(SMP)]  6 Gbps\n"
    port = replace(PORTS[3], is_enabled=False, is_linked=False)
    view = replace(GUEST, ports=(port,), drives=())
    assert run("smp_discover", "/dev/bsg/sas_host3", view=view).stdout == "  phy   0:D:disabled\n"


def test_a_sata_drive_behind_an_expander_is_reached_by_sas() -> None:
    drive = replace(SERVER.drives[0], protocol="sata", wwn="5000c50000000def")
    view = replace(SERVER, drives=(drive,))
    address = "500605b100000003"
    assert run("lsblk", "-no", "TRAN,VENDOR", view=view).stdout.split() == ["sas", "ATA"]
    assert f"sas:0x{address} " in run("lsscsi", "-t", view=view).stdout
    discovered = run("smp_discover", "/dev/bsg/expander-1:0", view=view).stdout.splitlines()[0]
    assert discovered == f"  phy   2:D:attached:[{address}:00  t(SATA)]  6 Gbps"
    assert build_tree(view).entries["class/sas_device/end_device-1:0:2"] is not None
    assert next(line.text for line in attached(drive)) == (
        f"mptsas: ioc1: attaching stp device: fw_channel 0, fw_id 2, phy 2, sas_addr 0x{address}"
    )


def test_a_write_to_sysfs_means_what_the_kernel_means() -> None:
    acts = RecordedActs()
    for meaning, text in (
        (("link_reset", "p0"), "1"),
        (("link_reset", "p0"), ""),
        (("enable", "p0"), "0"),
        (("enable", "p0"), "1"),
        (("enable", "p0"), "2"),
        (("rescan", "p1"), "1"),
        (("scan", "p1"), "- - -"),
        (("scan", "p1"), "0 3 0"),
        (("scan", "p1"), "1 3 0"),
        (("scan", "p1"), "0 3 1"),
        (("scan", "p1"), "0 3"),
        (("scan", "p1"), "all of it"),
        (("rescan_bus",), "1"),
        (("rescan_bus", "p1"), "1"),
        (("rescan_bus", "p1"), "0"),
        (("delete", "sda"), "1"),
        (("delete", "sdz"), "1"),
        (("reset_controller", "nvme0"), "1"),
        ((), "1"),
    ):
        obey(meaning, text, GUEST, acts)
    obey(("slot_power", "exp1", "2"), "off", SERVER, acts)
    obey(("slot_power", "exp1", "2"), "maybe", SERVER, acts)
    assert acts.asked == [
        ("reset_link", "p0"),
        ("disable_link", "p0"),
        ("enable_link", "p0"),
        ("rescan", "p1"),
        ("rescan", "p1"),
        ("rescan", "p1/3"),
        ("rescan_bus", ""),
        ("rescan_bus", "p1"),
        ("remove", "sda"),
        ("reset_controller", "nvme0"),
        ("power_slot", "exp1/2/False"),
    ]


def test_a_bus_is_looked_at_by_itself_and_a_device_by_the_bus_that_it_is_on() -> None:
    commands, port = build_tree(GUEST).commands, GUEST.ports[1]
    root, bridge = "devices/pci0000:00", f"devices/pci0000:00/{port.bridge_address}"
    bus = port.pci_address.rpartition(":")[0]
    assert commands[f"{bridge}/pci_bus/{bus}/rescan"] == ("rescan_bus", port.name)
    assert commands[f"{bridge}/{port.pci_address}/rescan"] == ("rescan_bus", port.name)
    assert commands[f"{root}/pci_bus/0000:00/rescan"] == commands[f"{bridge}/rescan"] == ("rescan_bus",)


def described(serial: str) -> Drive:
    fields = {"profile": "sata-ssd", "serial": serial, "size": "8 GiB", "port": "101", "scratch": "true"}
    return Drive.model_validate(fields, context={})


def kernel() -> Kernel:
    return Kernel(HbaPort(f"p{i}", i, i, f"{i:016x}", is_linked=False, phy_resets=0) for i in range(40))


def kernel_names(known: Kernel) -> list[str]:
    return [drive.kernel_name for drive in known.drives(frozenset())]


def test_disks_are_named_as_the_kernel_counts() -> None:
    known = kernel()
    known.boot(0, "boot")
    for index in range(28):
        known.online(0, (f"p{index}", None), f"d{index}", described(f"S{index}"))
    assert kernel_names(known)[:2] + kernel_names(known)[-3:] == ["sda", "sdb", "sdz", "sdaa", "sdab"]
    known.offline(1, ("p3", None))
    known.online(2, ("p30", None), "d30", described("S30"))
    assert kernel_names(known)[-1] == "sdd"


def test_a_boot_names_drives_in_order_of_ports_and_begins_the_log_anew() -> None:
    known = kernel()
    known.online(0, ("p1", None), "late", described("S1"))
    assert (kernel_names(known), known.log) == ([], ())
    known.boot(1_000_000_000, "one")
    known.online(2_000_000_000, ("p0", None), "early", described("S0"))
    assert [drive.drive_id for drive in known.drives(frozenset())] == ["late", "early"]
    assert known.log[-1].at_us == 1_000_000
    known.boot(5_000_000_000, "two")
    assert [(drive.drive_id, drive.kernel_name) for drive in known.drives(frozenset())] == [
        ("early", "sda"),
        ("late", "sdb"),
    ]
    assert {line.at_us for line in known.log} == {0}
    known.halt()
    assert (kernel_names(known), known.log) == ([], ())


def test_a_request_nobody_answered_is_told_of_the_drive_that_was_there() -> None:
    known = kernel()
    known.boot(0, "boot")
    known.timed_out(1, ("p0", None), 4096, 30, is_write=True)
    assert not any("error" in line.text for line in known.log)
    known.online(2, ("p0", None), "d0", described("S0"))
    known.offline(3, ("p0", None))
    known.timed_out(4_000_000, ("p0", None), 4096, 30, is_write=True)
    assert [line.text for line in known.log[-11:]] == [
        "ata1.00: exception Emask 0x0 SAct 0x1 SErr 0x0 action 0x6 frozen",
        "ata1.00: failed command: WRITE FPDMA QUEUED",
        "ata1.00: status: { DRDY }",
        "ata1: hard resetting link",
        "ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)",
        "ata1.00: configured for UDMA/133",
        "sd 0:0:0:0: [sda] tag#0 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK cmd_age=30s",
        "sd 0:0:0:0: [sda] tag#0 Sense Key : Aborted Command [current] ",
        "sd 0:0:0:0: [sda] tag#0 Add. Sense: No additional sense information",
        "sd 0:0:0:0: [sda] tag#0 CDB: Write(10) 2a 00 00 00 00 08 00 00 01 00",
        "I/O error, dev sda, sector 8 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2",
    ]
