"""A server that answers the survey with recordings of real tools."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rackloop.abilities import Completed, Process
from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded
from rackloop.units import parse_size
from tests.transcripts.drift import Recording, recording

BY_PATH = """\
pci-0000:00:07.0-sas-phy0-lun-0 ../../sda
pci-0000:00:1f.2-ata-2.0 ../../sdb
pci-0000:00:1f.2-ata-2 ../../sdb
pci-0000:00:1f.2-ata-2-part1 ../../sdb1
pci-0000:01:00.0-nvme-1 ../../nvme0n1
"""
BLOCK = """\
nvme0n1 ../devices/pci0000:00/0000:00:04.0/0000:01:00.0/nvme/nvme0/nvme0n1
sda ../devices/pci0000:00/0000:00:07.0/host6/port-6:0/end_device-6:0/target6:0:0/6:0:0:0/block/sda
sdb ../devices/pci0000:00/0000:00:1f.2/ata2/host1/target1:0:0/1:0:0:0/block/sdb
"""
VALUES = """\
/sys/class/sas_device/end_device-6:0/bay_identifier:7
/sys/bus/pci/slots/0/address:0000:01:00
/sys/class/sas_phy/phy-6:0/enable:1
/sys/class/sas_phy/phy-6:0/sas_address:0x5000c50000000abc
/sys/class/sas_phy/phy-6:0/negotiated_linkrate:3.0 Gbit
/sys/class/sas_phy/phy-6:0/invalid_dword_count:3
/sys/class/sas_phy/phy-6:0/phy_reset_problem_count:0
"""


def answered(stdout: str, stderr: str = "", status: int = 0) -> Recording:
    """What a tool printed that nobody recorded."""
    return Recording((), stdout, stderr, status)


def _in_bytes(size: re.Match[str]) -> str:
    """The recording was made without -b."""
    return f'"size": {parse_size(size[1] + "iB")}'


_LSBLK = recording("lsblk-O.json")
RECORDED = {
    "lsblk -": replace(_LSBLK, stdout=re.sub(r'"size": "(\d+[MG])"', _in_bytes, _LSBLK.stdout)),
    "smartctl sda": recording("smartctl-x-sda.json"),
    "smartctl sdb": recording("smartctl-x-sdb.json"),
    "id-ctrl nvme0n1": recording("nvme-id-ctrl.json"),
    "id-ns nvme0n1": recording("nvme-id-ns.json"),
    "smart-log nvme0n1": recording("nvme-smart-log.json"),
}
"""The answers to the survey of a real kernel's tools."""


@dataclass
class RecordedServer:
    """An Executor on a server with a SAS drive, a SATA SSD and an NVMe SSD, as a real kernel and real tools show it.

    ``answers`` are the tools' by what was asked of whom; ``listings`` what udev and sysfs say.
    """

    name: str = "srv9"
    answers: dict[str, Recording] = field(default_factory=lambda: dict(RECORDED))
    listings: dict[str, str] = field(
        default_factory=lambda: {
            **dict.fromkeys(("enclosures", "exports", "loops", "paths"), ""),
            "by-path": BY_PATH,
            "block": BLOCK,
            "values": VALUES,
        }
    )
    ended: str = ""
    ran: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        if deadline.is_over():
            raise DeadlineExceeded(f"{self.name}: {shlex.join(argv)} came too late")
        self.ran.append(tuple(argv))
        if argv[0] == "nvme":
            answer = recording("nvme-version")
            return Completed(tuple(argv), answer.status, answer.stdout, answer.stderr)
        if self.ended:
            return Completed(tuple(argv), 1, "", self.ended)
        wanted = [name for given in argv[5:] for name in self._behind(given)]
        out = err = ""
        listed = {f"{kind} -": text for kind, text in self.listings.items()}
        for header in ["lsblk -", *listed, *(asked for asked in self.answers if asked != "lsblk -")]:
            if argv[5:] and header not in listed and header.split(" ")[1] not in {"-", *wanted}:
                continue
            if "--usage" in argv and header not in listed and header != "lsblk -":
                continue
            out, err = f"{out}\x1e{header}\n", f"{err}\x1e{header}\n"
            if header in listed:
                out += listed[header]
            else:
                answer = self.answers[header]
                out, err = f"{out}{answer.stdout}\x1estatus {answer.status}\n", err + answer.stderr
        return Completed(tuple(argv), 0, out, err)

    def _behind(self, given: str) -> list[str]:
        if given.startswith("/"):
            return [given.rsplit("/", 1)[-1]]
        links = (line.split(" ") for line in self.listings["by-path"].splitlines())
        return [target.rsplit("/", 1)[-1] for name, target in links if name.startswith(given)]

    def start(self, argv: Sequence[str]) -> Process:
        raise NotImplementedError

    def find(self, program: str) -> str | None:
        return f"/usr/bin/{program}"

    def put_text(self, name: str, text: str) -> str:
        raise NotImplementedError

    def read_file(self, path: str, deadline: Deadline) -> bytes:
        raise NotImplementedError

    def write_file(self, path: str, content: bytes, deadline: Deadline, *, mode: int = 0o600) -> None:
        raise NotImplementedError

    def give_up(self) -> None:
        return None

    def reconnect(self, deadline: Deadline) -> int:
        return 0

    def close(self) -> None:
        return None


def changed(asked: str, **fields: Any) -> RecordedServer:
    """A server one of whose tools prints other fields; those that are None are left out."""
    document = {**RECORDED[asked].document, **fields}
    text = json.dumps({name: value for name, value in document.items() if value is not None})
    return RecordedServer(answers={**RECORDED, asked: answered(text)})
