"""``smartctl`` as smartmontools 7.3 answers on a server: what it reads of a drive, not what it would change in one."""

from __future__ import annotations

import getopt
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rackloop_labs.mock_hosts._view import Answer, AttachedDrive, HostActs, HostView
from rackloop_labs.mock_hosts.tools._devices import device_node
from rackloop_labs.mock_hosts.tools._smart_ata import error_recovery_control, report_ata
from rackloop_labs.mock_hosts.tools._smart_nvme import report_nvme
from rackloop_labs.mock_hosts.tools._smart_report import Found, Report, asctime
from rackloop_labs.mock_hosts.tools._smart_scsi import report_scsi

_PLATFORM = f"x86_64-linux-{os.uname().release}"
_BANNER = f"""\
smartctl 7.3 2022-02-28 r5338 [{_PLATFORM}] (local build)
Copyright (C) 2002-22, Bruce Allen, Christian Franke, www.smartmontools.org
"""
_HINT = "Use smartctl -h to get a usage summary"
_NO_DEVICE = "ERROR: smartctl requires a device name as the final command-line argument."
_DEVICE_NAME = re.compile(r"/dev/(sd[a-z]+|sg\d+|nvme\d+(n\d+)?)")


@dataclass(frozen=True)
class _Kind:
    """The name of a protocol in smartctl, and the sections that -a, -x and -l have of a drive that speaks it."""

    type: str
    protocol: str
    report: Callable[[Report, AttachedDrive], None]
    all: tuple[str, ...]
    extended: tuple[str, ...]
    logs: tuple[str, ...]


_COMMON = ("info", "health", "capabilities", "attributes")
_ATA_LOGS = ("directory", "selective", "scttemp", "scterc", "devstat", "defects", "sataphy")
_KINDS: Mapping[str, _Kind] = {
    "nvme": _Kind("nvme", "NVMe", report_nvme, (*_COMMON, "error"), (*_COMMON, "error"), ("error",)),
    "sas": _Kind(
        "scsi",
        "SCSI",
        report_scsi,
        ("info", "health", "attributes", "error", "selftest", "ssd"),
        ("info", "health", "attributes", "error", "selftest", "ssd", "settings", "background", "sasphy"),
        ("error", "selftest", "background", "sasphy", "ssd"),
    ),
    "sata": _Kind(
        "sat",
        "ATA",
        report_ata,
        (*_COMMON, "error", "selftest", "selective"),
        (*_COMMON, "brief", "settings", "xerror", "xselftest", *_ATA_LOGS),
        ("error", "selftest", "xerror", "xselftest", "ssd", *_ATA_LOGS),
    ),
}
_LOG_TYPES = (
    *("error", "selftest", "selective", "directory", "xerror", "xselftest", "background", "sasphy", "sataphy"),
    *("scttemp", "scterc", "devstat", "defects", "ssd"),
)
_LIMITS = re.compile(r"scterc,(\d{1,5}),(\d{1,5})")
_TYPES = {"nvme": ("nvme",), "sas": ("scsi",), "sata": ("sat", "ata")}
_USAGE = """\
Usage: smartctl [options] device

  -h, --help                  Display this help and exit
  -V, --version               Print version information and exit
  -i, --info                  Show identity information for device
  -a, --all                   Show all SMART information for device
  -x, --xall                  Show all information for device
  --scan                      Scan for devices
  --scan-open                 Scan for devices and try to open each device
  -j, --json[=c]              Print output in JSON format
  -d TYPE, --device=TYPE      Specify device type to one of: ata, sat, scsi, nvme, auto
  -H, --health                Show device SMART health status
  -c, --capabilities          Show device SMART capabilities (ATA, NVMe)
  -A, --attributes            Show device SMART vendor-specific Attributes and values
  -f FORMAT, --format=FORMAT  Set output format for attributes: old, brief (ATA)
  -l TYPE, --log=TYPE         Show device log
"""
_SHORT = "hVixaHcAjl:d:f:"
_LONG = {
    "help": "-h", "version": "-V", "info": "-i", "all": "-a", "xall": "-x", "scan": "--scan",
    "scan-open": "--scan-open", "health": "-H", "capabilities": "-c", "attributes": "-A", "json": "-j",
    "log=": "-l", "device=": "-d", "format=": "-f",
}  # fmt: skip
_VALID: Mapping[str, Sequence[str]] = {
    "l": _LOG_TYPES,
    "f": ("old", "brief"),
    "d": ("ata", "scsi", "nvme", "sat", "auto"),
    "json": ("c",),
}


