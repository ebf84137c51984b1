"""``nvme`` as nvme-cli 2.3 answers on a server: the sub-commands a test reads drives with, and the two resets.

Of the output formats it knows normal and JSON; the other sub-commands of the real one are unknown to it.
"""

from __future__ import annotations

import getopt
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rackloop_labs.mock_hosts._view import Answer, AttachedDrive, HostActs, HostView
from rackloop_labs.mock_hosts.tools import _nvme_drive as nvme_drive
from rackloop_labs.mock_hosts.tools import _nvme_identify, _nvme_list, _nvme_logs
from rackloop_labs.mock_hosts.tools import _nvme_status as status
from rackloop_labs.mock_hosts.tools._devices import device_node
from rackloop_labs.mock_hosts.tools._nvme_json import nvme_json

_WORD = 0xFFFF_FFFF
_ALL_NAMESPACES = _WORD
_ERROR_RECOVERY = 5
_SANITIZES = {
    "2": "block-erase", "start-block-erase": "block-erase", "4": "crypto-erase", "start-crypto-erase": "crypto-erase",
}  # fmt: skip
_VERSION = "nvme version 2.3 (git 2.3)\nlibnvme version 1.3 (git 1.3)\n"


@dataclass(frozen=True)
class _Option:
    """An option as the usage shows it; ``value`` is the kind of argument it takes, if it takes one."""

    long: str
    short: str
    value: str | None
    text: str

    @property
    def usage(self) -> str:
        argument = f"<{self.value}>" if self.value else ""
        forms = f"--{self.long}={argument}, -{self.short} {argument}" if argument else f"--{self.long}, -{self.short}"
        return f"{f'  [  {forms} ]':<40}--- {self.text}"


_FORMAT = _Option("output-format", "o", "FMT", "Output format: normal|json")
_VERBOSE = _Option("verbose", "v", None, "Increase output verbosity")


class _Refused(Exception):
    """A command line that ends with a message; ``shows_usage`` says whether the usage follows it."""

    def __init__(self, message: str, *, shows_usage: bool = False) -> None:
        super().__init__(message)
        self.shows_usage = shows_usage


@dataclass(frozen=True)
class _Call:
    """A sub-command as it was called: its options by long name, the other arguments, and where it runs."""

    name: str
    options: Mapping[str, str]
    arguments: Sequence[str]
    view: HostView
    acts: HostActs

    @property
    def is_json(self) -> bool:
        chosen = self.options.get("output-format", "normal")
        if chosen not in {"normal", "json"}:
            raise _Refused("Invalid output format")
        return chosen == "json"

    @property
    def device(self) -> str:
        if not self.arguments:
            raise _Refused(f"{self.name}: Invalid argument", shows_usage=True)
        return device_node(self.view, self.arguments[0]).rpartition("/")[2]

    def drive(self, failing: str) -> AttachedDrive:
        """The controller or namespace that is named; ``failing`` is how it ends on a drive without NVMe."""
        name = self.device
        if device_node(self.view, self.arguments[0]) == f"/dev/{name}":
            for drive in self.view.drives:
                if drive.protocol == "nvme":
                    if name in {drive.kernel_name, drive.block_name, f"ng{drive.number}n1"}:
                        return drive
                elif name == drive.block_name:
                    raise _Refused(failing)
        raise _Refused(f"{self.arguments[0]}: No such file or directory", shows_usage=True)

    def number(self, option: str, default: int) -> int:
        value = self.options.get(option)
        if value is None:
            return default
        try:
            return int(value, 0) & _WORD
        except ValueError:
            raise _Refused(f"Expected word argument for '{option}' but got '{value}'!") from None


def _list(call: _Call) -> Answer:
    is_verbose = "verbose" in call.options
    if call.is_json:
        return Answer(nvme_json(_nvme_list.verbose(call.view) if is_verbose else _nvme_list.listed(call.view)))
    return Answer(_nvme_list.verbose_text(call.view) if is_verbose else _nvme_list.listed_text(call.view))


