"""The kernel messages of a mock server about links and drives, in the words of Linux 6.1.

The wording is that of the drivers ``ahci``/``libata``, ``mptsas``, ``sd``, ``pciehp`` and ``nvme``; recordings of a
real kernel are in ``tests/transcripts``. Nothing here keeps state: a message is a text and a priority.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rackloop_labs.mock_hosts._view import AttachedDrive, AttachedExpander, HbaPort

_ERROR = 3
_WARNING = 4
_NOTICE = 5

_NVME_UNREAD = ("Read(0x2)", "Unrecovered Read Error (sct 0x2 / sc 0x81)")


class Message(NamedTuple):
    """A message, and its priority from 0 (emergency) to 7 (debug)."""

    text: str
    priority: int = 6


def booting(ports: Sequence[HbaPort]) -> Iterator[Message]:
    """A kernel that begins, this machine's as ``uname`` says, and the HBA port functions it finds."""
    kernel = os.uname()
    yield Message(f"Linux version {kernel.release} {kernel.version}", _NOTICE)
    for port in ports:
        yield Message(
            f"scsi host{port.index}: ioc{port.index}: LSISAS1068 A0, FwRev=01329200h, Ports=1, MaxQ=128, IRQ=23"
        )


def attached(drive: AttachedDrive) -> Iterator[Message]:
    """A drive that was found."""
    if drive.protocol == "nvme":
        slot = f"pcieport {drive.port.bridge_address}: pciehp: Slot({drive.port.index}):"
        yield Message(f"{slot} Card present")
        yield Message(f"{slot} Link Up")
        yield from _nvme_found(drive)
        return
    yield from _sata_found(drive) if drive.transport == "sata" else _sas_found(drive)
    unit, name = f"sd {drive.hctl}:", drive.kernel_name
    blocks = drive.size_bytes // drive.sector_bytes
    sizes = f"{sized(drive.size_bytes, 1000)}/{sized(drive.size_bytes, 1024)}"
    yield Message(f"{unit} [{name}] {blocks} {drive.sector_bytes}-byte logical blocks: ({sizes})", _NOTICE)
    yield Message(f"{unit} [{name}] Write Protect is off", _NOTICE)
    yield Message(f"{unit} [{name}] Mode Sense: {'00 3a 00 00' if drive.protocol == 'sata' else '63 00 00 08'}", 7)
    yield Message(f"{unit} [{name}] Write cache: enabled, read cache: enabled, doesn't support DPO or FUA", _NOTICE)
    yield Message(f"{unit} [{name}] Attached SCSI disk", _NOTICE)
    yield Message(f"{unit} Attached scsi generic {drive.generic} type 0", _NOTICE)


def detached(drive: AttachedDrive) -> Iterator[Message]:
    """A drive whose link, power or slot went away."""
    if drive.protocol == "nvme":
        slot = f"pcieport 0000:00:{0x10 + drive.port.index:02x}.0: pciehp: Slot({drive.port.index}):"
        yield Message(f"{slot} Link Down")
        yield Message(f"{slot} Card not present")
        return
    if drive.transport == "sata":
        ata = ata_name(drive.port)
        yield Message(f"{ata}: SATA link down (SStatus 0 SControl 300)")
        yield Message(f"{ata}.00: disable device", _WARNING)
    unit, name = f"sd {drive.hctl}:", drive.kernel_name
    result = "failed: Result: hostbyte=DID_BAD_TARGET driverbyte=DRIVER_OK"
    yield from removed(drive)
    yield Message(f"{unit} [{name}] Synchronize Cache(10) {result}")
    if drive.transport == "sata":
        yield Message(f"{ata_name(drive.port)}.00: detaching (SCSI {drive.hctl})", _WARNING)
    else:
        yield Message(f"mptsas: ioc{drive.number}: removing {_sas_place(drive)}")


def found_again(drive: AttachedDrive) -> Iterator[Message]:
    """A drive that the kernel was asked to look for: its slot has nothing to tell."""
    yield from _nvme_found(drive) if drive.protocol == "nvme" else attached(drive)


def removed(drive: AttachedDrive) -> Iterator[Message]:
    """A drive that the kernel was asked to forget."""
    if drive.protocol != "nvme":
        yield Message(f"sd {drive.hctl}: [{drive.kernel_name}] Synchronizing SCSI cache", _NOTICE)


def link_lost(drive: AttachedDrive) -> Iterator[Message]:
    """The link of a drive was lost, before the kernel gives the drive up."""
    if drive.transport == "sata":
        ata = ata_name(drive.port)
        yield Message(f"{ata}: exception Emask 0x10 SAct 0x0 SErr 0x4010000 action 0xe frozen", _ERROR)
        yield Message(f"{ata}: irq_stat 0x80400040, connection status changed", _ERROR)
        yield Message(f"{ata}: SError: {{ PHYRdyChg DevExch }}", _ERROR)
        yield Message(f"{ata}: hard resetting link")


