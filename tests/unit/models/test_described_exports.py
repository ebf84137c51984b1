"""Boxes that a file describes: what is behind each export, and every mistake in a file at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackloop.abilities import BlockDevice
from rackloop.errors import BadInput, DescriptionError
from rackloop.lab import Lab, load_lab
from rackloop.safety import TenantRegion
from rackloop_drivers.block import NbdExport
from rackloop_models.under_test import BoxFile, DescribedExports, SwitchUnderTest
from rackloop_oracles.fairness import TenantBox
from tests.unit.harness.guard_case import SimDevice

MIB = 1 << 20
WWN = "600140500000000000000000000000a1"
BOX = f"""
box: acme
exports:
  - {{drive: d01, server: srv1, device: /dev/disk/by-id/wwn-0x{WWN}, size: 8 MiB, serial: LUN7, wwn: {WWN}}}
  - {{drive: d01, server: srv2, device: "nbd://box.example/t2", size: 16 MiB}}
  - {{drive: d02, server: srv1, device: "nbd+unix:///t3?socket=/run/box.sock", size: 8 MiB, offset: 4 MiB}}
"""


@pytest.fixture(scope="module")
def lab() -> Lab:
    return load_lab("mock")


def load(text: str, folder: Path, lab: Lab) -> BoxFile:
    (path := folder / "acme.yaml").write_text(text)
    return BoxFile.load(path, lab)


class Reached:
    """The servers, whose devices are asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def __call__(self, server: str, device: str) -> BlockDevice:
        self.asked.append((server, device))
        return SimDevice(MIB, location=f"{server}:{device}")


def test_exports_are_the_tenants_in_their_order(lab: Lab, tmp_path: Path) -> None:
    file, reach = load(BOX, tmp_path, lab), Reached()
    assert (file.drives, file.sizes_bytes) == (["d01", "d02"], [8 * MIB, 16 * MIB, 8 * MIB])
    box: TenantBox = DescribedExports(file, ["victim", "n1", "n2"], reach)
    assert box.name == "acme"
    found = [(one.tenant, one.server, one.drive, one.region.offset_bytes, one.region.size_bytes) for one in box.exports]
    assert found == [
        ("victim", "srv1", "d01", 0, 8 * MIB),
        ("n1", "srv2", "d01", 8 * MIB, 16 * MIB),
        ("n2", "srv1", "d02", 4 * MIB, 8 * MIB),
    ]
    assert box.exports[0].region.identifiers == {"serial": "LUN7", "wwn": WWN}
    assert [one.region.identifiers for one in box.exports[1:]] == [{}, {}]
    assert reach.asked[1] == ("srv2", "nbd://box.example/t2")
    box.require_serving()
    box.close()


