"""Synthetic traces: the statistics that were asked for come out again, from a seed, in bounded pieces."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from rackloop.data import data_path
from rackloop.errors import EXIT_BAD_INPUT, EXIT_PASS, BadInput
from rackloop_cli.main import main as rackloop
from rackloop_traces import FORMATS, Op, Statistics, TraceProfile, columns, open_trace, synthesize
from tests.meta.tree import ROOT
from tests.unit.traces.trace_frames import frame, measured

KIB = 1024


def made(profile: TraceProfile, seed: int = 1, requests: int | None = None) -> pl.DataFrame:
    return pl.concat(list(synthesize(profile, seed, requests)))


@pytest.fixture(scope="module")
def known() -> Statistics:
    """A load with everything at once: a swinging rate, bursts, a skewed mix and locality, runs, odd alignment."""
    rng = np.random.Generator(np.random.PCG64(3))
    n = 60_000
    burst = np.repeat(rng.random(600) ** 4, 100)[:n]
    t_ns = np.cumsum(rng.exponential(1, n) * (1e5 + 4e7 * burst)).astype(np.int64)
    op = np.where(rng.random(n) < 0.3, Op.READ, Op.WRITE)
    size = np.where(op == Op.READ, rng.choice([4096, 65536], n, p=[0.75, 0.25]), rng.choice([512, 8192, 61440], n))
    hot = rng.integers(0, 2000, n)
    cold = rng.integers(0, 40_000, n)
    place = np.where(rng.random(n) < 0.5, hot, cold) * 65536 + 3584
    continues = rng.random(n) < 0.35
    for i in np.flatnonzero(continues[1:]) + 1:
        place[i], op[i], size[i] = place[i - 1] + size[i - 1], op[i - 1], size[i - 1]
    rows = pl.DataFrame({"t_ns": t_ns, "op": op, "offset_bytes": place, "size_bytes": size})
    whole = rows.with_columns(volume=pl.lit("0"), response_ns=pl.lit(None))
    return measured([whole.select(pl.col(name).cast(kind) for name, kind in columns().items())])


def test_a_trace_like_another_has_its_statistics(known: Statistics) -> None:
    twin = measured([made(TraceProfile.of(known), seed=5)])
    assert twin.requests == known.requests
    assert twin.duration_s == pytest.approx(known.duration_s, rel=0.01)
    for op in ("read", "write"):
        ours, theirs = known.ops[op], twin.ops[op]
        assert theirs.requests == pytest.approx(ours.requests, abs=2)
        assert theirs.bytes == pytest.approx(ours.bytes, rel=0.03)
        sizes = dict(theirs.sizes)
        assert sizes.keys() == dict(ours.sizes).keys()
        for size, count in ours.sizes:
            assert sizes[size] / ours.requests == pytest.approx(count / ours.requests, abs=0.02)
    assert twin.sequentiality.continuing_share == pytest.approx(known.sequentiality.continuing_share, abs=0.02)
    assert twin.sequentiality.following_share == pytest.approx(known.sequentiality.following_share, abs=0.05)
    assert twin.blocks.distinct == pytest.approx(known.blocks.distinct, rel=0.05)
    assert twin.blocks.touches == pytest.approx(known.blocks.touches, rel=0.03)
    for part in (0.01, 0.1, 0.2, 0.5):
        assert twin.blocks.hot_shares[part] == pytest.approx(known.blocks.hot_shares[part], abs=0.06)
    assert twin.placement.highest_end_bytes == pytest.approx(known.placement.highest_end_bytes, rel=0.05)
    assert max(range(9), key=twin.placement.shift_shares.__getitem__) == 7


def test_burstiness_comes_out_at_every_scale(known: Statistics) -> None:
    twin = measured([made(TraceProfile.of(known), seed=6)])
    theirs = {scale.interval_s: scale.dispersion for scale in twin.arrivals.scales}
    compared = [(scale.dispersion, theirs[scale.interval_s]) for scale in known.arrivals.scales]
    assert len(compared) >= 6
    assert compared[-1][0] > 100  # else the source was no test
    for ours, found in compared:
        assert found == pytest.approx(ours, rel=0.35)
    wide = [scale for scale in known.arrivals.scales if scale.interval_s >= 10 * known.arrivals.rate.bin_s]
    assert wide
    for scale in wide:
        assert theirs[scale.interval_s] == pytest.approx(scale.dispersion, rel=0.05)


def test_the_rate_over_time_is_kept(known: Statistics) -> None:
    twin = measured([made(TraceProfile.of(known), seed=7)])
    ours, theirs = known.arrivals.rate, twin.arrivals.rate
    assert theirs.bin_s == ours.bin_s
    n = min(len(ours.requests["read"]), len(theirs.requests["read"]))
    assert np.corrcoef(ours.requests["write"][:n], theirs.requests["write"][:n])[0, 1] > 0.95


def test_round_numbers_come_out_as_given() -> None:
    profile = TraceProfile.plain(
        duration_s=100,
        rate=400,
        read_share=0.25,
        sizes=[(4096, 3), (32768, 1)],
        footprint_bytes=64 << 20,
        continuing=0.5,
        hot=(0.1, 0.7),
    )
    found = measured([made(profile)])
    assert found.requests == 40_000
    assert found.duration_s == pytest.approx(100, rel=0.01)
    assert found.ops["read"].requests == 10_000
    assert dict(found.ops["write"].sizes)[4096] / 30_000 == pytest.approx(0.75, abs=0.01)
    assert found.blocks.distinct * 4096 == pytest.approx(64 << 20, rel=0.02)
    assert found.blocks.hot_shares[0.1] == pytest.approx(0.7, abs=0.03)
    assert found.sequentiality.continuing_share == pytest.approx(0.5, abs=0.02)
    assert found.placement.aligned_4096_share == 1


def test_a_bias_makes_bursts_and_its_absence_a_steady_load() -> None:
    even, bursty = (
        {s.interval_s: s.dispersion for s in measured([made(TraceProfile.plain(bias=bias))]).arrivals.scales}
        for bias in (0.5, 0.8)
    )
    assert even[0.1] < 1.5
    assert bursty[0.1] > 10 * even[0.1]


def test_the_rate_swings_as_a_day_does() -> None:
    profile = TraceProfile.plain(duration_s=1000, rate=50, swing=0.8, period_s=1000, bias=0.5)
    found = measured([made(profile)])
    series = found.arrivals.rate
    total = np.asarray(series.requests["read"]) + np.asarray(series.requests["write"])
    half = round(500 / series.bin_s)
    assert total[:half].sum() / total[half:].sum() == pytest.approx((1 + 1.6 / np.pi) / (1 - 1.6 / np.pi), rel=0.05)


def test_trims_of_the_original_are_made_too() -> None:
    mixed = frame([(i * 1000, Op.TRIM if i % 4 == 0 else Op.WRITE, i * 4096, 4096) for i in range(2000)])
    found = measured([made(TraceProfile.of(measured([mixed])))])
    assert found.ops["trim"].requests == 500


profiles = st.builds(
    TraceProfile.plain,
    duration_s=st.floats(0.001, 1e5),
    rate=st.floats(0.01, 1e5),
    read_share=st.floats(0, 1),
    footprint_bytes=st.integers(1 << 17, 1 << 45),
    bias=st.floats(0.5, 0.9),
    continuing=st.floats(0, 0.999),
    hot=st.tuples(st.floats(0.001, 0.999), st.just(1.0)),
)


@given(profiles, st.integers(0, 2**63 - 1), st.integers(1, 3000))
@settings(max_examples=80, deadline=None)
def test_any_load_gives_requests_that_can_be(profile: TraceProfile, seed: int, requests: int) -> None:
    whole = made(profile, seed, requests)
    assert whole.height == requests
    assert dict(whole.schema) == columns()
    assert whole["t_ns"][0] == 0
    assert whole["t_ns"].is_sorted()
    assert whole["offset_bytes"].to_numpy().min() >= 0
    assert set(whole["op"].unique()) <= {Op.READ, Op.WRITE}
    assert whole.equals(made(profile, seed, requests))


@given(profiles, st.integers(1, 500))
@settings(max_examples=30, deadline=None)
def test_another_seed_gives_another_trace(profile: TraceProfile, requests: int) -> None:
    if requests > 20:
        assert not made(profile, 1, requests).equals(made(profile, 2, requests))


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where in a JSON value numbers stand."""
    if isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(child, (*path, key))
    elif isinstance(value, int | float):
        yield path