def expander_attached(expander: AttachedExpander) -> Iterator[Message]:
    """A SAS expander that was found, with the enclosure in it."""
    yield Message(
        f"mptsas: ioc{expander.port.index}: add expander: num_phys {expander.slots + 1}, "
        f"sas_addr (0x{expander.sas_address})"
    )
    yield Message(f"scsi {expander.hctl}: Enclosure         RACKLOOP EXPANDER         1.0  PQ: 0 ANSI: 5", _NOTICE)
    yield Message(f"ses {expander.hctl}: Attached Enclosure device", _NOTICE)
    yield Message(f"ses {expander.hctl}: Attached scsi generic {expander.generic} type 13", _NOTICE)


def expander_detached(expander: AttachedExpander) -> Iterator[Message]:
    """A SAS expander that went away."""
    yield Message(
        f"mptsas: ioc{expander.port.index}: delete expander: num_phys {expander.slots + 1}, "
        f"sas_addr (0x{expander.sas_address})"
    )


def controller_reset(drive: AttachedDrive) -> Iterator[Message]:
    """An NVMe controller was reset on request."""
    yield Message(f"nvme {drive.kernel_name}: resetting controller", _WARNING)
    yield Message(f"nvme {drive.kernel_name}: 1/0/0 default/read/poll queues")


def medium_error(drive: AttachedDrive, lba: int, *, is_write: bool) -> Iterator[Message]:
    """A sector that cannot be read or written."""
    if drive.protocol == "nvme":
        command, fault = ("Write(0x1)", "Write Fault (sct 0x2 / sc 0x80)") if is_write else _NVME_UNREAD
        yield Message(f"{drive.block_name}: {command} @ LBA {lba}, 1 blocks, {fault} DNR ", _ERROR)
    else:
        yield from _ata_failed(drive, is_write=is_write) if drive.transport == "sata" else ()
        unit = f"sd {drive.hctl}: [{drive.kernel_name}] tag#0"
        sense = "Write error" if is_write else "Unrecovered read error"
        kept = " - auto reallocate failed" if drive.protocol == "sata" else ""
        yield Message(f"{unit} FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK cmd_age=0s")
        yield Message(f"{unit} Sense Key : Medium Error [current] ")
        yield Message(f"{unit} Add. Sense: {sense}{kept}")
        yield Message(f"{unit} CDB: {_cdb(lba, 1, is_write=is_write)}")
    yield Message(f"critical medium error, {_request(drive, lba * drive.sector_bytes, is_write=is_write)}", _ERROR)


def device_error(drive: AttachedDrive, lba: int, *, is_write: bool) -> Iterator[Message]:
    """A request that a drive failed for no reason it names."""
    if drive.protocol != "nvme":
        yield Message(
            f"sd {drive.hctl}: [{drive.kernel_name}] tag#0 FAILED Result: "
            "hostbyte=DID_BAD_TARGET driverbyte=DRIVER_OK cmd_age=0s"
        )
    yield Message(f"I/O error, {_request(drive, lba * drive.sector_bytes, is_write=is_write)}", _ERROR)


def timed_out(drive: AttachedDrive, offset: int, after_s: float, *, is_write: bool) -> Iterator[Message]:
    """A request that was not answered."""
    if drive.protocol == "nvme":
        yield Message(f"nvme {drive.kernel_name}: I/O 0 QID 1 timeout, aborting", _WARNING)
    else:
        unit = f"sd {drive.hctl}: [{drive.kernel_name}] tag#0"
        result = f"{unit} FAILED Result: hostbyte={{}} driverbyte=DRIVER_OK cmd_age={after_s:.0f}s"
        if drive.transport == "sata":
            yield from _ata_timed_out(drive, is_write=is_write)
            yield Message(result.format("DID_OK"))
            yield Message(f"{unit} Sense Key : Aborted Command [current] ")
            yield Message(f"{unit} Add. Sense: No additional sense information")
        else:
            yield Message(result.format("DID_TIME_OUT"))
        yield Message(f"{unit} CDB: {_cdb(offset // drive.sector_bytes, 1, is_write=is_write)}")
    yield Message(f"I/O error, {_request(drive, offset, is_write=is_write)}", _ERROR)


def ata_name(port: HbaPort) -> str:
    """The name of a port as libata has it, counted from 1."""
    return f"ata{port.index + 1}"


