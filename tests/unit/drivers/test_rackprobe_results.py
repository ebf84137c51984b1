"""What rackprobe prints becomes values, and what it should not print is named."""

from __future__ import annotations

import pytest

from rackloop.errors import ProtocolError
from rackloop_drivers.workload import Expected
from rackloop_drivers.workload._rackprobe_results import Verification, WatchResult, build, parse_line

VERDICTS = {"right": 1, "stale": 1}
OFFENDER = {
    "lba": 1,
    "verdict": "stale",
    "found_serial": "RL000001",
    "found_lba": 1,
    "found_generation": 2,
    "found_seed": 0,
    "torn_generations": [],
}
VERIFICATION = {
    "start_lba": 0,
    "sectors": 2,
    "verdicts": VERDICTS,
    "offenders": [OFFENDER],
    "unreadable_sectors": 0,
    "unreadable": [],
    "bytes": 8192,
    "elapsed_ns": 1,
}


def test_a_verification_is_right_only_where_every_sector_is() -> None:
    found = build(Verification, VERIFICATION)
    assert not found.is_right
    assert found.offenders[0].torn_generations == ()
    assert build(Verification, {**VERIFICATION, "verdicts": {"right": 2}}).is_right


def test_a_field_that_is_missing_is_named() -> None:
    event = {name: value for name, value in VERIFICATION.items() if name != "offenders"}
    with pytest.raises(ProtocolError, match="left offenders out"):
        build(Verification, event)


@pytest.mark.parametrize("line", ["", "Segmentation fault", "[1, 2]", '{"event": '])
def test_a_line_that_is_no_object_is_named(line: str) -> None:
    with pytest.raises(ProtocolError, match="no JSON"):
        parse_line(line)


def test_latencies_are_a_distribution_in_microseconds() -> None:
    numbers = dict.fromkeys(WatchResult.__dataclass_fields__, 0)
    result = build(WatchResult, {**numbers, "bins_ns": [[1500, 3], [20000, 1]], "offenders": []})
    latency_us = result.latency_us()
    assert (latency_us.n, latency_us.minimum, latency_us.maximum) == (4, 1.5, 20.0)


def test_an_expectation_without_a_seed_asks_for_none() -> None:
    assert Expected("A B", generation=4).options() == ["--serial=A B", "--generation=4"]
    assert Expected("A", seed=0).options() == ["--serial=A", "--generation=1", "--seed=0"]
    assert Expected("A").as_json() == {"serial": "A", "generation": 1, "seed": None}