class _Refused(Exception):
    """A command line that ends with a message, and further lines that the JSON document leaves out."""

    def __init__(
        self, message: str, *more: str, valid: str | None = None, status: Found = Found.BAD_COMMAND_LINE
    ) -> None:
        super().__init__(message)
        self.more = more
        self.valid = valid
        self.status = status


@dataclass
class _Call:
    """A command line as it was understood so far."""

    argv: Sequence[str]
    is_json: bool = False
    is_compact: bool = False
    options: list[tuple[str, str]] = field(default_factory=list)
    devices: list[str] = field(default_factory=list)

    def given(self, option: str) -> list[str]:
        """The arguments of every such option, empty ones for a flag."""
        return [value for name, value in self.options if name == option]

    def document(self, status: int, messages: Sequence[str] = (), *, knows_models: bool = False) -> dict[str, Any]:
        """The start of the JSON document; ``knows_models`` where smartctl looked into its database of drives."""
        database = {"drive_database_version": {"string": "7.3/5319"}} if knows_models else {}
        listed = {"messages": [{"string": message, "severity": "error"} for message in messages]} if messages else {}
        about = {
            "version": [7, 3],
            "svn_revision": "5338",
            "platform_info": _PLATFORM,
            "build_info": "(local build)",
            "argv": ["smartctl", *self.argv],
            **database,
            **listed,
            "exit_status": status,
        }
        return {"json_format_version": [1, 0], "smartctl": about}

    def answer(self, document: Mapping[str, Any], lines: Sequence[str]) -> Answer:
        """The document or the text, whichever was asked for."""
        status = int(document["smartctl"]["exit_status"])
        if not self.is_json:
            return Answer("".join(f"{line}\n" for line in (_BANNER, *lines)), status=status)
        if self.is_compact:
            return Answer(json.dumps(document, separators=(",", ":"), ensure_ascii=False), status=status)
        return Answer(json.dumps(document, indent=2, ensure_ascii=False) + "\n", status=status)


def smartctl(argv: Sequence[str], view: HostView, acts: HostActs) -> Answer:
    """Answer ``smartctl`` with these arguments."""
    call = _Call(argv)
    opened: dict[str, Any] = {}
    try:
        _parse(call)
        if call.given("-h"):
            return Answer(f"{_BANNER}\n{_USAGE}")
        if call.given("-V"):
            return Answer(f"{_BANNER}\nsmartmontools release 7.3 dated 2022-02-28 at 16:33:40 UTC\n")
        if call.given("--scan") or call.given("--scan-open"):
            return _scan(call, view)
        name = _one_device(call)
        opened["local_time"] = {"time_t": int(view.now.timestamp()), "asctime": asctime(view.now)}
        drive = _find(call, view, name)
        return _limit(call, view, drive, name, acts) or _read(call, view, drive, name, opened)
    except _Refused as refusal:
        valid = refusal.valid and f"=======> VALID ARGUMENTS ARE: {refusal.valid} <======="
        messages = [str(refusal), *([valid] if valid else [])]
        hint = ["", _HINT, ""] if refusal.status is Found.BAD_COMMAND_LINE else []
        document = call.document(refusal.status, messages) | opened
        return call.answer(document, [*messages, *refusal.more, *hint])


def _parse(call: _Call) -> None:
    """Read the command line; what was read before a mistake stays, as it says how to report that."""
    rest = []
    for argument in call.argv:
        if argument.startswith("--json="):
            call.is_json = True
            formats = argument.removeprefix("--json=")
            if formats.strip("c"):
                unknown = formats.strip("c")[0]
                raise _Refused(f"=======> INVALID ARGUMENT TO --json: {unknown}", valid=", ".join(_VALID["json"]))
            call.is_compact = True
        else:
            rest.append(argument)
    try:
        given, call.devices = getopt.gnu_getopt(rest, _SHORT, [*_LONG])
    except getopt.GetoptError as error:
        call.is_json |= any(re.fullmatch(r"-[ixaHcA]*j.*|--json", argument) for argument in rest)
        if "requires argument" not in error.msg:
            raise _Refused(f"=======> UNRECOGNIZED OPTION: {error.opt}") from None
        valid = ", ".join(_VALID[error.opt if len(error.opt) == 1 else _LONG[f"{error.opt}="][1]])
        raise _Refused(f"=======> ARGUMENT REQUIRED FOR OPTION: {error.opt}", valid=valid) from None
    short = {f"--{name.removesuffix('=')}": option for name, option in _LONG.items()}
    call.options = [(short.get(name, name), value) for name, value in given]
    call.is_json |= bool(call.given("-j"))
    for option in ("l", "f"):
        for value in call.given(f"-{option}"):
            if value not in _VALID[option] and not (option == "l" and _LIMITS.fullmatch(value)):
                raise _Refused(f"=======> INVALID ARGUMENT TO -{option}: {value}", valid=", ".join(_VALID[option]))


