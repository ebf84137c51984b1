"""Tenants of one drive against real fio and nbdkit: their regions, their rounds, and what was the limit."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from rackloop.abilities import Completed
from rackloop.clock import Deadline, RealClock
from rackloop.errors import ProductFailed
from rackloop.lab import Lab, load_lab
from rackloop.measurement import Cause, MachineLoad, Window
from rackloop.record import ActLog, RoundsMeasured
from rackloop_drivers.block import NbdExport
from rackloop_drivers.host import LocalExecutor
from rackloop_drivers.workload import FioJobResult
from rackloop_fixtures import DriveUnderTest, RoundConditions, SharedBox, Tenant, Workload
from rackloop_fixtures.session.outcome import LimitsUnknown
from rackloop_fixtures.subjects.tenants import Phase
from rackloop_labs import Bench
from tests.contracts.test_characterize_io import Drive, Written
from tests.deadlines import CLOCK
from tests.nbdkit_process import serving_unix
from tests.writable_drive import minted

pytestmark = [
    pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")
    for program in ("fio", "nbdkit")
]

MIB = 1 << 20
SIZE = 8 * MIB
# Whatever is measured counts as steady: a busy machine must not fail a test.
CONDITIONS = RoundConditions(seconds=0.05, rounds=5, most_rounds=5, excursion=100, slope=100)
UNPREPARED = {
    "drives": ["d01"],
    "through": "drive",
    "scheduler_parameters": "",
    "box": "",
    "active_range": SIZE,
    "purge": False,
    "fills": 0,
    "overwrites": 0.0,
    "seconds": 0.05,
    "excursion": 100.0,
    "slope": 100.0,
}
QUIET = MachineLoad(1.0, 0.0, 0.0)
BUSY = MachineLoad(1.0, 0.3, 0.0, pressure=0.4)
READER = Tenant("reader", Workload(4096, 100, iodepth=2))
WRITER = Tenant("writer", Workload(65536, 0, iodepth=2))


@dataclass
class Servers:
    """As much of a Bench as a shared box asks for: any server, each on this machine."""

    lab: Lab
    run_by: LocalExecutor
    clock: RealClock = CLOCK

    def drive(self, server: str, port: str) -> Drive:
        return Drive(self.lab)

    def host(self, server: str) -> LocalExecutor:
        return self.run_by


class Cores(LocalExecutor):
    """This machine, which says that it has so many cores."""

    cores: str | None = None

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        if self.cores is not None and argv[0] == "nproc":
            return Completed(tuple(argv), 0, self.cores, "")
        return super().run(argv, deadline, stdin=stdin)


@contextmanager
def shared(
    *places: tuple[str, str, str],
    memory: tuple[str, ...] = ("memory", str(SIZE)),
    record: Written | None = None,
    load: MachineLoad = QUIET,
    ssh: str | None = None,
    cores: str | None = None,
) -> Iterator[SharedBox]:
    """A box whose drives nbdkit serves, each at its place, on servers that are reached by ``ssh``, if by anything."""
    lab = load_lab("mock")
    servers = {name: server.model_copy(update={"ssh": ssh}) for name, server in lab.servers.items()}
    lab = lab.model_copy(update={"servers": servers})
    record = record or Written()
    acts = ActLog(record)
    acts.test = "tenancy/t::t"
    with tempfile.TemporaryDirectory(prefix="box-", dir="/tmp") as folder, Cores(CLOCK) as executor:
        executor.cores = cores
        bench = cast("Bench", Servers(lab, executor))
        with ExitStack() as stack:
            drives = []
            for number, place in enumerate(places):
                socket = Path(folder) / f"nbd{number}"
                stack.enter_context(serving_unix(socket, memory))
                serial = lab.drives[place[0]].serial
                writable = stack.enter_context(minted(NbdExport(socket, "", SIZE), serial))
                drives.append(
                    DriveUnderTest(bench, place, writable, SIZE, 1, record, acts, lambda *_: None),
                )
            yield SharedBox(bench, drives, 1, lambda: load, lambda *_: None)


def test_each_tenant_is_measured_alone_and_all_together_in_every_round() -> None:
    record = Written()
    tenants = [READER, WRITER]
    with shared(("d01", "srv1", "p0"), record=record) as box:
        phases = {"reader": [READER], "writer": [WRITER], "together": tenants}
        box.prepare(tenants, UNPREPARED)
        found = box.rounds(phases, CONDITIONS, "together")
    assert {name: list(of) for name, of in found.items()} == {
        "reader": ["reader"],
        "writer": ["writer"],
        "together": ["reader", "writer"],
    }
    for phase in (one for of in found.values() for one in of.values()):
        assert len(phase.results) == 5
        assert min(phase.bandwidths()) > 0
    assert {*found["together"]["writer"].results[0].transfers} == {"write"}
    written = [event for event in record.events if isinstance(event, RoundsMeasured)]
    assert [(event.name, event.labels["when"]) for event in written if event.criteria] == [
        ("tenancy.total", "together")
    ]
    assert sum(event.name == "tenancy.bandwidth" for event in written) == 4


def test_exports_on_several_servers_begin_together() -> None:
    tenants = [READER, WRITER]
    with shared(("d01", "srv1", "p0"), ("d03", "srv2", "p0")) as box:
        box.prepare(tenants, {**UNPREPARED, "drives": ["d01", "d03"]})
        found = box.rounds({"together": tenants}, CONDITIONS, "together")
    assert min(found["together"]["reader"].bandwidths()) > 0
    assert min(found["together"]["writer"].bandwidths()) > 0


def test_io_that_fails_is_the_products() -> None:
    failing = ("--filter=error", "memory", str(SIZE), "error=EIO", "error-pread-rate=20%")
    with shared(("d01", "srv1", "p0"), memory=failing) as box:
        box.prepare([READER, WRITER], UNPREPARED)
        with pytest.raises(ProductFailed, match=r"\d+ I/Os of tenant reader failed: Input/output error"):
            box.rounds({"alone": [READER]}, CONDITIONS, "alone")


def computing(share: float) -> Phase:
    return Phase(READER, [FioJobResult("reader", 0, 0, cpu_share=share)] * 5)


def test_a_busy_machine_leaves_a_simulated_box_unknown_and_not_a_real_one() -> None:
    window = Window.over([1.0] * 5, 5, 5)
    with shared(("d01", "srv1", "p0"), load=BUSY) as box:
        with pytest.raises(LimitsUnknown, match="made on this machine, which was busy") as raised:
            box.require_its_own_limit([computing(0.2)], window)
        assert raised.value.cause is Cause.HARNESS
    with shared(("d01", "srv1", "p0"), load=BUSY, ssh="srv1.lab.example") as box:
        box.require_its_own_limit([computing(0.2)], window)
    with shared(("d01", "srv1", "p0")) as box:
        box.require_its_own_limit([computing(0.2)], window)


def test_fio_that_could_ask_for_no_more_leaves_it_unknown() -> None:
    window = Window.over([1.0] * 5, 5, 5)
    with (
        shared(("d01", "srv1", "p0"), ssh="srv1.lab.example") as box,
        pytest.raises(LimitsUnknown, match="fio of tenant reader was computing for 97% of the time alone") as raised,
    ):
        box.require_its_own_limit([computing(0.97)], window)
    assert raised.value.cause is Cause.HARNESS


def test_a_rate_that_the_box_does_not_serve_even_alone_leaves_it_unknown() -> None:
    asking = Tenant("reader", Workload(4096, 100, iodepth=1), rate_iops=5000)
    slow = ("--filter=delay", "memory", str(SIZE), "rdelay=5ms")
    with shared(("d01", "srv1", "p0"), memory=slow, cores="64") as box:
        box.prepare([asking, WRITER], UNPREPARED)
        found = box.rounds({"alone": [asking], "together": [asking, WRITER]}, CONDITIONS, "together")
        with pytest.raises(
            LimitsUnknown, match=r"due of tenant reader were not issued alone, where 1 may be"
        ) as raised:
            box.require_its_own_limit([found["alone"]["reader"]], Window.over([1.0] * 5, 5, 5))
    assert raised.value.cause is Cause.TEST


def test_fio_of_all_tenants_that_is_short_of_cores_leaves_it_unknown() -> None:
    tenants = [READER, WRITER]
    for cores, found in (("0", "had 0[.]?[0-9]* of 0 cores of srv1 in the phase 'together'"), ("?", "nproc says [?]")):
        with shared(("d01", "srv1", "p0"), cores=cores) as box:
            box.prepare(tenants, UNPREPARED)
            box.rounds({"together": tenants}, CONDITIONS, "together")
            with pytest.raises(LimitsUnknown, match=found) as raised:
                box.require_its_own_limit([computing(0.2)], Window.over([1.0] * 5, 5, 5))
        assert raised.value.cause is Cause.HARNESS