def test_of_more_exports_than_tenants_the_first_are_used(lab: Lab, tmp_path: Path) -> None:
    file, reach = load(BOX, tmp_path, lab), Reached()
    assert [one.tenant for one in DescribedExports(file, ["t1"], reach).exports] == ["t1"]
    with pytest.raises(BadInput, match="box acme has 3 exports for 4 tenants"):
        DescribedExports(file, ["t1", "t2", "t3", "t4"], reach)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("drive: d02", "drive: d99", "exports[2].drive: lab mock has no drive 'd99'"),
        ("server: srv2", "server: srv99", "exports[1].server: lab mock has no server 'srv99'"),
        (", serial: LUN7", "", "exports[0]: lacks serial"),
        ("size: 16 MiB", "size: 16 MiB, serial: LUN8", "exports[1].serial: NBD carries no serial"),
        ("size: 16 MiB", "size: many", "exports[1].size"),
        ("offset: 4 MiB", "offset: here", "exports[2].offset: expected an offset such as 8 GiB, or 0 B, found 'here'"),
        ("device: /dev/disk", "device: dev/disk", "exports[0].device: expected a node such as"),
        ("box: acme", "bax: acme", "did you mean 'box'"),
        ("drive: d02", "drves: d02", "exports[2]"),
    ],
)
def test_a_mistake_in_a_file_is_told_with_its_place(lab: Lab, tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(DescriptionError) as raised:
        load(BOX.replace(old, new), tmp_path, lab)
    assert said in str(raised.value)


NODE = f"{{drive: d01, server: srv1, device: /dev/disk/by-id/wwn-0x{WWN}, size: 8 MiB, serial: LUN7, wwn: {WWN}}}"
URI = '{drive: d01, server: srv2, device: "nbd://box.example/t2", size: 16 MiB}'
OTHER_WWN = WWN.replace("a1", "a2")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (URI, "exports[3].device: nbd://box.example/t2 is that of exports[1] already: two tenants would write one"),
        (URI.replace("d01", "d02").replace("srv2", "srv1"), "exports[3].device: nbd://box.example/t2 is that of"),
        (URI.replace("box.example/t2", "BOX.example:10809/t%32"), "is that of exports[1] already"),
        (
            NODE.replace("LUN7", "LUN8").replace(f"wwn: {WWN}", f"wwn: {OTHER_WWN}"),
            f"wwn-0x{WWN} is that of exports[0]",
        ),
        (NODE.replace("srv1", "srv2"), "exports[3].serial: exports[0] is said to report the same: give a wwn"),
        (NODE.replace("by-id", "by-path").replace("LUN7", "LUN8"), "exports[3].serial: exports[0] is said to"),
        (NODE.replace("srv1", "srv2").replace(f", wwn: {WWN}", ""), "exports[3].serial: exports[0] is said to"),
    ],
)
def test_no_two_exports_of_a_file_are_one(lab: Lab, tmp_path: Path, more: str, said: str) -> None:
    with pytest.raises(DescriptionError) as raised:
        load(f"{BOX}  - {more}\n", tmp_path, lab)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    "more",
    [
        URI.replace("t2", "t4"),
        URI.replace("box.example", "box.example:10810"),
        # Two namespaces of one controller, which has the serial.
        NODE.replace("srv1", "srv2").replace(WWN, OTHER_WWN),
        NODE.replace("srv1", "srv2").replace("LUN7", "LUN8").replace(f", wwn: {WWN}", ""),
    ],
)
def test_exports_that_differ_are_two(lab: Lab, tmp_path: Path, more: str) -> None:
    assert len(load(f"{BOX}  - {more}\n", tmp_path, lab).box.exports) == 4


def test_a_drive_that_may_not_be_erased_is_behind_no_box(lab: Lab, tmp_path: Path) -> None:
    kept = {"d01": lab.drives["d01"].model_copy(update={"scratch": False})}
    with pytest.raises(DescriptionError, match="drive d01 is not marked scratch: true"):
        load(BOX, tmp_path, lab.model_copy(update={"drives": {**lab.drives, **kept}}))


def test_a_file_that_is_nowhere_is_bad_input(lab: Lab) -> None:
    with pytest.raises(BadInput, match=r"there is no description of a box at nowhere\.yaml"):
        BoxFile.load("nowhere.yaml", lab)


class Running:
    """A switch that was started."""

    is_closed = False

    def require_running(self) -> None:
        assert not self.is_closed

    def close(self) -> None:
        self.is_closed = True


def test_the_switch_is_a_box_of_several_drives_that_is_named_by_its_scheduler() -> None:
    running = Running()
    region = TenantRegion("t1", NbdExport(Path("nbd.sock"), "t1", 8 * MIB), 0, 8 * MIB)
    box: TenantBox = SwitchUnderTest(running, "gimbal", "srv1", {"d01": [region], "d02": [region]})
    assert box.name == "gimbal"
    assert [(one.server, one.drive, one.tenant) for one in box.exports] == [
        ("srv1", "d01", "t1"),
        ("srv1", "d02", "t1"),
    ]
    box.require_serving()
    box.close()
    assert running.is_closed
