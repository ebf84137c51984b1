"""``sg_write_long`` of sg3_utils 1.46 on a mock server's SAS drives: it marks sectors as uncorrectable, and no more."""

from __future__ import annotations

from collections.abc import Sequence

from rackloop_labs.mock_hosts._view import Answer, AttachedDrive, HostActs, HostView
from rackloop_labs.mock_hosts.tools._devices import device_node
from rackloop_labs.mock_hosts.tools._options import OptionError, Options

_SYNTAX_STATUS = 1
_ILLEGAL_REQUEST_STATUS = 5
_INVALID_OPCODE_STATUS = 9
_NO_DEVICE_STATUS = 52
_FLAGS = {"-S": "16", "--16": "16", "-w": "wr_uncor", "--wr_uncor": "wr_uncor"}
_VALUED = {"-l": "lba", "--lba": "lba"}
_USAGE = "Usage: sg_write_long [--16] [--lba=LBA] [--wr_uncor] DEVICE\n"
# WRITE LONG of 16 and of 10 bytes: the service action, the name, and which bits of the CDB a drive looks at.
_WRITE_LONGS = {
    ("0x9f", "0x11"): ("Write long(16)", "9f 11 ff ff ff ff ff ff ff ff 00 00 00 00 40 00"),
    ("0x3f", ""): ("Write long(10)", "3f 40 ff ff ff ff 00 00 00 00"),
}


def sg_write_long(argv: Sequence[str], view: HostView, acts: HostActs) -> Answer:
    """Mark a sector as uncorrectable (``--wr_uncor``); another use is an illegal request, as in SBC-4."""
    try:
        options = Options.of(argv, flags=_FLAGS, valued=_VALUED)
    except OptionError as error:
        return Answer(stderr=f"sg_write_long: {error}\n{_USAGE}", status=_SYNTAX_STATUS)
    try:
        sector = int(options.value("lba") or "0", 0)
    except ValueError:
        return Answer(stderr="bad argument to '--lba'\n", status=_SYNTAX_STATUS)
    if len(options.operands) != 1:
        return Answer(stderr=f"Missing device name!\n\n{_USAGE}", status=_SYNTAX_STATUS)
    path = options.operands[0]
    node = device_node(view, path)
    drive = next((each for each in view.drives if node in {f"/dev/{each.block_name}", f"/dev/{each.generic}"}), None)
    if drive is None or drive.protocol != "sas":
        return Answer(
            stderr=f"sg_write_long: open error: {path}: No such file or directory\n", status=_NO_DEVICE_STATUS
        )
    number = 16 if "16" in options.flags else 10
    if not drive.firmware_state.marks:
        return _refused(number, "Illegal request, Invalid opcode", _INVALID_OPCODE_STATUS)
    if "wr_uncor" not in options.flags or not 0 <= sector < drive.size_bytes // drive.sector_bytes:
        return _refused(number, "Illegal request", _ILLEGAL_REQUEST_STATUS)
    acts.mark(drive, sector, 1)
    return Answer()


def _refused(number: int, why: str, status: int) -> Answer:
    return Answer(stderr=f"  SCSI WRITE LONG ({number}): {why}\nsg_write_long failed: {why}\n", status=status)


def write_long_opcode(drive: AttachedDrive, opcode: str, action: str) -> Answer | None:
    """The lines of ``sg_opcodes`` for WRITE LONG; None for another command."""
    found = _WRITE_LONGS.get((opcode, action))
    if found is None:
        return None
    name, usage = found
    number = f"  Opcode={opcode}" + (f"  Service_action=0x{int(action, 0):04x}" if action else "")
    lines = ["", number, f"  Command_name: {name}"]
    marks = drive.firmware_state.marks
    lines += [
        f"  Command is {'supported [conforming to SCSI standard]' if marks else 'NOT supported'}",
        "  No command duration limit mode page",
        "  Multiple Logical Units (MLU): not reported",
        *([f"  Usage data: {usage} "] if marks else []),
    ]
    return Answer("\n".join(lines) + "\n")
