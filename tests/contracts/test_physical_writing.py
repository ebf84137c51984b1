"""A physical rack with a switch is written and disturbed under a lease, and not without: real drivers, mock peers."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rackloop.abilities import Applied, Completed
from rackloop.abilities.blocks import IoFailed
from rackloop.clock import Deadline
from rackloop.errors import BadInput, FaultRefused, GuardRefused, LabError, NotSupported
from rackloop.faults import Faults, FaultSpec
from rackloop.lab import Lab, LabState, Stack, load_lab, once_online
from rackloop.portmap import Full, Open, PortMap
from rackloop.safety import Guard, heal
from rackloop.safety.leases import HeldLease, LeaseTerms, leased
from rackloop.safety.store import Store, open_store
from rackloop.safety.undo import ActRecorder, Journal, journalled, undoing
from rackloop_drivers.block import HostPath
from rackloop_drivers.drive import HostDrive
from rackloop_drivers.host_tools import NoDriveThere
from rackloop_drivers.open_blocks import open_blocks
from rackloop_drivers.rackd import RackdControl
from rackloop_labs import Bench, open_lab, open_leased
from tests.deadlines import CLOCK, soon
from tests.discovered_rack import discovered_rack

SRV1 = LeaseTerms(servers=("srv1",))

pytestmark = pytest.mark.usefixtures("own_machine")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The mock rack as `lab discover` describes it, a physical one, whose owner let two of its drives be erased."""
    with discovered_rack(tmp_path_factory, "found") as file:
        found = load_lab(file)
        erasable = ("RL000001", "RL000003")
        drives = {
            name: drive.model_copy(update={"scratch": drive.serial in erasable}) for name, drive in found.drives.items()
        }
        yield found.model_copy(update={"drives": drives, "controllers": (socket.gethostname(),)})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path / "store.sqlite", CLOCK)
    yield store
    store.close()


def bench_of(stack: ExitStack, lab: Lab, held: HeldLease) -> Bench:
    return stack.enter_context(open_leased(lab, CLOCK, LabState.of(lab.name), held))


def named(lab: Lab, serial: str) -> str:
    return next(name for name, drive in lab.drives.items() if drive.serial == serial)


def refused(lab: Lab, held: HeldLease | None, bench: Bench, server: str) -> tuple[str, ...]:
    """Why the drive at the server's first port may not be written; none where it may be."""
    drive = bench.drive(server, "p0")
    name = named(lab, once_online(drive, soon()).serial)
    try:
        Guard(lab, held, seen=bench.survey()).writable(name, drive, bench.device(server, "p0"), soon()).close()
    except GuardRefused as error:
        return error.reasons
    return ()


def test_nothing_is_disturbed_without_a_lease(lab: Lab, store: Store) -> None:
    journal = Journal(store)
    with open_lab(lab, CLOCK, LabState.of(lab.name), None) as bench:
        acting = journalled(bench.equipment, ActRecorder(lab, journal, "run"))
        with pytest.raises(BadInput, match=r"found is physical: nothing is written .* without a lease"):
            acting.fabric.apply(Open(frozenset({1})), soon())
        with pytest.raises(BadInput, match="without a lease"):
            heal(lab, journal, bench.equipment, CLOCK, soon())
        [reason] = refused(lab, None, bench, "srv1")
        assert reason == "it is not leased; lease the rack, or the server that has it"
        assert bench.equipment.fabric.live_map(soon()).pairs == lab.baseline_map()
    assert journal.standing(lab.name) == []


@pytest.mark.parametrize("terms", [LeaseTerms(), SRV1], ids=["the rack", "one server"])
def test_under_a_lease_it_is_disturbed_and_given_back(lab: Lab, store: Store, terms: LeaseTerms) -> None:
    journal = Journal(store)
    with ExitStack() as stack:
        held = stack.enter_context(leased(lab, store, terms))
        bench = bench_of(stack, lab, held)
        before = bench.equipment.fabric.live_map(soon()).pairs
        recorder = ActRecorder(bench.lab, journal, "run", lease=held)
        with undoing(bench.equipment, recorder, CLOCK) as acting:
            acting.fabric.apply(Open(frozenset({1})), soon())
            assert acting.fabric.live_map(soon()).pairs == before.without([1])
        assert bench.equipment.fabric.live_map(soon()).pairs == before
        assert heal(bench.lab, journal, bench.equipment, CLOCK, soon(), lease=held).undone == ()
    assert journal.standing(lab.name) == []