def _one_device(call: _Call) -> str:
    if not call.devices:
        raise _Refused(_NO_DEVICE, "")
    if len(call.devices) > 1:
        message = "ERROR: smartctl takes ONE device name as the final command-line argument."
        raise _Refused(message, f"You have provided {len(call.devices)} device names:", *call.devices)
    return call.devices[0]


def _find(call: _Call, view: HostView, name: str) -> AttachedDrive:
    for kind in call.given("-d"):
        if kind not in _VALID["d"]:
            raise _Refused(f"{name}: Unknown device type '{kind}'", valid=", ".join(_VALID["d"]))
    node = device_node(view, name)
    if not _DEVICE_NAME.fullmatch(node) and not call.given("-d"):
        more = "Please specify device type with the -d option."
        raise _Refused(f"{name}: Unable to detect device type", more)
    bare = node.removeprefix("/dev/")
    for drive in view.drives:
        if bare in {drive.kernel_name, drive.block_name, drive.generic}:
            wrong = [kind for kind in call.given("-d") if kind not in {"auto", *_TYPES[drive.protocol]}]
            if not wrong:
                return drive
            raise _Refused(f"{name}: Not a device of type '{wrong[0]}'", status=Found.OPEN_FAILED)
    raise _Refused(f"Smartctl open device: {name} failed: No such device", status=Found.OPEN_FAILED)


def _read(call: _Call, view: HostView, drive: AttachedDrive, name: str, opened: dict[str, Any]) -> Answer:
    kind = _KINDS[drive.protocol]
    wanted: set[str] = set()
    for option, value in call.options:
        wanted |= {
            "-i": {"info"},
            "-H": {"health"},
            "-c": {"capabilities"} if "capabilities" in kind.all else set(),
            "-A": {"attributes"},
            "-a": set(kind.all),
            "-x": set(kind.extended),
            "-l": {value} & set(kind.logs),
        }.get(option, set())
    is_opened_only = not wanted
    formats = call.given("-f")
    if formats:
        wanted = (wanted - {"brief"}) | ({"brief"} if formats[-1] == "brief" else set())
    report = Report(wanted, view.now)
    if is_opened_only:
        report.say(
            f"{kind.protocol} device successfully opened",
            "",
            "Use 'smartctl -a' (or '-x') to print SMART (and more) information",
            "",
        )
    else:
        kind.report(report, drive)
    head = call.document(report.found, knows_models=drive.protocol == "sata")
    document = head | opened | {"device": _device(drive, name)} | report.document
    return call.answer(document, report.lines)


def _limit(call: _Call, view: HostView, drive: AttachedDrive, name: str, acts: HostActs) -> Answer | None:
    """Set SCT Error Recovery Control, where that is asked for and the drive has it."""
    found = next(filter(None, map(_LIMITS.fullmatch, call.given("-l"))), None)
    if found is None:
        return None
    report = Report({"scterc"}, view.now)
    if drive.protocol != "sata" or drive.firmware_state.limits is None:
        report.say("SCT Error Recovery Control command not supported", "")
        report.found |= Found.COMMAND_FAILED
    else:
        reads, writes = int(found[1]), int(found[2])
        acts.limit_recovery(drive, reads, writes)
        error_recovery_control(report, reads, writes, is_set=True)
    head = call.document(report.found, knows_models=drive.protocol == "sata")
    return call.answer(head | {"device": _device(drive, name)} | report.document, report.lines)


def _device(drive: AttachedDrive, name: str) -> dict[str, str]:
    kind = _KINDS[drive.protocol]
    shown = f"{name} [SAT]" if drive.protocol == "sata" else name
    return {"name": name, "info_name": shown, "type": kind.type, "protocol": kind.protocol}


def _scan(call: _Call, view: HostView) -> Answer:
    """The list of drives; one that is not opened is taken for SCSI by its name."""
    is_opened = bool(call.given("--scan-open"))
    devices = []
    for drive in sorted(
        view.drives, key=lambda drive: (drive.protocol == "nvme", len(drive.kernel_name), drive.kernel_name)
    ):
        device = _device(drive, f"/dev/{drive.kernel_name}")
        if drive.protocol == "sata" and not is_opened:
            device |= {"info_name": device["name"], "type": "scsi", "protocol": "SCSI"}
        if not call.given("-d") or device["type"] in call.given("-d"):
            devices.append(device)
    document = call.document(0) | ({"devices": devices} if devices else {})
    if call.is_json:
        return call.answer(document, [])
    rows = (f"{one['name']} -d {one['type']} # {one['info_name']}, {one['protocol']} device\n" for one in devices)
    return Answer("".join(rows))
