"""``sg_sanitize``, ``sg_opcodes``, ``sg_requests`` and ``sg_turs`` of sg3_utils 1.46 on a mock server's SAS drives."""

from __future__ import annotations

from collections.abc import Sequence

from rackloop_labs.mock_hosts._view import Answer, AttachedDrive, HostActs, HostView
from rackloop_labs.mock_hosts.tools._devices import device_node
from rackloop_labs.mock_hosts.tools._options import OptionError, Options
from rackloop_labs.mock_hosts.tools.sg_write_long import write_long_opcode

_SYNTAX_STATUS = 1
_NOT_READY_STATUS = 2
_ILLEGAL_REQUEST_STATUS = 5
_CONTRADICT_STATUS = 31
_NO_DEVICE_STATUS = 52
_SUPPORTED = "supported [conforming to SCSI standard]"
_METHODS = {"1": "overwrite", "2": "block-erase", "3": "crypto-erase"}
_NAMES = {"1": "Sanitize, overwrite", "2": "Sanitize, block erase", "3": "Sanitize, cryptographic erase"}
_USAGE = {
    "sg_sanitize": "Usage: sg_sanitize [--block] [--crypto] [--early] [--overwrite] [--quick] [--zero] DEVICE\n",
    "sg_opcodes": "Usage:  sg_opcodes [--no-inquiry] [--opcode=OP[,SA]] DEVICE\n",
    "sg_requests": "Usage: sg_requests [--progress] DEVICE\n",
    "sg_turs": "Usage: sg_turs DEVICE\n",
}
_FLAGS = {
    "sg_sanitize": {
        "-B": "block-erase", "--block": "block-erase", "-C": "crypto-erase", "--crypto": "crypto-erase",
        "-O": "overwrite", "--overwrite": "overwrite", "-e": "early", "--early": "early", "-Q": "quick",
        "--quick": "quick", "-z": "zero", "--zero": "zero",
    },
    "sg_opcodes": {"-n": "no-inquiry", "--no-inquiry": "no-inquiry"},
    "sg_requests": {"-p": "progress", "--progress": "progress"},
    "sg_turs": {},
}  # fmt: skip
_VALUED = {"sg_opcodes": {"-o": "opcode", "--opcode": "opcode"}}


def sg_sanitize(argv: Sequence[str], view: HostView, acts: HostActs) -> Answer:
    """Have a drive begin to sanitize itself; it does not wait for it, with ``--early`` or without."""
    found = _asked("sg_sanitize", argv, view)
    if isinstance(found, Answer):
        return found
    options, drive = found
    methods = [name for name in _METHODS.values() if name in options.flags]
    if len(methods) != 1:
        said = "one and only one of '--block', '--crypto', '--fail' or '--overwrite' please\n"
        return Answer(stderr=said, status=_CONTRADICT_STATUS)
    if methods[0] not in _offered(drive):
        said = "bad field in Sanitize cdb, option probably not supported\n"
        return Answer(_inquiry(drive), said + _failed("sg_sanitize", "Illegal request"), _ILLEGAL_REQUEST_STATUS)
    if drive.firmware_state.erased is not None:
        return Answer(_inquiry(drive), _failed("sg_sanitize", "Not ready"), _NOT_READY_STATUS)
    acts.sanitize(drive, methods[0])
    return Answer(_inquiry(drive))


def sg_opcodes(argv: Sequence[str], view: HostView, acts: HostActs) -> Answer:  # noqa: ARG001 - it only reads
    """Answer ``sg_opcodes`` of a service action of SANITIZE."""
    found = _asked("sg_opcodes", argv, view)
    if isinstance(found, Answer):
        return found
    options, drive = found
    opcode, _, action = (options.value("opcode") or "").partition(",")
    if (marking := write_long_opcode(drive, opcode.lower(), action)) is not None:
        return marking
    if opcode.lower() != "0x48" or action not in _METHODS:
        return Answer(stderr=_failed("sg_opcodes", "Illegal request"), status=_ILLEGAL_REQUEST_STATUS)
    lines = [
        "",
        f"  Opcode=0x48  Service_action=0x{int(action):04x}",
        f"  Command_name: {_NAMES[action]}",
        f"  Command is {_SUPPORTED if _METHODS[action] in _offered(drive) else 'NOT supported'}",
        "  No command duration limit mode page",
        "  Multiple Logical Units (MLU): not reported",
    ]
    return Answer("\n".join(lines) + "\n")


def sg_requests(argv: Sequence[str], view: HostView, acts: HostActs) -> Answer:  # noqa: ARG001 - it only reads
    """Answer ``sg_requests`` with the progress of a sanitize, with nothing where none is under way."""
    found = _asked("sg_requests", argv, view)
    if isinstance(found, Answer):
        return found
    _, drive = found
    done = drive.firmware_state.erased
    if done is None:
        return Answer()
    percent = int(done * 10_000)
    return Answer(f"Progress indication: {percent // 100}.{percent % 100:02}% done\n")


def sg_turs(argv: Sequence[str], view: HostView, acts: HostActs) -> Answer:  # noqa: ARG001 - it only reads
    """Answer ``sg_turs``: a drive that erases itself is not ready."""
    found = _asked("sg_turs", argv, view)
    if isinstance(found, Answer):
        return found
    _, drive = found
    return Answer() if drive.firmware_state.erased is None else Answer("device not ready\n", "", _NOT_READY_STATUS)


def _asked(tool: str, argv: Sequence[str], view: HostView) -> tuple[Options, AttachedDrive] | Answer:
    """The options and the drive, or what the tool says against them."""
    try:
        options = Options.of(argv, flags=_FLAGS[tool], valued=_VALUED.get(tool, {}))
    except OptionError as error:
        return Answer(stderr=f"{tool}: {error}\n{_USAGE[tool]}", status=_SYNTAX_STATUS)
    if len(options.operands) != 1:
        return Answer(stderr=f"Missing device name!\n\n{_USAGE[tool]}", status=_SYNTAX_STATUS)
    path = options.operands[0]
    node = device_node(view, path)
    for drive in view.drives:
        if drive.protocol == "sas" and node in {f"/dev/{drive.block_name}", f"/dev/{drive.generic}"}:
            return options, drive
    return Answer(stderr=f"{tool}: open error: {path}: No such file or directory\n", status=_NO_DEVICE_STATUS)


def _offered(drive: AttachedDrive) -> tuple[str, ...]:
    if not drive.firmware_state.sanitizes:
        return ()
    return ("overwrite",) if drive.is_rotational else ("block-erase", "crypto-erase")


def _inquiry(drive: AttachedDrive) -> str:
    return (
        f"    {drive.model[:8]:8}  {drive.model[8:24]:16}  {drive.firmware[:4]:4}   peripheral_type: disk [0x0]\n"
        f"      Unit serial number: {drive.serial}\n"
    )


def _failed(tool: str, why: str) -> str:
    return f"{tool} failed: {why}\n"
