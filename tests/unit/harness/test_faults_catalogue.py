"""The catalogue of faults: what each is of, what it takes, what it may reach, all by the description alone."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from rackloop.abilities import PhyControl, PortState, PowerPort
from rackloop.clock import Deadline, RealClock
from rackloop.errors import BadInput
from rackloop.faults import KINDS, FaultSpec, kind_of_fault
from rackloop.lab import Lab, Part, PartKind, Parts, load_lab, phy_number
from rackloop.portmap import PortMap
from rackloop.safety.undo import Equipment
from rackloop_drivers.fabric.static import StaticFabric
from tests.parts import parts
from tests.unit.harness.sim_rack import SimPart, described

DIRECT = """
name: attached
kind: mock
fabric: {driver: static}
servers:
  node1: {ports: {p0, p1}}
  node2: {ports: {p0}}
drives:
  a: {profile: sata-ssd, serial: A1, wwn: 5000c500a0000001, size: 8 GiB, attached: node1/p1, scratch: true}
  b: {profile: sata-ssd, serial: B1, wwn: 5000c500a0000002, size: 8 GiB, attached: node2/p0, scratch: false}
"""
EVERY_KIND = {
    "phy_drop", "phy_flap", "slow_training", "fail_stop", "fail_slow", "hang", "media_error", "corrupt",
    "crash_on_remap", "server_crash", "server_hang", "power_loss", "partition", "switch_power_loss", "stuck_port",
    "control_lost", "control_garbled", "bmc_unreachable", "miswire", "hot_unplug", "slot_power_loss", "device_off",
    "link_disable", "phy_disable", "server_nmi",
}  # fmt: skip


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return described(tmp_path)


def direct(folder: Path) -> Lab:
    path = folder / "attached.yaml"
    path.write_text(DIRECT)
    return load_lab(path)


def test_the_catalogue_has_every_kind_under_its_own_name() -> None:
    assert set(KINDS) == EVERY_KIND
    assert all(name == kind.name for name, kind in KINDS.items())


def test_every_default_is_a_value_its_parameter_may_have() -> None:
    for kind in KINDS.values():
        for name, parameter in kind.parameters.items():
            assert parameter.problem(parameter.default) is None, f"{kind.name}: {name}"


@pytest.mark.parametrize(
    ("written", "part"),
    [
        ("d01", Part.drive("d01")),
        ("srv2", Part.server("srv2")),
        ("srv2.p1", Part.port("srv2", "p1")),
        ("srv2/p1", Part.port("srv2", "p1")),
        ("port:srv2.p1", Part.port("srv2", "p1")),
        ("port 17", Part.switch_port(17)),
        ("port:160", Part.switch_port(160)),
        ("switch_port:160", Part.switch_port(160)),
        ("switch", Part(PartKind.SWITCH)),
    ],
)
def test_targets_are_written_as_the_lab_names_them(lab: Lab, written: str, part: Part) -> None:
    assert lab.part(written) == part


@pytest.mark.parametrize("written", ["d99", "srv1.p9", "port 161", "port 0", "", "srv1.p0.x", "pdu1/1"])
def test_a_target_the_lab_does_not_have_is_named(lab: Lab, written: str) -> None:
    with pytest.raises(BadInput):
        lab.part(written)


def test_a_rack_without_a_switch_has_none_to_break(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nothing called 'switch'"):
        direct(tmp_path).part("switch")


def test_an_unknown_fault_is_refused_with_a_guess() -> None:
    with pytest.raises(BadInput, match="no fault called 'phydrop'; did you mean 'phy_drop'"):
        kind_of_fault(FaultSpec("phydrop", "d01"))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (FaultSpec("hang", "srv1"), "hang is of a drive, and srv1 is a server"),
        (FaultSpec("hang", "d01", {"for": 3}), "hang has no parameter for"),
        (FaultSpec("fail_slow", "d01", {"extra_us": -1}), "extra_us: expected a time from 1 us to 60 s, found -1"),
        (
            FaultSpec("fail_slow", "d01", {"extra_us": "much"}),
            "extra_us: expected a time from 1 us to 60 s, found 'much'",
        ),
        (FaultSpec("fail_slow", "d01", {"extra_us": True}), "extra_us: expected a time from 1 us to 60 s, found True"),
        (FaultSpec("fail_slow", "d01", {"extra_us": 5, "factor": 2}), "give extra_us or factor, not both"),
        (FaultSpec("media_error", "d01", {"lba": 1.5}), "lba: expected a whole number of 0 or more, found 1.5"),
        (FaultSpec("media_error", "d01", {"mode": "for ever"}), "mode: expected one of once, times, until_rewritten"),
        (FaultSpec("media_error", "d01", {"mode": "times"}), "mode times needs times, and no other mode has it"),
        (FaultSpec("media_error", "d01", {"times": 3}), "mode times needs times, and no other mode has it"),
        (FaultSpec("miswire", "srv1.p0"), "miswire needs with: the other port or drive"),
        (FaultSpec("miswire", "srv1.p0", {"with": "d77"}), "with: the rack bench has nothing called 'd77'"),
        (FaultSpec("miswire", "srv1.p0", {"with": "srv2"}), "with: srv2 is a server"),
        (FaultSpec("miswire", "srv1.p0", {"with": "port 1"}), "with names the same port"),
        (FaultSpec("switch_power_loss", "d01"), "switch_power_loss is of a switch"),
    ],
)
def test_a_wrong_specification_is_told_what_is_wrong(lab: Lab, spec: FaultSpec, said: str) -> None:
    found = KINDS[spec.kind].problems(lab, spec)
    assert len(found) == 1
    assert said in found[0]
    with pytest.raises(BadInput):
        KINDS[spec.kind].blast_radius(lab, spec)


@pytest.mark.parametrize(
    "edit", [("scratch: true", "scratch: true, timing: ideal"), ("a: {profile: sata-ssd", "a: {profile: qemu-sata")]
)
def test_a_drive_that_takes_no_time_is_slowed_by_no_factor(tmp_path: Path, edit: tuple[str, str]) -> None:
    path = tmp_path / "ideal.yaml"
    path.write_text(DIRECT.replace(*edit))
    ideal, slow = load_lab(path), KINDS["fail_slow"]
    assert slow.problems(ideal, FaultSpec("fail_slow", "a", {"factor": 2.0})) == [
        "a is ideal and takes no time to multiply: give extra_us, and no factor"
    ]
    assert slow.problems(ideal, FaultSpec("fail_slow", "b", {"factor": 2.0})) == []
    assert slow.problems(ideal, FaultSpec("fail_slow", "a")) == []


def test_every_problem_of_a_specification_is_told(lab: Lab) -> None:
    spec = FaultSpec("fail_slow", "srv9", {"extra_us": 0, "factors": 2})
    assert len(KINDS["fail_slow"].problems(lab, spec)) == 3


REACHES = [
    (
        FaultSpec("hang", "d01"),
        parts(server_ports=frozenset({("srv1", "p0")}), drives=frozenset({"d01"}), ports=frozenset({1, 101})),
    ),
    (
        FaultSpec("phy_drop", "srv2.p1"),
        parts(server_ports=frozenset({("srv2", "p1")}), drives=frozenset({"d04"}), ports=frozenset({6, 104})),
    ),
    (
        FaultSpec("phy_drop", "port 104"),
        parts(server_ports=frozenset({("srv2", "p1")}), drives=frozenset({"d04"}), ports=frozenset({6, 104})),
    ),
    (FaultSpec("stuck_port", "port 40"), parts(ports=frozenset({40}))),
    (
        FaultSpec("server_crash", "srv1"),
        parts(
            servers={"srv1"},
            server_ports={("srv1", "p0"), ("srv1", "p1"), ("srv1", "p2")},
            drives={"d01", "d02"},
            ports={1, 2, 3, 101, 102},
        ),
    ),
    (FaultSpec("bmc_unreachable", "srv1"), parts()),
    (FaultSpec("control_lost", "switch"), parts()),
    (
        FaultSpec("switch_power_loss", "switch"),
        parts(
            server_ports=frozenset((server, port) for server in ("srv1", "srv2") for port in ("p0", "p1", "p2")),
            drives=frozenset({"d01", "d02", "d03", "d04"}),
            ports=frozenset({1, 2, 3, 5, 6, 7, 101, 102, 103, 104}),
        ),
    ),
]


@pytest.mark.parametrize(("spec", "reached"), REACHES, ids=[str(spec) for spec, _ in REACHES])
def test_what_a_fault_reaches_is_known_from_the_wiring(lab: Lab, spec: FaultSpec, reached: Parts) -> None:
    assert KINDS[spec.kind].blast_radius(lab, spec) == reached


def test_swapped_cables_reach_what_is_at_both(lab: Lab) -> None:
    reached = KINDS["miswire"].blast_radius(lab, FaultSpec("miswire", "srv1.p0", {"with": "d04"}))
    assert reached.switch_ports == {1, 101, 6, 104}
    assert reached.drives == {"d01", "d04"}


def test_a_fault_behind_an_expander_reaches_its_siblings_only_through_the_port() -> None:
    lab = load_lab("mock")
    alone = KINDS["hang"].blast_radius(lab, FaultSpec("hang", "d21"))
    assert (set(alone.drives), set(alone.switch_ports)) == ({"d21"}, {150})
    through = KINDS["phy_drop"].blast_radius(lab, FaultSpec("phy_drop", "d21"))
    assert (set(through.drives), set(through.switch_ports)) == ({"d21", "d22", "d23", "d24"}, {150})


class Here:
    """What takes signals and power away where both are there: nothing is done with it."""

    def is_on(self, _deadline: Deadline) -> bool:
        return True


@pytest.mark.parametrize(
    ("kind", "target", "keeps"),
    [
        ("phy_drop", "node1.p1", False),
        ("phy_drop", "node2.p0", True),
        ("phy_drop", "b", True),
        ("phy_flap", "node2.p0", True),
        ("power_loss", "node1", False),
        ("power_loss", "node2", True),
        ("power_loss", "pdu1/2", True),
        ("server_crash", "node1", False),
        ("server_crash", "node2", True),
        ("server_nmi", "node2", True),
        ("server_hang", "node2", False),
        ("phy_disable", "node1.p1", False),
        ("phy_disable", "node2.p0", True),
    ],
)
def test_without_a_switch_no_drive_worth_keeping_is_taken_away(
    tmp_path: Path, kind: str, target: str, *, keeps: bool
) -> None:
    """The kernel of its server may lose it, and what is in its write cache with it: at once, or when it is mended."""
    path = tmp_path / "fed.yaml"
    fed = DIRECT.replace("node2: {ports: {p0}}", "node2: {ports: {p0}, outlet: pdu1/2}")
    path.write_text(fed + "pdus: {pdu1: {driver: cyberpower, outlets: 8}}\n")
    lab = load_lab(path)
    fabric = StaticFabric(PortMap.of([]), lambda ports, _deadline: dict.fromkeys(ports, PortState.UP))
    power = dict.fromkeys(("server:node1", "server:node2", "outlet:pdu1/2"), cast("PowerPort", Here()))
    parts = dict.fromkeys(("phy:node1/p1", "phy:node2/p0"), SimPart("disabled"))
    parts |= dict.fromkeys(("server:node1", "server:node2"), SimPart("crash", "nmi", "hang"))
    equipment = Equipment(fabric, cast("PhyControl", Here()), power, breakable=parts)
    given = {"down_s": 0.1} if kind == "phy_drop" else {}
    reasons = KINDS[kind].preconditions(lab, equipment, FaultSpec(kind, target, given), Deadline.after(RealClock(), 9))
    kept = ["drive b is not marked scratch: true; its content may be worth keeping"]
    assert list(reasons) == (kept if keeps else [])


def test_without_a_switch_ports_are_counted_as_described(tmp_path: Path) -> None:
    lab = direct(tmp_path)
    assert [phy_number(lab, Part.port(*place)) for place in (("node1", "p0"), ("node1", "p1"), ("node2", "p0"))] == [
        1,
        2,
        3,
    ]
    reached = KINDS["hot_unplug"].blast_radius(lab, FaultSpec("hot_unplug", "a"))
    assert reached == parts(server_ports=frozenset({("node1", "p1")}), drives=frozenset({"a"}))