def _ata_failed(drive: AttachedDrive, *, is_write: bool) -> Iterator[Message]:
    """A command that an ATA drive failed, before its SCSI translation tells of it."""
    device = f"{ata_name(drive.port)}.00"
    yield Message(f"{device}: exception Emask 0x0 SAct 0x1 SErr 0x0 action 0x0", _ERROR)
    yield Message(f"{device}: irq_stat 0x40000008", _ERROR)
    yield Message(f"{device}: failed command: {'WRITE' if is_write else 'READ'} FPDMA QUEUED", _ERROR)
    yield Message(f"{device}: status: {{ DRDY ERR }}", _ERROR)
    yield Message(f"{device}: error: {{ {'IDNF' if is_write else 'UNC'} }}", _ERROR)


def _ata_timed_out(drive: AttachedDrive, *, is_write: bool) -> Iterator[Message]:
    """A command that an ATA drive did not answer, for which libata resets its link."""
    ata = ata_name(drive.port)
    yield Message(f"{ata}.00: exception Emask 0x0 SAct 0x1 SErr 0x0 action 0x6 frozen", _ERROR)
    yield Message(f"{ata}.00: failed command: {'WRITE' if is_write else 'READ'} FPDMA QUEUED", _ERROR)
    yield Message(f"{ata}.00: status: {{ DRDY }}", _ERROR)
    yield Message(f"{ata}: hard resetting link")
    yield Message(f"{ata}: SATA link up 6.0 Gbps (SStatus 133 SControl 300)")
    yield Message(f"{ata}.00: configured for UDMA/133")


def _nvme_found(drive: AttachedDrive) -> Iterator[Message]:
    address = drive.port.pci_address
    yield Message(f"pci {address}: [1b36:0010] type 00 class 0x010802")
    yield Message(f"nvme {drive.kernel_name}: pci function {address}")
    yield Message(f"nvme {address}: enabling device (0000 -> 0002)")
    yield Message(f"nvme {drive.kernel_name}: 1/0/0 default/read/poll queues")


def _sata_found(drive: AttachedDrive) -> Iterator[Message]:
    ata = ata_name(drive.port)
    yield Message(f"{ata}: SATA link up 6.0 Gbps (SStatus 133 SControl 300)")
    yield Message(f"{ata}.00: ATA-11: {drive.model}, {drive.firmware}, max UDMA/133")
    yield Message(f"{ata}.00: {drive.size_bytes // drive.sector_bytes} sectors, multi 16: LBA48 NCQ (depth 32)")
    yield Message(f"{ata}.00: configured for UDMA/133")
    yield Message(
        f"scsi {drive.hctl}: Direct-Access     ATA      {drive.model:16.16} {drive.firmware:4.4} PQ: 0 ANSI: 5", _NOTICE
    )


def _sas_found(drive: AttachedDrive) -> Iterator[Message]:
    vendor, product = scsi_names(drive)
    yield Message(f"mptsas: ioc{drive.number}: attaching {_sas_place(drive)}")
    yield Message(
        f"scsi {drive.hctl}: Direct-Access     {vendor:8.8} {product:16.16} {drive.firmware:4.4} PQ: 0 ANSI: 5", _NOTICE
    )
    yield Message(f"scsi {drive.hctl}: Power-on or device reset occurred")


def scsi_names(drive: AttachedDrive) -> tuple[str, str]:
    """Vendor and product as INQUIRY has them: of a SAS drive the model's first word is its vendor."""
    if drive.protocol == "sata":
        return "ATA", drive.model
    vendor, _, product = drive.model.partition(" ")
    return (vendor, product) if product else ("RACKLOOP", vendor)


def _sas_place(drive: AttachedDrive) -> str:
    slot = drive.slot or 0
    kind = "stp" if drive.protocol == "sata" else "ssp"
    return f"{kind} device: fw_channel 0, fw_id {slot}, phy {slot}, sas_addr 0x{drive.sas_address}"


def sized(size: int, step: int) -> str:
    """A size in the largest unit by ``step`` (1000 or 1024), to three digits as the kernel has it: ``67.1 MB``."""
    value, prefixes = float(size), ("", *("kMGTPE" if step == 1000 else "KMGTPE"))
    power = 0
    while value >= step:
        value, power = value / step, power + 1
    return f"{value:.{max(0, 3 - len(str(int(value))))}f} {prefixes[power]}{'B' if step == 1000 else 'iB'}"


def _cdb(lba: int, blocks: int, *, is_write: bool) -> str:
    code = 0x2A if is_write else 0x28
    raw = bytes([code, 0]) + min(lba, 0xFFFF_FFFF).to_bytes(4, "big") + b"\0" + blocks.to_bytes(2, "big") + b"\0"
    return f"{'Write' if is_write else 'Read'}(10) {raw.hex(' ')}"


def _request(drive: AttachedDrive, offset: int, *, is_write: bool) -> str:
    op = "0x1:(WRITE)" if is_write else "0x0:(READ)"
    return f"dev {drive.block_name}, sector {offset // 512} op {op} flags 0x0 phys_seg 1 prio class 2"