SMALL = measured([frame([(i * 10**7, Op(i % 3), i * 2048, 512 * (1 + i % 9)) for i in range(60)])]).model_dump(
    mode="json"
)
ODD_NUMBERS = st.one_of(st.sampled_from([0, -1, 1, 2**40, 2**62, 2**70, 1e-300, 1e300, 0.5]), st.floats(0, 1))


@given(st.sampled_from(list(leaves(SMALL))), ODD_NUMBERS)
@settings(max_examples=300, deadline=None)
def test_statistics_with_a_number_changed_are_refused_or_made_into_requests(
    path: tuple[str | int, ...], number: float
) -> None:
    body = json.loads(json.dumps(SMALL))
    place = body
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = number
    try:
        profile = TraceProfile.of(Statistics.model_validate_json(json.dumps(body)))
        whole = made(profile, requests=50)
    except (BadInput, ValidationError):
        return
    assert whole.height == 50
    assert whole["offset_bytes"].to_numpy().min() >= 0
    assert whole["t_ns"].is_sorted()


def test_a_long_trace_comes_in_pieces_and_a_shorter_one_is_as_long_as_asked() -> None:
    profile = TraceProfile.plain(duration_s=60, rate=40_000)
    heights = [batch.height for batch in synthesize(profile, 1, 3_000_000)]
    assert sum(heights) == 3_000_000
    assert max(heights) < 1_100_000
    assert made(profile, 1, 7).height == 7


