"""A PHY is not switched off over a drive that is in use, or that nobody described."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from rackloop.abilities import Completed
from rackloop.clock import Deadline, RealClock
from rackloop.errors import GuardRefused
from rackloop_drivers.phy import HostPhy, PhySwitchedOff
from tests.unit.harness.recorded_server import RECORDED, RecordedServer

PATH = "pci-0000:00:07.0"
LISTED = "phy-6:0 0 /sys/devices/pci0000:00/0000:00:07.0/host6/phy-6:0/sas_phy/phy-6:0 , 3.0 Gbit\n"
DISABLED = {"kind": "disabled"}


@dataclass
class SasServer(RecordedServer):
    """The recorded server, whose PHY leads to these drives."""

    behind: tuple[str, ...] = ("sda",)

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        told = {"list": LISTED, "behind": "\n".join(self.behind), "free": ""}
        if argv[3] == "phy":
            return Completed(tuple(argv), 0, told[argv[6]], "")
        return super().run(argv, deadline, stdin=stdin)


def server(behind: Sequence[str] = ("sda",), **fields: Any) -> SasServer:
    """The recorded server, with these fields of its SAS drive as lsblk lists it."""
    recording = RECORDED["lsblk -"]
    listed = json.loads(recording.stdout)
    for disk in listed["blockdevices"]:
        if disk["name"] == "sda":
            disk.update({"children": [], **fields})
    answers = {**RECORDED, "lsblk -": replace(recording, stdout=json.dumps(listed))}
    return SasServer(answers=answers, behind=tuple(behind))


def part(*mounted: str) -> dict[str, Any]:
    return {"name": "sda1", "kname": "sda1", "type": "part", "size": 1, "rota": True, "mountpoints": list(mounted)}


def prepared(host: SasServer, **drives: str) -> dict[str, Any]:
    return PhySwitchedOff(HostPhy(host, PATH), drives).prepare(DISABLED, Deadline.after(RealClock(), 10))


def serial() -> str:
    return str(json.loads(RECORDED["smartctl sda"].stdout)["serial_number"])


def test_a_phy_over_a_described_drive_that_nobody_uses_may_go() -> None:
    assert prepared(server(), d01=serial()) == {"phys": ["phy-6:0"]}


def test_a_phy_that_leads_nowhere_may_go() -> None:
    assert prepared(server(behind=())) == {"phys": ["phy-6:0"]}


@pytest.mark.parametrize(
    ("mounted", "reason"), [("/srv", "it is in use: sda1 is mounted at /srv"), ("/", "it is the boot drive")]
)
def test_a_drive_that_somebody_uses_stays(mounted: str, reason: str) -> None:
    with pytest.raises(GuardRefused, match=f"drive d01.*{reason}"):
        prepared(server(children=[part(mounted)]), d01=serial())


def test_a_drive_that_lio_offers_stays() -> None:
    host = server()
    host.listings["exports"] = "/dev/sda target/core/iblock_0/d01\n"
    with pytest.raises(GuardRefused, match=r"drive d01.*it is in use: sda is the backstore iblock_0/d01 of LIO"):
        prepared(host, d01=serial())


def test_a_drive_that_nobody_described_stays() -> None:
    with pytest.raises(GuardRefused, match=f"drive /dev/sda .*: nothing is described behind .* serial, {serial()}"):
        prepared(server(), d01="OTHER")


def test_every_drive_behind_it_is_looked_at() -> None:
    """As those of a shelf are."""
    with pytest.raises(GuardRefused, match="drive /dev/sdb "):
        prepared(server(behind=("sda", "sdb")), d01=serial())


def test_a_drive_that_cannot_be_read_stays() -> None:
    host = server()
    whole = json.loads(RECORDED["smartctl sda"].stdout)
    said = {"messages": [{"string": "Smartctl open device: /dev/sda failed: No such device", "severity": "error"}]}
    failed = {name: whole[name] for name in ("json_format_version", "smartctl")}
    failed["smartctl"] |= {**said, "exit_status": 2}
    host.answers["smartctl sda"] = replace(host.answers["smartctl sda"], stdout=json.dumps(failed), status=2)
    with pytest.raises(GuardRefused, match=r"drive /dev/sda .* cannot be read"):
        prepared(host, d01=serial())
