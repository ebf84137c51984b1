"""A PHY is not switched off, dropped or reset over a drive that is in use, or that nobody described."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from rackloop.abilities import Completed
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import FaultRefused, GuardRefused
from rackloop.lab import load_lab
from rackloop_drivers.boxes import FabricOpening
from rackloop_drivers.phy import HostPhy, HostPhys, PhySwitchedOff
from rackloop_labs.fabric import open_fabric
from tests.deadlines import CLOCK, soon
from tests.unit.harness.recorded_server import RECORDED, RecordedServer, answered

PATH = "pci-0000:00:07.0"
LISTED = "phy-6:0 0 /sys/devices/pci0000:00/0000:00:07.0/host6/phy-6:0/sas_phy/phy-6:0 , 3.0 Gbit\n"
DISABLED = {"kind": "disabled"}


@dataclass
class SasServer(RecordedServer):
    """The recorded server, whose PHY leads to these drives."""

    behind: tuple[str, ...] = ("sda",)
    told: list[str] = field(default_factory=list)

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        said = {"list": LISTED, "behind": "\n".join(self.behind)}
        if argv[3] == "phy":
            self.told.append(argv[6])
            return Completed(tuple(argv), 0, said.get(argv[6], ""), "")
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


def disk(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "kname": name, "type": "disk", "size": 1, "rota": True, "mountpoints": [], **fields}


def prepared(host: SasServer, **drives: str) -> dict[str, Any]:
    return PhySwitchedOff(HostPhy(host, PATH), drives).prepare(DISABLED, soon())


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
    """Its server does not know its serial, as without udev."""
    host = server(serial=None)
    whole = json.loads(RECORDED["smartctl sda"].stdout)
    said = {"messages": [{"string": "Smartctl open device: /dev/sda failed: No such device", "severity": "error"}]}
    failed = {name: whole[name] for name in ("json_format_version", "smartctl")}
    failed["smartctl"] |= {**said, "exit_status": 2}
    host.answers["smartctl sda"] = replace(host.answers["smartctl sda"], stdout=json.dumps(failed), status=2)
    with pytest.raises(GuardRefused, match=r"drive /dev/sda .* cannot be read"):
        prepared(host, d01=serial())


ACTS: dict[str, Callable[[HostPhys, Deadline], None]] = {
    "begin": lambda phys, by: phys.drop([1], 3600, by, request_id=1),
    "flap": lambda phys, by: phys.flap([1], 0.1, 0.1, 3, by, request_id=1),
    "reset": lambda phys, by: phys.reset_link([1], by, is_hard=True),
}


def disturbed(host: SasServer, act: str, **drives: str) -> None:
    ACTS[act](HostPhys({1: HostPhy(host, PATH)}, drives={1: drives}), soon())


@pytest.mark.parametrize("act", ACTS)
def test_a_described_drive_that_nobody_uses_may_lose_its_link(act: str) -> None:
    host = server()
    disturbed(host, act, d01=serial())
    assert host.told[-1] == act.replace("flap", "begin")


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize(
    ("mounted", "described", "reason"),
    [
        (["/srv"], True, "it is in use: sda1 is mounted at /srv"),
        (["/"], True, "it is the boot drive"),
        ([], False, "nothing is described behind"),
    ],
)
def test_a_drive_that_somebody_uses_keeps_its_link(
    act: str, mounted: list[str], reason: str, *, described: bool
) -> None:
    host = server(children=[part(*mounted)] if mounted else [])
    with pytest.raises(GuardRefused, match=reason):
        disturbed(host, act, d01=serial() if described else "OTHER")
    assert not {"begin", "reset"}.intersection(host.told)


SHELF = tuple(f"sd{letter}" for letter in "cdefghijklmnopqrstuvwxyz")


@pytest.mark.parametrize("act", ACTS)
def test_of_a_whole_shelf_no_drive_is_asked_who_uses_it(act: str) -> None:
    """One after the other would take longer than an act may."""
    disks = [disk(name, serial=f"S-{name}") for name in SHELF]
    host = SasServer(behind=SHELF)
    host.answers["lsblk -"] = answered(json.dumps({"blockdevices": disks}))
    disturbed(host, act, **{f"d-{name}": f"S-{name}" for name in SHELF})
    assert len([argv for argv in host.ran if argv[3] == "survey"]) == 1
    assert host.told[-1] == act.replace("flap", "begin")
    disks[-1]["mountpoints"] = ["/srv"]
    host.answers["lsblk -"] = answered(json.dumps({"blockdevices": disks}))
    with pytest.raises(GuardRefused, match=r"drive d-sdz .*sdz is mounted at /srv"):
        disturbed(host, act, **{f"d-{name}": f"S-{name}" for name in SHELF})


def test_a_drive_that_went_since_it_was_found_is_not_taken_for_one_that_nobody_uses() -> None:
    with pytest.raises(GuardRefused, match=r"drive /dev/sdx .*lsblk does not list it"):
        disturbed(server(behind=("sda", "sdx")), "begin", d01=serial())


def test_a_drive_that_the_server_knows_by_another_serial_is_asked() -> None:
    """As older udev has the name of a SAS drive for it."""
    host = server(serial="5000c50000000abc")
    disturbed(host, "begin", d01=serial())
    assert host.told[-1] == "begin"


@dataclass
class SlowServer(SasServer):
    """A server whose survey takes its time."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    survey_s: float = 0.0
    left_s: float = 0.0

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        if argv[3] == "survey":
            self.clock.advance(min(self.survey_s, deadline.remaining_s()))
        self.left_s = deadline.remaining_s()
        return super().run(argv, deadline, stdin=stdin)


