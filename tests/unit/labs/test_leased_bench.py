"""A bench of a part of a rack: what is not its own is not offered, and it is said why."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackloop.abilities import PhyControl
from rackloop.errors import NotSupported
from rackloop.faults import phy_of
from rackloop.lab import Lab, load_lab, parts_of
from rackloop.portmap import PortMap
from rackloop.safety.undo import Equipment
from rackloop_drivers.fabric.static import StaticFabric
from rackloop_labs.bench_view import LeasedBench
from tests.unit.harness.sim_rack import described

DIRECT = """
name: attached
kind: mock
fabric: {driver: static}
servers: {node1: {ports: {p0}}, node2: {ports: {p0}}}
drives:
  a: {profile: sata-ssd, serial: A1, wwn: 5000c500a0000001, size: 8 GiB, attached: node1/p0, scratch: true}
  b: {profile: sata-ssd, serial: B1, wwn: 5000c500a0000002, size: 8 GiB, attached: node2/p0, scratch: true}
"""


def _direct(folder: Path) -> Lab:
    path = folder / "attached.yaml"
    path.write_text(DIRECT)
    return load_lab(path)


def test_links_of_a_rack_without_a_switch_are_not_of_a_part_of_it_and_it_is_said(tmp_path: Path) -> None:
    lab = _direct(tmp_path)
    phy = cast(PhyControl, object())
    whole: Any = SimpleNamespace(lab=lab, clock=None, equipment=Equipment(StaticFabric(PortMap()), phy))
    assert phy_of(lab, whole.equipment) is phy
    held: Any = SimpleNamespace(parts=parts_of(lab, ["node2"]), leases=None)
    bench = LeasedBench(whole, held)
    with pytest.raises(NotSupported, match="dropped under a lease of the whole rack alone"):
        phy_of(bench.lab, bench.equipment)


def test_a_rack_whose_switch_drops_nothing_needs_no_other_lease(tmp_path: Path) -> None:
    with pytest.raises(NotSupported, match=r"can take a signal away$"):
        phy_of(described(tmp_path), Equipment(StaticFabric(PortMap())))
