"""The drives in a mock server's /sys: SCSI devices, NVMe controllers, block devices."""

from __future__ import annotations

from rackloop_labs.mock_hosts._kernel_log import scsi_names
from rackloop_labs.mock_hosts._tree import Tree
from rackloop_labs.mock_hosts._view import AttachedDrive

# The majors of sd: 16 disks of 16 minors each have one.
_SD_MAJORS = (8, *range(65, 72), *range(128, 136))
_NVME_BLOCK_MAJOR = 259
_NVME_MAJOR = 246
_SG_MAJOR = 21
_BSG_MAJOR = 248


def block_number(drive: AttachedDrive) -> str:
    """Major and minor number of the block device."""
    if drive.protocol == "nvme":
        return f"{_NVME_BLOCK_MAJOR}:{drive.number}"
    number = 0
    for letter in drive.kernel_name.removeprefix("sd"):
        number = number * 26 + ord(letter) - ord("a") + 1
    group, place = divmod(number - 1, 16)
    return f"{_SD_MAJORS[group % len(_SD_MAJORS)]}:{place * 16}"


def namespace_id(drive: AttachedDrive) -> str:
    """The wwid of an NVMe namespace as the kernel builds it: NGUID, else EUI-64, else serial and model."""
    if drive.nguid or drive.eui64:
        return f"eui.{drive.nguid or drive.eui64}"
    serial, model = (f"{text:<{width}}".encode().hex() for text, width in ((drive.serial, 20), (drive.model, 40)))
    return f"nvme.1b36-{serial}-{model}-00000001"


def add_nvme(tree: Tree, drive: AttachedDrive, function: str) -> None:
    """An NVMe controller, its subsystem and its namespace, under the PCI function ``function``."""
    name = drive.kernel_name
    controller = f"{function}/nvme/{name}"
    subsystem = f"devices/virtual/nvme-subsystem/nvme-subsys{drive.number}"
    nqn = f"nqn.2014.08.org.nvmexpress:{drive.serial}"
    identity = {
        "model": f"{drive.model:<40}",
        "serial": f"{drive.serial:<20}",
        "firmware_rev": f"{drive.firmware:<8}",
        "subsysnqn": nqn,
    }
    tree.files(controller, identity)
    tree.files(
        controller,
        {
            "address": drive.port.pci_address,
            "cntlid": 0,
            "cntrltype": "io",
            "dev": f"{_NVME_MAJOR}:{drive.number}",
            "numa_node": -1,
            "queue_count": 2,
            "sqsize": 1023,
            "state": "live",
            "transport": "pcie",
            "uevent": f"MAJOR={_NVME_MAJOR}\nMINOR={drive.number}\nDEVNAME={name}\nNVME_TRTYPE=pcie",
        },
    )
    tree.command(f"{controller}/reset_controller", "reset_controller", name)
    tree.command(f"{controller}/rescan_controller", "rescan", drive.port.name)
    tree.link(f"{controller}/device", function)
    tree.member(controller, "class/nvme")
    tree.files(subsystem, identity)
    tree.link(f"{subsystem}/{name}", controller)
    tree.member(subsystem, "class/nvme-subsystem")
    block = f"{controller}/{drive.block_name}"
    tree.files(block, {"nsid": 1, "wwid": namespace_id(drive)})
    if drive.eui64:
        tree.file(f"{block}/eui", bytes.fromhex(drive.eui64).hex(" "))
    if drive.nguid:
        tree.file(f"{block}/nguid", drive.nguid)
    _add_block(tree, drive, block, controller)


def add_scsi(tree: Tree, drive: AttachedDrive, target: str) -> None:
    """A SATA or SAS drive as SCSI device ``H:C:T:L`` in the folder of its target."""
    device = f"{target}/{drive.hctl}"
    vendor, product = scsi_names(drive)
    add_scsi_device(tree, device, vendor, product, drive.firmware, kind=0, generic=drive.generic or "")
    if drive.transport == "sas":
        tree.file(f"{device}/sas_address", f"0x{drive.sas_address}")
    is_named = drive.protocol == "sas" and drive.wwn is not None
    ata_name = f"t10.ATA     {drive.model:<40}{drive.serial:>20}"
    tree.file(f"{device}/wwid", f"naa.{drive.wwn}" if is_named else ata_name)
    if drive.wwn is not None:
        tree.entries[f"{device}/vpd_pg83"] = _device_identification(drive.wwn)
    tree.entries[f"{device}/vpd_pg80"] = _unit_serial_number(drive.serial)
    errors = drive.counters.get("media_errors", 0)
    tree.file(f"{device}/ioerr_cnt", f"{errors:#x}")
    tree.command(f"{device}/delete", "delete", drive.kernel_name)
    tree.link(f"{device}/driver", "bus/scsi/drivers/sd")
    tree.link(f"bus/scsi/drivers/sd/{drive.hctl}", device)
    disk = f"{device}/scsi_disk/{drive.hctl}"
    tree.files(
        disk,
        {"FUA": 0, "allow_restart": int(drive.protocol == "sas"), "cache_type": "write back", "manage_start_stop": 0},
    )
    tree.link(f"{disk}/device", device)
    tree.member(disk, "class/scsi_disk")
    _add_block(tree, drive, f"{device}/block/{drive.block_name}", device)


def _unit_serial_number(serial: str) -> bytes:
    """The vital product data page 80h: the serial number as text."""
    return bytes([0, 0x80, 0, len(serial)]) + serial.encode("ascii", "replace")


