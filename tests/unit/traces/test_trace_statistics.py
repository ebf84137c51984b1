"""Statistics of traces: against sums done by hand, against plain Python, and whatever way the trace is cut."""

import json
from collections import Counter, deque
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackloop.errors import BadInput
from rackloop_traces import Op, Statistics, TraceMeter, read_statistics
from rackloop_traces._statistics_arrivals import TimeBins
from rackloop_traces._statistics_histogram import LogLinearHistogram
from tests.unit.traces.trace_frames import Row, frame, measured, pieces

R, W, T, F = Op.READ, Op.WRITE, Op.TRIM, Op.FLUSH
KIB, MS, S = 1024, 10**6, 10**9

rows = st.lists(
    st.tuples(
        st.integers(0, 50 * MS),
        st.sampled_from([R, W]),
        st.integers(0, 40).map(lambda place: place * 2048),
        st.sampled_from([512, 2048, 4096, 10240]),
    ),
    min_size=1,
    max_size=60,
).map(lambda found: sorted(found, key=lambda row: row[0]))


def test_mix_sizes_and_alignment_are_counted() -> None:
    found = measured(
        [frame([(0, R, 0, 4096), (MS, W, 4096, 8192), (2 * MS, W, 1536, 512), (3 * MS, T, 0, 65536), (S, F, 0, 0)])]
    )
    assert (found.requests, found.duration_s, found.volumes) == (5, 1.0, 1)
    assert {op: (part.requests, part.bytes) for op, part in found.ops.items()} == {
        "read": (1, 4096),
        "write": (2, 8704),
        "trim": (1, 65536),
        "flush": (1, 0),
    }
    assert found.ops["write"].sizes == [(512, 1), (8192, 1)]
    assert found.placement.aligned_4096_share == 3 / 4
    assert found.placement.aligned_512_share == 1
    assert found.placement.shift_shares[3] == 1 / 4
    assert (found.placement.lowest_offset_bytes, found.placement.highest_end_bytes) == (0, 65536)


def test_trims_and_flushes_touch_no_block() -> None:
    found = measured([frame([(0, R, 0, 4096), (0, T, 1 << 30, 1 << 20), (0, F, 0, 0)])])
    assert (found.blocks.distinct, found.blocks.touches) == (1, 1)


def test_arrivals_are_told_by_second_and_by_kind() -> None:
    found = measured([frame([(0, R, 0, 512), (100 * MS, W, 0, 512), (900 * MS, R, 0, 512), (2500 * MS, R, 0, 512)])])
    arrivals = found.arrivals
    assert arrivals.peak_second_requests == 3
    assert arrivals.tick_us == 100_000
    assert arrivals.gaps is not None
    assert arrivals.gaps.mean_us == pytest.approx(2_500_000 / 3)
    assert arrivals.gaps.longest_us == 1_600_000
    assert arrivals.read_gaps is not None
    assert arrivals.read_gaps.n == 2
    assert arrivals.read_gaps.quantiles_us[0.5] == pytest.approx(900_000, rel=0.001)
    assert arrivals.write_gaps is None
    assert sum(arrivals.rate.requests["read"]) == 3


def test_scales_below_the_clocks_tick_are_not_claimed_and_the_doubt_is_said() -> None:
    found = measured([frame([(second * S, R, 0, 512) for second in range(30) for _ in range(2)])])
    assert min(scale.interval_s for scale in found.arrivals.scales) == 1
    assert any("multiple of 1 s" in doubt for doubt in found.doubts)


