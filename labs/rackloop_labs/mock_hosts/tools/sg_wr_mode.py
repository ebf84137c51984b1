"""``sg_wr_mode`` of sg3_utils 1.46 on a mock server's SAS drives: the Read-Write Error Recovery page, and no other."""

from __future__ import annotations

from collections.abc import Sequence

from rackloop_labs.mock_hosts._view import Answer, AttachedDrive, HostActs, HostView
from rackloop_labs.mock_hosts.tools._devices import device_node
from rackloop_labs.mock_hosts.tools._options import OptionError, Options

_VALUED = {"-p": "page", "--page": "page", "-c": "contents", "--contents": "contents"}
_USAGE = "Usage: sg_wr_mode [--contents=H,H...] [--page=PG_H] DEVICE\n"
_SYNTAX_STATUS = 1
_ILLEGAL_REQUEST_STATUS = 5
_NO_DEVICE_STATUS = 52
_FIXED = bytes.fromhex("010ac00bf00000000500")
_BYTES = 12


def sg_wr_mode(argv: Sequence[str], view: HostView, acts: HostActs) -> Answer:
    """Show mode page 01h, or write it: of its bytes the Recovery Time Limit can be changed."""
    try:
        options = Options.of(argv, flags={}, valued=_VALUED)
    except OptionError as error:
        return Answer(stderr=f"sg_wr_mode: {error}\n{_USAGE}", status=_SYNTAX_STATUS)
    if len(options.operands) != 1:
        return Answer(stderr=f"missing device name!\n{_USAGE}", status=_SYNTAX_STATUS)
    path = options.operands[0]
    node = device_node(view, path)
    drive = next((each for each in view.drives if node in {f"/dev/{each.block_name}", f"/dev/{each.generic}"}), None)
    if drive is None or drive.protocol != "sas":
        return Answer(stderr=f"open error: {path}: No such file or directory\n", status=_NO_DEVICE_STATUS)
    limits = drive.firmware_state.limits
    if options.value("page") != "1" or limits is None:
        return Answer(_inquiry(drive), "MODE SENSE (10) failed: Illegal request\n", _ILLEGAL_REQUEST_STATUS)
    contents = options.value("contents")
    if contents is None:
        return Answer(_inquiry(drive) + _shown(_FIXED + limits[0].to_bytes(2, "big")))
    try:
        page = bytes(int(byte, 16) for byte in contents.split(","))
    except ValueError:
        return Answer(stderr="bad argument to '--contents='\n", status=_SYNTAX_STATUS)
    if len(page) != _BYTES:
        said = f"contents length={len(page)} but reference mode page length={_BYTES}\n"
        return Answer(_inquiry(drive), said, _SYNTAX_STATUS)
    if page[:-2] != _FIXED:
        return Answer(_inquiry(drive), "MODE SELECT (10) failed: Illegal request\n", _ILLEGAL_REQUEST_STATUS)
    acts.limit_recovery(drive, int.from_bytes(page[-2:], "big"), 0)
    return Answer(_inquiry(drive))


def _inquiry(drive: AttachedDrive) -> str:
    return f"    {drive.model[:8]:8}  {drive.model[8:24]:16}  {drive.firmware[:4]:4}   peripheral_type: disk [0x0]\n"


def _shown(page: bytes) -> str:
    numbers = [f"{byte:02x}" for byte in page]
    return (
        ">>> No contents given, so show current mode page data:\n  header:\n00 1a 00 10 00 00 00 08\n"
        "  block descriptor(s):\n00 00 80 00 00 00 02 00\n  mode page:\n"
        f"{' '.join(numbers[:8])}  {' '.join(numbers[8:])}\n"
    )