def _device_identification(wwn: str) -> bytes:
    """The vital product data page 83h with one designator: the NAA of the logical unit."""
    naa = bytes.fromhex(wwn)
    designator = bytes([0x01, 0x03, 0, len(naa)]) + naa
    return bytes([0, 0x83, 0, len(designator)]) + designator


def add_bsg(tree: Tree, device: str, name: str) -> None:
    """The node by which a device takes SCSI or SMP requests, numbered in order."""
    node = f"{device}/bsg/{name}"
    number = sum(path.startswith("class/bsg/") for path in tree.entries)
    tree.file(f"{node}/dev", f"{_BSG_MAJOR}:{number}")
    tree.link(f"{node}/device", device)
    tree.member(node, "class/bsg")


def add_scsi_device(
    tree: Tree, device: str, vendor: str, product: str, revision: str, *, kind: int, generic: str
) -> None:
    """Add the common part of every SCSI device; ``kind`` is its peripheral device type."""
    hctl = device.rpartition("/")[2]
    tree.files(
        device,
        {
            "device_blocked": 0,
            "iocounterbits": 32,
            "model": f"{product:<16.16}",
            "queue_depth": 32,
            "queue_type": "simple",
            "rev": f"{revision:<4.4}",
            "scsi_level": 6,
            "state": "running",
            "timeout": 30,
            "type": kind,
            "uevent": f"DEVTYPE=scsi_device\nDRIVER={'sd' if kind == 0 else 'ses'}\nMODALIAS=scsi:t-0x{kind:02x}",
            "vendor": f"{vendor:<8.8}",
        },
    )
    tree.member(device, "bus/scsi")
    tree.file(f"{device}/scsi_generic/{generic}/dev", f"{_SG_MAJOR}:{generic.removeprefix('sg')}")
    for folder, name in (("scsi_device", hctl), ("scsi_generic", generic)):
        node = f"{device}/{folder}/{name}"
        tree.link(f"{node}/device", device)
        tree.member(node, f"class/{folder}")
    add_bsg(tree, device, hctl)
    tree.link(f"{device}/generic", f"{device}/scsi_generic/{generic}")


def _add_block(tree: Tree, drive: AttachedDrive, block: str, device: str) -> None:
    number = block_number(drive)
    major, _, minor = number.partition(":")
    counters = drive.counters
    reads, writes = counters.get("reads", 0), counters.get("writes", 0)
    sectors = counters.get("bytes_read", 0) // 512, counters.get("bytes_written", 0) // 512
    flushes, trims = counters.get("flushes", 0), counters.get("trims", 0)
    tree.files(
        block,
        {
            "alignment_offset": 0,
            "capability": 0,
            "dev": number,
            "discard_alignment": 0,
            "diskseq": 1 + int(minor),
            "ext_range": 256,
            "hidden": 0,
            "inflight": f"{0:>8} {0:>8}",
            "range": 0 if drive.protocol == "nvme" else 16,
            "removable": 0,
            "ro": 0,
            "size": drive.size_bytes // 512,
            "stat": f"{reads:>8} {0:>8} {sectors[0]:>8} {0:>8} {writes:>8} {0:>8} {sectors[1]:>8} {0:>8} {0:>8} "
            f"{0:>8} {0:>8} {trims:>8} {0:>8} {0:>8} {0:>8} {flushes:>8} {0:>8}",
            "uevent": f"MAJOR={major}\nMINOR={minor}\nDEVNAME={drive.block_name}\nDEVTYPE=disk",
        },
    )
    tree.files(f"{block}/queue", queue_attributes(drive))
    tree.folder(f"{block}/holders")
    tree.folder(f"{block}/slaves")
    tree.link(f"{block}/device", device)
    tree.member(block, "class/block")
    tree.link(f"block/{drive.block_name}", block)
    tree.link(f"dev/block/{number}", block)


def queue_attributes(drive: AttachedDrive) -> dict[str, object]:
    """The attributes under ``queue`` of a block device."""
    trims = not drive.is_rotational
    return {
        "add_random": int(drive.is_rotational),
        "chunk_sectors": 0,
        "dax": 0,
        "discard_granularity": drive.sector_bytes if trims else 0,
        "discard_max_bytes": 2_147_450_880 if trims else 0,
        "discard_max_hw_bytes": 2_147_450_880 if trims else 0,
        "discard_zeroes_data": 0,
        "fua": int(drive.protocol == "nvme"),
        "hw_sector_size": drive.sector_bytes,
        "io_poll": 0,
        "iostats": 1,
        "logical_block_size": drive.sector_bytes,
        "max_hw_sectors_kb": 32767,
        "max_sectors_kb": 1280,
        "max_segments": 168,
        "minimum_io_size": drive.sector_bytes,
        "nomerges": 0,
        "nr_requests": 1023 if drive.protocol == "nvme" else 64,
        "nr_zones": 0,
        "optimal_io_size": 0,
        "physical_block_size": drive.sector_bytes,
        "read_ahead_kb": 128,
        "rotational": int(drive.is_rotational),
        "rq_affinity": 1,
        "scheduler": "[none] mq-deadline" if drive.protocol == "nvme" else "[mq-deadline] none",
        "wbt_lat_usec": 75000 if drive.is_rotational else 2000,
        "write_cache": "write back",
        "write_same_max_bytes": 0,
        "write_zeroes_max_bytes": 0,
        "zone_append_max_bytes": 0,
        "zone_write_granularity": 0,
        "zoned": "none",
    }
