"""fio's interval logs, recorded from fio 3.33 on an nbdkit that stood still for 0.6 s, as series."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop.errors import ToolError
from rackloop_drivers.workload._fio_series import (
    LogEntry,
    longest_latency,
    parse_histogram_log,
    parse_latency_log,
    throughput,
)

RECORDED = Path(__file__).parent / "data" / "fio"
BEGAN_S = 1795212555.7
STALL_ENDED_S = 1795212556.986


def recorded(kind: str) -> list[str]:
    return [(RECORDED / f"stalled_{kind}.{thread}.log").read_text() for thread in (1, 2)]


def test_a_stall_is_seen_when_it_ends_with_its_length() -> None:
    threads = [parse_latency_log(text) for text in recorded("clat")]
    samples = longest_latency(threads, BEGAN_S, 0.1)
    first_long = next(sample for sample in samples if sample.value > 0.1)
    assert first_long.t_s == pytest.approx(STALL_ENDED_S - BEGAN_S, abs=0.005)
    assert max(sample.value for sample in samples) == pytest.approx(0.625, abs=0.002)
    before = samples[samples.index(first_long) - 1]
    assert first_long.t_s - before.t_s > 0.6, "no I/O completed in between"


def test_throughput_falls_while_nothing_completes() -> None:
    threads = [parse_histogram_log(text) for text in recorded("clat_hist")]
    samples = throughput(threads, BEGAN_S, 0.1)
    # Two threads with four reads of 4 KiB in flight, 20 ms each.
    steady = 2 * 4 * 4096 / 0.0205
    assert samples[2].value == pytest.approx(steady, rel=0.05)
    lowest = min(samples, key=lambda sample: sample.value)
    assert lowest.value < steady / 5
    # What completes within a quarter of an interval is one sample.
    assert lowest.t_s == pytest.approx(STALL_ENDED_S - BEGAN_S, abs=0.025)


def test_threads_that_start_apart_are_added_up() -> None:
    one = [LogEntry(1_000_100 + 100 * k, 50, 0) for k in range(5)]
    other = [LogEntry(1_000_110 + 100 * k, 150, 0) for k in range(5)]
    samples = throughput([one, other, []], 1000.0, 0.1)
    assert [sample.t_s for sample in samples] == pytest.approx([0.11, 0.21, 0.31, 0.41, 0.51])
    assert [sample.value for sample in samples[1:-1]] == pytest.approx([2000.0] * 3)


def test_the_longest_of_all_threads_counts() -> None:
    one, other = [LogEntry(1_000_100, 3_000_000, 0)], [LogEntry(1_000_101, 7_000_000, 0)]
    (sample,) = longest_latency([one, other], 1000.0, 0.1)
    assert sample == pytest.approx((0.1, 0.007))


ENTRIES = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 10**9)), min_size=1, max_size=30)


@given(st.lists(ENTRIES, min_size=1, max_size=3))
def test_no_byte_is_lost_or_counted_twice(threads: list[list[tuple[int, int]]]) -> None:
    logs = []
    for steps in threads:
        unix_ms, log = 1_000_000, []
        for step, value in steps:
            unix_ms += step
            log.append(LogEntry(unix_ms, value, 0))
        logs.append(log)
    samples = throughput(logs, 1000.0, 0.1)
    spans = [0.1, *(later.t_s - sooner.t_s for sooner, later in pairwise(samples))]
    moved = sum(sample.value * span for sample, span in zip(samples, spans, strict=True))
    assert moved == pytest.approx(sum(entry.value for log in logs for entry in log), rel=1e-6, abs=1e-3)


def test_a_job_without_io_has_no_series() -> None:
    assert throughput([[], []], BEGAN_S, 0.1) == ()
    assert longest_latency([], BEGAN_S, 0.1) == ()


@pytest.mark.parametrize("text", ["1, 2", "1, 2, x", "rubbish\n", "1, 2, 3\n1795"])
def test_a_damaged_log_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match="did the disk fill up"):
        parse_latency_log(text)
    with pytest.raises(ToolError, match="did the disk fill up"):
        parse_histogram_log(text)


def test_a_log_that_breaks_off_within_a_number_is_no_log() -> None:
    whole = recorded("clat_hist")[0]
    assert parse_histogram_log(whole)
    with pytest.raises(ToolError, match=r"breaks off after .*: did the disk fill up"):
        parse_histogram_log(whole[:-2])
