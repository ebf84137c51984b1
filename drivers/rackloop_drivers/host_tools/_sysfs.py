"""Parser for udev and sysfs: the location of a drive, and SAS PHYs.

Sources: udev's path_id builtin for by-path names, Linux ``Documentation/scsi/scsi_transport_sas`` for the SAS
classes, ``Documentation/PCI`` for slots, ``drivers/nvme/target/configfs.c`` and
``drivers/target/target_core_configfs.c`` for what is offered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rackloop.abilities.inventory import SeenPhy
from rackloop.drive_identifiers import PCI_ADDRESS

_PCI = re.compile(PCI_ADDRESS)
_EXPANDER_PHY = re.compile(r"-sas-exp0x[0-9a-f]{16}-phy(\d+)-")
_END_DEVICE = re.compile(r"/(end_device-[0-9:]+)/")
_ENCLOSURE_SLOT = re.compile(r"^/sys/block/([^/]+)/device/enclosure_device:(.+)$")
_DIGITS = re.compile(r"\d+")
_SUBSYSTEMS = "nvmet/subsystems/"
_BACKSTORES = "target/core/"


def parse_exports(listing: str, name: str) -> Iterator[str]:
    """The offers of the disk ``name``, or of a partition of it, to other machines, each as a sentence part."""
    for line in listing.splitlines():
        node, _, offer = line.partition(" ")
        if not _is_of(name, node):
            continue
        offered = node.removeprefix("/dev/")
        if offer.startswith(_BACKSTORES):
            yield f"{offered} is the backstore {offer.removeprefix(_BACKSTORES)} of LIO, for SCSI initiators"
        else:
            nqn, _, number = offer.removeprefix(_SUBSYSTEMS).rpartition("/namespaces/")
            yield f"{offered} is namespace {number} of {nqn}, for NVMe over Fabrics"


def parse_loops(listing: str, name: str) -> Iterator[str]:
    """The loop devices upon the disk ``name``, or upon a partition of it, each as a sentence part."""
    for line in listing.splitlines():
        loop, _, node = line.partition(" ")
        if _is_of(name, node):
            yield f"{node.removeprefix('/dev/')} backs {loop}; detach it with `losetup --detach /dev/{loop}`"


def parse_paths(listing: str, name: str) -> list[str]:
    """The kernel names of other paths to the disk ``name``: of disks by the same world-wide identifier."""
    named = [line.split(" ", 1) for line in listing.splitlines() if " " in line]
    own = {who for disk, who in named if disk == name}
    return [disk for disk, who in named if disk != name and who in own]


def _is_of(name: str, node: str) -> bool:
    """Whether a node is that of a disk, or of a partition of it."""
    return re.fullmatch(rf"/dev/{re.escape(name)}(p[0-9]+|(?<![0-9])[0-9]+)?", node) is not None


def parse_by_path(listing: str) -> dict[str, tuple[str, ...]]:
    """The names under /dev/disk/by-path of each kernel name, from lines ``NAME TARGET``; the shortest first.

    Partitions' names are left out. A SATA drive has ``...-ata-1`` beside ``...-ata-1.0``.
    """
    names: dict[str, list[str]] = {}
    for line in listing.splitlines():
        name, _, target = line.rpartition(" ")
        if name and not re.search(r"-part\d+$", name):
            names.setdefault(target.rsplit("/", 1)[-1], []).append(name)
    return {kernel: tuple(sorted(found, key=lambda name: (len(name), name))) for kernel, found in names.items()}


def parse_values(listing: str) -> dict[str, str]:
    """The content of files by their path, from what ``grep -H .`` prints of one-line files."""
    # Addresses within a path of sysfs have colons too; the value begins after the last part of the path.
    values: dict[str, str] = {}
    for line in listing.splitlines():
        folder, slash, rest = line.rpartition("/") if "/" in line else ("", "", line)
        name, colon, value = rest.partition(":")
        if slash and colon:
            values[f"{folder}/{name}"] = value.strip()
    return values


def parse_phys(values: Mapping[str, str]) -> tuple[SeenPhy, ...]:
    """The PHYs of ``/sys/class/sas_phy`` among ``values``, by name."""
    phys: dict[str, dict[str, str]] = {}
    for path, value in values.items():
        folder, _, file = path.rpartition("/")
        parent, _, phy = folder.rpartition("/")
        if parent == "/sys/class/sas_phy":
            phys.setdefault(phy, {})[file] = value
    return tuple(
        SeenPhy(
            name=name,
            sas_address=files.get("sas_address", ""),
            link_rate=files.get("negotiated_linkrate", ""),
            is_enabled=files.get("enable") == "1",
            counters={file: int(text) for file, text in files.items() if file.endswith("_count") and text.isdigit()},
        )
        for name, files in sorted(phys.items())
    )


class Places:
    """The places of drives: ``links`` are the targets of ``/sys/block``, ``values`` files of sysfs."""

    def __init__(self, links: str, values: Mapping[str, str], enclosures: str) -> None:
        self._links = dict(line.split(" ", 1) for line in links.splitlines() if " " in line)
        self._bays = {path.split("/")[-2]: value for path, value in values.items() if path.endswith("/bay_identifier")}
        self._pci_slots = {
            value: path.split("/")[-2]
            for path, value in values.items()
            if path.startswith("/sys/bus/pci/slots/") and path.endswith("/address")
        }
        found = (_ENCLOSURE_SLOT.match(line) for line in enclosures.splitlines())
        self._enclosure_slots = {match[1]: match[2] for match in found if match}

    def slot_of(self, kernel_name: str, by_paths: tuple[str, ...]) -> str | None:
        """The slot a drive is in, None where nothing says.

        That is the number in the name the enclosure gives it (SES), else the bay its SAS device reports, else the
        expander's PHY, else the PCIe slot of an NVMe drive.
        """
        if (name := self._enclosure_slots.get(kernel_name)) is not None:
            digits = _DIGITS.findall(name)
            return str(int(digits[-1])) if digits else name.strip()
        end_device = _END_DEVICE.search(self._links.get(kernel_name, ""))
        if end_device and (bay := self._bays.get(end_device[1], "")).isdigit():
            return str(int(bay))
        for path in by_paths:
            if phy := _EXPANDER_PHY.search(path):
                return phy[1]
            if (addresses := _PCI.findall(path)) and kernel_name.startswith("nvme"):
                # Behind Intel VMD, that of the controller goes before the drive's.
                return self._pci_slots.get(addresses[-1].rpartition(".")[0])
        return None
