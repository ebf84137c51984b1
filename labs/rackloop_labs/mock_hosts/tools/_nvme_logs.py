"""``nvme smart-log``, ``nvme error-log`` and ``nvme sanitize-log``, as nvme-cli 2.3 prints them."""

from __future__ import annotations

from typing import Any

from rackloop_labs.mock_hosts._view import AttachedDrive
from rackloop_labs.mock_hosts.tools._nvme_drive import DATA_UNIT_BYTES, NvmeError, nvme_errors, nvme_smart
from rackloop_labs.mock_hosts.tools._sizes import si_size

_WARNINGS = {
    "available_spare": "Available Spare[0]",
    "temp_threshold": "Temp. Threshold[1]",
    "reliability_degraded": "NVM subsystem Reliability[2]",
    "ro": "Read-only[3]",
    "vmbu_failed": "Volatile mem. backup failed[4]",
    "pmr_ro": "Persistent Mem. RO[5]",
}
_STATUS = {
    0x0: "Successful Completion: The command completed without error",
    0x281: "Unrecovered Read Error: The read data could not be recovered from the media",
}
_STATUS_CODE = 0x7FF  # status code type and code, without the bits that say whether to retry
_IN_PROGRESS = 2
_WHOLE = 0x10000
_NO_ESTIMATE = 0xFFFF_FFFF
_ACTIONS = {"block-erase": 2, "crypto-erase": 4}
_NO_TRANSPORT = "The transport type is not indicated or the error is not transport related."


def smart_log(drive: AttachedDrive, *, is_verbose: bool) -> dict[str, Any]:
    """The health log as ``nvme smart-log -o json`` prints it."""
    smart = nvme_smart(drive)
    warning: int | dict[str, int] = smart.critical_warning
    if is_verbose:
        bits = {name: smart.critical_warning >> bit & 1 for bit, name in enumerate(_WARNINGS)}
        warning = {"value": smart.critical_warning, **bits}
    return {
        "critical_warning": warning,
        "temperature": smart.temperature_k,
        "avail_spare": smart.available_spare,
        "spare_thresh": smart.spare_threshold,
        "percent_used": smart.percentage_used,
        "endurance_grp_critical_warning_summary": 0,
        "data_units_read": str(smart.data_units_read),
        "data_units_written": str(smart.data_units_written),
        "host_read_commands": str(smart.host_reads),
        "host_write_commands": str(smart.host_writes),
        "controller_busy_time": "0",
        "power_cycles": str(smart.power_cycles),
        "power_on_hours": str(smart.power_on_hours),
        "unsafe_shutdowns": str(smart.unsafe_shutdowns),
        "media_errors": str(smart.media_errors),
        "num_err_log_entries": str(smart.error_log_entries),
        "warning_temp_time": 0,
        "critical_comp_time": 0,
        "thm_temp1_trans_count": 0,
        "thm_temp2_trans_count": 0,
        "thm_temp1_total_time": 0,
        "thm_temp2_total_time": 0,
    }


def smart_log_text(drive: AttachedDrive, device: str, namespace: int, *, is_verbose: bool) -> str:
    """The health log as ``nvme smart-log`` prints it of ``device`` (``nvme0``)."""
    smart = nvme_smart(drive)
    bits = [f"      {label:<31}: {smart.critical_warning >> bit & 1}" for bit, label in enumerate(_WARNINGS.values())]
    lines = [
        f"Smart Log for NVME device:{device} namespace-id:{namespace:x}",
        f"critical_warning\t\t\t: {_hex(smart.critical_warning)}",
        *(bits if is_verbose else []),
        f"temperature\t\t\t\t: {smart.temperature_k - 273}°C ({smart.temperature_k} Kelvin)",
        f"available_spare\t\t\t\t: {smart.available_spare}%",
        f"available_spare_threshold\t\t: {smart.spare_threshold}%",
        f"percentage_used\t\t\t\t: {smart.percentage_used}%",
        "endurance group critical warning summary: 0",
        f"Data Units Read\t\t\t\t: {smart.data_units_read} ({_units(smart.data_units_read)})",
        f"Data Units Written\t\t\t: {smart.data_units_written} ({_units(smart.data_units_written)})",
        f"host_read_commands\t\t\t: {smart.host_reads}",
        f"host_write_commands\t\t\t: {smart.host_writes}",
        "controller_busy_time\t\t\t: 0",
        f"power_cycles\t\t\t\t: {smart.power_cycles}",
        f"power_on_hours\t\t\t\t: {smart.power_on_hours}",
        f"unsafe_shutdowns\t\t\t: {smart.unsafe_shutdowns}",
        f"media_errors\t\t\t\t: {smart.media_errors}",
        f"num_err_log_entries\t\t\t: {smart.error_log_entries}",
        "Warning Temperature Time\t\t: 0",
        "Critical Composite Temperature Time\t: 0",
        *(f"Thermal Management T{limit} {what}\t: 0" for what in ("Trans Count", "Total Time") for limit in (1, 2)),
    ]
    return "\n".join(lines) + "\n"


