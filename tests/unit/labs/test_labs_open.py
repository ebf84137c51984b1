"""One way to a bench, whichever kind the lab is of."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import BadInput, LabError, NotSupported
from rackloop.lab import LabKind, LabState, load_lab
from rackloop.portmap import PortMap
from rackloop.safety import Located
from rackloop_labs import open_lab
from rackloop_labs._rackd_config import rackd_config

CLOCK = VirtualClock()
# An erasure that was cut short and the time limits of a drive are noted as its slot's.
OF_DRIVES = ("erasing", "fail_fast")


@pytest.fixture
def state(tmp_path: Path) -> LabState:
    return LabState(tmp_path)


def test_a_virtual_lab_that_must_be_up_and_is_not(state: LabState) -> None:
    with (
        pytest.raises(LabError, match="is not up: start it"),
        open_lab(load_lab("virtual"), CLOCK, state, None, bring_up=False),
    ):
        pass


def test_a_lab_that_must_be_up_and_is_not(state: LabState) -> None:
    with (
        pytest.raises(LabError, match="is not up: start it"),
        open_lab(load_lab("mock"), CLOCK, state, None, bring_up=False),
    ):
        pass


def test_fixed_cabling_has_a_map_and_refuses_the_rest_with_its_reason(state: LabState) -> None:
    lab = load_lab("direct-attached")
    with open_lab(lab, CLOCK, state, None) as bench:
        deadline = Deadline.after(CLOCK, 1)
        # Three HBA ports, numbered first, and what is at the other ends of their cables.
        assert bench.equipment.fabric.live_map(deadline).pairs == PortMap.of([(1, 4), (2, 5), (3, 6)])
        assert bench.equipment.phy is None
        assert {name: part.kinds for name, part in bench.equipment.breakable.items()} == {
            "slot:node1/p0": {"removed", *OF_DRIVES},
            "slot:node1/p1": {"link_disabled", "removed", "slot_power_off", *OF_DRIVES},
            "slot:node2/p0/0": {"device_off", "removed", *OF_DRIVES},
            "slot:node2/p0/1": {"device_off", "removed", *OF_DRIVES},
            **{f"network:{name}": {"partition"} for name in lab.servers},
            # By its place or its WWN, which the description gives all.
            **{f"drive:{name}": {"media_error"} for name in lab.drives},
            # A controller or an outlet gives a new start, a controller pulses an NMI.
            "server:node1": {"crash", "hang", "md_array", "nmi"},
            "server:node2": {"crash", "hang", "md_array"},
        }
        with pytest.raises(NotSupported, match="has no switch, so that no drive"):
            bench.announce([1])
        # Its servers have no paths, so that there is nothing to follow, and none is asked.
        with bench.attach_log() as log:
            assert log.first_loss({"offline"}, {("node1", "p0")}, set(), 0) is None


def test_servers_of_a_physical_lab_are_reached_when_they_are_asked(state: LabState) -> None:
    with open_lab(load_lab("direct-attached"), CLOCK, state, None) as bench:
        assert bench.host("node1") is bench.host("node1")
        assert bench.host("node1").name == "node1"
        with pytest.raises(BadInput, match="no server is named 'nod1'; did you mean 'node1'"):
            bench.host("nod1")
        for found in (bench.drive("node1", "p1"), bench.device("node1", "p1")):
            assert isinstance(found, Located)
            assert found.location == "node1:pci-0000:5e:00.0"
        with pytest.raises(NotSupported, match=r"node2\.p0: add paths: to node2"):
            bench.drive("node2", "p0")


def test_a_drive_that_is_fixed_to_its_port_is_found_by_its_own_path(state: LabState) -> None:
    lab = load_lab("direct-attached")
    servers = {name: server.model_copy(update={"paths": {}}) for name, server in lab.servers.items()}
    with open_lab(lab.model_copy(update={"servers": servers}), CLOCK, state, None) as bench:
        drive = bench.drive("node1", "p0")
        assert isinstance(drive, Located)
        assert drive.location == "node1:/dev/disk/by-path/pci-0000:00:17.0-ata-1"


def test_rackd_is_told_everything_the_description_says() -> None:
    lab = load_lab("mock")
    document = rackd_config(lab, "/state", 7)
    assert (document["seed"], document["ports"], document["state_dir"]) == (7, 160, "/state")
    assert {name: server["stack"] for name, server in document["servers"].items()} == {
        "srv1": "vanilla", "srv2": "no_timeouts", "srv3": "warm_port", "srv4": "comreset",
    }  # fmt: skip
    assert {tuple(pair) for pair in document["map"]} == set(lab.baseline_map())
    drives = {drive["id"]: drive for drive in document["drives"]}
    assert drives.keys() == lab.drives.keys()
    assert (drives["d09"]["serial"], drives["d09"]["eui64"], drives["d09"]["protocol"]) == (
        "00123456", "0025385b71b00009", "nvme",
    )  # fmt: skip
    assert (drives["d21"]["expander"], drives["d21"]["slot"], drives["d21"]["port"]) == ("exp1", 0, None)


def test_a_rack_whose_servers_cannot_be_reached_is_refused_before_its_switch_is_locked(state: LabState) -> None:
    lab = load_lab("mock").model_copy(update={"kind": LabKind.PHYSICAL})
    with (
        pytest.raises(BadInput, match="does not say how to reach srv1"),
        open_lab(lab, CLOCK, state, 1),
    ):
        pass
