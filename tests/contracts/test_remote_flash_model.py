"""Remote flash with the real drivesim: cores, load, refusals; `rackloop model remote-flash` with bad input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from rackloop.clock import Deadline, RealClock
from rackloop.lab import load_profile
from rackloop_cli.main import main
from rackloop_drivers.host import LocalExecutor
from rackloop_models.drives import Depth, DriveSim
from rackloop_models.remote_flash import (
    WRITE_PERCENTS,
    X86,
    BoxLoad,
    CurvePoint,
    added_s,
    admissions,
    load_sweep,
    p95_by_mix,
    run_loads,
    scaling,
    slo_curve,
)

GIB = 1 << 30


@pytest.fixture
def sim() -> Iterator[DriveSim]:
    with LocalExecutor(RealClock()) as executor:
        yield DriveSim(executor, load_profile("nvme-ssd"), size_bytes=4 * GIB, seed=1)


@pytest.fixture
def deadline() -> Deadline:
    return Deadline.after(RealClock(), 300)


def test_one_drive_holds_any_number_of_cores_back(sim: DriveSim, deadline: Deadline) -> None:
    found = scaling(sim, X86, 1, deadline)
    assert [one.cores for one in found] == [1, 2, 3, 4]
    assert {one.bound for one in found} == {"drives"}
    # 400 K of the data sheet, within a quarter, and no more of more cores.
    iops = [one.iops for one in found]
    assert all(300e3 < one < 550e3 for one in iops)
    assert max(iops) < 1.05 * min(iops)


def test_the_tail_grows_with_the_load(sim: DriveSim, deadline: Deadline) -> None:
    light, heavy = load_sweep(sim, X86, 1, 1, (50e3, 380e3), deadline)
    assert light.iops == pytest.approx(50e3, rel=0.1)
    assert 50e-6 < light.p95_s < heavy.p95_s


def test_a_request_takes_what_the_box_was_given_to_add(sim: DriveSim, deadline: Deadline) -> None:
    assert added_s(sim, X86, 1, deadline) == pytest.approx(21e-6, abs=0.1e-6)


def test_an_objective_that_no_tenant_can_have_is_refused(sim: DriveSim, deadline: Deadline) -> None:
    (one,) = admissions(sim, [CurvePoint(5000, 1000, 1000)], deadline)
    assert (one.admitted, one.is_kept) == (0, None)
    assert "CANTMEETSLO" in one.refusal
    assert "20000 IOPS" in one.refusal


def test_the_tokens_of_one_mix_are_too_many_for_another(sim: DriveSim, deadline: Deadline) -> None:
    # Ten tokens for a write are enough in an even mix, and not beside many reads.
    (even,), (few,) = p95_by_mix(sim, [340e3], [50, 1], deadline).values()
    assert even < 1200
    assert few > 2000


def test_reads_wait_for_programs_that_do_not_wait_for_them(sim: DriveSim, deadline: Deadline) -> None:
    timing = {**sim.profile.timing, "reads_ahead": 1_000_000}
    profile = sim.profile.model_copy(update={"timing": timing})
    # 360 K reads and 3,600 writes a second: those of twenty readers, and what they leave to a writer.
    offered, write_percents = [396e3], [1]
    with LocalExecutor(RealClock()) as executor:
        patient = DriveSim(executor, profile, size_bytes=sim.size_bytes, seed=1)
        (usual,), (passed,) = (p95_by_mix(one, offered, write_percents, deadline)[1] for one in (sim, patient))
    assert usual > 3 * passed


def test_admitted_readers_have_the_tail_of_the_curve(sim: DriveSim, deadline: Deadline) -> None:
    offered = [280e3, 320e3]
    curve = slo_curve(offered, p95_by_mix(sim, offered, WRITE_PERCENTS, deadline))
    (found,) = admissions(sim, [one for one in curve if one.p95_us == 2000], deadline)
    # The writer takes all that the readers leave: their tail is at the bound, and that of some of them beyond it.
    assert found.admitted > 10
    assert found.readers_p95_us == pytest.approx(2000, rel=0.05)
    assert found.worst_p95_us == pytest.approx(2000, rel=0.1)


@pytest.fixture
def small() -> Iterator[DriveSim]:
    with LocalExecutor(RealClock()) as executor:
        yield DriveSim(executor, load_profile("nvme-ssd"), size_bytes=GIB // 4, seed=1)


def test_what_a_load_writes_no_other_finds(small: DriveSim, deadline: Deadline) -> None:
    reads = BoxLoad(hardware=X86.hardware(1), drives=1, clients=2, arrivals=Depth(8))
    writes = replace(reads, read_percent=0.0, seconds=0.5)
    after, alone = run_loads(small, [writes, reads], deadline)[-1], run_loads(small, [reads], deadline)[-1]
    assert (after.tenants, after.total) == (alone.tenants, alone.total)


def test_what_tenants_of_one_objective_write_no_others_find(small: DriveSim, deadline: Deadline) -> None:
    strict, loose = CurvePoint(2000, 45e3, 45e3), CurvePoint(5000, 45e3, 45e3)
    (alone,) = admissions(small, [loose], deadline)
    assert alone.admitted > 0
    assert admissions(small, [strict, loose], deadline)[-1].writer_iops == alone.writer_iops


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--drives", "0"), "--drives"),
        (("--profile", "sata-hdd"), "is of kind hdd"),
        (("--profile", "nvme-sdd"), "nvme-ssd"),
        (("--size", "4 kilo"), "4 kilo"),
    ],
)
def test_bad_input_is_refused(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str) -> None:
    assert main(["model", "remote-flash", *arguments]) == 2
    told = capsys.readouterr().err
    assert said in " ".join(told.split())
    assert "Traceback" not in told
