"""The limit of a drive's error recovery, read and set by the tools of its server.

Sources: ATA SCT Error Recovery Control (smartctl(8), ``-l scterc``); NVM Express feature 05h, Time Limited Error
Recovery; SCSI Read-Write Error Recovery mode page 01h, Recovery Time Limit (SBC-4); sg_wr_mode(8).
"""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import ClassVar

from rackloop.abilities import Completed, Host
from rackloop.clock import Deadline
from rackloop.errors import LabError, NotSupported, ToolError, UnknownFormat

_PACKAGES = {"nvme": "nvme-cli", "sg_wr_mode": "sg3-utils", "smartctl": "smartmontools"}
_FEATURE = re.compile(r"Current value: *(?:0x)?([0-9a-fA-F]+)")
_TLER = 0xFFFF
_MODE_PAGE = re.compile(r"^ +mode page:\n((?: *[0-9a-f]{2}(?: +[0-9a-f]{2})* *\n)+)", re.MULTILINE)
_RECOVERY_TIME_LIMIT = slice(10, 12)
_MODE_PAGE_BYTES = 12
# Of smartctl's exit status: a bad command line, a device that cannot be opened.
_SMARTCTL_FAILED = 0x3


class Limit(ABC):
    """The limit of the drive at ``node`` of ``host``, as one line of text that has the whole setting."""

    unit_s: ClassVar[float]
    most: ClassVar[int] = 0xFFFF

    def __init__(self, host: Host, node: str) -> None:
        self._host = host
        self._node = node
        self.where = f"{host.name}:{node}"

    @abstractmethod
    def read(self, deadline: Deadline) -> str:
        """The setting now. Raises NotSupported where the drive has none."""

    @abstractmethod
    def limited(self, setting: str, within_s: float) -> str:
        """The setting with this limit, and else as it was."""

    @abstractmethod
    def write(self, setting: str, deadline: Deadline) -> None:
        """Set it. Raises LabError where the drive refuses."""

    def _units(self, within_s: float) -> int:
        return max(1, min(self.most, math.ceil(within_s / self.unit_s - 1e-9)))

    def _run(self, *argv: str, deadline: Deadline, accept: Collection[int] = (0,)) -> Completed:
        if self._host.find(argv[0]) is None:
            package = _PACKAGES[argv[0]]
            raise ToolError(f"{argv[0]} was not found on {self._host.name}: install its package {package} there")
        completed = self._host.run([*argv, self._node], deadline)
        if completed.status not in accept:
            said = "; ".join((completed.stderr or completed.stdout).split("\n")).strip("; ")
            raise LabError(f"{self.where}: {' '.join(argv)} failed: {said or f'exit status {completed.status}'}")
        return completed

    def _unknown(self, tool: str, raw: str) -> UnknownFormat:
        return UnknownFormat(f"{self.where}: {tool} did not print the setting in a known form", tool=tool, raw=raw)


class AtaLimit(Limit):
    """SCT Error Recovery Control: reads and writes in tenths of a second, ``70,70``; 0 is no limit."""

    unit_s = 0.1

    def read(self, deadline: Deadline) -> str:
        """See :class:`Limit`."""
        raw = self._smartctl("scterc", deadline)
        try:
            control = json.loads(raw).get("ata_sct_erc")
            if control is None:
                raise NotSupported(f"{self.where}: the drive has no SCT Error Recovery Control, and cannot fail fast")
            return ",".join(str(int(control[way].get("deciseconds", 0))) for way in ("read", "write"))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._unknown("smartctl", raw) from error

    def limited(self, setting: str, within_s: float) -> str:
        """See :class:`Limit`; writes keep theirs."""
        return f"{self._units(within_s)},{setting.partition(',')[2]}"

    def write(self, setting: str, deadline: Deadline) -> None:
        """See :class:`Limit`."""
        self._smartctl(f"scterc,{setting}", deadline)

    def _smartctl(self, log: str, deadline: Deadline) -> str:
        # The other bits of its status tell of the drive's health.
        healthy = [status for status in range(256) if not status & _SMARTCTL_FAILED]
        return self._run("smartctl", "--json=c", "-l", log, deadline=deadline, accept=healthy).stdout


class NvmeLimit(Limit):
    """Feature 05h: Time Limited Error Recovery in tenths of a second; 0 is no limit. The other bits stay."""

    unit_s = 0.1

    def read(self, deadline: Deadline) -> str:
        """See :class:`Limit`."""
        raw = self._run("nvme", "get-feature", "--feature-id=5", deadline=deadline).stdout
        found = _FEATURE.search(raw)
        if found is None:
            raise self._unknown("nvme", raw)
        return f"{int(found[1], 16):#x}"

    def limited(self, setting: str, within_s: float) -> str:
        """See :class:`Limit`."""
        return f"{int(setting, 16) & ~_TLER | self._units(within_s):#x}"

    def write(self, setting: str, deadline: Deadline) -> None:
        """See :class:`Limit`."""
        self._run("nvme", "set-feature", "--feature-id=5", f"--value={setting}", deadline=deadline)


class ScsiLimit(Limit):
    """Mode page 01h, all of it in hexadecimal, of which the Recovery Time Limit in milliseconds is set."""

    unit_s = 0.001

    def read(self, deadline: Deadline) -> str:
        """See :class:`Limit`."""
        raw = self._run("sg_wr_mode", "--page=1", deadline=deadline).stdout
        found = _MODE_PAGE.search(raw)
        page = found[1].split() if found else []
        if len(page) < _MODE_PAGE_BYTES:
            raise self._unknown("sg_wr_mode", raw)
        return ",".join(page)

    def limited(self, setting: str, within_s: float) -> str:
        """See :class:`Limit`."""
        page = setting.split(",")
        page[_RECOVERY_TIME_LIMIT] = [f"{byte:02x}" for byte in self._units(within_s).to_bytes(2, "big")]
        return ",".join(page)

    def write(self, setting: str, deadline: Deadline) -> None:
        """See :class:`Limit`."""
        self._run("sg_wr_mode", "--page=1", f"--contents={setting}", deadline=deadline)


LIMITS: dict[str, type[Limit]] = {"nvme": NvmeLimit, "sas": ScsiLimit, "sata": AtaLimit}
"""The kind of limit by the protocol of a drive."""