def _list_subsys(call: _Call) -> Answer:
    is_json = call.is_json
    drives = _nvme_list.nvme_drives(call.view)
    if call.arguments:
        if not re.match(r"nvme\d+n\d+", call.device):
            raise _Refused(f"Invalid device name {call.device}")
        drives = [drive for drive in drives if drive.block_name == call.device]
    if is_json:
        return Answer(nvme_json(_nvme_list.subsystems(call.view, drives)))
    return Answer(_nvme_list.subsystems_text(drives))


def _id_ctrl(call: _Call) -> Answer:
    drive = call.drive("identify controller: Invalid argument")
    if call.is_json:
        return Answer(nvme_json(_nvme_identify.controller(drive)))
    return Answer(_nvme_identify.controller_text(drive))


def _id_ns(call: _Call) -> Answer:
    drive = call.drive("get-namespace-id: Invalid argument")
    is_json = call.is_json
    namespace = call.number("namespace-id", 0)
    if not namespace and call.device == drive.kernel_name:
        raise _Refused("get-namespace-id: Inappropriate ioctl for device")
    if namespace not in {0, 1}:
        return Answer(stderr=status.INVALID_NAMESPACE, status=1)
    if is_json:
        return Answer(nvme_json(_nvme_identify.namespace(drive)))
    return Answer(_nvme_identify.namespace_text(drive))


def _list_ns(call: _Call) -> Answer:
    call.drive("id namespace list: Invalid argument")
    is_json = call.is_json
    first = call.number("namespace-id", 1)
    if not first:
        raise _Refused("invalid nsid parameter")
    if "all" in call.options and not nvme_drive.ADMIN_COMMANDS & nvme_drive.NAMESPACE_MANAGEMENT:
        return Answer(stderr=status.INVALID_FIELD, status=1)
    listed = _nvme_identify.namespaces(first)
    return Answer(nvme_json(listed) if is_json else _nvme_identify.namespaces_text(listed))


def _smart_log(call: _Call) -> Answer:
    drive = call.drive("smart log: Invalid argument")
    is_json = call.is_json
    is_verbose = "human-readable" in call.options
    namespace = call.number("namespace-id", _ALL_NAMESPACES)
    if namespace not in {0, 1, _ALL_NAMESPACES}:
        return Answer(stderr=status.INVALID_NAMESPACE, status=1)
    if is_json:
        return Answer(nvme_json(_nvme_logs.smart_log(drive, is_verbose=is_verbose)))
    return Answer(_nvme_logs.smart_log_text(drive, call.device, namespace, is_verbose=is_verbose))


def _error_log(call: _Call) -> Answer:
    drive = call.drive("identify controller: Invalid argument")
    is_json = call.is_json
    entries = call.number("log-entries", 64)
    if not entries:
        raise _Refused("non-zero log-entries is required param")
    if is_json:
        return Answer(nvme_json(_nvme_logs.error_log(drive, entries)))
    return Answer(_nvme_logs.error_log_text(drive, call.device, entries))


def _sanitize(call: _Call) -> Answer:
    drive = call.drive("sanitize: Invalid argument")
    method = _SANITIZES.get(call.options.get("sanact", ""))
    if method is None:
        raise _Refused("Invalid Sanitize Action", shows_usage=True)
    if drive.firmware_state.erased is not None:
        return Answer(stderr=status.SANITIZE_IN_PROGRESS, status=1)
    call.acts.sanitize(drive, method)
    return Answer()


def _sanitize_log(call: _Call) -> Answer:
    drive = call.drive("sanitize status log: Invalid argument")
    if not call.is_json:
        return Answer(_nvme_logs.sanitize_log_text(drive))
    return Answer(nvme_json(_nvme_logs.sanitize_log(drive, call.device)))


def _get_feature(call: _Call) -> Answer:
    drive = call.drive("get-feature: Invalid argument")
    limits = drive.firmware_state.limits
    if call.number("feature-id", 0) != _ERROR_RECOVERY or limits is None:
        return Answer(stderr=status.INVALID_FIELD, status=1)
    # C prints no 0x before a zero.
    value = f"{limits[0]:#010x}" if limits[0] else "00000000"
    return Answer(f"get-feature:0x05 (Error Recovery), Current value:{value}\n")


