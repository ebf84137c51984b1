"""A drive that is in use, or is not the one that is meant, is not taken away from its server."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rackloop.clock import Deadline, RealClock
from rackloop.errors import BadInput, GuardRefused
from rackloop_drivers.slot import HostSlot
from tests.unit.recorded_server import RECORDED, RecordedServer

SERIAL = "SATA0001"
REMOVED = {"kind": "removed"}


def soon() -> Deadline:
    return Deadline.after(RealClock(), 10)


def server(**fields: Any) -> RecordedServer:
    """The recorded server, with these fields of its SATA SSD as lsblk lists it."""
    recording = RECORDED["lsblk -"]
    listed = json.loads(recording.stdout)
    for disk in listed["blockdevices"]:
        if disk["name"] == "sdb":
            disk.update(fields)
    answers = {**RECORDED, "lsblk -": replace(recording, stdout=json.dumps(listed))}
    return RecordedServer(answers=answers)


def part(**fields: Any) -> dict[str, Any]:
    return {"name": "sdb1", "kname": "sdb1", "type": "part", "size": 1, "rota": False, "mountpoints": [None], **fields}


def serial_of(host: RecordedServer) -> str:
    return str(json.loads(host.answers["smartctl sdb"].stdout)["serial_number"])


@pytest.mark.parametrize(
    ("child", "reason"),
    [
        (part(mountpoints=["/srv"]), "it is in use: sdb1 is mounted at /srv"),
        (part(mountpoints=["/"]), "it is the boot drive"),
        (part(children=[{**part(), "name": "md0", "kname": "md0", "type": "raid1"}]), "it is in use"),
    ],
)
def test_a_drive_that_somebody_uses_stays(child: dict[str, Any], reason: str) -> None:
    host = server(children=[child])
    slot = HostSlot(host, "/dev/sdb", drive_id="d01", serial=serial_of(host))
    with pytest.raises(GuardRefused, match=f"drive d01.*{reason}"):
        slot.prepare(REMOVED, soon())
    assert len(host.ran) == 1, "it was looked at, and nothing else was done"


def test_another_drive_than_the_described_one_stays() -> None:
    host = server()
    slot = HostSlot(host, "/dev/sdb", drive_id="d01", serial="OTHER")
    with pytest.raises(GuardRefused, match=f"described as OTHER, the drive at srv9:/dev/sdb has {serial_of(host)}"):
        slot.prepare(REMOVED, soon())


def test_a_parameter_that_it_does_not_have_is_named() -> None:
    slot = HostSlot(server(), "/dev/sdb", drive_id="d01", serial=SERIAL)
    with pytest.raises(BadInput, match="removed of srv9:/dev/sdb takes no colour"):
        slot.prepare({**REMOVED, "colour": "red"}, soon())
