"""/sys and /dev/disk of mock servers against a real rackd: current, obedient, and what real programs make of them."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from asyncinotify import Inotify, Mask

from rackloop_labs.mock_hosts._sysfs import WRITTEN, Sysfs
from rackloop_labs.mock_hosts._view import HostView
from rackloop_labs.mock_hosts.tools import TOOLS
from tests.watched_rack import WatchedRack, names, watched_rack

T = TypeVar("T")
SOON_S = 120.0


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[WatchedRack]:
    with watched_rack(tmp_path) as rack:
        yield rack


def written(rack: WatchedRack, folder: Path, server: str = "srv1") -> Sysfs:
    """The folders of a server, as they are now."""
    sysfs = Sysfs(folder, server, rack.watch)
    asyncio.run(_once(sysfs))
    return sysfs


async def _once(sysfs: Sysfs) -> None:
    await sysfs.start()
    await sysfs.close()


def block(sysfs: Sysfs) -> set[str]:
    return {path.name for path in (sysfs.sys / "block").iterdir()}


def attribute(sysfs: Sysfs, path: str) -> Path:
    """The file behind an attribute that may be written; in the server, /sys/.written is where it is."""
    link = (sysfs.sys / path).readlink()
    assert link.parent.name == WRITTEN
    return sysfs.written / link.name


async def until(folder: Path, fits: Callable[[], T]) -> T:
    """Wait for changes in ``folder`` until something fits."""
    with Inotify() as inotify:
        inotify.add_watch(folder, Mask.CREATE | Mask.DELETE | Mask.MOVED_TO | Mask.CLOSE_WRITE)
        async with asyncio.timeout(SOON_S):
            while not (found := fits()):
                await inotify.get()
    return found


def test_the_tree_tells_of_the_drives(rack: WatchedRack, tmp_path: Path) -> None:
    sysfs = written(rack, tmp_path / "srv1")
    view = rack.watch.view("srv1")
    assert block(sysfs) == {drive.block_name for drive in view.drives}
    for drive in view.drives:
        folder = sysfs.sys / "block" / drive.block_name
        assert int((folder / "size").read_text()) * 512 == drive.size_bytes
        assert (folder / "queue/rotational").read_text() == f"{int(drive.is_rotational)}\n"
        assert (folder / "device/model").read_text().strip() in drive.model
        assert drive.port.pci_address in str((folder / "device").resolve())
        assert (sysfs.disk / "by-path" / drive.by_path).readlink() == Path(f"../nodes/{drive.block_name}")
    assert (sysfs.disk / "by-id/wwn-0x5000c500a0000001").is_symlink()


def test_every_link_of_the_tree_leads_somewhere(rack: WatchedRack, tmp_path: Path) -> None:
    rack.ask("map", pairs=[[6, 150]], full=False)
    rack.until(lambda view: len(view.drives) == 2, "srv2")
    for server in ("srv1", "srv2"):
        sysfs = written(rack, tmp_path / server, server)
        links = [path for path in sysfs.sys.rglob("*") if path.is_symlink()]
        assert links
        for link in links:
            target = link.readlink()
            assert (sysfs.written / target.name).is_file() if target.parent.name == WRITTEN else link.exists(), link


def test_a_pulled_drive_is_gone_once_refreshed(rack: WatchedRack, tmp_path: Path) -> None:
    sysfs = written(rack, tmp_path / "srv1")
    name = names(rack.watch.view("srv1"))["d01"]
    rack.ask("open", ports=[1])
    sysfs.refresh()
    assert name not in block(sysfs)
    assert not (sysfs.disk / "by-path/pci-0000:10:00.0-ata-1").is_symlink()
    assert not (sysfs.sys / "devices/pci0000:00/0000:00:10.0/0000:10:00.0/ata1/host0/target0:0:0").exists()


def test_the_folders_tell_what_a_view_has(rack: WatchedRack, tmp_path: Path) -> None:
    sysfs = written(rack, tmp_path / "srv1")
    rack.ask("open", ports=[1])
    view = sysfs.view()
    assert "d01" not in names(view)
    assert block(sysfs) == {drive.block_name for drive in view.drives}


def test_the_attributes_of_a_pulled_drive_are_gone_with_it(rack: WatchedRack, tmp_path: Path) -> None:
    sysfs = written(rack, tmp_path / "srv1")
    delete = attribute(sysfs, f"block/{names(rack.watch.view('srv1'))['d01']}/device/delete")
    assert delete.exists()
    rack.ask("open", ports=[1])
    sysfs.refresh()
    assert not delete.exists()


def test_a_dropped_link_counts(rack: WatchedRack, tmp_path: Path) -> None:
    sysfs = written(rack, tmp_path / "srv1")
    counter = sysfs.sys / "class/sas_phy/phy-0:0/loss_of_dword_sync_count"
    before = int(counter.read_text())
    rack.ask("phy_drop", ports=[1], down_ms=1e6)
    sysfs.refresh()
    assert int(counter.read_text()) == before + 1
    assert (counter.parent / "negotiated_linkrate").read_text() == "Link Rate failed\n"


def write(rack: WatchedRack, folder: Path, path: str, text: str, fits: Callable[[], object], server: str) -> None:
    """Write an attribute as somebody in the server would, and wait until it has acted."""

    async def act() -> None:
        sysfs = Sysfs(folder, server, rack.watch)
        await sysfs.start()
        attribute(sysfs, path).write_text(text)
        async with asyncio.timeout(SOON_S):
            while not await asyncio.to_thread(fits):
                await asyncio.sleep(0)
        await sysfs.close()

    asyncio.run(act())


@pytest.mark.parametrize("name", ["link_reset", "hard_reset"])
def test_a_written_reset_takes_the_link_down_and_up(rack: WatchedRack, tmp_path: Path, name: str) -> None:
    before = rack.watch.view("srv1").ports[0].phy_resets

    def is_reset() -> bool:
        return rack.watch.view("srv1").ports[0].phy_resets > before

    write(rack, tmp_path / "srv1", f"class/sas_phy/phy-0:0/{name}", "1\n", is_reset, "srv1")
    rack.until(lambda view: "d01" in names(view))


def test_a_phy_is_disabled_and_enabled(rack: WatchedRack, tmp_path: Path) -> None:
    def is_linked() -> bool:
        return rack.watch.view("srv1").ports[0].is_linked

    path = "class/sas_phy/phy-0:0/enable"
    write(rack, tmp_path / "srv1", path, "0\n", lambda: not is_linked(), "srv1")
    write(rack, tmp_path / "srv1b", path, "1\n", is_linked, "srv1")


def test_a_write_that_nobody_has_obeyed_yet_stays(rack: WatchedRack, tmp_path: Path) -> None:
    sysfs = written(rack, tmp_path / "srv1")
    enable = attribute(sysfs, "class/sas_phy/phy-0:0/enable")
    rack.watch.acts("srv1").disable_link(rack.watch.view("srv1").ports[0])
    enable.write_text("1\n")
    sysfs.refresh()
    assert enable.read_text() == "1\n"


async def port_is_reset(rack: WatchedRack, port: int, before: HostView) -> None:
    """Wait until the link of a port of srv1 was reset."""
    async with asyncio.timeout(SOON_S):
        while rack.watch.view("srv1").ports[port].phy_resets == before.ports[port].phy_resets:
            await asyncio.sleep(0)


# A program that starts while a file is put there closes it as well.
@pytest.mark.parametrize("flags", [os.O_WRONLY, os.O_WRONLY | os.O_TRUNC])
def test_a_file_that_is_closed_without_a_write_does_nothing(rack: WatchedRack, tmp_path: Path, flags: int) -> None:
    before = rack.watch.view("srv1")

    async def act() -> None:
        sysfs = Sysfs(tmp_path / "srv1", "srv1", rack.watch)
        await sysfs.start()
        os.close(os.open(attribute(sysfs, f"block/{names(before)['d01']}/device/delete"), flags))
        # What is asked next is done after it.
        attribute(sysfs, "class/sas_phy/phy-1:0/link_reset").write_text("1\n")
        await port_is_reset(rack, 1, before)
        await sysfs.close()

    asyncio.run(act())
    assert "d01" in names(rack.watch.view("srv1"))


def test_a_write_is_not_lost_to_what_closes_the_file_just_before(rack: WatchedRack, tmp_path: Path) -> None:
    before = rack.watch.view("srv1")

    async def act() -> None:
        sysfs = Sysfs(tmp_path / "srv1", "srv1", rack.watch)
        await sysfs.start()
        reset = attribute(sysfs, "class/sas_phy/phy-0:0/link_reset")
        with reset.open("w") as writing:
            os.close(os.open(reset, os.O_WRONLY))
            # What is asked next is done after it.
            attribute(sysfs, "class/sas_phy/phy-1:0/link_reset").write_text("1\n")
            await port_is_reset(rack, 1, before)
            writing.write("1\n")
        await port_is_reset(rack, 0, before)
        await sysfs.close()

    asyncio.run(act())


def test_an_attribute_that_was_emptied_reads_as_the_kernel_has_it_after_a_boot(
    rack: WatchedRack, tmp_path: Path
) -> None:
    sysfs = written(rack, tmp_path / "srv1")
    enable = attribute(sysfs, "class/sas_phy/phy-0:0/enable")
    enable.write_text("")
    sysfs.refresh()
    assert enable.read_text() == ""
    sysfs.boot()
    assert enable.read_text() == "1\n"


def test_an_attribute_that_somebody_removed_is_there_again(rack: WatchedRack, tmp_path: Path) -> None:
    sysfs = written(rack, tmp_path / "srv1")
    enable = attribute(sysfs, "class/sas_phy/phy-0:0/enable")
    enable.unlink()
    rack.watch.acts("srv1").disable_link(rack.watch.view("srv1").ports[0])
    sysfs.refresh()
    assert enable.read_text() == "0\n"


def test_a_device_is_deleted_and_found_by_a_scan(rack: WatchedRack, tmp_path: Path) -> None:
    def has_drive() -> bool:
        return "d01" in names(rack.watch.view("srv1"))

    name = names(rack.watch.view("srv1"))["d01"]
    write(rack, tmp_path / "a", f"block/{name}/device/delete", "1\n", lambda: not has_drive(), "srv1")
    write(rack, tmp_path / "b", "class/scsi_host/host0/scan", "- - -\n", has_drive, "srv1")


def test_a_controller_reset_is_logged(rack: WatchedRack, tmp_path: Path) -> None:
    def is_logged() -> bool:
        return any("resetting controller" in line.text for line in rack.watch.view("srv1").kernel_log)

    write(rack, tmp_path / "srv1", "class/nvme/nvme0/reset_controller", "1\n", is_logged, "srv1")


def test_a_slot_is_switched_off(rack: WatchedRack, tmp_path: Path) -> None:
    rack.ask("map", pairs=[[6, 150]], full=False)
    rack.until(lambda view: len(view.drives) == 2, "srv2")

    def is_off() -> bool:
        return rack.watch.view("srv2").expanders[0].off_slots == {5}

    path = "class/enclosure/1:0:8:0/Slot 05/power_status"
    write(rack, tmp_path / "srv2", path, "off\n", is_off, "srv2")


def test_what_the_kernel_would_refuse_does_nothing(rack: WatchedRack, tmp_path: Path) -> None:
    before = rack.watch.view("srv1").ports

    async def act() -> None:
        sysfs = Sysfs(tmp_path / "srv1", "srv1", rack.watch)
        await sysfs.start()
        enable = attribute(sysfs, "class/sas_phy/phy-0:0/enable")
        enable.write_text("maybe\n")
        await until(sysfs.written, lambda: enable.read_text() == "1\n")
        (sysfs.written / "no such attribute").write_text("1\n")
        reset = attribute(sysfs, "class/sas_phy/phy-0:0/link_reset")
        outside = tmp_path / "outside"
        outside.write_text("1\n")
        reset.unlink()
        reset.symlink_to(outside)
        with outside.open("a"):
            pass
        enable.write_text("\n")
        await until(sysfs.written, lambda: enable.read_text() == "1\n")
        await sysfs.close()

    asyncio.run(act())
    assert rack.watch.view("srv1").ports == before


def in_server(sysfs: Sysfs, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a program of this machine with the server's /sys in place of its own."""
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    root = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--tmpfs", "/run"]
    bound = ["--ro-bind", str(sysfs.sys), "/sys", "--bind", str(sysfs.written), f"/sys/{WRITTEN}"]
    full = [*root, *bound, "env", "LC_ALL=C.UTF-8", *command]
    return subprocess.run(full, capture_output=True, text=True, check=False)


