"""Parser for ``smartctl -j -x`` of ATA and SCSI drives.

Sources: smartctl(8) for the exit status, the drive database of smartmontools for the names of ATA attributes, ATA
Command Set (ACS-4) for the PHY event counters, SPC and SBC for the error counter log and the defect lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rackloop.abilities import DriveIdentity
from rackloop.drive_identifiers import normal_text
from rackloop.errors import LabError, ProtocolError
from rackloop_drivers.host_tools._fields import Fields
from rackloop_drivers.host_tools._reading import Reading, reported

_KNOWN_MAJOR = 1
_FAILED = 0x03
_COMMAND_FAILED = 2
_FINDINGS = {
    _COMMAND_FAILED: "a command to the drive failed, or a checksum in an answer was wrong",
    3: "SMART status: the drive is failing",
    4: "an attribute is at or below its threshold",
    5: "an attribute was at or below its threshold in the past",
    6: "the drive's error log has entries",
    7: "the drive's self-test log has errors",
}
_PROTOCOLS = {"ATA": "sata", "SCSI": "sas"}
# What manufacturers call the same thing; every other attribute keeps its own name in lower case.
_ATA_NAMES = {
    "Reallocated_Sector_Ct": "reallocated_sectors",
    "Retired_Block_Count": "reallocated_sectors",
    "Reallocate_NAND_Blk_Cnt": "reallocated_sectors",
    "Reallocated_Block_Count": "reallocated_sectors",
    "Realloc_Flash_Blocks_Ct": "reallocated_sectors",
    "New_Bad_Block_Count": "reallocated_sectors",
    "New_Bad_Blk_Count": "reallocated_sectors",
    "Later_Bad_Block": "reallocated_sectors",
    "Reported_Uncorrect": "uncorrectable_errors",
    "Uncorrectable_Error_Cnt": "uncorrectable_errors",
    "Reported_UE_Counts": "uncorrectable_errors",
    "Reported_Uncorr_Errors": "uncorrectable_errors",
    "Total_Unc_NAND_Reads": "uncorrectable_errors",
    "Current_Pending_Sector": "pending_sectors",
    "Current_Pending_ECC_Cnt": "pending_sectors",
    "Pending_Sector_Count": "pending_sectors",
    "UDMA_CRC_Error_Count": "crc_errors",
    "CRC_Error_Count": "crc_errors",
    "SATA_CRC_Error_Count": "crc_errors",
    "Unsafe_Shutdown_Count": "unsafe_shutdowns",
    "Unexpect_Power_Loss_Ct": "unsafe_shutdowns",
    "Unexpected_Power_Loss_Count": "unsafe_shutdowns",
    "Unexpected_Pwr_Loss_Cnt": "unsafe_shutdowns",
    "POR_Recovery_Count": "unsafe_shutdowns",
    "Power_Cycle_Count": "power_cycles",
    "Power_On_Hours": "power_on_hours",
}
# Of the protocol specific port log page (SPL), all PHYs together. A link that is lost loses its synchronization.
_SAS_PHY_NAMES = {
    "loss_of_dword_synchronization_count": "phy_resets",
    "invalid_dword_count": "invalid_dwords",
    "running_disparity_error_count": "running_disparity_errors",
    "phy_reset_problem_count": "phy_reset_problems",
}
# Their raw values hold several numbers at once (now, lowest, highest).
_TEMPERATURES = frozenset(
    {"Airflow_Temperature_Cel", "Temperature_Celsius", "Temperature_Internal", "Temperature_Case"}
)
# "Device-to-host register FISes sent due to a COMRESET": the link was lost and came back.
_COMRESET_EVENT = 10


def parse_smartctl(raw: str, where: str) -> Reading:
    """The drive that one call of smartctl reports.

    Raises UnknownFormat where the format is of another major version or has a field in another form, LabError where
    smartctl could not ask the drive (bits 0 and 1 of its exit status), ProtocolError where the drive does not say who
    it is, or not by ATA or SCSI.
    """
    report = Fields("smartctl", where, raw)
    try:
        return _reading(report, where)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise report.unknown(f"a field in another form ({type(error).__name__}: {error})") from error


def _reading(report: Fields, where: str) -> Reading:
    report.version = ".".join(map(str, report.at("smartctl", "version") or ()))
    version = report.at("json_format_version")
    if not isinstance(version, list) or version[:1] != [_KNOWN_MAJOR]:
        raise report.unknown(f"json_format_version {version}")
    status = report.at("smartctl", "exit_status")
    if not isinstance(status, int):
        raise report.unknown("no exit_status")
    messages = [str(message["string"]) for message in report.at("smartctl", "messages") or ()]
    if status & _FAILED:
        raise LabError(f"{where}: smartctl could not ask the drive: {'; '.join(messages) or f'exit status {status}'}")
    protocol = report.at("device", "protocol")
    if not isinstance(protocol, str):
        raise report.unknown("JSON without device.protocol")
    if protocol not in _PROTOCOLS:
        # An NVMe drive behind a USB bridge, for one.
        raise ProtocolError(f"{where}: smartctl asks the drive by {protocol}, neither ATA nor SCSI")
    counters = dict(_common_counters(report))
    counters |= _ata_counters(report) if protocol == "ATA" else dict(_scsi_counters(report))
    if (report.at("smart_status", "passed")) is False:
        counters["critical_warning"] = 1
    elif "smart_status" in report.data:
        counters["critical_warning"] = 0
    # A drive without SMART makes smartctl's own question fail; that is no finding about the drive.
    has_smart = report.at("smart_support", "available") is not False
    findings = [text for bit, text in _FINDINGS.items() if status >> bit & 1 and (has_smart or bit != _COMMAND_FAILED)]
    return Reading(_identity(report, _PROTOCOLS[protocol]), counters, (*findings, *messages))


def _identity(report: Fields, protocol: str) -> DriveIdentity:
    is_ata = protocol == "sata"
    revision = "firmware_version" if is_ata else "scsi_revision"
    size = report.at("user_capacity", "bytes")
    told = {
        "model_name": report.at("model_name") or report.at("scsi_model_name") or None,
        "serial_number": report.at("serial_number"),
        revision: report.at(revision),
        "user_capacity.bytes": size,
    }
    if lacking := [name for name, value in told.items() if value is None]:
        # The drive's own words: a LUN of an array may have no serial number, a card reader without a medium no size.
        raise ProtocolError(
            f"{report.where}: smartctl {report.version} got no {', '.join(lacking)} of the drive, by which it is told "
            "from others; only a drive that says who it is can be described"
        )
    if not isinstance(size, int):
        raise report.unknown(f"user_capacity.bytes with the value {size!r}, which is no whole number")
    try:
        identifiers = reported(wwn=_ata_wwn(report) if is_ata else report.at("logical_unit_id"))
    except ValueError as error:
        raise report.unknown(str(error)) from error
    return DriveIdentity(
        model=normal_text(str(told["model_name"])),
        serial=normal_text(report.text("serial_number")),
        firmware=normal_text(report.text(revision)),
        protocol=protocol,
        size_bytes=size,
        identifiers=identifiers,
    )


def _ata_wwn(report: Fields) -> str | None:
    """NAA 5: four bits of the format, 24 of the manufacturer (OUI), 36 of its own."""
    wwn = report.at("wwn")
    if wwn is None:
        return None
    try:
        return f"{wwn['naa']:x}{wwn['oui']:06x}{wwn['id']:09x}"
    except (KeyError, TypeError, ValueError) as error:
        raise report.unknown(f"the wwn {wwn}") from error


def _common_counters(report: Fields) -> Iterator[tuple[str, int]]:
    for name, keys in (
        ("power_cycles", ("power_cycle_count",)),
        ("power_on_hours", ("power_on_time", "hours")),
        ("temperature_c", ("temperature", "current")),
    ):
        if isinstance(value := report.at(*keys), int):
            yield name, value


def _ata_counters(report: Fields) -> dict[str, int]:
    counters: dict[str, int] = {}
    for attribute in report.at("ata_smart_attributes", "table") or ():
        try:
            name, value = str(attribute["name"]), int(attribute["raw"]["value"])
        except (KeyError, TypeError, ValueError) as error:
            raise report.unknown(f"an ATA attribute without {error}: {attribute}") from error
        ours = _ATA_NAMES.get(name, name.lower())
        # The raw values of these two may hold minutes or other numbers as well; smartctl decodes them.
        if name in _TEMPERATURES or ours in {"power_cycles", "power_on_hours"}:
            continue
        counters[ours] = counters.get(ours, 0) + value
    # Of a drive that has both, smartctl -x reads the extended one.
    for log in ("summary", "extended"):
        if isinstance(errors := report.at("ata_smart_error_log", log, "count"), int):
            counters["error_log_entries"] = errors
    for event in report.at("sata_phy_event_counters", "table") or ():
        if event.get("id") == _COMRESET_EVENT and isinstance(value := event.get("value"), int):
            counters["phy_resets"] = value
    return counters


def _scsi_counters(report: Fields) -> Iterator[tuple[str, int]]:
    if isinstance(defects := report.at("scsi_grown_defect_list"), int):
        yield "grown_defects", defects
    if isinstance(pending := report.at("scsi_pending_defects", "count"), int):
        yield "pending_sectors", pending
    if isinstance(starts := report.at("scsi_start_stop_cycle_counter", "accumulated_start_stop_cycles"), int):
        yield "start_stop_count", starts
    log = report.at("scsi_error_counter_log")
    if isinstance(log, dict):
        yield "media_errors", _total(log.values(), "total_uncorrected_errors")
    ports = [port for name, port in report.data.items() if name.startswith("scsi_sas_port_")]
    phys = [phy for port in ports for name, phy in port.items() if name.startswith("phy_")]
    if phys:
        yield from ((ours, _total(phys, theirs)) for theirs, ours in _SAS_PHY_NAMES.items())


def _total(parts: Iterable[Any], name: str) -> int:
    """The sum of a counter over ``parts`` that have it."""
    values = (part.get(name) for part in parts if isinstance(part, dict))
    return sum(value for value in values if isinstance(value, int))