def test_what_servers_break_of_their_own_links_and_slots_is_given_back_and_healed(lab: Lab, store: Store) -> None:
    journal, drive = Journal(store), named(lab, "RL000001")
    with ExitStack() as stack:
        held = stack.enter_context(leased(lab, store, SRV1))
        bench = bench_of(stack, lab, held)
        recorder = ActRecorder(bench.lab, journal, "run", lease=held)
        with Faults(bench.lab, bench.equipment, CLOCK, recorder) as faults:
            # By its path, which udev gives it after the kernel has it.
            assert once_online(bench.drive("srv1", "p0"), soon()).serial == "RL000001"
            for kind in ("hot_unplug", "phy_disable"):
                with faults.injected(FaultSpec(kind, drive)):
                    assert "RL000001" not in serials(bench), kind
                assert once_online(bench.drive("srv1", "p0"), soon()).serial == "RL000001"
            kept = named(lab, "RL000002")
            with pytest.raises(FaultRefused, match=rf"drive {kept} is not marked scratch: true"):
                faults.begin(FaultSpec("hot_unplug", kept))
        Faults(bench.lab, bench.equipment, CLOCK, recorder).begin(FaultSpec("hot_unplug", drive))
        report = heal(bench.lab, journal, bench.equipment, CLOCK, soon(), lease=held)
        assert (report.problems, len(report.undone)) == ((), 1)
        assert once_online(bench.drive("srv1", "p0"), soon()).serial == "RL000001"
    assert journal.standing(lab.name) == []


def test_sectors_are_given_back_to_a_drive_that_has_moved_on(lab: Lab, store: Store) -> None:
    journal, drive = Journal(store), named(lab, "RL000001")
    fault = FaultSpec("media_error", drive, {"lba": 64})
    with ExitStack() as stack:
        held = stack.enter_context(leased(lab, store))
        bench = bench_of(stack, lab, held)
        once_online(bench.drive("srv1", "p0"), soon())
        recorder = ActRecorder(bench.lab, journal, "run", lease=held)
        kept = named(lab, "RL000002")
        with pytest.raises(FaultRefused, match=rf"drive {kept} is not marked scratch: true"):
            Faults(bench.lab, bench.equipment, CLOCK, recorder).begin(FaultSpec("media_error", kept))
        Faults(bench.lab, bench.equipment, CLOCK, recorder).begin(fault)
        assert is_unreadable(bench, "srv1")
        fabric, part = bench.equipment.fabric, f"drive:{drive}"
        to = PortMap.of([(lab.switch_port("srv2", "p0"), lab.where_is(drive))])
        fabric.apply(Full(lab.baseline_map().joined(to)), soon())
        assert once_online(bench.drive("srv2", "p0"), soon()).serial == "RL000001"
        assert is_unreadable(bench, "srv2")
        assert [each["kind"] for each in bench.equipment.breakable[part].standing(soon()).values()] == ["media_error"]
        # Another run, which does not know which server has the note.
        report = heal(bench.lab, journal, bench_of(stack, lab, held).equipment, CLOCK, soon(120), lease=held)
        assert report.problems == ()
        assert part in [entry.resource for entry in report.undone]
        fabric.apply(Full(lab.baseline_map()), soon())
        assert once_online(bench.drive("srv1", "p0"), soon()).serial == "RL000001"
        assert not is_unreadable(bench, "srv1")
    assert journal.standing(lab.name) == []


def is_unreadable(bench: Bench, server: str) -> bool:
    """Whether sectors of the drive at a server's first port cannot be read."""
    with open_blocks(bench.device(server, "p0"), CLOCK) as blocks:
        try:
            blocks.read(64 * 512, 8 * 512)
        except IoFailed as error:
            return error.is_unreadable
        return False


def serials(bench: Bench) -> list[str]:
    return bench.host("srv1").run(["lsblk", "-dno", "SERIAL"], soon()).stdout.split()


def test_a_drive_is_written_where_it_is_scratch_leased_and_identified(lab: Lab, store: Store) -> None:
    with ExitStack() as stack:
        held = stack.enter_context(leased(lab, store, SRV1))
        bench = bench_of(stack, lab, held)
        assert refused(lab, held, bench, "srv1") == ()
        with open_lab(lab, CLOCK, LabState.of(lab.name), None) as whole:
            [reason] = refused(lab, held, whole, "srv2")
        assert reason.startswith(f"it is not in lease {held.lease.id}, which has srv1; drives ")
        granted, not_granted = reversed(held.leases.attempts())
        assert (granted.drive, granted.reasons) == (named(lab, "RL000001"), ())
        assert (not_granted.drive, not_granted.reasons) == (named(lab, "RL000003"), (reason,))
        held.leases.release(held.lease)
        [lost] = refused(lab, held, bench, "srv1")
        assert "is over: released" in lost


class _Counted:
    """Commands on a server, counted by a word that they have."""

    def __init__(self, host: Any, word: str) -> None:
        self._host = host
        self._word = word
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        self.count += any(self._word in word for word in argv)
        completed: Completed = self._host.run(argv, deadline, stdin=stdin)
        return completed


def test_a_permit_looks_at_the_drive_twice_and_the_rack_once_a_server(lab: Lab, store: Store) -> None:
    with ExitStack() as stack:
        held = stack.enter_context(leased(lab, store, SRV1))
        bench = bench_of(stack, lab, held)
        surveys = _Counted(bench.host("srv1"), "survey() {")
        path = lab.servers["srv1"].paths["p0"]
        drive, device = HostDrive(surveys, path), HostPath(surveys, path, CLOCK)
        Guard(lab, held).writable(named(lab, "RL000001"), drive, device, soon()).close()
        assert surveys.count == 2
        both = [HostDrive(surveys, path) for path in lab.servers["srv1"].paths.values()][:2]
        found = HostDrive.identify_together(both, soon())
        assert surveys.count == 3
        assert [identity.serial for identity in found] == [one.identify(soon()).serial for one in both]


