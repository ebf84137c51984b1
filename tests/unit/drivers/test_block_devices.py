"""Block devices: where their I/O goes, who else has them, and one holder at a time."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from rackloop.abilities import BlockDevice, BlockUsage
from rackloop.errors import BadInput, LabError
from rackloop.safety import ReportsIdentity
from rackloop_drivers.block import DevicePath, NbdExport
from tests.unit.harness.block_tree import BlockTree

UBERBLOCK_AT = 128 << 10


@pytest.fixture
def image(tmp_path: Path) -> Path:
    image = tmp_path / "pci-0000:00:1f.2-ata-2"
    image.write_bytes(bytes(1 << 20))
    return image


def a_block_device() -> Path:
    """Any block device of this machine that may be looked up; it is not opened."""
    found = [path for path in sorted(Path("/dev").iterdir()) if stat.S_ISBLK(path.stat().st_mode)]
    if not found:
        pytest.skip("this machine shows no block device in /dev")
    return found[0]


@pytest.mark.parametrize(
    ("uri", "server"),
    [
        ("nbd+unix:///t1?socket=/run/a+b.sock", Path("/run/a+b.sock")),
        ("nbd+unix:///a%20b?tls-certificates=/x&socket=/run/nbd%20of%20a.sock", Path("/run/nbd of a.sock")),
        ("nbd://box.example/t1", ("box.example", 10809)),
        ("nbd://[::1]:7000/a%2Fb", ("::1", 7000)),
    ],
)
def test_the_export_of_a_uri_is_where_that_says(uri: str, server: Path | tuple[str, int]) -> None:
    device = NbdExport.of_uri(uri, 1)
    assert device.server == server
    assert NbdExport.of_uri(device.uri, 1) == device


@pytest.mark.parametrize(
    "uri",
    [
        "nbd://box.example:99999/t1",
        "nbd://box.example:x/t1",
        "nbd://[::1/t1",
        "nbd:///t1",
        "nbd+unix:///t1?socket=",
        "nbd+unix:///t1",
        "nbds://box.example/t1",
    ],
)
def test_a_uri_that_leads_nowhere_is_refused(uri: str) -> None:
    with pytest.raises(BadInput, match="is no NBD URI that is known here"):
        NbdExport.of_uri(uri, 1)


def test_an_export_on_a_unix_socket() -> None:
    device = NbdExport(Path("/run/user/1000/rack loop/nbd.sock"), "srv1.p0", 8 << 30)
    uri = "nbd+unix:///srv1.p0?socket=/run/user/1000/rack%20loop/nbd.sock"
    assert device.fio_options() == {"ioengine": "nbd", "uri": uri}
    assert (device.probe_target(), device.location, device.drive_bytes()) == (uri, "srv1.p0", None)
    assert (device.usage(), device.claim_exclusive(), device.identifiers()) == (BlockUsage(), None, {})
    assert isinstance(device, BlockDevice)
    assert isinstance(device, ReportsIdentity)


@pytest.mark.parametrize(
    ("host", "uri"), [("rack.example", "nbd://rack.example:10809/a%2Fb"), ("::1", "nbd://[::1]:10809/a%2Fb")]
)
def test_an_export_on_tcp(host: str, uri: str) -> None:
    assert NbdExport((host, 10809), "a/b", 1).uri == uri


def test_a_file_in_the_place_of_a_drive(image: Path) -> None:
    device = DevicePath(image)
    assert (device.size_bytes, device.drive_bytes(), device.location) == (1 << 20, 1 << 20, str(image))
    assert device.usage() == BlockUsage()
    assert device.identifiers() == {}
    assert isinstance(device, BlockDevice)
    assert isinstance(device, ReportsIdentity)


def test_fio_is_not_given_a_list_of_files(image: Path) -> None:
    assert DevicePath(image).fio_options()["filename"].endswith(r"pci-0000\:00\:1f.2-ata-2")


def test_a_file_has_one_holder_at_a_time(image: Path) -> None:
    claim = DevicePath(image).claim_exclusive()
    with pytest.raises(LabError, match="another process holds its lock"):
        DevicePath(image).claim_exclusive()
    claim.close()
    DevicePath(image).claim_exclusive().close()


def test_a_file_that_backs_a_loop_device(tmp_path: Path, image: Path) -> None:
    tree = BlockTree(tmp_path / "tree")
    tree.disk("loop0", "7:0", {"loop/backing_file": str(image)})
    assert DevicePath(image, tree.topology).usage().claims == ("backs loop0",)


def test_a_path_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"no drive at .*gone"):
        _ = DevicePath(tmp_path / "gone").size_bytes
    with pytest.raises(LabError, match="no drive at"):
        DevicePath(tmp_path / "gone").claim_exclusive()


def test_a_directory_is_no_drive(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="neither a block device nor a regular file"):
        DevicePath(tmp_path).usage()


def test_a_node_is_looked_up_by_its_number(tmp_path: Path) -> None:
    node = a_block_device()
    status = node.stat()
    number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    tree = BlockTree(tmp_path)
    if number != "254:0":
        tree.disk("sdz", number, {"device/serial": "S1", "md/level": "raid0"}, size=2048)
    device = DevicePath(node, tree.topology)
    assert device.size_bytes == tree.topology.size_bytes(number)
    assert device.identifiers() == tree.topology.identifiers(number)
    assert set(tree.topology.usage(number).claims) <= set(device.usage().claims)


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("where", [0, 256 << 10, 512 << 10])
def test_a_zfs_label_is_seen_wherever_it_is(image: Path, order: str, where: int) -> None:
    magic = (0x00BAB10C).to_bytes(8, "little" if order == "little" else "big")
    with image.open("r+b") as file:
        file.seek(where + UBERBLOCK_AT + 37 * 1024)
        file.write(magic)
    found = DevicePath(image)._zfs_claims([("sda", 0), ("sda1", 512 << 10)])
    name = "sda1" if where == 512 << 10 else "sda"
    assert found == (f"{name} carries a ZFS label; clear it with `zpool labelclear` if the pool is gone",)


def test_a_drive_without_a_zfs_label(image: Path) -> None:
    assert DevicePath(image)._zfs_claims([("sda", 0), ("sda1", 512 << 10)]) == ()


def test_a_drive_that_cannot_be_read_is_in_use_for_all_anybody_knows(tmp_path: Path) -> None:
    (claim,) = DevicePath(tmp_path)._zfs_claims([("sda", 0)])
    assert "it is unknown whether it carries a ZFS label" in claim
