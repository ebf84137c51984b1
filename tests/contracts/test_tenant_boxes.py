"""Boxes that tenants share, with real fio: our storage switch, and one that others started and a file describes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from rackloop.abilities import WritableDrive
from rackloop.errors import BadInput, GuardRefused, LabError, ProductFailed, ToolError
from rackloop.lab import load_lab
from rackloop.record import ActLog
from rackloop_drivers.block import NbdExport
from rackloop_drivers.block.nbd_session import NbdSession
from rackloop_drivers.host import LocalExecutor
from rackloop_drivers.storage_switch import StorageSwitch, SwitchedTenant
from rackloop_fixtures import DriveUnderTest, RoundConditions, SharedBox, Tenant, Workload
from rackloop_fixtures.subjects.shared_box import places_on
from rackloop_fixtures.subjects.tenant_boxes import box_kind
from rackloop_labs import Bench
from tests.contracts.test_characterize_io import Written
from tests.contracts.test_shared_box_io import QUIET, UNPREPARED, Servers
from tests.deadlines import CLOCK, soon
from tests.nbdkit_process import serving_unix
from tests.storageswitch_process import running_switch
from tests.writable_drive import minted

pytestmark = [
    pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")
    for program in ("fio", "nbdkit", "nbdinfo")
]

MIB = 1 << 20
SIZE = 16 * MIB
CONDITIONS = RoundConditions(seconds=0.05, rounds=5, most_rounds=5, excursion=100, slope=100)
READER = Tenant("reader", Workload(4096, 100, iodepth=2))
WRITER = Tenant("writer", Workload(65536, 0, iodepth=2))
TENANTS = [READER, WRITER]
HALVES = [SwitchedTenant("reader", 0, 8 * MIB), SwitchedTenant("writer", 8 * MIB, 8 * MIB)]
PHASES = {"reader": [READER], "together": TENANTS}


@pytest.fixture
def executor() -> Iterator[LocalExecutor]:
    with LocalExecutor(CLOCK) as local:
        yield local


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[WritableDrive]:
    """A drive of 16 MiB in the memory of nbdkit, as d01 of the mock lab, that may be written."""
    with in_memory("d01", tmp_path) as writable:
        yield writable


@contextmanager
def in_memory(drive_id: str, folder: Path, *filters: str) -> Iterator[WritableDrive]:
    serial = load_lab("mock").drives[drive_id].serial
    with (
        serving_unix(folder / f"{drive_id}.sock", ("memory", str(SIZE), *filters)) as socket,
        minted(NbdExport(socket, "", SIZE), serial, drive_id) as writable,
    ):
        yield writable


@contextmanager
def shared(executor: LocalExecutor, *writable: WritableDrive, parameters: Mapping[str, Any]) -> Iterator[SharedBox]:
    """What the parameters have tenants of these drives share."""
    lab = load_lab("mock")
    bench = cast("Bench", Servers(lab, executor))
    acts = ActLog(record := Written())
    acts.test = "tenancy/t::t"
    behind = [
        DriveUnderTest(bench, (one.drive_id, *lab.places[one.drive_id]), one, SIZE, 1, record, acts, lambda *_: None)
        for one in writable
    ]
    box = SharedBox(bench, behind, 1, lambda: QUIET, lambda *_: None, box_kind(bench, parameters))
    try:
        yield box
    finally:
        box.close()


def described(folder: Path, *exports: Mapping[str, object]) -> str:
    """The path of a description of a box with these exports."""
    lines = ["box: acme", "exports:"]
    for export in exports:
        fields = {"drive": "d01", "server": "srv1", **export}
        lines.append("  - {" + ", ".join(f'{key}: "{value}"' for key, value in fields.items()) + "}")
    (path := folder / "acme.yaml").write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize("of_scheduler", ["", "virtual_slots=4,priority_quotas=[16,4,2,1]"])
def test_tenants_use_the_switch_and_each_writes_its_own_region(
    of_scheduler: str, executor: LocalExecutor, drive: WritableDrive
) -> None:
    parameters = {**UNPREPARED, "through": "gimbal", "scheduler_parameters": of_scheduler, "active_range": SIZE}
    with shared(executor, drive, parameters=parameters) as box:
        box.prepare(TENANTS, parameters)
        assert drive.has_tenants
        assert box.labels == {"profile": "sata-ssd", "through": f"gimbal:{of_scheduler}" if of_scheduler else "gimbal"}
        found = box.rounds(PHASES, CONDITIONS, "together")
    assert not drive.has_tenants
    assert {name: list(of) for name, of in found.items()} == {"reader": ["reader"], "together": ["reader", "writer"]}
    assert min(found["together"]["writer"].bandwidths()) > 0
    with NbdSession(drive, CLOCK) as session:
        assert not any(session.read(0, 8 * MIB))
        assert any(session.read(8 * MIB, 8 * MIB))


def test_drives_of_tenants_that_only_read_are_filled_past_their_exports(
    executor: LocalExecutor, drive: WritableDrive
) -> None:
    parameters = {**UNPREPARED, "through": "reflex", "active_range": SIZE, "fills": 1}
    readers = [READER, Tenant("other", READER.workload)]
    with shared(executor, drive, parameters=parameters) as box:
        box.prepare(readers, parameters)
        found = box.rounds({"together": readers}, CONDITIONS, "together")
    assert min(min(one.bandwidths()) for one in found["together"].values()) > 0
    with NbdSession(drive, CLOCK) as session:
        assert any(session.read(0, MIB))


def test_tenants_have_a_region_of_each_drive_behind_the_switch(
    executor: LocalExecutor, drive: WritableDrive, tmp_path: Path
) -> None:
    parameters = {**UNPREPARED, "drives": ["d01", "d09"], "through": "flashfq", "active_range": SIZE}
    with (
        in_memory("d09", tmp_path) as other,
        shared(executor, drive, other, parameters=parameters) as box,
    ):
        box.prepare(TENANTS, parameters)
        assert drive.has_tenants
        assert other.has_tenants
        assert box.labels == {"profile": "nvme-ssd+sata-ssd", "through": "flashfq"}
        found = box.rounds(PHASES, CONDITIONS, "together")
        # Every tenant had both drives at once, and one figure for both.
        for phase in (one for of in found.values() for one in of.values()):
            assert len(phase.results) == 5
            assert min(phase.bandwidths()) > 0
        box.close()
        assert not drive.has_tenants
        assert not other.has_tenants
        for one in (drive, other):
            with NbdSession(one, CLOCK) as session:
                assert not any(session.read(0, 8 * MIB))
                assert any(session.read(8 * MIB, 8 * MIB))


def test_what_fails_at_one_drive_is_its_tenants_failure(
    executor: LocalExecutor, drive: WritableDrive, tmp_path: Path
) -> None:
    parameters = {**UNPREPARED, "drives": ["d01", "d09"], "through": "none", "active_range": SIZE}
    failing = ("--filter=error", "error=EIO", "error-pread-rate=20%")
    with (
        in_memory("d09", tmp_path, *failing) as other,
        shared(executor, drive, other, parameters=parameters) as box,
    ):
        box.prepare(TENANTS, parameters)
        with pytest.raises(ProductFailed, match=r"\d+ I/Os of tenant reader failed: Input/output error"):
            box.rounds({"alone": [READER]}, CONDITIONS, "alone")


def test_the_switch_ends_with_the_box(executor: LocalExecutor, drive: WritableDrive) -> None:
    with StorageSwitch(executor, [drive], {"kind": "none"}, HALVES, soon(), clock=CLOCK) as switch:
        export = NbdExport(switch.nbd, "reader", 8 * MIB)
        with NbdSession(export, CLOCK) as session:
            assert session.read(0, 4096) == bytes(4096)
        switch.require_running()
    with pytest.raises(LabError):
        NbdSession(export, CLOCK)
    with pytest.raises(ToolError, match="the storage switch ended while its tenants were served"):
        switch.require_running()


REFUSED: dict[str, tuple[Mapping[str, Any], list[SwitchedTenant], str]] = {
    "a scheduler that is none": ({"kind": "gimbel"}, HALVES, 'did you mean "gimbal"'),
    "a parameter that is none": ({"kind": "gimbal", "virtual_slot": 8}, HALVES, "virtual_slots"),
    "an objective that cannot be met": (
        {"kind": "reflex"},
        [
            SwitchedTenant("t", 0, MIB, slo={"iops": 9e6, "read_percent": 100, "p95_us": 500}),
            SwitchedTenant("u", MIB, MIB),
        ],
        'CANTMEETSLO: tenant "t" asks for 9000000 IOPS',
    ),
    "a weight of zero": ({"kind": "flashfq"}, [SwitchedTenant("t", 0, MIB, weight=0)], "weight is 0; give 0.000001"),
    "a drive smaller than its tenants": ({"kind": "none"}, [SwitchedTenant("t", 0, 2 * SIZE)], str(SIZE)),
    "overlapping regions": (
        {"kind": "none"},
        [SwitchedTenant("t", 0, 2 * MIB), SwitchedTenant("u", MIB, MIB)],
        "overlap",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_the_switch_refuses_is_said_in_its_words(executor: LocalExecutor, drive: WritableDrive, kind: str) -> None:
    scheduler, tenants, said = REFUSED[kind]
    with pytest.raises(BadInput, match="the storage switch refuses: ") as raised:
        StorageSwitch(executor, [drive], scheduler, tenants, soon(), clock=CLOCK)
    assert said in str(raised.value)


def test_an_objective_that_cannot_be_met_is_refused_before_anything_is_written(
    executor: LocalExecutor, drive: WritableDrive
) -> None:
    parameters = {**UNPREPARED, "through": "reflex", "active_range": SIZE, "fills": 1}
    # As many as fio keeps at random, of 1 MiB: far more than the drive carries.
    greedy = Tenant("reader", Workload(1 << 20, 100), rate_iops=20_000, objective_s=500e-6)
    with shared(executor, drive, parameters=parameters) as box, pytest.raises(BadInput, match="CANTMEETSLO"):
        box.prepare([greedy, WRITER], parameters)
    with NbdSession(drive, CLOCK) as session:
        assert not any(session.read(0, SIZE))


@contextmanager
def foreign_box(drive: WritableDrive, folder: Path) -> Iterator[list[dict[str, object]]]:
    """A box that is started as its vendor would, in front of the drive: what a file says of its two exports."""
    config = {
        "drive": {"kind": "nbd", "uri": drive.device.probe_target()},
        "scheduler": {"kind": "flashfq"},
        "tenants": [{"name": "vol 1"}, {"name": "vol2"}],
    }
    with running_switch({"schema": 1, **config}) as box:
        yield [{"device": box.uri(name), "size": "8 MiB"} for name in ("vol%201", "vol2")]


def test_the_exports_of_any_box_are_filled_and_measured(
    executor: LocalExecutor, drive: WritableDrive, tmp_path: Path
) -> None:
    with foreign_box(drive, tmp_path) as exports:
        file = {"drives": [""], "box": described(tmp_path, *exports)}
        parameters = {**UNPREPARED, **file, "active_range": 0, "fills": 1, "overwrites": 0.5}
        with shared(executor, drive, parameters=parameters) as box:
            box.prepare(TENANTS, parameters)
            assert box.labels == {"profile": "sata-ssd", "through": "acme"}
            found = box.rounds(PHASES, CONDITIONS, "together")
        assert min(found["together"]["writer"].bandwidths()) > 0
        # It is its vendor's, and goes on.
        with NbdSession(NbdExport.of_uri(str(exports[1]["device"]), 8 * MIB), CLOCK) as session:
            assert any(session.read(0, 4096))
    with NbdSession(drive, CLOCK) as session:
        assert any(session.read(0, MIB))
        assert any(session.read(15 * MIB, MIB))


def test_an_export_of_another_size_is_not_written(
    executor: LocalExecutor, drive: WritableDrive, tmp_path: Path
) -> None:
    with foreign_box(drive, tmp_path) as exports:
        exports[0]["size"] = "7 MiB"
        parameters = {**UNPREPARED, "drives": [""], "box": described(tmp_path, *exports), "active_range": 0, "fills": 1}
        with shared(executor, drive, parameters=parameters) as box, pytest.raises(GuardRefused) as raised:
            box.prepare(TENANTS, parameters)
    assert f"has {8 * MIB} bytes, and its region {7 * MIB}" in str(raised.value)
    with NbdSession(drive, CLOCK) as session:
        assert not any(session.read(0, SIZE))


def test_exports_beyond_their_drive_are_not_written(
    executor: LocalExecutor, drive: WritableDrive, tmp_path: Path
) -> None:
    with foreign_box(drive, tmp_path) as exports:
        exports[1]["offset"] = "12 MiB"
        parameters = {**UNPREPARED, "drives": [""], "box": described(tmp_path, *exports), "active_range": 0}
        with (
            shared(executor, drive, parameters=parameters) as box,
            pytest.raises(GuardRefused, match="the region of tenant writer, bytes 12582912 to 20971520, is not within"),
        ):
            box.prepare(TENANTS, parameters)


def test_a_box_that_does_not_answer_is_the_labs_failure(
    executor: LocalExecutor, drive: WritableDrive, tmp_path: Path
) -> None:
    gone = [{"device": f"nbd+unix:///{name}?socket={tmp_path}/gone.sock", "size": "8 MiB"} for name in ("v1", "v2")]
    parameters = {**UNPREPARED, "drives": [""], "box": described(tmp_path, *gone), "active_range": 0}
    with shared(executor, drive, parameters=parameters) as box, pytest.raises(LabError, match="does the box serve"):
        box.prepare(TENANTS, parameters)


def test_fewer_exports_than_tenants_are_refused(tmp_path: Path) -> None:
    lab = load_lab("mock")
    two = [{"device": f"nbd://box.example/{name}", "size": "8 MiB"} for name in ("t1", "t2")]
    parameters = {**UNPREPARED, "drives": [""], "box": described(tmp_path, *two), "active_range": 0}
    tenants = [READER, WRITER, Tenant("third", WRITER.workload)]
    with pytest.raises(BadInput, match="box acme has 2 exports for 3 tenants"):
        places_on(lab, parameters, tenants)
    assert places_on(lab, parameters, TENANTS) == {"reader": [(0, 0, 8 * MIB)], "writer": [(1, 0, 8 * MIB)]}
