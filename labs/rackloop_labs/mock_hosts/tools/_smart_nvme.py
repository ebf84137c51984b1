"""``smartctl`` on an NVMe drive."""

from __future__ import annotations

from rackloop_labs.mock_hosts._view import AttachedDrive
from rackloop_labs.mock_hosts.tools import _nvme_drive as nvme
from rackloop_labs.mock_hosts.tools._smart_report import INFORMATION, Found, Report, capacity

_SHOWN_ERRORS = 16
_KELVIN = 273
_WARNINGS = (
    "spare_below_threshold",
    "temperature_above_or_below_threshold",
    "reliability_degraded",
    "media_read_only",
    "volatile_memory_backup_failed",
    "persistent_memory_region_unreliable",
)


def report_nvme(report: Report, drive: AttachedDrive) -> None:
    """Add what smartctl prints of an NVMe drive."""
    if report.wants("info", "capabilities"):
        report.say(INFORMATION)
        if report.wants("info"):
            _information(report, drive)
        if report.wants("capabilities"):
            _capabilities(report, drive)
        report.say("")
    if report.wants("health", "attributes", "error"):
        report.say("=== START OF SMART DATA SECTION ===")
    smart = nvme.nvme_smart(drive)
    if report.wants("health"):
        _health(report, smart)
    if report.wants("attributes"):
        _attributes(report, smart)
    if report.wants("error"):
        _errors(report, drive)


def _information(report: Report, drive: AttachedDrive) -> None:
    oui, size = nvme.ieee_oui(drive), drive.size_bytes
    blocks = nvme.blocks(drive)
    namespace = {"blocks": blocks, "bytes": size}
    eui64 = drive.eui64 and {"oui": int(drive.eui64[:6], 16), "ext_id": int(drive.eui64[6:], 16)}
    eui64_line = f"Namespace 1 IEEE EUI-64:            {drive.eui64[:6]} {drive.eui64[6:]}" if drive.eui64 else None
    report.give(
        model_name=drive.model,
        serial_number=drive.serial,
        firmware_version=drive.firmware,
        nvme_pci_vendor={"id": nvme.VENDOR_ID, "subsystem_id": nvme.SUBSYSTEM_VENDOR_ID},
        nvme_ieee_oui_identifier=oui,
        nvme_total_capacity=size,
        nvme_unallocated_capacity=0,
        nvme_controller_id=0,
        nvme_version={"string": "1.4", "value": nvme.VERSION},
        nvme_number_of_namespaces=1,
        nvme_namespaces=[
            {
                "id": 1,
                "size": namespace,
                "capacity": namespace,
                "utilization": namespace,
                "formatted_lba_size": drive.sector_bytes,
                **({"eui64": eui64} if eui64 else {}),
            }
        ],
        user_capacity=namespace,
        logical_block_size=drive.sector_bytes,
        smart_support={"available": True, "enabled": True},
    )
    report.say(
        f"Model Number:                       {drive.model}",
        f"Serial Number:                      {drive.serial}",
        f"Firmware Version:                   {drive.firmware}",
        f"PCI Vendor ID:                      {nvme.VENDOR_ID:#06x}",
        f"PCI Vendor Subsystem ID:            {nvme.SUBSYSTEM_VENDOR_ID:#06x}",
        f"IEEE OUI Identifier:                {oui:#08x}",
        f"Total NVM Capacity:                 {size:,} [{capacity(size)}]",
        "Unallocated NVM Capacity:           0",
        "Controller ID:                      0",
        "NVMe Version:                       1.4",
        "Number of Namespaces:               1",
        f"Namespace 1 Size/Capacity:          {size:,} [{capacity(size)}]",
        f"Namespace 1 Formatted LBA Size:     {drive.sector_bytes}",
        *([eui64_line] if eui64_line else []),
        f"Local Time is:                      {report.local_time}",
    )


def _capabilities(report: Report, drive: AttachedDrive) -> None:
    commands = nvme.nvm_commands(drive)
    marks = "Wr_Unc " if drive.firmware_state.marks else ""
    report.say(
        f"Firmware Updates ({nvme.FIRMWARE_UPDATES:#04x}):            1 Slot, Slot 1 R/O",
        f"Optional NVM Commands ({commands:#06x}):     {marks}DS_Mngmt Wr_Zero",
        f"Maximum Data Transfer Size:         {1 << nvme.MAX_TRANSFER_EXPONENT} Pages",
        f"Warning  Comp. Temp. Threshold:     {nvme.WARNING_TEMPERATURE_K - _KELVIN} Celsius",
        f"Critical Comp. Temp. Threshold:     {nvme.CRITICAL_TEMPERATURE_K - _KELVIN} Celsius",
        f"Namespace 1 Features ({nvme.NAMESPACE_FEATURES:#04x}):        Dea/Unw_Error NP_Fields",
        "",
        "Supported Power States",
        "St Op     Max   Active     Idle   RL RT WL WT  Ent_Lat  Ex_Lat",
        f" 0 + {nvme.MAX_POWER_CW / 100:8.2f}W       -        -    0  0  0  0 "
        f"{nvme.ENTRY_LATENCY_US:8} {nvme.EXIT_LATENCY_US:7}",
        "",
        "Supported LBA Sizes (NSID 0x1)",
        "Id Fmt  Data  Metadt  Rel_Perf",
        f" 0 + {drive.sector_bytes:7} {0:7} {0:9}",
    )