@pytest.mark.parametrize("act", ACTS)
def test_the_look_has_a_time_of_its_own_and_leaves_the_act_its(act: str) -> None:
    host = SlowServer(answers=server().answers, survey_s=35.0)
    phys = HostPhys({1: HostPhy(host, PATH)}, drives={1: {"d01": serial()}}, look_s=40.0)
    ACTS[act](phys, Deadline.after(host.clock, 10))
    assert (host.told[-1], host.left_s) == (act.replace("flap", "begin"), 10.0)


@pytest.mark.parametrize("act", ACTS)
def test_an_act_whose_look_takes_too_long_is_refused_and_nothing_is_to_be_undone(act: str) -> None:
    host = SlowServer(answers=server().answers, survey_s=41.0)
    phys = HostPhys({1: HostPhy(host, PATH)}, drives={1: {"d01": serial()}}, look_s=40.0)
    with pytest.raises(FaultRefused, match="srv9 did not tell in time who uses the drives there"):
        ACTS[act](phys, Deadline.after(host.clock, 10))
    assert host.told == ["list", "behind"]


LAB = """
name: direct
kind: mock
fabric: {driver: static}
servers:
  srv1: {ports: {p0, p1}, paths: {p0: 'pci-0000:00:07.0', p1: 'pci-0000:00:08.0'}}
drives:
  d01: {profile: sas-hdd, serial: HERE, wwn: 5000c500a0000001, size: 8 GiB, attached: srv1/p0, scratch: false}
  d02: {profile: sas-hdd, serial: THERE, wwn: 5000c500a0000002, size: 8 GiB, attached: srv1/p1, scratch: SCRATCH}
"""


@pytest.mark.parametrize(
    ("described", "scratch", "may_go"),
    [("HERE", False, True), ("THERE", True, True), ("THERE", False, False)],
    ids=["at the port", "elsewhere, and scratch", "elsewhere"],
)
def test_a_drive_loses_its_link_where_it_is_described_and_anywhere_if_scratch(
    tmp_path: Path, described: str, *, scratch: bool, may_go: bool
) -> None:
    path = tmp_path / "direct.yaml"
    path.write_text(LAB.replace(f" {described},", f" {serial()},").replace("SCRATCH", str(scratch).lower()))
    host = server()
    with ExitStack() as closing:
        phy = open_fabric(load_lab(path), {"srv1": host}, FabricOpening(CLOCK, closing, soon())).phy
        assert phy
        with nullcontext() if may_go else pytest.raises(GuardRefused, match="nothing is described behind"):
            phy.drop([1], 1.0, soon(), request_id=1)
    assert ("begin" in host.told) is may_go
