"""Parser for ``nvme id-ctrl``, ``id-ns`` and ``smart-log`` with ``-o json``.

Names of fields are nvme-cli's, their meaning is the NVM Express Base Specification's (Identify Controller, Identify
Namespace, SMART / Health Information log).
"""

from __future__ import annotations

from rackloop.abilities import DriveIdentity
from rackloop.drive_identifiers import normal_text
from rackloop_drivers.host_tools._fields import Fields
from rackloop_drivers.host_tools._reading import Reading, reported

_ZERO_CELSIUS_IN_KELVIN = 273
_COUNTERS = {
    "critical_warning": "critical_warning",
    "avail_spare": "available_spare",
    "spare_thresh": "available_spare_threshold",
    "percent_used": "percentage_used",
    "data_units_read": "data_units_read",
    "data_units_written": "data_units_written",
    "host_read_commands": "host_read_commands",
    "host_write_commands": "host_write_commands",
    "controller_busy_time": "controller_busy_time",
    "power_cycles": "power_cycles",
    "power_on_hours": "power_on_hours",
    "unsafe_shutdowns": "unsafe_shutdowns",
    "media_errors": "media_errors",
    "num_err_log_entries": "error_log_entries",
}


def parse_nvme(id_ctrl: Fields, id_ns: Fields, smart_log: Fields | None = None) -> Reading:
    """The drive of a namespace, without counters where its log was not asked for.

    Raises UnknownFormat where a field is missing or is not what it should be.
    """
    identity = DriveIdentity(
        model=normal_text(id_ctrl.text("mn")),
        serial=normal_text(id_ctrl.text("sn")),
        firmware=normal_text(id_ctrl.text("fr")),
        protocol="nvme",
        size_bytes=id_ns.number("nsze") * _sector_bytes(id_ns),
        identifiers=_identifiers(id_ns),
    )
    if smart_log is None:
        return Reading(identity)
    counters = {ours: smart_log.number(theirs) for theirs, ours in _COUNTERS.items()}
    counters["temperature_c"] = smart_log.number("temperature") - _ZERO_CELSIUS_IN_KELVIN
    warning = counters["critical_warning"]
    findings = (f"the drive warns: critical_warning is {warning:#x}",) if warning else ()
    return Reading(identity, counters, findings)


def _sector_bytes(id_ns: Fields) -> int:
    """The size of a logical block in the format in use: bits 3:0 of FLBAS, and bits 6:5 where there are over 16."""
    flbas, formats = id_ns.number("flbas"), id_ns.at("lbafs")
    number = flbas & 0xF | ((flbas >> 5 & 0x3) << 4 if id_ns.number("nlbaf") > 0xF else 0)
    try:
        return 1 << int(formats[number]["ds"])
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise id_ns.unknown(f"no LBA format {number} in lbafs, though flbas is {flbas}") from error


def _identifiers(id_ns: Fields) -> dict[str, str]:
    try:
        return reported(eui64=id_ns.text("eui64"), nguid=id_ns.text("nguid"))
    except ValueError as error:
        raise id_ns.unknown(str(error)) from error