def _health(report: Report, smart: nvme.NvmeSmart) -> None:
    warning = {"value": smart.critical_warning}
    if smart.critical_warning:
        warning |= {name: bool(smart.critical_warning >> bit & 1) for bit, name in enumerate(_WARNINGS)}
        warning["other"] = 0
    report.give(smart_status={"passed": not smart.critical_warning, "nvme": warning})
    if smart.critical_warning:
        report.found |= Found.FAILING
        report.say(
            "SMART overall-health self-assessment test result: FAILED!",
            "- NVM subsystem reliability has been degraded",
            "",
        )
    else:
        report.say("SMART overall-health self-assessment test result: PASSED", "")


def _attributes(report: Report, smart: nvme.NvmeSmart) -> None:
    celsius = smart.temperature_k - _KELVIN
    report.give(
        nvme_smart_health_information_log={
            "critical_warning": smart.critical_warning,
            "temperature": celsius,
            "available_spare": smart.available_spare,
            "available_spare_threshold": smart.spare_threshold,
            "percentage_used": smart.percentage_used,
            "data_units_read": smart.data_units_read,
            "data_units_written": smart.data_units_written,
            "host_reads": smart.host_reads,
            "host_writes": smart.host_writes,
            "controller_busy_time": 0,
            "power_cycles": smart.power_cycles,
            "power_on_hours": smart.power_on_hours,
            "unsafe_shutdowns": smart.unsafe_shutdowns,
            "media_errors": smart.media_errors,
            "num_err_log_entries": smart.error_log_entries,
            "warning_temp_time": 0,
            "critical_comp_time": 0,
        },
        temperature={"current": celsius},
        power_cycle_count=smart.power_cycles,
        power_on_time={"hours": smart.power_on_hours},
    )
    report.say(
        "SMART/Health Information (NVMe Log 0x02)",
        f"Critical Warning:                   {smart.critical_warning:#04x}",
        f"Temperature:                        {celsius} Celsius",
        f"Available Spare:                    {smart.available_spare}%",
        f"Available Spare Threshold:          {smart.spare_threshold}%",
        f"Percentage Used:                    {smart.percentage_used}%",
        f"Data Units Read:                    {_data_units(smart.data_units_read)}",
        f"Data Units Written:                 {_data_units(smart.data_units_written)}",
        f"Host Read Commands:                 {smart.host_reads:,}",
        f"Host Write Commands:                {smart.host_writes:,}",
        "Controller Busy Time:               0",
        f"Power Cycles:                       {smart.power_cycles:,}",
        f"Power On Hours:                     {smart.power_on_hours:,}",
        f"Unsafe Shutdowns:                   {smart.unsafe_shutdowns:,}",
        f"Media and Data Integrity Errors:    {smart.media_errors:,}",
        f"Error Information Log Entries:      {smart.error_log_entries:,}",
        "Warning  Comp. Temperature Time:    0",
        "Critical Comp. Temperature Time:    0",
        "",
    )


def _errors(report: Report, drive: AttachedDrive) -> None:
    errors = [error for error in nvme.nvme_errors(drive, _SHOWN_ERRORS) if error.count]
    report.say(f"Error Information (NVMe Log 0x01, {_SHOWN_ERRORS} of {nvme.ERROR_LOG_ENTRIES} entries)")
    if errors:
        report.say("Num   ErrCount  SQId   CmdId  Status  PELoc          LBA  NSID    VS")
        for place, error in enumerate(errors):
            lba = "-" if error.lba == nvme.NO_LBA else error.lba
            report.say(
                f"{place:3} {error.count:10} {error.sqid:5}  0x0000  {error.status << 1:#06x}  0x000 {lba:>12} "
                f"{error.sqid:5}     -"
            )
    else:
        report.say("No Errors Logged")
    if len(errors) == _SHOWN_ERRORS:
        report.say(f"... ({nvme.ERROR_LOG_ENTRIES - _SHOWN_ERRORS} entries not read)")
    report.say("")


def _data_units(count: int) -> str:
    return f"{count:,} [{capacity(count * nvme.DATA_UNIT_BYTES)}]" if count else "0"
