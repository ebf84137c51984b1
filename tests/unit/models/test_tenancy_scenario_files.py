"""Files of tenants' scenarios, and how their mistakes are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackloop.errors import BadInput
from rackloop_models.drives import Bursts, Depth, Rate, TraceReplay, WeightedOperation, WeightedSize
from rackloop_models.tenancy import load_scenarios

GIB = 1 << 30


FILE = """\
scenarios:
  - name: mine
    condition: fragmented
    tenants:
      - {name: web, block: 4 KiB, depth: 8, read_percent: 90, region: 1 GiB, weight: 2}
      - {name: batch, block: 1 MiB, per_second: 100, pattern: sequential, slo: {iops: 100, p95_us: 500}}
"""


def test_a_file_has_scenarios(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(FILE)
    (scenario,) = load_scenarios(path)
    web, batch = scenario.tenants(2, 4 * GIB)
    assert (scenario.name, scenario.condition) == ("mine", "fragmented")
    assert (web.arrivals, web.read_percent, web.tenant.weight, web.tenant.read_only) == (Depth(8), 90, 2, False)
    assert web.region is not None
    assert web.region.length == GIB
    assert (batch.arrivals, batch.pattern, batch.block_bytes) == (Rate(100), "sequential", 1 << 20)
    assert batch.tenant.slo is not None
    with pytest.raises(BadInput, match="regions of its 12 tenants are 6 GiB together, and the drive has 4 GiB"):
        scenario.tenants(12, 4 * GIB)


MIXES = """\
scenarios:
  - name: mixes
    tenants:
      - name: store
        operations:
          - {operation: read, block: 4 KiB, weight: 9, priority: urgent}
          - {operation: write, block: 1 MiB, weight: 1, pattern: sequential}
        depth: 16
        follows_credit: true
        priority: low
      - name: bursts
        sizes: [{block: 4 KiB, weight: 3}, {block: 64 KiB, weight: 1}]
        per_second: 100
        bursts: {on: 10 ms, off: 40 ms}
        joins: 100 ms
        leaves: 2 s
      - {name: replay, trace: {file: old.jsonl, speed: 2, repeat: true}}
"""


def test_a_file_has_mixes_bursts_and_traces(tmp_path: Path) -> None:
    path = tmp_path / "mixes.yaml"
    path.write_text(MIXES)
    (tmp_path / "old.jsonl").write_text("")
    (scenario,) = load_scenarios(path)
    store, bursts, replay = scenario.tenants(3, 4 * GIB)
    assert store.operations == (
        WeightedOperation(operation="read", block_bytes=4096, weight=9, priority="urgent"),
        WeightedOperation(operation="write", block_bytes=1 << 20, weight=1, pattern="sequential"),
    )
    assert (store.pattern, store.read_percent, store.block_bytes, store.tenant.read_only) == (None, None, None, False)
    assert (store.follows_credit, store.priority) == (True, "low")
    assert (bursts.bursts, bursts.joins_s, bursts.disconnects_s) == (Bursts(0.01, 0.04), 0.1, 2.0)
    assert bursts.sizes == (WeightedSize(4096, 3), WeightedSize(65536, 1))
    assert (bursts.pattern, bursts.read_percent, bursts.tenant.read_only) == ("random", 100.0, True)
    assert (replay.trace, replay.arrivals) == (TraceReplay(str(tmp_path / "old.jsonl"), 2.0, True), None)
    assert not replay.tenant.read_only, "a trace may write"
    # Regions are of whole largest requests.
    assert store.region is not None
    assert store.region.length % (1 << 20) == 0
    with pytest.raises(BadInput, match=r"tenants of kind bursts join at 0\.1 s and leave at 2 s of 1\.5 s"):
        scenario.require_times(1.5)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("depth: 16", "depth: 16\n        block: 4 KiB", "tenant store has block and operations; give one of block"),
        (
            "        sizes: [{block: 4 KiB, weight: 3}, {block: 64 KiB, weight: 1}]\n",
            "",
            "tenant bursts has no requests",
        ),
        ("weight: 9", "weight: 0", "a number above zero"),
        ("weight: 3", "weight: 0", "a number above zero"),
        ("priority: low", "priority: lowest", "not known here; did you mean 'low'?"),
        ("bursts: {on", "brusts: {on", "did you mean 'bursts'?"),
        ("bursts: {on: 10 ms", "bursts: {on: 0 s", "a time above zero"),
        ("depth: 16", "depth: 16\n        read_percent: 50", "operations says itself what is read where"),
        ("file: old.jsonl", "file: new.jsonl", "there is no trace"),
        ("repeat: true}", "repeat: true}, bursts: {on: 1 s, off: 1 s}", "a trace at its own times has no bursts"),
    ],
)
def test_a_mix_with_a_mistake_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "mixes.yaml"
    assert old in MIXES
    path.write_text(MIXES.replace(old, new, 1))
    (tmp_path / "old.jsonl").write_text("")
    with pytest.raises(BadInput) as refused:
        load_scenarios(path)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("depth: 8, ", "", "mine, tenant web has no load; give depth"),
        ("depth: 8, ", "depth: 8, per_second: 1, ", "web has both depth and per_second"),
        ("condition", "conditon", "unknown key; did you mean 'condition'?"),
        ("fragmented", "broken", "broken"),
        ("4 KiB", "4 kilo", "expected a quantity in B"),
        ("4 KiB", "100 B", "whole sectors of 512 bytes"),
        ("1 GiB", "4608 B", "expected a multiple of 4 KiB, found '4608 B'"),
        ("depth: 8", "depth: 0", "from 1 to 65536"),
        ("weight: 2", "weight: 0", "a number above zero"),
        ("percent: 90", "percent: 101", "from 0 to 100"),
        ("batch", "web", "two kinds of tenants called web"),
    ],
)
def test_a_file_with_a_mistake_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(FILE.replace(old, new, 1))
    with pytest.raises(BadInput, match=said.replace("?", r"\?")):
        load_scenarios(path)
