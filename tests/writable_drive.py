"""The guard's permission to overwrite a test's device."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rackloop.abilities import DriveIdentity, WritableDrive
from rackloop.clock import Deadline, RealClock
from rackloop.lab import Lab, load_lab
from rackloop.safety import Guard
from rackloop_drivers.block import DevicePath, HostPath, NbdExport
from tests.leased import EverythingLeased

_WWN = "5000c500a0000001"
_LAB = f"""
name: scratch
kind: mock
store: sqlite
fabric: {{driver: flexfabric, ports: 160}}
servers: {{srv1: {{stack: vanilla, ports: {{p0: 1}}}}}}
drives:
  d1: {{profile: sata-ssd, model: RL, serial: RL1, wwn: {_WWN}, size: 8 MiB, port: 9, scratch: true}}
baseline: {{srv1: {{p0: d1}}}}
"""


@dataclass(frozen=True)
class _Described:
    """A drive that answers as the description says, on the path of a block device."""

    location: str
    identity: DriveIdentity

    def identify(self, deadline: Deadline) -> DriveIdentity:
        return self.identity

    def health(self, deadline: Deadline) -> dict[str, int]:
        return {}


def minted(device: NbdExport | DevicePath | HostPath, serial: str = "RL1", drive_id: str = "d1") -> WritableDrive:
    """Permission to overwrite ``device``, whose drive has this serial; to be closed, or a path stays claimed."""
    size = device.size_bytes
    described = _lab().drives["d1"].model_copy(update={"serial": serial, "size": size})
    lab = _lab().model_copy(update={"drives": {drive_id: described}})
    drive = _Described(device.location, DriveIdentity("RL", serial, "1.0", "sata", size, {"wwn": _WWN}))
    return Guard(lab, EverythingLeased()).writable(drive_id, drive, device, Deadline.after(RealClock(), 30))


@cache
def _lab() -> Lab:
    with tempfile.TemporaryDirectory(prefix="scratch-") as folder:
        description = Path(folder) / "lab.yaml"
        description.write_text(_LAB)
        return load_lab(description)