def agree(rack: WatchedRack, folder: Path, server: str, real: Sequence[str], options: str) -> None:
    """The emulated tool says with ``options`` what a real program makes of the tree of a server."""
    rack.ask("map", pairs=[[6, 150]], full=False)
    rack.until(lambda view: len(view.drives) == 2, "srv2")
    done = in_server(written(rack, folder / server, server), real)
    emulated = TOOLS[real[0]](options.split(), rack.watch.view(server), rack.watch.acts(server))
    assert (emulated.stdout, emulated.status) == (done.stdout, done.returncode)


# With /dev as empty as here, lsscsi names nodes by the kernel's names only where it is asked to (-k).
@pytest.mark.parametrize(
    "options", ["", "-g", "-t", "-s", "-ss", "-gs", "-d", "-u", "-UU", "-S", "-b", "-l", "-N", "-H -N"]
)
@pytest.mark.parametrize("server", ["srv1", "srv2"])
def test_lsscsi_says_what_the_real_one_makes_of_the_tree(
    rack: WatchedRack, tmp_path: Path, server: str, options: str
) -> None:
    agree(rack, tmp_path, server, ["lsscsi", "-k", *options.split()], options)


@pytest.mark.parametrize(
    "options", ["", "-J", "-bd", "-t", "-D", "-z", "-n", "-P", "-r", "-p -o NAME,SIZE,HCTL,ROTA,STATE"]
)
@pytest.mark.parametrize("server", ["srv1", "srv2"])
def test_lsblk_says_what_the_real_one_makes_of_the_tree(
    rack: WatchedRack, tmp_path: Path, server: str, options: str
) -> None:
    """But for what comes from udev and the nodes in /dev: serials, WWNs, owners."""
    agree(rack, tmp_path, server, ["lsblk", *options.split()], options)


