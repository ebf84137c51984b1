"""Who uses a block device: found in sysfs and procfs as kernels write them, through partitions and holders."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackloop.abilities import BlockUsage
from rackloop.errors import LabError
from tests.unit.harness.block_tree import PROC_MOUNT, ROOT_MOUNT, BlockTree

LVM_UUID = "LVM-kYxfHsQ7mzD5oKQ0nXZbE0mZ1q8hPz2KyUSk6pVbQhH3b7oR3mS1hW0c4eTQ2vXa"


@pytest.fixture
def tree(tmp_path: Path) -> BlockTree:
    tree = BlockTree(tmp_path)
    tree.disk("sda", "8:0")
    tree.partition("sda", "sda1", "8:1", start=2048)
    tree.partition("sda", "sda2", "8:2", start=4096)
    return tree


def claims(tree: BlockTree, number: str = "8:0") -> tuple[str, ...]:
    usage = tree.topology.usage(number)
    assert not usage.is_boot_drive
    return usage.claims


def test_a_drive_nobody_uses(tree: BlockTree) -> None:
    assert tree.topology.usage("8:0") == BlockUsage((), is_boot_drive=False)


def test_a_mounted_drive(tree: BlockTree) -> None:
    tree.mounts(ROOT_MOUNT, PROC_MOUNT, "40 22 8:0 / /srv/with\\040space rw shared:9 master:2 - xfs /dev/sda rw")
    assert claims(tree) == ("sda is mounted at /srv/with space",)


def test_a_mounted_partition(tree: BlockTree) -> None:
    tree.mounts(ROOT_MOUNT, "40 22 8:2 /sub /srv rw - ext4 /dev/sda2 rw")
    assert claims(tree) == ("sda2 is mounted at /srv",)


def test_a_mount_that_only_the_first_process_sees(tree: BlockTree) -> None:
    tree.mounts("40 22 8:1 / /data rw - ext4 /dev/sda1 rw", process="1")
    assert claims(tree) == ("sda1 is mounted at /data",)


def test_a_mount_is_found_by_its_source_where_its_number_is_anonymous(tree: BlockTree) -> None:
    tree.mounts(ROOT_MOUNT, "40 22 0:44 / /srv rw - btrfs /dev/sda2 rw,subvolid=5")
    assert claims(tree) == ("sda2 is mounted at /srv",)


def test_the_second_drive_of_a_btrfs(tree: BlockTree) -> None:
    tree.write("sys/fs/btrfs/6d1b5ae6/devices/sda1", "")
    assert claims(tree) == ("sda1 belongs to a Btrfs file system",)


@pytest.mark.parametrize(
    ("offer", "path", "node", "said"),
    [
        (
            "nvmet/subsystems/nqn.2014-08.org:x/namespaces/2",
            "device_path",
            "sda2",
            "sda2 is namespace 2 of nqn.2014-08.org:x, for NVMe over Fabrics",
        ),
        (
            "target/core/iblock_0/d01",
            "udev_path",
            "sda",
            "sda is the backstore iblock_0/d01 of LIO, for SCSI initiators",
        ),
    ],
    ids=["NVMe over Fabrics", "LIO"],
)
def test_what_is_offered_to_other_machines(tree: BlockTree, offer: str, path: str, node: str, said: str) -> None:
    tree.write(f"sys/kernel/config/{offer}/{path}", "/dev/disk/by-uuid/offered\n")
    tree.link("disk/by-uuid/offered", node)
    tree.write(f"sys/kernel/config/{offer}/enable", "0\n")
    assert claims(tree) == ()
    tree.write(f"sys/kernel/config/{offer}/enable", "1\n")
    assert claims(tree) == (said,)


def test_a_mount_of_a_loop_device_upon_it(tree: BlockTree) -> None:
    tree.disk("loop7", "7:7", {"loop/backing_file": "/dev/sda2 (deleted)", "loop/offset": "1048576"})
    tree.disk("loop8", "7:8", {"loop/backing_file": "/srv/images/sda", "loop/offset": "0"})
    tree.mounts(ROOT_MOUNT, "40 22 7:7 / /srv rw - ext4 /dev/loop7 rw", "41 22 7:8 / /mnt rw - ext4 /dev/loop8 rw")
    assert claims(tree) == (
        "sda2 backs loop7; detach it with `losetup --detach /dev/loop7`",
        "loop7 is mounted at /srv",
    )


def test_swap_on_a_partition(tree: BlockTree) -> None:
    tree.write("proc/swaps", "Filename Type Size Used Priority\n/dev/sda1  partition 4194300 0 -2\n")
    assert claims(tree) == ("sda1 is swap",)


def test_swap_on_a_volume_on_a_partition(tree: BlockTree) -> None:
    tree.disk("dm-1", "253:1", {"dm/uuid": LVM_UUID, "dm/name": "vg0-swap"})
    tree.held("sda2", by="dm-1")
    tree.link("mapper/vg0-swap", "dm-1")
    tree.write("proc/swaps", "Filename Type Size Used Priority\n/dev/mapper/vg0-swap  partition 4194300 0 -2\n")
    assert claims(tree) == ("sda2 is held by LVM volume dm-1 (vg0-swap)", "dm-1 is swap")


@pytest.mark.parametrize(
    ("name", "attributes", "claim"),
    [
        ("md0", {"md/level": "raid1"}, "sda is held by md array md0"),
        ("dm-0", {"dm/uuid": LVM_UUID, "dm/name": "vg0-data"}, "sda is held by LVM volume dm-0 (vg0-data)"),
        ("dm-0", {"dm/uuid": "mpath-35000c500", "dm/name": "mpatha"}, "sda is held by multipath map dm-0 (mpatha)"),
        ("dm-0", {"dm/uuid": "CRYPT-LUKS2-6d1b", "dm/name": "c"}, "sda is held by encrypted volume dm-0 (c)"),
        ("dm-0", {"dm/uuid": "", "dm/name": "odd"}, "sda is held by device-mapper volume dm-0 (odd)"),
        ("bcache0", {}, "sda is held by the device bcache0"),
    ],
)
def test_a_holder(tree: BlockTree, name: str, attributes: dict[str, str], claim: str) -> None:
    tree.disk(name, "253:0", attributes)
    tree.held("sda", by=name)
    assert claims(tree) == (claim,)


@pytest.mark.parametrize(
    ("attributes", "claim"),
    [
        ({"md/level": "raid1"}, "it is itself a md array; give the drive beneath"),
        ({"dm/uuid": "mpath-35000c500"}, "it is itself a multipath map; give the drive beneath"),
        ({"ro": "1"}, "it is read-only"),
    ],
)
def test_what_is_no_drive_or_cannot_be_written(tree: BlockTree, attributes: dict[str, str], claim: str) -> None:
    tree.disk("dm-7", "253:7", attributes)
    assert claims(tree, "253:7") == (claim,)


def test_a_partition_is_no_drive(tree: BlockTree) -> None:
    assert claims(tree, "8:1") == ("it is a partition of sda; give the whole drive",)


def test_the_drive_that_carries_the_root_file_system(tree: BlockTree) -> None:
    assert tree.topology.usage("254:0") == BlockUsage(("vda1 is mounted at /",), is_boot_drive=True)


@pytest.mark.parametrize("where", ["/boot", "/boot/efi", "/usr"])
def test_the_drive_that_carries_what_boots(tree: BlockTree, where: str) -> None:
    tree.mounts(ROOT_MOUNT, f"41 22 8:1 / {where} rw - vfat /dev/sda1 rw")
    assert tree.topology.usage("8:0").is_boot_drive


def test_a_root_file_system_two_layers_up(tree: BlockTree) -> None:
    tree.disk("md0", "9:0", {"md/level": "raid1"})
    tree.disk("dm-0", "253:0", {"dm/uuid": LVM_UUID, "dm/name": "vg0-root"})
    tree.held("sda2", by="md0")
    tree.held("md0", by="dm-0")
    tree.mounts("22 1 253:0 / / rw - ext4 /dev/mapper/vg0-root rw")
    usage = tree.topology.usage("8:0")
    assert usage.is_boot_drive
    assert usage.claims == (
        "sda2 is held by md array md0",
        "md0 is held by LVM volume dm-0 (vg0-root)",
        "dm-0 is mounted at /",
    )


@pytest.mark.parametrize("root", ["/dev/sda1", "UUID=3c1f"])
def test_the_drive_the_kernel_was_booted_from_out_of_sight_of_its_mount(tree: BlockTree, root: str) -> None:
    tree.link("disk/by-uuid/3c1f", "sda1")
    tree.write("proc/cmdline", f"quiet root={root} ro")
    assert tree.topology.usage("8:0") == BlockUsage((), is_boot_drive=True)


def test_without_a_list_of_mounts_nobody_can_tell(tree: BlockTree, tmp_path: Path) -> None:
    (tmp_path / "proc" / "self" / "mountinfo").unlink()
    with pytest.raises(LabError, match="what is mounted"):
        tree.topology.usage("8:0")


def test_a_device_the_kernel_does_not_know(tree: BlockTree) -> None:
    with pytest.raises(LabError, match="no block device 8:99"):
        tree.topology.usage("8:99")


@pytest.mark.parametrize(
    ("attributes", "identifiers"),
    [
        (
            {"device/serial": "00123456  ", "wwid": "eui.0025385b71b00001"},
            {"serial": "00123456", "eui64": "0025385b71b00001"},
        ),
        ({"wwid": "eui.0025385b71b000010000000000000001"}, {"nguid": "0025385b71b000010000000000000001"}),
        ({"device/wwid": "naa.5000c50000000abc"}, {"wwn": "5000c50000000abc"}),
        ({"device/wwid": "t10.ATA     QEMU HARDDISK"}, {}),
        ({"serial": "overlay1"}, {"serial": "overlay1"}),
    ],
)
def test_what_the_kernel_read_of_a_drive(
    tree: BlockTree, attributes: dict[str, str], identifiers: dict[str, str]
) -> None:
    tree.disk("nvme0n1", "259:0", attributes)
    assert tree.topology.identifiers("259:0") == identifiers


def test_the_unit_serial_number_page_of_a_scsi_drive(tree: BlockTree, tmp_path: Path) -> None:
    tree.disk("sdb", "8:16", {"device/type": "0"})
    page = b"\x00\x80\x00\x0cSASDRIVE01  \x00\x00"
    (tmp_path / "sys" / "block" / "sdb" / "device" / "vpd_pg80").write_bytes(page)
    assert tree.topology.identifiers("8:16") == {"serial": "SASDRIVE01"}


def test_sizes_are_in_bytes_and_partitions_where_they_start(tree: BlockTree) -> None:
    assert tree.topology.size_bytes("8:0") == 8 << 30
    assert tree.topology.partitions("8:0") == [("sda1", 1 << 20), ("sda2", 2 << 20)]