@given(rows)
@settings(max_examples=60, deadline=None)
def test_dispersion_is_variance_over_mean(found_rows: list[Row]) -> None:
    start, end = found_rows[0][0], found_rows[-1][0]
    scales = measured([frame(found_rows)]).arrivals.scales
    for scale in scales:
        width = round(scale.interval_s * S)
        counts = np.bincount([(t - start) // width for t, *_ in found_rows], minlength=(end - start) // width + 1)
        assert scale.intervals == counts.size
        assert scale.dispersion == pytest.approx(counts.var() / counts.mean(), abs=1e-9)
        assert scale.peak_requests == counts.max()


@given(rows)
@settings(max_examples=60, deadline=None)
def test_blocks_and_runs_agree_with_plain_python(found_rows: list[Row]) -> None:
    touches: Counter[int] = Counter()
    ends: deque[int] = deque(maxlen=32)
    following = continuing = 0
    for _, _, offset, size in found_rows:
        touches.update(range(offset // 4096, (offset + size - 1) // 4096 + 1))
        following += bool(ends) and offset == ends[-1]
        continuing += offset in ends
        ends.append(offset + size)
    found = measured([frame(found_rows)])
    blocks = found.blocks
    assert (blocks.distinct, blocks.touches, blocks.is_exact) == (len(touches), touches.total(), True)
    busiest = sorted(touches.values(), reverse=True)
    assert blocks.curve[-1][0] == 1
    for part, share in blocks.curve:
        assert share == pytest.approx(sum(busiest[: round(part * len(busiest))]) / touches.total())
    assert blocks.touched_once == busiest.count(1)
    n = len(found_rows)
    assert found.sequentiality.following_share == pytest.approx(following / n)
    assert found.sequentiality.continuing_share == pytest.approx(continuing / n)
    assert found.sequentiality.runs.n == n - following


@given(rows, st.lists(st.integers(0, 60), max_size=5), st.sampled_from([1, 3]))
@settings(max_examples=60, deadline=None)
def test_it_does_not_matter_how_a_trace_is_cut(found_rows: list[Row], cuts: list[int], volumes: int) -> None:
    whole = frame(found_rows).with_columns(pl.Series("volume", [str(i % volumes) for i in range(len(found_rows))]))
    cut = pieces(whole, [cut for cut in cuts if cut <= whole.height])
    assert measured(cut) == measured([whole])


def test_volumes_are_kept_apart() -> None:
    here, there = frame([(0, R, 0, 4096)], "a"), frame([(1, R, 4096, 4096), (2, R, 0, 4096)], "b")
    found = measured([here, there])
    assert (found.volumes, found.blocks.distinct) == (2, 3)
    assert found.sequentiality.continuing_share == 0


def test_reuse_and_working_set_follow_time() -> None:
    touches = [(second * S, R, block * 4096, 4096) for second, block in enumerate([0, 1, 0, 0, 2, 1])]
    blocks = measured([frame(touches)]).blocks
    assert blocks.working_set is not None
    assert (blocks.working_set.window_s, blocks.working_set.distinct) == (1.0, [1] * 6)
    assert blocks.reuse_us[0.1] == pytest.approx(1e6, rel=0.001)
    assert blocks.reuse_us[0.99] == pytest.approx(4e6, rel=0.001)
    assert [count for _, count in blocks.growth][::20] == [1, 2, 2, 2, 3, 3]


def test_a_large_footprint_is_sampled_and_the_error_said() -> None:
    blocks = 3 << 20
    order = np.random.Generator(np.random.PCG64(7)).permutation(blocks)
    meter = TraceMeter()
    for part in np.array_split(order, 12):
        meter.add(frame([(0, R, 0, 4096)]).select(pl.all().repeat_by(part.size).explode()).with_columns(
            pl.Series("offset_bytes", part * 4096)
        ))  # fmt: skip
    found = meter.result().blocks
    assert not found.is_exact
    assert 0 < found.standard_error < 0.004
    assert found.distinct == pytest.approx(blocks, rel=4 * found.standard_error)
    assert found.touches == blocks
    assert found.hot_shares[0.1] == pytest.approx(0.1, abs=0.001)


def test_late_requests_are_counted_and_sorted_within_a_batch() -> None:
    found = measured([frame([(5, R, 0, 512), (3, R, 512, 512)]), frame([(4, R, 0, 512), (9, R, 0, 512)])])
    assert found.out_of_order == 2
    assert found.duration_s == pytest.approx(6e-9)
    assert any("2 requests out of order" in doubt for doubt in found.doubts)


@pytest.mark.parametrize(
    ("times", "late"), [([[9, 1, 2, 3]], 3), ([[9], [1, 2, 3]], 3), ([[9, 10], [11, 5]], 1), ([[5, 3, 4, 9]], 2)]
)
def test_every_request_that_is_earlier_than_one_before_is_late_once(times: list[list[int]], late: int) -> None:
    found = measured([frame([(t_ns, R, 0, 512) for t_ns in batch]) for batch in times])
    assert found.out_of_order == late


def test_times_may_begin_below_zero() -> None:
    found = measured([frame([(-5 * S, R, 0, 512), (0, W, 0, 512)])])
    assert found.duration_s == 5
    assert found.arrivals.rate.requests["write"][-1] == 1


def test_response_times_are_told_where_recorded() -> None:
    found = measured([frame([(0, R, 0, 512)], response_ns=2 * MS), frame([(1, W, 0, 512)])])
    assert found.ops["read"].response_us is not None
    assert found.ops["read"].response_us[0.5] == pytest.approx(2000, rel=0.001)
    assert found.ops["write"].response_us is None
    assert measured([frame([(0, R, 0, 512)], response_ns=0)]).ops["read"].response_us is None


def test_one_huge_request_is_cut_short_and_that_is_said() -> None:
    found = measured([frame([(0, R, 0, 1 << 40)])])
    assert found.blocks.distinct == 2**16
    assert any("count the first 256 MiB" in doubt for doubt in found.doubts)


def test_an_offset_that_no_drive_has_is_refused() -> None:
    with pytest.raises(BadInput, match="a request at offset 4611686018427387904: no drive is so large"):
        measured([frame([(0, R, 0, 512), (1, R, 1 << 62, 512)])])


def test_a_request_that_no_drive_takes_is_refused() -> None:
    with pytest.raises(BadInput, match="no drive takes one"):
        TraceMeter().add(frame([(0, R, 0, 1 << 60)]))


def test_a_trace_without_requests_says_nothing() -> None:
    with pytest.raises(BadInput, match="holds no request"):
        measured([frame([])])


def test_statistics_come_back_from_json(tmp_path: Path) -> None:
    found = measured([frame([(i * MS, W if i % 3 else R, i * 4096, 4096) for i in range(100)])])
    path = tmp_path / "statistics.json"
    path.write_text(found.model_dump_json())
    assert read_statistics(path) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Invalid JSON"),
        ("[]", "at its beginning"),
        ('{"requests": 1}', "Field required"),
        ('{"schema_version": 2}', "schema_version"),
    ],
)
def test_other_files_are_no_statistics(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(BadInput, match="rackloop trace stat --json") as caught:
        read_statistics(path)
    assert said in str(caught.value)
    with pytest.raises(BadInput, match="cannot read"):
        read_statistics(tmp_path / "missing.json")


@pytest.mark.parametrize(
    ("part", "name", "value", "said"),
    [
        ("placement", "shift_shares", [1.0], "placement.shift_shares"),
        ("placement", "shift_shares", [-1.0] * 9, "placement.shift_shares.0"),
        ("blocks", "curve", [[0.5, 0.5], [0.4, 1.0]], "curve of locality climbs"),
        ("ops", "read", None, "ops.read"),
        ("sequentiality", "following_share", float("inf"), "sequentiality.following_share"),
    ],
)
def test_a_field_out_of_range_is_named(tmp_path: Path, part: str, name: str, value: object, said: str) -> None:
    body = json.loads(measured([frame([(0, R, 0, 512)])]).model_dump_json())
    body[part][name] = value
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(body))
    with pytest.raises(BadInput) as caught:
        read_statistics(path)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("arrivals.rate.requests.trim", [], "in the same bins"),
        ("arrivals.rate.requests", {}, "in the same bins"),
        ("ops.read.sizes", [], "no sizes of them"),
        ("ops", {}, "at ops"),
    ],
)
def test_statistics_that_contradict_themselves_are_refused(tmp_path: Path, path: str, value: object, said: str) -> None:
    body = json.loads(measured([frame([(0, R, 0, 512)])]).model_dump_json())
    *parents, last = path.split(".")
    place = body
    for parent in parents:
        place = place[parent]
    place[last] = value
    (tmp_path / "odd.json").write_text(json.dumps(body))
    with pytest.raises(BadInput) as caught:
        read_statistics(tmp_path / "odd.json")
    assert said in str(caught.value)


