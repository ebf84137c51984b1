"""A server that answers every script of the harness, in the words of its tools, with what a rack connects to it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rackloop.abilities import Completed, Process
from rackloop.abilities.inventory import HostInventory, SeenDrive
from rackloop.clock import Deadline, VirtualClock
from rackloop.inspection.health import KernelLine, KernelPosition
from tests.transcripts.drift import Recording
from tests.unit.harness.recorded_server import RECORDED, RecordedServer, answered

_SURVEY, _HEALTH = 5, 7
BOOT = KernelPosition("boot-1", 1_000_000)
#: A kernel log that began with the run's clock.
FIRST_LINES = "<6>[    0.000000] Linux\n1970-01-01T00:00:00,000000+00:00 Linux\n"


@dataclass
class _Shell:
    """A shell whose time of day is the run's clock."""

    clock: VirtualClock

    def write_line(self, line: str) -> None:
        pass

    def read_line(self, deadline: Deadline) -> str | None:
        return str(self.clock.now_ns())

    def wait(self, deadline: Deadline) -> Completed:
        raise NotImplementedError

    def kill(self) -> None:
        pass


@dataclass
class AnsweringServer(RecordedServer):
    """A Host that sees what ``look`` returns when it is asked.

    ``look`` is called with where the last reading of the kernel log ended, None where no log is asked for, and may
    raise. ``kernel`` are the lines since then. It says of a command besides what it is.
    """

    look: Callable[[KernelPosition | None], HostInventory] = lambda _: HostInventory("srv9")
    kernel: tuple[KernelLine, ...] = ()
    clock: VirtualClock = field(default_factory=VirtualClock)
    first_lines: str = FIRST_LINES

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        if len(argv) < _SURVEY:
            return Completed(tuple(argv), 0, self.first_lines, "")
        asked = argv[_SURVEY:_HEALTH]
        since = KernelPosition(asked[0], round(float(asked[1]) * 1e6)) if asked and asked[1] != "end" else None
        drives = {_kernel_name(drive): drive for drive in self.look(since).drives}
        self.answers = {"lsblk -": answered(json.dumps({"blockdevices": [_listed(*item) for item in drives.items()]}))}
        for name, drive in drives.items():
            self.answers |= _readings(name, drive)
        links = [f"{path} ../../{name}" for name, drive in drives.items() for path in drive.by_paths]
        self.listings = dict.fromkeys(("block", "enclosures", "exports", "loops", "paths", "values"), "")
        self.listings["by-path"] = "\n".join(links)
        survey = super().run(argv[:_SURVEY], deadline, stdin=stdin)
        log = {
            "boot": BOOT.boot_id,
            "kernel": "".join(_printed(line) for line in self.kernel if since),
            "position": str(BOOT.at_us / 1e6),
            "places": "",
        }
        besides = f"\x1ebesides -\n{shlex.join(argv[_HEALTH:])}\n\x1estatus 0\n" if argv[_HEALTH:] else ""
        said = besides + "".join(f"\x1e{kind} -\n{text}" for kind, text in log.items())
        return Completed(tuple(argv), 0, said + survey.stdout, survey.stderr)

    def start(self, argv: Sequence[str]) -> Process:
        return _Shell(self.clock)


def _kernel_name(drive: SeenDrive) -> str:
    name = drive.device.removeprefix("/dev/")
    return f"nvme{ord(name[-1]) - ord('a')}n1" if drive.identity.protocol == "nvme" else name


def _printed(line: KernelLine) -> str:
    return f"<{line.priority}>[{line.at_us // 1_000_000:5}.{line.at_us % 1_000_000:06}] {line.text}\n"


def _listed(name: str, drive: SeenDrive) -> dict[str, Any]:
    size = drive.identity.size_bytes
    return {"kname": name, "name": name, "type": "disk", "size": size, "rota": False, "mountpoints": [], "fstype": None}


def _readings(name: str, drive: SeenDrive) -> dict[str, Recording]:
    """What the tools print of a drive."""
    identity = drive.identity
    names = {"serial_number": identity.serial, "user_capacity": {"bytes": identity.size_bytes}}
    match identity.protocol:
        case "nvme":
            control = {"mn": identity.model, "sn": identity.serial, "fr": identity.firmware}
            formats = {"flbas": 0, "nlbaf": 0, "lbafs": [{"ds": 9}], "nsze": identity.size_bytes // 512}
            space = {**formats, "eui64": identity.identifiers["eui64"], "nguid": ""}
            return {
                f"id-ctrl {name}": answered(json.dumps(control)),
                f"id-ns {name}": answered(json.dumps(space)),
                f"smart-log {name}": RECORDED["smart-log nvme0n1"],
            }
        case "sata":
            wwn = identity.identifiers["wwn"]
            parts = {"naa": int(wwn[0], 16), "oui": int(wwn[1:7], 16), "id": int(wwn[7:], 16)}
            names |= {"model_name": identity.model, "firmware_version": identity.firmware, "wwn": parts}
            counted = [{"name": counter, "raw": {"value": value}} for counter, value in drive.counters.items()]
            names |= {"ata_smart_attributes": {"table": counted}}
        case _:
            names |= {"scsi_model_name": identity.model, "scsi_revision": identity.firmware}
            names |= {"logical_unit_id": f"0x{identity.identifiers['wwn']}"}
    report = {"json_format_version": [1, 0], "smartctl": {"version": [7, 3], "exit_status": 0}}
    device = {"protocol": "ATA" if identity.protocol == "sata" else "SCSI"}
    return {f"smartctl {name}": answered(json.dumps({**report, "device": device, **names}))}
