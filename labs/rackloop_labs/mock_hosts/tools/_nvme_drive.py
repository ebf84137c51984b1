"""An NVMe controller's answers to Identify and Get Log Page, for ``nvme`` and ``smartctl``."""

from __future__ import annotations

from dataclasses import dataclass

from rackloop_labs.mock_hosts._view import AttachedDrive
from rackloop_labs.mock_hosts.tools._health import TEMPERATURE_C, drive_health

VENDOR_ID = 0x1B36
SUBSYSTEM_VENDOR_ID = 0x1AF4
IEEE_OUI = 0x525400  # where the namespace has no EUI-64 that says whose it is
VERSION = 0x10400  # NVM Express 1.4
ADMIN_COMMANDS = 0
NAMESPACE_MANAGEMENT = 0x08
_NVM_COMMANDS = 0x0C  # Dataset Management and Write Zeroes
_WRITE_UNCORRECTABLE = 0x02
LOG_PAGES = 0
FIRMWARE_UPDATES = 0x03
SANITIZE_CAPABILITIES = 0x03  # crypto erase and block erase
MAX_TRANSFER_EXPONENT = 7
WARNING_TEMPERATURE_K = 343
CRITICAL_TEMPERATURE_K = 373
MAX_POWER_CW = 2500
ENTRY_LATENCY_US = 16
EXIT_LATENCY_US = 4
NAMESPACE_FEATURES = 0x14  # deallocated blocks read as errors where asked for; preferred granularities
ERROR_LOG_ENTRIES = 64
DATA_UNIT_BYTES = 512_000
NO_LBA = 0xFFFF_FFFF_FFFF_FFFF

# Media and Data Integrity Errors: Unrecovered Read Error, and do not retry (NVM Express Base Specification 1.4).
UNRECOVERED_READ = 0x4281

_KELVIN = 273


def nvm_commands(drive: AttachedDrive) -> int:
    """The Optional NVM Command Support (ONCS) of a drive."""
    return _NVM_COMMANDS | (_WRITE_UNCORRECTABLE if drive.firmware_state.marks else 0)


@dataclass(frozen=True)
class NvmeSmart:
    """The SMART / Health Information log (02h) in its own units; a data unit is 512,000 bytes, rounded up."""

    critical_warning: int
    temperature_k: int
    available_spare: int
    spare_threshold: int
    percentage_used: int
    data_units_read: int
    data_units_written: int
    host_reads: int
    host_writes: int
    power_cycles: int
    power_on_hours: int
    unsafe_shutdowns: int
    media_errors: int
    error_log_entries: int


def nvme_smart(drive: AttachedDrive) -> NvmeSmart:
    """The health log of a drive. Its power only ever goes without notice, so each cut is an unsafe shutdown."""
    health = drive_health(drive)
    return NvmeSmart(
        critical_warning=0x04 if health.is_failing else 0,
        temperature_k=TEMPERATURE_C + _KELVIN,
        available_spare=100,
        spare_threshold=10,
        percentage_used=health.percentage_used,
        data_units_read=-(-health.bytes_read // DATA_UNIT_BYTES),
        data_units_written=-(-health.bytes_written // DATA_UNIT_BYTES),
        host_reads=health.reads,
        host_writes=health.writes,
        power_cycles=health.power_cycles,
        power_on_hours=health.power_on_hours,
        unsafe_shutdowns=max(0, health.power_cycles - 1),
        media_errors=health.media_errors,
        error_log_entries=health.media_errors,
    )


@dataclass(frozen=True)
class NvmeError:
    """An entry of the Error Information log (01h): which error since the factory it is, and where; all else is 0."""

    count: int
    status: int
    lba: int

    @property
    def sqid(self) -> int:
        """The submission queue: the first for I/O, or 0 in an entry that nothing was logged in."""
        return 1 if self.count else 0


def nvme_errors(drive: AttachedDrive, entries: int) -> list[NvmeError]:
    """The newest ``entries`` of the error log, at most the 64 there are, filled up with empty ones."""
    logged = drive_health(drive).media_errors
    lbas = drive.failed_lbas
    errors = [
        NvmeError(logged - age, UNRECOVERED_READ, lbas[-1 - age] if age < len(lbas) else NO_LBA)
        for age in range(min(entries, logged, ERROR_LOG_ENTRIES))
    ]
    return errors + [NvmeError(0, 0, 0)] * (min(entries, ERROR_LOG_ENTRIES) - len(errors))


def ieee_oui(drive: AttachedDrive) -> int:
    """The manufacturer of the drive: the first three bytes of its EUI-64."""
    return int(drive.eui64[:6], 16) if drive.eui64 else IEEE_OUI


def subsystem_nqn(drive: AttachedDrive) -> str:
    """The name of the NVM subsystem, one for each drive."""
    return f"nqn.2014-08.com.example:nvme:{drive.serial}"


def blocks(drive: AttachedDrive) -> int:
    """The number of logical blocks of the namespace."""
    return drive.size_bytes // drive.sector_bytes


def preferred_granularity(drive: AttachedDrive) -> int:
    """Blocks less one that a deallocation should be a multiple of: 4 KiB."""
    return max(0, 4096 // drive.sector_bytes - 1)
