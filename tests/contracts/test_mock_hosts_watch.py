"""What mock servers see of a real rackd: drives that come and go, links, names, the kernel log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rackloop.errors import LabError
from rackloop.inspection.health import broken_rule
from rackloop.lab import load_lab
from rackloop_labs._rackd_config import rackd_config
from rackloop_labs.mock_hosts._view import HostView
from rackloop_labs.mock_hosts._watch import HostWatch
from tests.deadlines import CLOCK
from tests.nbd_wire import EIO, NbdWire
from tests.rackd_process import running_rackd
from tests.watched_rack import LAB, WatchedRack, names, watched_rack


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[WatchedRack]:
    with watched_rack(tmp_path) as rack:
        yield rack


def said(view: HostView, text: str) -> list[str]:
    return [str(line) for line in view.kernel_log if text in line.text]


def test_a_server_sees_the_drives_of_its_ports_as_its_kernel_names_them(bench: WatchedRack) -> None:
    bench.watch.boot("srv1", "again")
    view = bench.watch.view("srv1")
    assert names(view) == {"d01": "sda", "d02": "sdb", "d03": "nvme0"}
    assert view.boot_id == "again"
    assert [port.is_linked for port in view.ports] == [True, True, True, False]
    assert [drive.by_path for drive in view.drives] == [
        "pci-0000:10:00.0-ata-1",
        "pci-0000:11:00.0-sas-phy0-lun-0",
        "pci-0000:12:00.0-nvme-1",
    ]
    assert view.drives[0].counters["power_cycles"] == 1
    assert bench.watch.view("srv2").drives == ()


def test_a_pulled_drive_is_gone_at_once_and_the_lowest_free_name_is_given_next(bench: WatchedRack) -> None:
    bench.watch.boot("srv1", "again")
    bench.ask("open", ports=[1])
    assert names(bench.watch.view("srv1")) == {"d02": "sdb", "d03": "nvme0"}
    bench.ask("map", pairs=[[4, 104]], full=False)
    assert names(bench.until(lambda view: len(view.drives) == 3))["d04"] == "sda"
    bench.ask("map", pairs=[[1, 101]], full=False)
    view = bench.until(lambda view: len(view.drives) == 4)
    assert names(view) == {"d04": "sda", "d02": "sdb", "d03": "nvme0", "d01": "sdc"}
    assert said(view, "ata1: SATA link down")
    assert said(view, "ata1.00: detaching (SCSI 0:0:0:0)")
    assert said(view, "sd 0:0:0:0: [sdc] Attached SCSI disk")


def test_a_dropped_link_is_counted_and_the_drive_comes_back(bench: WatchedRack) -> None:
    before = bench.watch.view("srv1").ports[2].phy_resets
    bench.ask("phy_drop", ports=[3], down_ms=1e6)
    assert "d03" not in names(bench.watch.view("srv1"))
    bench.ask("phy_drop", ports=[3], down_ms=1)
    view = bench.until(lambda view: len(view.drives) == 3)
    assert view.ports[2].phy_resets == before + 1
    assert names(view)["d03"] == "nvme0"
    assert said(view, "Slot(2): Link Down")


def test_a_media_error_is_in_the_kernel_log_of_the_server_that_sees_the_drive(bench: WatchedRack) -> None:
    fault = {"kind": "media_error", "lba": 16, "sectors": 8, "mode": "until_rewritten"}
    name = names(bench.watch.view("srv1"))["d01"]
    bench.ask("fault", drive="d01", fault=fault)
    with NbdWire(bench.rackd.nbd, "srv1.p0") as wire:
        assert wire.read(16 * 512, 512)[0] == EIO
    view = bench.watch.view("srv1")
    assert said(view, f"critical medium error, dev {name}, sector 16 op 0x0:(READ)")
    assert said(view, "Sense Key : Medium Error")
    # libata tells of the failed command first, which is no loss of its link.
    assert said(view, "ata1.00: exception Emask 0x0 SAct 0x1 SErr 0x0 action 0x0")
    rules = [broken_rule(line.text) for line in view.kernel_log]
    assert {rule.name for rule in rules if rule is not None} == {"kernel.medium_error"}
    (drive,) = [drive for drive in view.drives if drive.drive_id == "d01"]
    assert drive.counters["media_errors"] == len(drive.failed_lbas) >= 1
    assert set(drive.failed_lbas) == {16}
    assert not said(bench.watch.view("srv2"), "medium error")


BAD_SECTOR = {"kind": "media_error", "lba": 16, "sectors": 1, "mode": "until_rewritten", "on": "both"}


@pytest.mark.parametrize(("fault", "told"), [({"kind": "dead"}, "I/O error"), (BAD_SECTOR, "critical medium error")])
def test_a_failed_write_is_told_as_one_whatever_else_the_fault_fails(
    bench: WatchedRack, fault: dict[str, object], told: str
) -> None:
    bench.ask("fault", drive="d01", fault=fault)
    name = names(bench.watch.view("srv1"))["d01"]
    with NbdWire(bench.rackd.nbd, "srv1.p0") as wire:
        assert wire.write(16 * 512, bytes(512)) == EIO
        assert said(bench.watch.view("srv1"), f"{told}, dev {name}, sector 16 op 0x1:(WRITE)")
        assert wire.read(16 * 512, 512)[0] == EIO
    assert len(said(bench.watch.view("srv1"), f"{told}, dev {name}, sector 16 op 0x0:(READ)")) == 1


def test_a_miswired_port_shows_the_other_drive(bench: WatchedRack) -> None:
    bench.ask("miswire", ports=[101, 104])
    view = bench.until(lambda view: "d04" in names(view))
    assert {drive.drive_id: drive.port.name for drive in view.drives}["d04"] == "p0"
    assert "d01" not in names(view)


def test_swapped_cables_of_a_server_show_each_others_drives(bench: WatchedRack) -> None:
    before = bench.watch.view("srv1").ports
    bench.ask("miswire", ports=[1, 2])
    view = bench.until(lambda view: len(view.drives) == 3)
    assert {drive.drive_id: drive.port.name for drive in view.drives} == {"d01": "p1", "d02": "p0", "d03": "p2"}
    assert [port.phy_resets - known.phy_resets for port, known in zip(view.ports, before, strict=True)] == [1, 1, 0, 0]
    assert [port.is_linked for port in view.ports] == [True, True, True, False]


def test_drives_behind_an_expander_have_their_slots(bench: WatchedRack) -> None:
    bench.ask("map", pairs=[[6, 150]], full=False)
    view = bench.until(lambda view: len(view.drives) == 2, "srv2")
    (expander,) = view.expanders
    assert (expander.name, expander.slots, expander.port.name) == ("exp1", 8, "p1")
    assert {drive.drive_id: (drive.slot, drive.hctl) for drive in view.drives} == {
        "d05": (2, "1:0:2:0"),
        "d06": (5, "1:0:5:0"),
    }
    assert view.drives[0].by_path == f"pci-0000:11:00.0-sas-exp0x{expander.sas_address}-phy{view.drives[0].slot}-lun-0"
    bench.watch.acts("srv2").power_slot(expander, 5, on=False)
    view = bench.watch.view("srv2")
    assert list(names(view)) == ["d05"]
    assert view.expanders[0].off_slots == {5}
    bench.watch.acts("srv2").power_slot(expander, 5, on=True)
    assert bench.until(lambda view: len(view.drives) == 2, "srv2").expanders[0].off_slots == set()
    bench.ask("open", ports=[6])
    view = bench.watch.view("srv2")
    assert (view.drives, view.expanders) == ((), ())
    assert said(view, "delete expander: num_phys 9")


def test_a_miswired_expander_is_seen_where_its_cable_is(bench: WatchedRack) -> None:
    bench.ask("miswire", ports=[150, 104])
    bench.ask("map", pairs=[[5, 104]], full=False)
    view = bench.until(lambda view: len(view.drives) == 2, "srv2")
    assert [expander.port.name for expander in view.expanders] == ["p0"]


def test_a_link_is_reset_disabled_and_enabled_from_the_server(bench: WatchedRack) -> None:
    acts = bench.watch.acts("srv1")
    before = bench.watch.view("srv1").ports[0]
    acts.reset_link(before)
    port = bench.until(lambda view: "d01" in names(view)).ports[0]
    assert port.phy_resets == before.phy_resets + 1
    acts.disable_link(port)
    port = bench.watch.view("srv1").ports[0]
    assert not port.is_enabled
    assert not port.is_linked
    acts.enable_link(port)
    assert bench.until(lambda view: "d01" in names(view)).ports[0].is_enabled


def test_a_drive_can_be_forgotten_and_found_again(bench: WatchedRack) -> None:
    view = bench.watch.view("srv1")
    acts = bench.watch.acts("srv1")
    acts.remove(view.drives[0])
    assert view.drives[0].drive_id not in names(bench.watch.view("srv1"))
    acts.rescan(view.drives[0].port)
    assert names(bench.watch.view("srv1")) == names(view)


def test_a_controller_reset_is_in_the_log(bench: WatchedRack) -> None:
    (nvme,) = [drive for drive in bench.watch.view("srv1").drives if drive.protocol == "nvme"]
    bench.watch.acts("srv1").reset_controller(nvme)
    assert said(bench.watch.view("srv1"), "nvme nvme0: resetting controller")


def test_without_power_a_server_has_not_booted(bench: WatchedRack) -> None:
    bench.ask("power", target="server:srv1", on=False)
    assert not bench.watch.is_on("srv1")
    with pytest.raises(LabError, match="srv1 has not booted"):
        bench.watch.view("srv1")
    bench.ask("power", target="server:srv1", on=True)
    assert bench.watch.is_on("srv1")
    bench.watch.boot("srv1", "second")
    view = bench.until(lambda view: len(view.drives) == 3)
    assert view.boot_id == "second"
    assert view.kernel_log[0].text.startswith("Linux version")
    assert view.kernel_log[0].at_us == 0


def test_a_crashed_server_knows_nothing(bench: WatchedRack) -> None:
    bench.watch.halt("srv1")
    assert bench.watch.is_on("srv1")
    with pytest.raises(LabError, match="has not booted"):
        bench.watch.view("srv1")


def test_what_rackd_did_is_known_the_moment_it_has_answered(bench: WatchedRack) -> None:
    for _ in range(50):
        bench.ask("open", ports=[1])
        assert "d01" not in names(bench.watch.view("srv1"))
        bench.ask("map", pairs=[[1, 101]], full=False)
        bench.until(lambda view: "d01" in names(view))


def test_a_rack_whose_truth_is_not_whole_is_not_shown(tmp_path: Path) -> None:
    description = tmp_path / "bench.yaml"
    description.write_text(LAB)
    lab = load_lab(description)
    empty = tmp_path / "truth.jsonl"
    empty.touch()
    config = rackd_config(lab, str(tmp_path), 1) | {"truth_log": "/dev/full"}
    with (
        running_rackd(tmp_path, config) as rackd,
        closing(HostWatch(lab, rackd.control, empty, CLOCK)) as watch,
        pytest.raises(LabError, match=r"could not write [1-9].* records .*make room"),
    ):
        watch.boot("srv1", "boot-1")
