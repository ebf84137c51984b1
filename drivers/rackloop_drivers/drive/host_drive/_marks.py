"""Sectors that a drive marks as uncorrectable by its own command: they cannot be read until they are written again.

Sources: NVM Command Set 1.0, Write Uncorrectable and ONCS bit 1 of Identify Controller; ATA/ATAPI Command Set (ACS-3),
WRITE UNCORRECTABLE EXT; SCSI Block Commands (SBC-4), WRITE LONG with WR_UNCOR; nvme-write-uncor(1), hdparm(8),
sg_write_long(8), sg_opcodes(8).
"""

from __future__ import annotations

import json
import re
from typing import Protocol

from rackloop.abilities import Executor
from rackloop.abilities.blocks import BLOCK_BYTES
from rackloop.clock import Deadline
from rackloop.errors import NotSupported, UnknownFormat
from rackloop_drivers.drive.host_drive._erase_scsi import reported_command
from rackloop_drivers.drive.host_drive._erasing import Tools

_ONCS_WRITE_UNCORRECTABLE = 0x2
_ATA_FEATURE = re.compile(r"^\t   \*\tWRITE_UNCORRECTABLE_EXT command$", re.MULTILINE)
# WRITE LONG of 16 and of 10 bytes: operation code and service action, its option, the byte of its CDB with WR_UNCOR.
_WRITE_LONGS = (("0x9f,0x11", ("--16",), 14), ("0x3f", (), 1))
_WR_UNCOR = 0x40
_LAST_OF_10 = 0xFFFF_FFFF
_USAGE = re.compile(r"Usage data: *((?:[0-9a-f]{2} *)+)")


class Marks(Protocol):
    """The command of one drive, by its protocol. ``tool`` is what a person would type.

    ``require`` returns where the drive has it, and changes nothing; else it raises NotSupported with what the drive
    lacks. ``mark`` takes sectors as the drive counts them, of ``sector_bytes`` each.
    """

    tool: str

    def require(self, deadline: Deadline) -> None: ...
    def mark(self, first: int, many: int, sector_bytes: int, deadline: Deadline) -> None: ...


class NvmeMarks:
    """Write Uncorrectable, in pieces that every drive takes (WUSL is a page at least)."""

    tool = "nvme write-uncor"

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def require(self, deadline: Deadline) -> None:
        """See :class:`Marks`."""
        raw = self._tools.run("nvme", "id-ctrl", "--output-format=json", deadline=deadline).stdout
        try:
            commands = int(json.loads(raw)["oncs"])
        except (KeyError, TypeError, ValueError) as error:
            said = f"{self._tools.where}: nvme id-ctrl printed no oncs; known here: the fields of nvme-cli 2.3"
            raise UnknownFormat(said, tool="nvme", raw=raw) from error
        if not commands & _ONCS_WRITE_UNCORRECTABLE:
            raise NotSupported(
                f"{self._tools.where}: the drive has no Write Uncorrectable (bit 1 of its ONCS, {commands:#x}, is 0): "
                "it cannot make sectors of its own unreadable"
            )

    def mark(self, first: int, many: int, sector_bytes: int, deadline: Deadline) -> None:
        """See :class:`Marks`."""
        at_once = max(1, BLOCK_BYTES // sector_bytes)
        for start in range(first, first + many, at_once):
            # Counted from 0.
            count = min(at_once, first + many - start) - 1
            where = (f"--start-block={start}", f"--block-count={count}")
            self._tools.run("nvme", "write-uncor", *where, deadline=deadline)


class AtaMarks:
    """WRITE UNCORRECTABLE EXT, flagged: the drive neither tries to read the sector nor counts it as a defect."""

    tool = "hdparm --make-bad-sector"

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def require(self, deadline: Deadline) -> None:
        """See :class:`Marks`; hdparm itself goes on without the command, and says that it succeeded."""
        raw = self._tools.run("hdparm", "-I", deadline=deadline).stdout
        if _ATA_FEATURE.search(raw) is None:
            raise NotSupported(
                f"{self._tools.where}: the drive has no WRITE_UNCORRECTABLE_EXT command (hdparm -I): it cannot make "
                "sectors of its own unreadable"
            )

    def mark(self, first: int, many: int, sector_bytes: int, deadline: Deadline) -> None:  # noqa: ARG002 - each by itself
        """See :class:`Marks`."""
        for sector in range(first, first + many):
            told = ("--yes-i-know-what-i-am-doing", "--make-bad-sector", f"f{sector}")
            self._tools.run("hdparm", *told, deadline=deadline)


class ScsiMarks:
    """WRITE LONG with WR_UNCOR, as REPORT SUPPORTED OPERATION CODES has it."""

    tool = "sg_write_long --wr_uncor"

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def require(self, deadline: Deadline) -> None:
        """See :class:`Marks`."""
        self._command(deadline)

    def mark(self, first: int, many: int, sector_bytes: int, deadline: Deadline) -> None:  # noqa: ARG002 - each by itself
        """See :class:`Marks`."""
        options = self._command(deadline)
        if first + many - 1 > _LAST_OF_10 and "--16" not in options:
            raise NotSupported(
                f"{self._tools.where}: the drive has no WRITE LONG (16), and sector {first} is beyond 32 bits"
            )
        for sector in range(first, first + many):
            self._tools.run("sg_write_long", *options, "--wr_uncor", f"--lba={sector}", deadline=deadline)

    def _command(self, deadline: Deadline) -> tuple[str, ...]:
        """The option of the WRITE LONG that marks. Raises NotSupported where the drive reports none that does."""
        for opcode, options, byte in _WRITE_LONGS:
            usage = _USAGE.search(reported_command(self._tools, opcode, deadline) or "")
            used = bytes.fromhex(usage[1]) if usage else b""
            if len(used) > byte and used[byte] & _WR_UNCOR:
                return options
        raise NotSupported(
            f"{self._tools.where}: the drive reports no WRITE LONG with WR_UNCOR (sg_opcodes --opcode=0x9f,0x11 and "
            "0x3f): it cannot make sectors of its own unreadable"
        )


def marks_by(executor: Executor, protocol: str, node: str) -> Marks:
    """The marks of the drive that ``node``, a name of its block device on the server, leads to."""
    tools = Tools(executor, node)
    if protocol == "nvme":
        return NvmeMarks(tools)
    return AtaMarks(tools) if protocol == "sata" else ScsiMarks(tools)