def _set_feature(call: _Call) -> Answer:
    drive = call.drive("set-feature: Invalid argument")
    if call.number("feature-id", 0) != _ERROR_RECOVERY or drive.firmware_state.limits is None:
        return Answer(stderr=status.INVALID_FIELD, status=1)
    value = call.number("value", 0)
    call.acts.limit_recovery(drive, value, 0)
    return Answer(f"set-feature:0x05 (Error Recovery), value:{value:#010x}, cdw12:00000000, save:0\n")


def _write_uncorrectable(call: _Call) -> Answer:
    drive = call.drive("write uncorrectable: Invalid argument")
    first, many = call.number("start-block", 0), call.number("block-count", 0) + 1
    if not drive.firmware_state.marks:
        return Answer(stderr=status.INVALID_OPCODE, status=1)
    if first + many > drive.size_bytes // drive.sector_bytes:
        return Answer(stderr=status.OUT_OF_RANGE, status=1)
    call.acts.mark(drive, first, many)
    return Answer("NVME Write Uncorrectable Success\n")


def _reset(call: _Call) -> Answer:
    return _reset_through(call, "Reset")


def _subsystem_reset(call: _Call) -> Answer:
    return _reset_through(call, "Subsystem-reset")


def _reset_through(call: _Call, what: str) -> Answer:
    """Reset a controller; it is the only one of its subsystem. The message is the real tool's, the wrong way round."""
    message = f"{what}: Block device required"
    drive = call.drive(message)
    if call.device != drive.kernel_name:
        raise _Refused(message)
    call.acts.reset_controller(drive)
    return Answer()


@dataclass(frozen=True)
class _Command:
    """A sub-command: its line in the list of them, what its usage says, and its options."""

    run: Callable[[_Call], Answer]
    summary: str
    purpose: str
    options: tuple[_Option, ...] = ()

    def usage(self, name: str) -> str:
        parts = [f"\033[1mUsage: nvme {name} <device> [OPTIONS]\033[0m", "", *textwrap.wrap(self.purpose, 77), ""]
        if self.options:
            parts += ["\033[1mOptions:\033[0m", *(option.usage for option in self.options)]
        return "\n".join(parts) + "\n"


_COMMANDS = {
    "list": _Command(
        _list,
        "List all NVMe devices and namespaces on machine",
        "Retrieve basic information for all NVMe namespaces",
        (_FORMAT, _VERBOSE),
    ),
    "list-subsys": _Command(
        _list_subsys, "List nvme subsystems", "Retrieve information for subsystems", (_FORMAT, _VERBOSE)
    ),
    "id-ctrl": _Command(
        _id_ctrl,
        "Send NVMe Identify Controller",
        "Send an Identify Controller command to the given device and report information about the specified controller "
        "in human-readable or binary format. May also return vendor-specific controller attributes in hex-dump if "
        "requested.",
        (_FORMAT,),
    ),
    "id-ns": _Command(
        _id_ns,
        "Send NVMe Identify Namespace, display structure",
        "Send an Identify Namespace command to the given device, returns properties of the specified namespace in "
        "either human-readable or binary format. Can also return binary vendor-specific namespace attributes.",
        (_Option("namespace-id", "n", "NUM", "identifier of desired namespace"), _FORMAT),
    ),
    "list-ns": _Command(
        _list_ns,
        "Send NVMe Identify List, display structure",
        "For the specified controller handle, show the namespace list in the associated NVMe subsystem, optionally "
        "starting with a given nsid.",
        (
            _Option("namespace-id", "n", "NUM", "first nsid returned list should start from"),
            _Option("all", "a", None, "show all namespaces in the subsystem, whether attached or inactive"),
            _FORMAT,
        ),
    ),
    "smart-log": _Command(
        _smart_log,
        "Retrieve SMART Log, show it",
        "Retrieve SMART log for the given device (or optionally a namespace) in either decoded format (default) or "
        "binary.",
        (
            _Option("namespace-id", "n", "NUM", "(optional) desired namespace"),
            _FORMAT,
            _Option("human-readable", "H", None, "show info in readable format"),
        ),
    ),
    "error-log": _Command(
        _error_log,
        "Retrieve Error Log, show it",
        "Retrieve specified number of error log entries from a given device in either decoded format (default) or "
        "binary.",
        (_Option("log-entries", "e", "NUM", "number of entries to retrieve"), _FORMAT),
    ),
    "get-feature": _Command(
        _get_feature,
        "Get feature and show the resulting value",
        "Read operating parameters of the specified controller.",
        (_Option("feature-id", "f", "NUM", "feature identifier"),),
    ),
    "set-feature": _Command(
        _set_feature,
        "Set a feature and show the resulting value",
        "Modify the saveable or changeable current operating parameters of the controller.",
        (
            _Option("feature-id", "f", "NUM", "feature identifier (required)"),
            _Option("value", "v", "NUM", "new value of feature (required)"),
        ),
    ),
    "write-uncor": _Command(
        _write_uncorrectable,
        "Submit a write uncorrectable command, return results",
        "The Write Uncorrectable command is used to set a range of logical blocks to invalid.",
        (
            _Option("namespace-id", "n", "NUM", "desired namespace"),
            _Option("start-block", "s", "IONUM", "64-bit LBA of first block to access"),
            _Option("block-count", "c", "NUM", "number of blocks (zeroes based) on device to access"),
        ),
    ),
    "sanitize": _Command(
        _sanitize,
        "Submit a sanitize command",
        "Send a sanitize command.",
        (
            _Option("owpass", "n", "NUM", "Overwrite pass count."),
            _Option("sanact", "a", "STRING", "Sanitize action: 2 = Start block erase, 4 = Start crypto erase"),
        ),
    ),
    "sanitize-log": _Command(
        _sanitize_log, "Retrieve sanitize log, show it", "Retrieve sanitize log and show it.", (_FORMAT,)
    ),
    "reset": _Command(_reset, "Resets the controller", "Resets the NVMe controller"),
    "subsystem-reset": _Command(_subsystem_reset, "Resets the subsystem", "Resets the NVMe subsystem"),
}