def test_a_drive_that_is_not_there_is_named_among_others(lab: Lab) -> None:
    with open_lab(lab, CLOCK, LabState.of(lab.name), None) as bench:
        paths = [lab.servers["srv1"].paths["p0"], "pci-0000:7f:00.0"]
        drives = [HostDrive(bench.host("srv1"), path) for path in paths]
        with pytest.raises(NoDriveThere, match=r"^srv1: no drive at pci-0000:7f:00\.0;"):
            HostDrive.identify_together(drives, soon())


def on_notice(lab: Lab) -> Lab:
    """The same rack, with a server that takes its drives by COMRESET on notice; its second port has no path."""
    srv1 = lab.servers["srv1"]
    paths = {port: path for port, path in srv1.paths.items() if port != "p1"}
    told = srv1.model_copy(update={"stack": Stack.COMRESET, "paths": paths})
    return lab.model_copy(update={"servers": {**lab.servers, "srv1": told}})


def test_a_server_that_is_told_of_a_switch_looks_for_the_drive_by_itself(lab: Lab) -> None:
    told = on_notice(lab)
    with open_lab(told, CLOCK, LabState.of(lab.name), None) as bench:
        host, drive = bench.host("srv1"), bench.drive("srv1", "p0")
        serial = once_online(drive, soon()).serial

        def seen() -> bool:
            return serial in host.run(["lsblk", "-dno", "SERIAL"], soon()).stdout.split()

        name = host.run(["lsblk", "-dno", "NAME,SERIAL"], soon()).stdout.partition(serial)[0].split()[-1]
        host.run(["sh", "-c", f"echo 1 >/sys/block/{name}/device/delete"], soon())
        assert not seen()
        # The others' stacks find out by themselves.
        bench.announce([told.switch_port("srv2", "p0")])
        assert not seen()
        bench.announce([told.switch_port("srv1", "p0")])
        assert soon().poll(seen, every_s=0.05)
        with pytest.raises(NotSupported, match=r"srv1\.p1: add paths: to srv1"):
            bench.announce([told.switch_port("srv1", "p1")])


def test_the_attach_log_of_servers_names_one_that_cannot_be_followed(lab: Lab) -> None:
    port = lab.switch_port("srv1", "p0")
    nowhere = lab.servers["srv2"].model_copy(update={"ssh": "127.0.0.1:9"})
    half = lab.model_copy(update={"servers": {**lab.servers, "srv2": nowhere}})
    now = Applied(1, CLOCK.now_ns(), CLOCK.now_ns())
    with open_lab(half, CLOCK, LabState.of(lab.name), None) as bench, bench.attach_log(["srv1", "srv2"]) as log:
        # A simulated server's kernel tells nothing of drives: nothing came, and that is known.
        assert log.stages(now, port, soon(0)) == []
        assert log.first_loss({"offline"}, {("srv1", "p0")}, set(), 0) is None
        with pytest.raises(LabError, match="the device events of srv2 are not known: "):
            log.stages(now, lab.switch_port("srv2", "p0"), soon())


HOLDERS = "grep -l ^rackprobe /proc/[0-9]*/comm 2>/dev/null | cut -d/ -f3"


def test_a_permit_is_for_the_drive_that_was_checked_and_no_other(lab: Lab, store: Store) -> None:
    with ExitStack() as stack:
        held = stack.enter_context(leased(lab, store, SRV1))
        bench = bench_of(stack, lab, held)
        host = bench.host("srv1")
        # Somebody's hand in the rack asks nobody's leave.
        hand = RackdControl(Path(LabState.of("mock").endpoints()["control"]), CLOCK)
        stack.callback(hand.close)
        name = named(lab, "RL000001")
        drive, device = bench.drive("srv1", "p0"), bench.device("srv1", "p0")
        with Guard(lab, held).writable(name, drive, device, soon()) as permit:
            assert permit.is_claimed
            assert permit.device.probe_target() == "/dev/disk/by-id/wwn-0x5000c500a0000001"
            with pytest.raises(GuardRefused, match="it is in use"):
                Guard(lab, held).writable(name, drive, device, soon())
            other = lab.drives[named(lab, "RL000003")].port
            assert other is not None
            hand.request("map", soon(), pairs=[[1, other]])
            once_online(drive, soon())
            with pytest.raises(GuardRefused, match=r"does not lead to it any more|is gone|its serial is RL000003"):
                _ = permit.device
            hand.request("map", soon(), pairs=[list(pair) for pair in lab.baseline_map()])
            once_online(drive, soon())
        assert host.run(["sh", "-c", HOLDERS], soon()).stdout == ""
        with Guard(lab, held).writable(name, drive, device, soon()) as permit:
            [holder] = host.run(["sh", "-c", HOLDERS], soon()).stdout.split()
            host.run(["kill", "-9", holder], soon())
            with pytest.raises(LabError):
                _ = permit.device
