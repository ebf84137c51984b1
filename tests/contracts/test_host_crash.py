"""Servers that are told to panic by SSH and start anew by their power: the contract on mock servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from rackloop.clock import Deadline
from rackloop.contracts import breakable
from rackloop.errors import DeadlineExceeded, LabError
from rackloop.faults import Faults, FaultSpec
from rackloop.lab import LabKind, LabState, load_lab
from rackloop.safety import heal
from rackloop.safety.store import open_store
from rackloop.safety.undo import ActRecorder, Equipment, Journal
from rackloop_drivers.crash import HostCrash
from rackloop_labs import open_lab
from rackloop_labs.host_breakables import crashes, host_breakables
from rackloop_labs.labd_control import HostState, LabdControl
from rackloop_labs.mock import MockBench
from rackloop_labs.offered import unsupported_in
from tests.deadlines import CLOCK, soon
from tests.mock_rack import patient

CRASH = {"kind": "crash"}
# Where every mock server has it; the kernel of this machine may have no /proc/sysrq-trigger.
TRIGGER = "/sys/.written/sysrq-trigger"


SETTING = "/proc/sys/kernel/unknown_nmi_panic"
needs_nmi = pytest.mark.skipif(not Path(SETTING).exists(), reason="this kernel knows no NMI: run it on x86")


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> LabState:
    return LabState.of("mock-direct", root=tmp_path_factory.mktemp("rack"))


@pytest.fixture(scope="module")
def bench(state: LabState) -> Iterator[MockBench]:
    with open_lab(patient(load_lab("mock-direct")), CLOCK, state, None, seed=1) as bench:
        assert isinstance(bench, MockBench)
        yield bench


@pytest.fixture
def labd(state: LabState, bench: MockBench) -> Iterator[LabdControl]:
    control = LabdControl(state)
    yield control
    for server, how in control.states(soon()).items():
        if how is HostState.CRASHED:
            control.boot(server, soon())
        bench.host(server).reconnect(soon())


def part_of(bench: MockBench, server: str) -> HostCrash:
    name = f"server:{server}"
    power, interrupt = bench.power.ports[name], bench.power.interrupts.get(server)
    return HostCrash(bench.host(server), name, power, interrupt, trigger=TRIGGER, answer_s=2.0)


@pytest.mark.parametrize("clause", breakable.CONTRACT, ids=lambda clause: clause.__name__)
@pytest.mark.parametrize("kind", ["crash", pytest.param("nmi", marks=needs_nmi)])
def test_a_mock_server(
    clause: Callable[[breakable.BreakableArm], None], kind: str, bench: MockBench, labd: LabdControl
) -> None:
    """With a controller that speaks IPMI."""
    part, fault = part_of(bench, "node1"), {"kind": kind}
    clause(breakable.BreakableArm(lambda: part, fault, lambda: labd.states(soon())["node1"] is HostState.CRASHED))


@needs_nmi
def test_a_kernel_that_does_not_panic_at_an_interrupt_is_left_as_it_was(bench: MockBench, labd: LabdControl) -> None:
    """With a controller that speaks Redfish, whose NMI is lost on the way."""

    class Unheard:
        def require_possible(self, deadline: Deadline) -> None:
            del deadline

        def interrupt(self, deadline: Deadline) -> None:
            del deadline

    host, name = bench.host("node2"), "server:node2"
    host.reconnect(soon())
    host.run(["sh", "-c", "echo 10 >/proc/sys/kernel/panic"], soon())
    part = HostCrash(host, name, bench.power.ports[name], Unheard(), trigger=TRIGGER, answer_s=2.0)
    with pytest.raises(DeadlineExceeded, match="node2 was told to panic, and still answers"):
        part.break_as("test/6", {"kind": "nmi"}, soon(1))
    assert labd.states(soon())["node2"] is HostState.UP
    assert host.run(["cat", SETTING, "/proc/sys/kernel/panic"], soon()).stdout == "0\n10\n"


def test_a_crashed_server_has_its_power_and_its_drives_their_links_and_boots_anew(
    bench: MockBench, labd: LabdControl
) -> None:
    """With a controller that speaks Redfish."""
    part, host = part_of(bench, "node2"), bench.host("node2")
    host.reconnect(soon())
    before = host.run(["cat", "/proc/sys/kernel/random/boot_id"], soon()).stdout
    part.break_as("test/1", CRASH, soon())
    assert labd.states(soon())["node2"] is HostState.CRASHED
    assert bench.power.ports["server:node2"].is_on(soon())
    part.mend("test/1", soon())
    host.reconnect(soon())
    assert host.run(["cat", "/proc/sys/kernel/random/boot_id"], soon()).stdout != before


def test_who_did_not_crash_it_sees_that_it_is_crashed_and_may_end_it(bench: MockBench, labd: LabdControl) -> None:
    """As heal does, with the key of the journal."""
    part_of(bench, "node1").break_as("test/2", CRASH, soon())
    other = part_of(bench, "node1")
    assert other.standing(soon()) == {"#crashed": CRASH}
    other.mend("test/2", soon())
    assert other.standing(soon()) == {}
    bench.host("node1").reconnect(soon())
    assert labd.states(soon())["node1"] is HostState.UP
    assert other.standing(soon()) == {}


def test_a_server_without_power_is_not_crashed(bench: MockBench, labd: LabdControl) -> None:
    part = part_of(bench, "node1")
    bench.power.ports["server:node1"].turn_off(soon())
    assert part.standing(soon()) == {}
    part.mend("test/3", soon())
    assert labd.states(soon())["node1"] is HostState.OFF
    bench.power.ports["server:node1"].turn_on(soon())


def test_a_server_whose_mending_went_no_further_than_off_is_given_its_power_by_who_finds_it_in_the_journal(
    bench: MockBench, labd: LabdControl
) -> None:
    part_of(bench, "node1").break_as("test/7", CRASH, soon())
    bench.power.ports["server:node1"].turn_off(soon())
    other = part_of(bench, "node1")
    other.recall({"test/7": CRASH})
    other.mend("test/7", soon())
    assert labd.states(soon())["node1"] is HostState.OFF, "an operator may have switched it off"
    note = {"restart/off": {"kind": "restart", "power": "off"}}
    other.recall({"test/7": CRASH, **note})
    other.mend("test/7", soon())
    assert labd.states(soon())["node1"] is HostState.OFF
    assert other.standing(soon()) == note
    other.mend("restart/off", soon())
    bench.host("node1").reconnect(soon())
    assert labd.states(soon())["node1"] is HostState.UP
    assert other.standing(soon()) == {}


@pytest.mark.usefixtures("labd")
def test_a_kernel_that_would_reboot_by_itself_is_told_to_stay(bench: MockBench) -> None:
    host = bench.host("node1")
    host.run(["sh", "-c", "echo 10 >/proc/sys/kernel/panic"], soon())
    part = part_of(bench, "node1")
    part.break_as("test/4", CRASH, soon())
    part.mend("test/4", soon())
    host.reconnect(soon())
    assert host.run(["cat", "/proc/sys/kernel/panic"], soon()).stdout == "0\n"


def test_a_server_that_refuses_goes_on(bench: MockBench, labd: LabdControl) -> None:
    part = HostCrash(bench.host("node1"), "server:node1", bench.power.ports["server:node1"], trigger="/proc/nowhere")
    with pytest.raises(LabError, match=r"node1: /proc/nowhere cannot be written; it takes root"):
        part.break_as("test/5", CRASH, soon())
    assert labd.states(soon())["node1"] is HostState.UP
    assert part.standing(soon()) == {}


def test_a_real_rack_crashes_its_servers_and_is_healed(bench: MockBench, labd: LabdControl, tmp_path: Path) -> None:
    real = bench.lab.model_copy(update={"kind": LabKind.PHYSICAL})
    hosts = {name: bench.host(name) for name in bench.lab.servers}
    others = host_breakables(real, cast(Any, hosts))
    known = crashes(real, cast(Any, hosts), bench.power.ports, bench.power.interrupts, others)
    of_all = {"crash", "hang", "md_array"}
    assert {name: part.kinds for name, part in known.items()} == {
        "server:node1": of_all | {"nmi"},
        "server:node2": of_all | ({"nmi"} if real.servers["node2"].bmc else set()),
    }
    assert crashes(bench.lab, cast(Any, hosts), bench.power.ports, bench.power.interrupts, others) == {}
    broken = {name: part_of(bench, name.partition(":")[2]) for name in known}
    crash = FaultSpec("server_crash", "node1")
    assert unsupported_in(real)(crash) is None
    bare = {name: server.model_copy(update={"bmc": None, "outlet": None}) for name, server in real.servers.items()}
    assert unsupported_in(real.model_copy(update={"servers": bare}))(crash) is not None
    equipment = Equipment(bench.equipment.fabric, None, power=bench.power.ports, breakable=broken)
    with closing(open_store(tmp_path / "store.sqlite", CLOCK)) as store:
        journal = Journal(store)
        recorder = ActRecorder(bench.lab, journal, "run")
        with Faults(bench.lab, equipment, CLOCK, recorder) as faults, faults.injected(crash):
            assert labd.states(soon())["node1"] is HostState.CRASHED
        hosts["node1"].reconnect(soon())
        Faults(bench.lab, equipment, CLOCK, recorder).begin(crash)
        later = {"server:node1": part_of(bench, "node1")}
        again = Equipment(bench.equipment.fabric, None, power=bench.power.ports, breakable=later)
        report = heal(bench.lab, journal, again, CLOCK, soon())
        assert (report.problems, len(report.undone)) == ((), 1)
        hosts["node1"].reconnect(soon())