@given(st.lists(st.integers(0, 2**62), min_size=1), st.sampled_from([5, 8, 11]))
def test_a_histogram_is_exact_to_its_bits(values: list[int], bits: int) -> None:
    histogram = LogLinearHistogram(bits)
    histogram.add(np.asarray(values, dtype=np.int64))
    assert histogram.total == len(values)
    (highest,) = histogram.quantiles(1.0)
    assert highest <= max(values) <= highest * (1 + 2.0 ** (1 - bits))
    assert histogram.coarser(4).total == len(values)


@given(st.integers(1, 2048), st.integers(0, 9))
def test_numbers_of_few_bits_come_back_as_they_were(steps: int, shift: int) -> None:
    histogram = LogLinearHistogram(11)
    value = steps * 512 << shift
    histogram.add(np.asarray([value]), weight=3)
    low, counts = histogram.nonzero()
    assert (low.tolist(), counts.tolist()) == ([value], [3])


@given(st.lists(st.integers(0, 40 * 86400 * S), min_size=1, max_size=30).map(sorted))
def test_bins_of_time_keep_every_request_however_long_it_goes_on(times: list[int]) -> None:
    bins = TimeBins(channels=2, limit=64)
    for begin in range(0, len(times), 7):
        part = times[begin : begin + 7]
        stamps = np.asarray(part, dtype=np.int64)
        bins.add(stamps, np.asarray([t % 2 for t in part], dtype=np.int64))
    assert bins.sums.sum() == len(times)
    assert bins.used <= 64
    expected = np.zeros((2, 64), dtype=np.int64)
    for time in times:
        expected[time % 2, time // bins.width_ns] += 1
    assert (bins.sums == expected).all()


def test_statistics_are_a_value(tmp_path: Path) -> None:
    found = measured([frame([(0, R, 0, 512)])])
    assert isinstance(found, Statistics)
    with pytest.raises(ValueError, match="frozen"):
        found.requests = 2
