"""ReFlex on small cores: the hardware, curves, and claims, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rackloop_models.remote_flash import (
    A72,
    CORE_KINDS,
    X86,
    Admission,
    CoreKind,
    CurvePoint,
    Loaded,
    Measured,
    Scaled,
    claims,
    reflex,
    slo_curve,
    tokens_within,
    wire_gigabits_per_s,
)


def test_a_core_s_work_is_what_its_iops_leave_it() -> None:
    # 850 K a second are 1.176 us each, 2100 K on four cores 1.905 us.
    assert X86.work_us == pytest.approx(1.17647, abs=1e-5)
    assert A72.work_us == pytest.approx(1.90476, abs=1e-5)


@pytest.mark.parametrize("kind", CORE_KINDS)
def test_a_request_takes_what_is_published_to_be_added(kind: CoreKind) -> None:
    hardware = kind.hardware(3)
    cores, link = hardware.cores, hardware.link
    assert cores.count == 3
    work_us = cores.submission_us + cores.completion_us
    on_wire_us = (link.command_bytes + link.completion_bytes + 4096) / link.mb_s
    assert work_us + on_wire_us + 2 * link.propagation_us == pytest.approx(kind.added_us)
    assert link.mb_s == 12_500


def test_four_million_reads_of_4_kib_are_more_than_the_link_carries() -> None:
    assert wire_gigabits_per_s(4_000_000, 4096) == pytest.approx(131.072)


def test_a_curve_is_linear_between_what_was_offered() -> None:
    offered, found = [100.0, 200.0, 400.0], [300.0, 500.0, 1500.0]
    assert tokens_within(offered, found, 500) == 200
    assert tokens_within(offered, found, 1000) == 300
    assert tokens_within(offered, found, 299) == 0, "not even the least load keeps it"
    assert tokens_within(offered, found, 9000) == 400, "no more than was tried"


def test_a_curve_holds_for_every_mix_that_was_measured() -> None:
    offered = [100.0, 200.0, 400.0]
    found = slo_curve(offered, {0: [100, 200, 400], 1: [100, 2000, 6000], 50: [900, 950, 1000]})
    # Each bound has the least of them, whichever mix it is.
    by_bound = {one.p95_us: one for one in found}
    assert by_bound[500].tokens_per_s == 0
    assert by_bound[500].by_write_percent[1] == pytest.approx(100 + 100 * 400 / 1900)
    assert by_bound[2000].tokens_per_s == 200
    assert by_bound[2000].by_write_percent == {0: 400, 1: 200, 50: 400}
    assert by_bound[10_000].tokens_per_s == by_bound[10_000].read_only_tokens_per_s == 400


def test_the_cost_that_fits_makes_the_mixes_overlap() -> None:
    # 1000 tokens of 30 a write: 775.2 requests of which 1 % write, and 64.5 of which half do; at ten they count less.
    mixes = {percent: 1000 / (1 + 0.29 * percent) * (1 + 0.09 * percent) for percent in (1, 10, 50)}
    assert CurvePoint(500, 1, 5000, {0: 5000, **mixes}).fitting_write_cost == 30
    assert CurvePoint(500, 1, 5000, {0: 5000, 1: 100, 50: 0}).fitting_write_cost is None, "one mix fits any cost"


def test_bounds_that_are_never_kept_are_no_part_of_the_curve() -> None:
    scheduler = reflex([CurvePoint(500, 0, 10), CurvePoint(5000, 20, 30)])
    assert scheduler["curve"] == [{"p95_us": 5000, "tokens_per_s": 20, "read_only_tokens_per_s": 30}]


def scaled(iops: float, *, kind: CoreKind = A72, cores: int = 4, core_use: float = 1.0) -> Scaled:
    return Scaled(kind, cores, iops, core_use, 0.5)


def measured(*, p95_s: float = 200e-6, worst_us: float | None = 4000, iops: float = 2_090_000) -> Measured:
    return Measured(
        drives=4,
        scaling=[scaled(iops), scaled(849_000, kind=X86, cores=1)],
        scaling_of_twice=[scaled(2_100_000)],
        added_s={"A72": 22e-6, "x86": 21e-6},
        large_reads_bytes_per_s=11.4e9,
        at_400k=Loaded(400e3, 399e3, p95_s),
        admissions=[Admission(5000, 20, "CANTMEETSLO", worst_us, worst_us, 0.0)],
    )


def verdicts(found: Measured) -> dict[str, bool | None]:
    return {one.claim: one.agrees for one in claims(found)}


def test_claims_agree_or_differ_by_the_figures() -> None:
    found = verdicts(measured())
    assert found["p95 of 4 KiB reads at 400 K IOPS"] is True
    assert found["4 KiB reads on four cores"] is True
    assert found["throughput of large reads"] is True
    assert found["capable IOPS"] is False
    assert found["objectives of 5 to 10 ms are kept"] is True
    differs = verdicts(measured(p95_s=401e-6, worst_us=5001, iops=1_800_000))
    assert differs["p95 of 4 KiB reads at 400 K IOPS"] is False
    assert differs["4 KiB reads on four cores"] is False
    assert differs["objectives of 5 to 10 ms are kept"] is False


def test_an_objective_is_not_kept_where_an_admitted_reader_was_served_nothing() -> None:
    starved = Admission(5000, 20, "CANTMEETSLO", 900.0, None, 0.0)
    refused = Admission(5000, 0, "CANTMEETSLO", None, None, 0.0)
    assert (starved.is_kept, refused.is_kept) == (False, None)
    found = {one.claim: one for one in claims(replace(measured(), admissions=[starved]))}
    claim = found["objectives of 5 to 10 ms are kept"]
    assert (claim.agrees, claim.ours) == (False, "20 readers of 20 K at 5 ms: worst was served none")


def test_what_the_model_was_given_is_no_agreement() -> None:
    found = {one.claim: one for one in claims(measured())}
    for claim in (
        "added to a read by the A72",
        "added to a read by x86 over TCP",
        "4 KiB reads of an x86 core over TCP",
    ):
        assert found[claim].agrees is None
        assert found[claim].ours.endswith("given to the model")
    assert verdicts(measured(worst_us=None))["objectives of 5 to 10 ms are kept"] is None


def test_the_part_that_holds_a_box_back_is_the_busy_one() -> None:
    assert [scaled(1, core_use=use).bound for use in (1.0, 0.5)] == ["cores", "drives"]
    assert Scaled(A72, 6, 1.0, 0.9, 0.99).bound == "link"
