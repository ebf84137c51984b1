"""Fitting a trace to a drive: stretch, speed, sectors, folding, coarse stamps."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop.errors import BadInput
from rackloop_drivers.workload import Planned, Stretch, plan_requests
from rackloop_traces import Op, columns

MIB = 1 << 20
US = 1_000
Row = tuple[int, Op, int, int]


def batch(*rows: Row) -> pl.DataFrame:
    full = [(t_ns, int(op), offset, size, "0", None) for t_ns, op, offset, size in rows]
    return pl.DataFrame(full, schema=columns(), orient="row")


def plan(*rows: Row, region_bytes: int = MIB, offset_bytes: int = 0, sector_bytes: int = 512, **how: Any) -> Planned:
    return plan_requests(
        [batch(*rows)], Stretch(**how), region_bytes=region_bytes, offset_bytes=offset_bytes, sector_bytes=sector_bytes
    )


READS: tuple[Row, ...] = tuple((at_us * US, Op.READ, 4096 * at_us % MIB, 4096) for at_us in (0, 3, 1000, 2500))


def test_a_trace_that_fits_is_replayed_as_it_was_recorded() -> None:
    planned = plan(*READS, offset_bytes=4 * MIB)
    assert planned.requests["due_ns"].to_list() == [0, 3 * US, 1000 * US, 2500 * US]
    assert planned.requests["offset_bytes"].to_list() == [4 * MIB + row[2] for row in READS]
    assert planned.remarks() == []
    assert planned.span_s == 0.0025
    assert not planned.writes


def test_a_stretch_is_cut_in_the_traces_time_and_then_played_faster() -> None:
    planned = plan(*READS, from_s=0.000001, duration_s=0.0015, speed=10)
    assert planned.requests["due_ns"].to_list() == [0, 99_700]


def test_batches_and_requests_need_no_order() -> None:
    turned = plan_requests([batch(READS[3]), batch(READS[1], READS[0]), batch(READS[2])], Stretch(), region_bytes=MIB)
    assert turned.requests.equals(plan(*READS).requests)


def test_a_request_that_is_earlier_than_the_first_line_is_replayed_too() -> None:
    rows: tuple[Row, ...] = (*READS, (-2000 * US, Op.READ, 512, 512))
    planned = plan(*rows)
    assert planned.requests["due_ns"].to_list() == [0, 2000 * US, 2003 * US, 3000 * US, 4500 * US]
    assert plan(*rows, duration_s=0.000002).requests["due_ns"].to_list() == [0, 2000 * US]
    assert plan(*rows, from_s=0.000001).requests.height == 3


def test_reads_alone_are_what_a_drive_that_must_not_be_written_gets() -> None:
    rows: list[Row] = [*READS, (7 * US, Op.WRITE, 0, 512), (9 * US, Op.FLUSH, 0, 0)]
    assert plan(*rows).writes
    planned = plan(*rows, reads_only=True)
    assert (planned.requests.height, planned.dropped, planned.writes) == (4, 2, False)
    assert planned.remarks() == ["2 requests dropped: only reads are replayed"]


def test_trims_are_left_out_and_counted() -> None:
    planned = plan(*READS, (7 * US, Op.TRIM, 0, 512))
    assert (planned.requests.height, planned.trims) == (4, 1)
    assert planned.remarks() == ["1 request dropped: fio replays no trims"]


def test_offsets_beyond_the_drive_are_refused_with_what_to_do() -> None:
    with pytest.raises(BadInput, match=r"1 of 5 requests reach beyond the drive: .* 2097664 bytes .* 1048576 .*--fold"):
        plan(*READS, (7 * US, Op.READ, 2 * MIB, 512))


def test_folding_brings_whole_requests_back_and_counts_them() -> None:
    planned = plan((0, Op.READ, 3 * MIB + 8192, 4096), (US, Op.READ, 2 * MIB - 512, 4096), fold=True)
    assert planned.requests["offset_bytes"].to_list() == [8192, MIB - 4096]
    assert planned.requests["size_bytes"].to_list() == [4096, 4096]
    assert planned.folded == 2


def test_a_request_larger_than_the_drive_cannot_be_folded() -> None:
    with pytest.raises(BadInput, match="a request of 8192 bytes cannot be folded onto 4096"):
        plan((0, Op.READ, 0, 8192), region_bytes=4096, fold=True)


def test_requests_are_widened_to_the_drives_sectors() -> None:
    planned = plan((0, Op.READ, 512, 512), (US, Op.READ, 4096, 4096), (2 * US, Op.READ, 3584, 1024), sector_bytes=4096)
    assert planned.requests["offset_bytes"].to_list() == [0, 4096, 0]
    assert planned.requests["size_bytes"].to_list() == [4096, 4096, 8192]
    assert planned.remarks() == ["2 requests widened to whole sectors"]


def test_requests_of_one_coarse_stamp_are_spread_until_the_next() -> None:
    second = 10**9
    rows: list[Row] = [(stamp * second, Op.READ, 0, 512) for stamp in (0, 0, 0, 0, 2, 3, 3)]
    planned = plan(*rows)
    assert planned.requests["due_ns"].to_list() == [0, *(n * second // 4 for n in (1, 2, 3, 8, 12, 14))]
    assert planned.remarks() == ["4 requests spread over stamps 1 s apart"]
    assert plan(*rows, spread=False).requests["due_ns"].to_list() == [0, 0, 0, 0, *(n * second for n in (2, 3, 3))]


def test_a_flush_is_of_no_place() -> None:
    planned = plan(*READS, (7 * US, Op.FLUSH, 2 * MIB + 100, 4097))
    assert planned.remarks() == []
    flush = planned.requests.filter(planned.requests["op"] == int(Op.FLUSH))
    assert flush.rows() == [(7 * US, int(Op.FLUSH), 0, 0)]


def test_requests_that_came_together_by_a_fine_clock_stay_together() -> None:
    assert plan(READS[0], READS[0], READS[1]).requests["due_ns"].to_list() == [0, 0, 3 * US]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"speed": 0}, "speed is 0, must be above 0"),
    ({"speed": float("inf")}, "speed is inf"),
    ({"speed": 1e-15}, "at speed 1e-15 the replay would take 2.5e.12 s"),
    ({"from_s": float("nan")}, "from_s is nan"),
    ({"from_s": float("inf")}, "from_s is inf"),
    ({"duration_s": float("nan")}, "duration_s is nan"),
    ({"duration_s": float("inf")}, "duration_s is inf"),
    ({"from_s": -1}, "from_s is -1: a trace begins at 0"),
    ({"duration_s": 0}, "duration_s is 0, must be above 0"),
    ({"from_s": 60}, "nothing that fio replays from 60 s on for the rest of it, and its last request is at"),
    ({"from_s": 60, "duration_s": 5}, "nothing that fio replays from 60 s on for 5 s"),
]


@pytest.mark.parametrize(("how", "message"), WRONG)
def test_what_is_no_stretch_of_the_trace_is_refused(how: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        plan(*READS, **how)


def test_no_batch_at_all_is_an_empty_trace() -> None:
    with pytest.raises(BadInput, match="the trace holds no requests"):
        plan_requests([], Stretch(), region_bytes=MIB)


def test_a_request_that_no_drive_takes_is_refused() -> None:
    with pytest.raises(BadInput, match="requests of more than 64 MiB"):
        plan((0, Op.READ, 0, (64 << 20) + 1), region_bytes=1 << 30)


@given(
    st.lists(st.tuples(st.integers(0, 10**10), st.integers(0, 1 << 40), st.integers(1, 1 << 18)), min_size=1),
    st.sampled_from([512, 4096]),
    st.floats(0.1, 1000),
)
def test_whatever_is_folded_lies_in_the_region_in_whole_sectors_and_in_order(
    rows: list[tuple[int, int, int]], sector_bytes: int, speed: float
) -> None:
    planned = plan(
        *((t_ns, Op.READ, offset, size) for t_ns, offset, size in rows),
        sector_bytes=sector_bytes,
        offset_bytes=MIB,
        fold=True,
        speed=speed,
    )
    requests = planned.requests
    assert requests.height == len(rows)
    assert requests["due_ns"].is_sorted()
    assert requests["due_ns"][0] == 0
    assert (requests["offset_bytes"] % sector_bytes == 0).all()
    assert (requests["size_bytes"] % sector_bytes == 0).all()
    assert (requests["offset_bytes"] >= MIB).all()
    assert (requests["offset_bytes"] + requests["size_bytes"] <= 2 * MIB).all()
    assert int(requests["size_bytes"].sum()) >= sum(size for _, _, size in rows)
