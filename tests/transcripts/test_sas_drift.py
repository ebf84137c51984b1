"""Emulated ``lsblk``, ``sg_ses``, ``smp_*``, /sys and kernel log against recordings of the real ones."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from rackloop_labs.mock_hosts import _kernel_log as says
from rackloop_labs.mock_hosts._sysfs_ports import build_tree
from rackloop_labs.mock_hosts._tree import Link
from rackloop_labs.mock_hosts._view import HostView
from tests.transcripts.drift import RECORDED, Declared, recording, text_drift, undeclared
from tests.transcripts.enclosure import SERVER
from tests.transcripts.guest import GUEST, NVME, SAS, SATA_HDD, SATA_SSD, drift, run

_FILE_SYSTEM = "the drives of a mock server have no file system; the guest's root was on one more, virtual disk"
_ENCLOSURE = "the recording decodes the page alone; asked of a device, sg_ses says first whose it is"

LSBLK: Declared = {
    "type blockdevices[].fstype: null, not null|string": _FILE_SYSTEM,
    "type blockdevices[].mountpoint*": _FILE_SYSTEM,
    "type blockdevices[].fs*": _FILE_SYSTEM,
    "type blockdevices[].tran: string, not null|string": _FILE_SYSTEM,
    "type blockdevices[].serial: string, not null|string": _FILE_SYSTEM,
    "type blockdevices[].wwn: string, not null|string": _FILE_SYSTEM,
    "type blockdevices[].model: string, not null|string": _FILE_SYSTEM,
    "type blockdevices[].state: string, not null|string": _FILE_SYSTEM,
    "type blockdevices[].ptuuid*": _FILE_SYSTEM,
    "type blockdevices[].uuid*": _FILE_SYSTEM,
    "type blockdevices[].label*": _FILE_SYSTEM,
}
_HEADER: Declared = {"extra   RACKLOOP  EXPANDER # ": _ENCLOSURE}
SES = sorted(path.stem for path in RECORDED.glob("sg_ses-*.cmd"))
SMP = sorted(path.stem for path in RECORDED.glob("smp_*.cmd"))


@pytest.mark.parametrize("name", ["lsblk.json", "lsblk-O.json"])
def test_lsblk_has_the_fields_of_the_real_one(name: str) -> None:
    findings = drift(recording(name))
    assert undeclared(findings, {key: why for key, why in LSBLK.items() if _is_needed(key, findings)}) == []


def _is_needed(key: str, findings: list[str]) -> bool:
    """Whether one of the two recordings needs a declaration: they have different columns."""
    return any(re.fullmatch(".*".join(map(re.escape, key.split("*"))), finding) for finding in findings)


@pytest.mark.parametrize("name", SES)
def test_sg_ses_says_what_the_real_one_decodes(name: str) -> None:
    declared = _HEADER
    if "-get" in name or "-bad" in name:
        declared = {}
    assert undeclared(drift(recording(name), SERVER), declared) == []


@pytest.mark.parametrize("name", [name for name in SMP if name != "smp_discover"])
def test_smp_utils_say_what_the_real_ones_do(name: str) -> None:
    assert drift(recording(name), SERVER) == []


def test_sg_ses_on_a_drive_and_smp_discover_without_an_expander_fail_as_the_real_ones() -> None:
    view = replace(GUEST, drives=(replace(SAS, generic="sg0"),))
    assert drift(recording("sg_ses"), view) == []
    assert drift(recording("smp_discover"), view) == []


@pytest.mark.parametrize(("tool", "status"), [("smp_discover", 0), ("smp_phy_control", 0), ("sg_ses", 1), ("lsblk", 1)])
def test_an_unknown_option_is_refused_as_by_the_real_one(tool: str, status: int) -> None:
    """smp_utils exit 0 after their usage."""
    answer = run(tool, "--zap", view=SERVER)
    assert answer.stderr.splitlines()[0] == f"{tool}: unrecognized option '--zap'"
    assert answer.status == status


def phy_text(view: HostView, phy: str) -> str:
    """A PHY as the recorded loop prints it."""
    tree = build_tree(view)
    link = tree.entries[f"class/sas_phy/{phy}"]
    assert isinstance(link, Link)
    folder = link.target.removeprefix("../../")
    lines = [f"== /sys/class/sas_phy/{phy}"]
    for path, text in sorted(tree.entries.items()):
        if path.startswith(f"{folder}/") and isinstance(text, str):
            name = path.rpartition("/")[2]
            denied = f"cat: '/sys/class/sas_phy/{phy}/{name}': Permission denied\n"
            lines.append(f"{name}: {denied if name.endswith('_reset') else text}".rstrip())
    return "".join(f"{line}\n" for line in lines)


def test_a_phy_has_the_attributes_of_the_real_ones() -> None:
    _, attached, unattached, *_ = re.split(r"(?m)^(?=== )", recording("sas-phy").stdout)
    attached, unattached = (re.sub("(?m) +$", "", text) for text in (attached, unattached))
    assert text_drift(attached, phy_text(GUEST, "phy-0:0")) == []
    empty = replace(GUEST, ports=(*GUEST.ports[:3], replace(GUEST.ports[3], is_linked=False)), drives=())
    assert text_drift(unattached, phy_text(empty, "phy-3:0")) == []


def test_block_devices_are_where_the_real_ones_are() -> None:
    """Below the PCI function, which here is behind a root port of its own."""
    real = dict(re.findall(r"(\w+) -> \.\./devices/pci0000:00/(?:[\da-f]+:[\da-f:]+\.\d/)+(\S+)", _listing()))
    entries = build_tree(GUEST).entries
    for drive in (SAS, SATA_SSD, SATA_HDD, NVME):
        link = entries[f"block/{drive.block_name}"]
        assert isinstance(link, Link)
        place = re.sub(r"^\.\./devices/pci0000:00/(?:[\da-f]+:[\da-f:]+\.\d/)+", "", link.target)
        assert re.sub(r"\d+", "#", place) == re.sub(r"\d+", "#", real[drive.block_name])
    assert isinstance(entries["class/sas_end_device/end_device-0:0"], Link)
    assert isinstance(entries["class/sas_device/end_device-0:0"], Link)


def _listing() -> str:
    return recording("sas-end-device").stdout


def test_a_port_is_a_slot_with_the_attributes_of_the_real_ones() -> None:
    entries = build_tree(GUEST).entries
    slot, address, power = recording("pci-slots").stdout.splitlines()[0].split()
    assert re.fullmatch(r"/sys/bus/pci/slots/\d+", slot)
    assert text_drift(address, str(entries["bus/pci/slots/0/address"])) == []
    assert text_drift(power, str(entries["bus/pci/slots/0/power"])) == []


# Shapes of what a mock server's kernel says that the recorded kernel had no occasion to say.
_NOT_RECORDED = {
    "pcieport #:#:#.#: pciehp: Slot(#): Card present": "the guest's slots are the firmware's, not pciehp's",
    "pcieport #:#:#.#: pciehp: Slot(#): Link Up": "the guest's slots are the firmware's, not pciehp's",
    "scsi host#: ioc#: LSISAS# A#, FwRev=#h, Ports=#, MaxQ=#, IRQ=#": "here for the words; see the recording",
}


def shape(line: str) -> str:
    """A kernel message without its numbers and names."""
    line = re.sub(r"\b(?:0x)?[0-9a-f]*\d[0-9a-f]*h?\b", "#", line)
    return re.sub(r"(\b(?:sd|sg|ata|host|ioc|nvme|target))(?:[a-z]|\d+|#)?\b", r"\1#", line)


@pytest.mark.parametrize("drive", [SAS, SATA_SSD, SATA_HDD, NVME], ids=lambda drive: drive.kernel_name)
def test_an_attached_drive_is_announced_as_by_the_recorded_kernel(drive: object) -> None:
    recorded = {
        shape(line.partition("] ")[2])
        for name in ("dmesg", "dmesg-nvme-replug")
        for line in (RECORDED / f"{name}.out").read_text().splitlines()
    }
    attached = next(known for known in GUEST.drives if known is drive)
    said = {shape(message.text) for message in says.attached(replace(attached, generic="sg0"))}
    assert said - recorded - {shape(line) for line in _NOT_RECORDED} == set()