def test_a_write_to_anything_else_fails(rack: WatchedRack, tmp_path: Path) -> None:
    sysfs = written(rack, tmp_path / "srv1")
    done = in_server(sysfs, ["sh", "-c", "echo 1 > /sys/class/sas_phy/phy-0:0/enable && echo 1 > /sys/block/sda/size"])
    assert "Read-only file system" in done.stderr
    assert "size" in done.stderr


def test_a_function_is_removed_and_found_by_a_rescan(rack: WatchedRack, tmp_path: Path) -> None:
    def has_drive() -> bool:
        return "d03" in names(rack.watch.view("srv1"))

    function = "bus/pci/devices/0000:12:00.0"
    write(rack, tmp_path / "a", f"{function}/remove", "1\n", lambda: not has_drive(), "srv1")
    assert not (written(rack, tmp_path / "b").sys / function).exists()
    said = len(rack.watch.view("srv1").kernel_log)
    write(rack, tmp_path / "c", "bus/pci/rescan", "1\n", has_drive, "srv1")
    assert (written(rack, tmp_path / "d").sys / function).exists()
    # As a real kernel says when it is told to look: nothing of the slot, which has seen nothing.
    assert [line.text for line in rack.watch.view("srv1").kernel_log[said:]] == [
        "pci 0000:12:00.0: [1b36:0010] type 00 class 0x010802",
        "nvme nvme0: pci function 0000:12:00.0",
        "nvme 0000:12:00.0: enabling device (0000 -> 0002)",
        "nvme nvme0: 1/0/0 default/read/poll queues",
    ]


