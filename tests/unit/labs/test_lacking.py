"""The abilities that labs of each kind offer by their descriptions."""

from __future__ import annotations

import pytest

from rackloop.errors import NotSupported
from rackloop.lab import Lab, load_lab
from rackloop_labs.lacking import refusal, require

LABS = ("mock", "mock-direct", "virtual", "virtual-direct", "example-rack", "direct-attached")


def test_a_drive_is_mounted_where_a_kernel_has_it() -> None:
    for name in ("virtual", "example-rack"):
        require(load_lab(name), "remap.mount")
    with pytest.raises(
        NotSupported, match="the servers of mock are simulated: they have no kernel that mounts a drive"
    ):
        require(load_lab("mock"), "remap.mount")


def test_slots_of_expanders_are_reached_by_themselves_on_mock_racks_only() -> None:
    refused = {name: refusal(load_lab(name), "expander.slots") for name in ("mock", "virtual", "example-rack")}
    said = "the slots of an expander are reached by themselves on mock racks only"
    assert refused == {"mock": None, "virtual": said, "example-rack": said}


def test_an_array_is_made_where_a_kernel_has_its_drives() -> None:
    for name in ("virtual", "example-rack"):
        require(load_lab(name), "host.raid")
    with pytest.raises(NotSupported, match="they have no kernel that makes an array of drives"):
        require(load_lab("mock"), "host.raid")


@pytest.mark.parametrize(
    ("kind", "have_it"),
    [
        ("miswire", {"mock"}),
        ("phy_disable", {"mock", "mock-direct", "example-rack", "direct-attached"}),
        ("slot_power_loss", {"mock", "mock-direct", "example-rack", "direct-attached"}),
        ("device_off", {"mock-direct", "example-rack", "direct-attached"}),
        ("hot_unplug", set(LABS)),
    ],
)
def test_a_fault_that_no_part_of_a_rack_can_have_is_known_by_its_description(kind: str, have_it: set[str]) -> None:
    assert {name for name in LABS if refusal(load_lab(name), f"fault.{kind}") is None} == have_it


def test_a_drive_that_is_attached_for_good_is_found_by_its_own_path_or_that_of_its_port() -> None:
    lab = load_lab("direct-attached")
    assert refusal(lab, "probe") is None

    def described(paths: dict[str, str], *, scratch: bool = True) -> Lab:
        node = lab.servers["node1"].model_copy(update={"paths": paths})
        fast = lab.drives["fast1"].model_copy(update={"scratch": scratch})
        return lab.model_copy(
            update={"servers": {**lab.servers, "node1": node}, "drives": {**lab.drives, "fast1": fast}}
        )

    # The drive at p0 has a path of its own; that in node2's expander needs none.
    assert refusal(described({}), "probe") == "no path says what is at node1.p1: add paths: to node1"
    assert refusal(described({}, scratch=False), "probe") is None
    assert refusal(described({"p1": "pci-0000:5e:00.0"}), "probe") is None