def test_bins_that_hold_too_much_are_halved_first() -> None:
    profile = TraceProfile.plain(duration_s=10, rate=300_000, bias=0.6)
    batches = list(synthesize(profile, 1))
    assert len(batches) > 3
    whole = pl.concat(batches)
    assert whole["t_ns"].is_sorted()
    assert whole.filter(pl.col("op") == Op.READ).height == pytest.approx(2_100_000, abs=20)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--rate 0", "a rate is above 0"),
        ("--duration -5", "a duration is more than 0 s"),
        ("--duration nan", "expected a time such as 90s or 5min"),
        ("--sizes 1000B", "multiple of 512 bytes, not 1000"),
        ("--sizes 4KiB:x", "--sizes: expected numbers as in 4KiB:60"),
        ("--sizes 4KiB:-1", "weights above 0"),
        ("--sizes 2GiB", "does not fit in a footprint"),
        ("--footprint 7", "--footprint: expected a quantity in B"),
        ("--footprint 512B", "at least 4 KiB"),
        ("--burstiness 0.3", "a bias is 0.5"),
        ("--hot 60:10", "hot blocks get at least their share"),
        ("--hot ten", "--hot: expected numbers"),
        ("--requests 5 --duration 5 --rate 1", "one thing too many"),
        ("--like nowhere.csv", "nowhere.csv"),
        ("--like nowhere.json", "cannot read nowhere.json"),
        ("--swing-percent 50 --period 0", "a rate swings"),
        ("--to msrr", "msrr"),
    ],
)
def test_options_that_cannot_be_are_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: str, said: str
) -> None:
    out = tmp_path / "out.spc"
    assert rackloop(["trace", "make", str(out), *shlex.split(arguments)]) == EXIT_BAD_INPUT
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_as_many_requests_are_sequential_as_the_option_allows(tmp_path: Path) -> None:
    out = tmp_path / "out.spc"
    options = ("--requests=50", "--seed=1", "--sequential-percent=99.9")
    assert rackloop(["trace", "make", str(out), *options]) == EXIT_PASS


def test_a_trace_is_made_like_one_on_disk_or_like_its_statistics(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = data_path("traces") / "msr.csv.gz"
    assert rackloop(["trace", "stat", str(source), "--json"]) == EXIT_PASS
    numbers = tmp_path / "numbers.json"
    numbers.write_text(capsys.readouterr().out)
    twins = [tmp_path / "a.spc", tmp_path / "b.spc"]
    for like, out in zip((source, numbers), twins, strict=True):
        assert rackloop(["trace", "make", str(out), "--like", str(like), "--seed", "3"]) == EXIT_PASS
    assert twins[0].read_bytes() == twins[1].read_bytes()
    assert "1000 requests" in capsys.readouterr().out


def text(path: Path) -> bytes:
    """A file's content, decompressed: what compresses may change."""
    return b"".join(chunks(path))


def chunks(path: Path) -> Iterator[bytes]:
    from rackloop_traces._source import chunks as decompressed

    yield from decompressed(path)


def test_the_samples_are_what_their_script_makes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = ROOT / "tools" / "new-sample-traces"
    names: dict[str, object] = {"__file__": str(script), "__name__": "samples"}
    exec(compile(script.read_text(encoding="utf-8"), script, "exec"), names)  # noqa: S102 - a script without a suffix
    make = names["main"]
    assert callable(make)
    assert make(tmp_path) == EXIT_PASS
    shipped = sorted(path.name for path in data_path("traces").iterdir())
    assert shipped == sorted(path.name for path in tmp_path.iterdir())
    for name in shipped:
        assert text(tmp_path / name) == text(data_path("traces") / name), f"run tools/new-sample-traces: {name} differs"


def test_there_is_a_sample_of_every_format_that_is_written_and_it_is_recognised() -> None:
    traces = [open_trace(path) for path in data_path("traces").iterdir()]
    for trace in traces:
        assert sum(batch.height for batch in trace.batches()) >= 1000
        assert not trace.malformed.count
    assert {trace.format.name for trace in traces} == {name for name, form in FORMATS.items() if form.write}


def test_the_demo_trace_lasts_as_long_as_one_likes_to_watch() -> None:
    found = measured(open_trace(data_path("traces") / "demo.csv.gz").batches())
    assert 15 <= found.duration_s <= 20
    assert 2000 <= found.requests <= 5000
    assert found.placement.highest_end_bytes < 2 << 30
    assert min(found.ops["read"].requests, found.ops["write"].requests) > 1000
    assert max(scale.dispersion for scale in found.arrivals.scales) > 20