def nvme(argv: Sequence[str], view: HostView, acts: HostActs) -> Answer:
    """Answer ``nvme`` with these arguments."""
    name, *rest = argv or ["help"]
    if name in {"version", "--version"}:
        return Answer(_VERSION)
    if name in {"help", "--help", "-h"}:
        return Answer(_overview())
    command = _COMMANDS.get(name)
    if command is None:
        return Answer(f"ERROR: Invalid sub-command '{name}'\n{_overview()}", status=1)
    try:
        return command.run(_parse(name, command, rest, view, acts))
    except _Refused as refusal:
        message = f"{refusal}\n" if str(refusal) else ""
        return Answer(stderr=message + (command.usage(name) if refusal.shows_usage else ""), status=1)


def _parse(name: str, command: _Command, argv: Sequence[str], view: HostView, acts: HostActs) -> _Call:
    short = "h" + "".join(option.short + (":" if option.value else "") for option in command.options)
    long = ["help", *(option.long + ("=" if option.value else "") for option in command.options)]
    try:
        given, arguments = getopt.gnu_getopt(argv, short, long)
    except getopt.GetoptError as error:
        dashed = f"-{error.opt}" if len(error.opt) == 1 else f"--{error.opt}"
        if "requires argument" not in error.msg:
            reason = f"unrecognized option '{dashed}'"
        elif len(error.opt) == 1:
            reason = f"option requires an argument -- '{error.opt}'"
        else:
            reason = f"option '{dashed}' requires an argument"
        raise _Refused(f"{name}: {reason}", shows_usage=True) from None
    names = {f"-{option.short}": option.long for option in command.options}
    options = {names.get(flag, flag.removeprefix("--")): value for flag, value in given}
    if options.keys() & {"-h", "help"}:
        raise _Refused("", shows_usage=True)
    return _Call(name, options, arguments, view, acts)


def _overview() -> str:
    return "\n".join(
        [
            "nvme-2.3",
            "usage: nvme <command> [<device>] [<args>]",
            "",
            "The '<device>' may be either an NVMe character device (ex: /dev/nvme0) or an",
            "nvme block device (ex: /dev/nvme0n1).",
            "",
            "The following are all implemented sub-commands:",
            *(f"  {name:<28} {command.summary}" for name, command in _COMMANDS.items()),
            "  version                      Shows the program version",
            "  help                         Display this help",
            "",
        ]
    )
