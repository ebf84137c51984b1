"""A physical rack without a switch is disturbed by its servers alone, under a lease and not without."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rackloop.abilities import PortState
from rackloop.errors import BadInput, FaultRefused, NotConnected, NotSupported
from rackloop.faults import FaultCutShort, Faults, FaultSpec
from rackloop.lab import Lab, LabState, Part, once_online
from rackloop.record.acts import BreakPart, DropSignal, MendPart, SettleSignal
from rackloop.safety import heal
from rackloop.safety.leases import HeldLease, leased
from rackloop.safety.store import Store, open_store
from rackloop.safety.undo import ActRecorder, Journal
from rackloop_labs import Bench, open_lab
from rackloop_labs.bench_view import BenchInService
from tests.deadlines import CLOCK, soon
from tests.described_rack import described
from tests.mock_rack import MockRack

pytestmark = pytest.mark.usefixtures("own_machine")


class Unleased:
    """The rack, opened as a physical one; no lease is held."""

    def __init__(self, lab: Lab, bench: Bench, store: Store) -> None:
        self.lab = lab
        self.bench = bench
        self.store = store
        self.journal = Journal(store)

    def faults(self, lease: HeldLease | None) -> Faults:
        recorder = ActRecorder(self.lab, self.journal, "run-1", lease=lease)
        return Faults(self.lab, self.bench.equipment, CLOCK, recorder)

    def serials(self, server: str) -> set[str]:
        return set(self.bench.host(server).run(["lsblk", "-dno", "SERIAL"], soon()).stdout.split())


@pytest.fixture
def real(direct_rack: MockRack, tmp_path: Path) -> Iterator[Unleased]:
    lab = described(direct_rack, tmp_path)
    with ExitStack() as stack:
        bench = stack.enter_context(open_lab(lab, CLOCK, LabState.of(lab.name, root=tmp_path), None))
        store = open_store(tmp_path / "store.sqlite", CLOCK)
        stack.callback(store.close)
        yield Unleased(lab, bench, store)


def without_node2(rack: MockRack, folder: Path) -> Lab:
    """The rack, whose node2 does not answer."""
    lab = described(rack, folder)
    node2 = lab.servers["node2"].model_copy(update={"ssh": "127.0.0.1:1"})
    return lab.model_copy(update={"servers": {**lab.servers, "node2": node2}})


def test_heal_leaves_all_alone_that_a_killed_run_did_to_a_server_in_maintenance(
    direct_rack: MockRack, tmp_path: Path
) -> None:
    """And waits for nothing of it: it may have no power."""
    lab = without_node2(direct_rack, tmp_path)
    broken = {"drive:hdd1": "media_error", "slot:node2/p1": "removed", "phy:node2/p1": "disabled"}
    broken |= {"network:node2": "partition", "server:node2": "hang"}
    drop, settle = DropSignal(frozenset({5}), 3600e3, 1), SettleSignal(frozenset({5}), 3600e3)
    with ExitStack() as stack:
        journal = Journal(open_store(tmp_path / "store.sqlite", CLOCK))
        stack.callback(journal.close)
        held = stack.enter_context(leased(lab, journal.store))
        for name, kind in broken.items():
            journal.intend(lab.name, "r", name, what=BreakPart(name, {"kind": kind}), inverse=[MendPart(name)])
        journal.intend(lab.name, "r", "switch", what=drop, inverse=[settle])
        state = LabState.of(lab.name, root=tmp_path)
        whole = stack.enter_context(open_lab(lab, CLOCK, state, None, lease=held))
        report = BenchInService(whole, {Part.server("node2")}).heal(journal, held, thorough=True)
        assert (report.problems, report.undone, len(journal.standing(lab.name))) == ((), (), 6)


def test_a_server_that_is_in_maintenance_need_not_answer_for_drives_of_others(
    direct_rack: MockRack, tmp_path: Path
) -> None:
    """It may have no power, and no test would be permitted to write a drive."""
    lab = without_node2(direct_rack, tmp_path)
    with open_lab(lab, CLOCK, LabState.of(lab.name, root=tmp_path), None) as bench:
        with pytest.raises(NotConnected, match="1 of 2 servers failed"):
            BenchInService(bench).survey()
        seen = {drive.serial for drive in BenchInService(bench, {Part.server("node2")}).survey()}
    assert seen == {lab.drives[name].serial for name in lab.drives_of("node1")}


def test_nothing_is_disturbed_without_a_lease(real: Unleased) -> None:
    for spec in (FaultSpec("hot_unplug", "ssd1"), FaultSpec("phy_drop", "node1.p0", {"down_s": 0.01})):
        with pytest.raises(BadInput, match="lab real is physical"):
            real.faults(None).begin(spec)
    assert real.journal.standing("real") == []
    assert real.lab.drives["ssd1"].serial in real.serials("node1")


@pytest.mark.parametrize(
    ("kind", "drive", "server"),
    [("hot_unplug", "ssd1", "node1"), ("slot_power_loss", "fast1", "node1"), ("device_off", "shelf1-1", "node2")],
)
def test_a_drive_goes_and_comes_under_a_lease(real: Unleased, kind: str, drive: str, server: str) -> None:
    serial = real.lab.drives[drive].serial
    with leased(real.lab, real.store) as lease, real.faults(lease) as faults:
        with faults.injected(FaultSpec(kind, drive)):
            assert serial not in real.serials(server)
        assert serial in real.serials(server)
    assert real.journal.standing("real") == []


def test_a_drive_that_comes_back_leaves_another_of_its_hba_away(real: Unleased) -> None:
    first, second = (real.lab.drives[name].serial for name in ("shelf1-0", "shelf1-1"))
    with leased(real.lab, real.store) as lease, real.faults(lease) as faults:
        with faults.injected(FaultSpec("hot_unplug", "shelf1-0")):
            with faults.injected(FaultSpec("hot_unplug", "shelf1-1")):
                assert not {first, second} & real.serials("node2")
            assert {first, second} & real.serials("node2") == {second}
        assert {first, second} <= real.serials("node2")


def test_an_nvme_drive_that_comes_back_leaves_another_pci_function_away(real: Unleased) -> None:
    beside, host = real.lab.drives["ssd1"].serial, real.bench.host("node1")

    def write(file: str, *, there: bool) -> None:
        host.run(["sh", "-c", f"echo 1 >/sys/bus/pci/{file}"], soon())
        assert soon().poll(lambda: (beside in real.serials("node1")) is there, every_s=0.02)

    with leased(real.lab, real.store) as lease, real.faults(lease) as faults:
        write("devices/0000:10:00.0/remove", there=False)
        with faults.injected(FaultSpec("hot_unplug", "fast1")):
            pass
        assert real.serials("node1") & {beside, real.lab.drives["fast1"].serial} == {real.lab.drives["fast1"].serial}
        write("rescan", there=True)


def test_a_drive_that_came_back_by_itself_was_not_away_as_long_as_it_was_to_be(real: Unleased) -> None:
    serial, scan = real.lab.drives["sas1"].serial, "echo - - - >/sys/class/scsi_host/host2/scan"
    with leased(real.lab, real.store) as lease, real.faults(lease) as faults:
        injection = faults.begin(FaultSpec("hot_unplug", "sas1"))
        real.bench.host("node1").run(["sh", "-c", scan], soon())
        assert soon().poll(lambda: serial in real.serials("node1"), every_s=0.02)
        with pytest.raises(FaultCutShort, match="fault 1, hot_unplug of sas1, stood no longer when it was ended"):
            faults.end(injection)
    assert real.journal.standing("real") == []


def test_one_phy_is_taken_away_by_one_fault_at_a_time(real: Unleased) -> None:
    drop, off = FaultSpec("phy_drop", "node1.p2"), FaultSpec("phy_disable", "node1.p2")
    with leased(real.lab, real.store) as lease, real.faults(lease) as faults:
        for first, second in ((drop, off), (off, drop)):
            with faults.injected(first), pytest.raises(FaultRefused, match="port 3 has no signal"):
                faults.begin(second)
    assert real.journal.standing("real") == []


def test_what_nobody_mended_is_healed(real: Unleased) -> None:
    """Another process heals: it has the journal, and the servers have their notes."""
    # A link that a test before gave back is up before the kernel has found the drive behind it.
    once_online(real.bench.drive("node1", "p2"), soon())
    with leased(real.lab, real.store) as lease:
        lost = real.faults(lease)
        for spec in (FaultSpec("hot_unplug", "sas1"), FaultSpec("phy_drop", "node2.p1", {"down_s": 600})):
            lost.begin(spec)
        assert real.bench.equipment.fabric.port_states([5], soon()) == {5: PortState.DOWN}
        report = heal(real.lab, real.journal, real.bench.equipment, CLOCK, soon(), lease=lease)
    assert (report.problems, len(report.undone)) == ((), 2)
    assert real.lab.drives["sas1"].serial in real.serials("node1")
    assert real.bench.equipment.fabric.port_states([5], soon()) == {5: PortState.UP}


def test_a_fault_that_no_journal_knows_of_is_named_and_left_alone(real: Unleased) -> None:
    """Whoever broke it kept another journal; it is the server that remembers."""
    slot = real.bench.equipment.breakable["slot:node1/p2"]
    slot.break_as("other/1", {"kind": "removed"}, soon())
    with leased(real.lab, real.store) as lease:
        report = heal(real.lab, real.journal, real.bench.equipment, CLOCK, soon(), lease=lease)
        assert report.problems == (
            "slot:node1/p2 has the fault removed, which is not in the journal; clear it by hand",
        )
        assert set(slot.standing(soon())) == {"other/1"}
        slot.mend("other/1", soon())
        assert heal(real.lab, real.journal, real.bench.equipment, CLOCK, soon(), lease=lease).problems == ()


def test_what_no_server_can_do_is_skipped_with_the_reason(real: Unleased) -> None:
    with leased(real.lab, real.store) as lease:
        for spec in (FaultSpec("server_crash", "node1"), FaultSpec("device_off", "ssd1")):
            with pytest.raises(NotSupported):
                real.faults(lease).begin(spec)