def test_a_slot_of_an_nvme_drive_is_switched_off_and_on(rack: WatchedRack, tmp_path: Path) -> None:
    """The drive is behind a switch, and keeps its power: its link goes with that of the slot."""

    def has_link() -> bool:
        return rack.watch.view("srv1").ports[2].is_linked

    power = "bus/pci/slots/2/power"
    write(rack, tmp_path / "a", power, "0\n", lambda: not has_link(), "srv1")
    assert rack.ask("power", target="drive:d03")["on"] is True
    sysfs = written(rack, tmp_path / "b")
    assert "nvme0n1" not in block(sysfs)
    assert attribute(sysfs, power).read_text() == "0\n"
    write(rack, tmp_path / "c", power, "1\n", has_link, "srv1")


def test_a_slot_without_an_nvme_drive_has_no_switch(rack: WatchedRack, tmp_path: Path) -> None:
    power = written(rack, tmp_path / "srv1").sys / "bus/pci/slots/0/power"
    assert not power.is_symlink()
    assert power.read_text() == "1\n"


def test_a_boot_enables_every_link_and_slot(rack: WatchedRack) -> None:
    acts, (sata, _, nvme, _) = rack.watch.acts("srv1"), rack.watch.view("srv1").ports
    acts.disable_link(sata)
    acts.power_pci_slot(nvme, on=False)
    rack.until(lambda view: not {"d01", "d03"} & names(view).keys())
    rack.watch.boot("srv1", "boot-2")
    rack.until(lambda view: {"d01", "d03"} <= names(view).keys())