def error_log(drive: AttachedDrive, entries: int) -> dict[str, Any]:
    """The newest entries of the error log as ``nvme error-log -o json`` prints them."""
    return {"errors": [_error(error) for error in nvme_errors(drive, entries)]}


def _error(error: NvmeError) -> dict[str, int]:
    return {
        "error_count": error.count,
        "sqid": error.sqid,
        "cmdid": 0,
        "status_field": error.status,
        "phase_tag": 0,
        "parm_error_location": 0,
        "lba": error.lba,
        "nsid": error.sqid,
        "vs": 0,
        "trtype": 0,
        "cs": 0,
        "trtype_spec_info": 0,
    }


def error_log_text(drive: AttachedDrive, device: str, entries: int) -> str:
    """The newest entries of the error log as ``nvme error-log`` prints them of ``device``."""
    errors = nvme_errors(drive, entries)
    dots = "." * 17
    lines = [f"Error Log Entries for device:{device} entries:{len(errors)}", dots]
    for place, error in enumerate(errors):
        lines += [
            f" Entry[{place:2}]   ",
            dots,
            f"error_count\t: {error.count}",
            f"sqid\t\t: {error.sqid}",
            "cmdid\t\t: 0",
            f"status_field\t: {_hex(error.status)}({_STATUS[error.status & _STATUS_CODE]})",
            "phase_tag\t: 0",
            "parm_err_loc\t: 0",
            f"lba\t\t: {_hex(error.lba)}",
            f"nsid\t\t: {_hex(error.sqid)}",
            "vs\t\t: 0",
            f"trtype\t\t: {_NO_TRANSPORT}",
            "cs\t\t: 0",
            "trtype_spec_info: 0",
            dots,
        ]
    return "\n".join(lines) + "\n"


def _hex(value: int) -> str:
    return f"{value:#x}" if value else "0"


def _units(data_units: int) -> str:
    value, suffix = si_size(data_units * DATA_UNIT_BYTES)
    return f"{value:.2f} {suffix}B"


def sanitize_log(drive: AttachedDrive, device: str) -> dict[str, Any]:
    """The Sanitize Status log (81h) as ``nvme sanitize-log -o json`` prints it."""
    progress, status, said, action = _sanitized(drive)
    times = ("over_write", "block_erase", "crypto_erase")
    return {
        device: {
            "sprog": progress,
            "sstat": {"global_erased": 0, "no_cmplted_passes": 0, "status": f"({status}) {said}"},
            "cdw10_info": action,
            **{f"time_{name}": _NO_ESTIMATE for name in times},
            **{f"time_{name}_no_dealloc": _NO_ESTIMATE for name in times},
        }
    }


def sanitize_log_text(drive: AttachedDrive) -> str:
    """The Sanitize Status log as ``nvme sanitize-log`` prints it."""
    progress, status, said, action = _sanitized(drive)
    percent = f" ({progress / (_WHOLE - 1) * 100:.6f}%)" if status == _IN_PROGRESS else ""
    names = ("Overwrite", "Block Erase", "Crypto Erase")
    lines = [
        f"Sanitize Progress                      (SPROG) :  {progress}{percent}",
        f"Sanitize Status                        (SSTAT) :  {status:#x}",
        f"\t[2:0]\t{said}",
        f"Sanitize Command Dword 10 Information (SCDW10) :  {action:#x}",
        *(f"Estimated Time For {name:<28}:  {_NO_ESTIMATE} (No time period reported)" for name in names),
    ]
    return "\n".join(lines) + "\n"


def _sanitized(drive: AttachedDrive) -> tuple[int, int, str, int]:
    """Progress, status in a number and in words, and the action."""
    firmware = drive.firmware_state
    if firmware.erased_by is None:
        return _WHOLE - 1, 0, "NVM Subsystem has never been sanitized.", 0
    action = _ACTIONS[firmware.erased_by]
    if firmware.erased is not None:
        return int(firmware.erased * (_WHOLE - 1)), _IN_PROGRESS, "Sanitize in Progress.", action
    return _WHOLE - 1, 1, "Most Recent Sanitize Command Completed Successfully.", action
