"""blobload with real storage switches: a key-value store whose blobs have a replica in each of two boxes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from tests.blobload_process import RECORDS, blobload, document, running
from tests.storageswitch_process import RunningSwitch, running_switch

SIZE_BYTES = 16 << 20
CONFIG = {
    "schema": 1,
    "drive": {"kind": "memory", "bytes": SIZE_BYTES},
    "scheduler": {"kind": "gimbal"},
    "tenants": [{"name": "a"}],
}
QUANTILES = {2: "p50", 100: "p99", 1000: "p99_9"}
ONE_REPLICA = {"replicas": 1, "unit_bytes": 1 << 20, "blob_bytes": 128 << 10}


@contextmanager
def two_switches() -> Iterator[list[RunningSwitch]]:
    """Two switches, each with a drive of memory, Gimbal, and a tenant a."""
    with ExitStack() as stack:
        yield [stack.enter_context(running_switch(CONFIG)) for _ in range(2)]


@contextmanager
def reading_from_files(folder: Path) -> Iterator[tuple[list[Path], Popen[str], Iterator[dict[str, Any]]]]:
    """A blobload that reads what it has loaded, of two drives that are files: these, its process, and its lines."""
    files = [folder / "one", folder / "two"]
    with ExitStack() as stack:
        switches = []
        for file in files:
            file.write_bytes(bytes(SIZE_BYTES))
            drive = {"kind": "file", "path": str(file)}
            switches.append(stack.enter_context(running_switch(CONFIG | {"drive": drive})))
        reads = document(switches, mix="c", operations=50_000, progress_every=500)
        process, lines = stack.enter_context(running(reads))
        assert next(lines)["event"] == "loaded"
        next(lines)
        yield files, process, lines


def test_what_is_read_is_what_was_written_on_both_replicas() -> None:
    with two_switches() as switches:
        done = blobload(document(switches))
    assert done.returncode == 0, done.stderr
    loaded, result = map(json.loads, done.stdout.splitlines())
    assert loaded == {"event": "loaded", "records": RECORDS}
    assert (result["operations"], result["errors"], result["mismatch"]) == (2000, 0, None)
    assert result["gets"]["count"] + result["puts"]["count"] == 2000
    for kind, one_in in product(("gets", "puts", "scans"), QUANTILES):
        enough = result[kind]["count"] >= 10 * one_in
        assert (result[kind]["latency_ns"][QUANTILES[one_in]] is not None) == enough, (kind, one_in)
    assert result["verified_bytes"] >= 4096 * result["counters"]["blocks_read"] > 0
    assert result["counters"]["flushed_bytes"] > 0
    assert result["credit_updates"] > 0
    assert all(drive["credit"] for drive in result["drives"])
    assert sum(result["reads_by_replica"]) == sum(drive["reads"] for drive in result["drives"])


def test_reads_go_on_and_writes_fail_when_a_switch_is_lost() -> None:
    with (
        two_switches() as switches,
        running(document(switches, operations=20_000, progress_every=500)) as (process, lines),
    ):
        assert next(lines)["event"] == "loaded"
        before = next(lines)
        switches[1].process.kill()
        *_, result = lines
    assert process.returncode == 1
    assert before["operations"] < result["operations"] == 20_000
    assert result["gets"]["errors"] == 0
    assert result["gets"]["count"] > before["operations"]
    assert result["puts"]["errors"] > 0
    assert "a write failed on drives [1] of its replicas" in result["first_error"]
    assert result["mismatch"] is None
    kept, lost = result["drives"]
    assert kept["lost"] is None
    assert lost["lost"]
    assert kept["reads"] > lost["reads"]


def test_other_bytes_than_were_written_are_found(tmp_path: Path) -> None:
    """Both drives are overwritten behind the back of the database, whose cache is off."""
    with reading_from_files(tmp_path) as (files, process, lines):
        for file in files:
            with file.open("r+b") as blocks:
                blocks.write(bytes(SIZE_BYTES))
        *_, result = lines
    assert process.returncode == 1
    assert result["operations"] == 50_000
    assert "is not what was written: it begins as key 0x0, write 0" in result["mismatch"]


def test_reads_that_one_drive_fails_are_told_though_another_has_the_bytes(tmp_path: Path) -> None:
    with reading_from_files(tmp_path) as (files, process, lines):
        os.truncate(files[0], 0)
        *_, result = lines
    assert (process.returncode, result["errors"], result["mismatch"]) == (0, 0, None)
    assert [drive["failed"] > 0 for drive in result["drives"]] == [True, False]


def test_more_answers_than_a_switch_keeps_are_read_while_requests_are_sent() -> None:
    """Large blocks, so that a thousand reads are a gigabyte, and each is of one of eight."""
    mib, few = 1 << 20, 8
    tree = dict.fromkeys(("record_bytes", "block_bytes", "background_bytes", "table_bytes", "memtable_bytes"), mib)
    unlimited = CONFIG | {"scheduler": {"kind": "none"}}
    with running_switch(unlimited) as switch:
        text = document(
            [switch],
            mix="c",
            records=few,
            depth=1000,
            operations=1000,
            layout={"replicas": 1, "unit_bytes": mib, "blob_bytes": mib},
            tree=tree | {"level_base_bytes": 16 * mib, "cache_bytes": 0},
        )
        done = blobload(text)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["verified_bytes"] == 1000 * mib


def test_no_more_operations_are_under_way_than_there_are() -> None:
    with two_switches() as switches:
        done = blobload(document(switches, depth=2**62))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["operations"] == 2000


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mix": "z"}, 'there is no YCSB workload "z"; give a, b, c, d, e or f'),
        ({"records": 0}, "records is 0; give at least 1"),
        ({"records": 1_000_000}, "the records do not fit: no space for a blob of 131072 bytes"),
        ({"records": 2**62}, "the records do not fit: no space for a blob of 131072 bytes"),
        ({"layout": {"replicas": 3}}, "layout: 3 replicas need as many drives"),
        ({"colour": 1}, "unknown field `colour`"),
    ],
)
def test_bad_input_is_refused(changes: dict[str, Any], said: str) -> None:
    with two_switches() as switches:
        done = blobload(document(switches, **changes))
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.parametrize(
    ("places", "said"), [([0, 0, 1], "drives 0 and 1 are one"), ([0, 1, 0], "drives 0 and 2 are one")]
)
def test_one_export_as_two_drives_is_refused(places: list[int], said: str) -> None:
    with two_switches() as switches:
        done = blobload(document([switches[place] for place in places]))
    assert (done.returncode, done.stdout) == (2, "")
    assert f'{said}, tenant "a" of {switches[0].control}: name each once' in done.stderr


def test_one_tenant_by_another_path_is_no_other_drive(tmp_path: Path) -> None:
    with running_switch(CONFIG) as switch:
        linked = replace(switch, nbd=tmp_path / "nbd", control=tmp_path / "control")
        linked.nbd.symlink_to(switch.nbd)
        linked.control.symlink_to(switch.control)
        done = blobload(document([switch, linked]))
    assert (done.returncode, done.stdout) == (2, "")
    assert "drives 0 and 1 are one" in done.stderr


def test_an_export_that_may_not_be_written_is_refused() -> None:
    with running_switch(CONFIG | {"tenants": [{"name": "a", "read_only": True}]}) as switch:
        done = blobload(document([switch], layout={"replicas": 1}))
    assert (done.returncode, done.stdout) == (2, "")
    assert 'drive "a": its export is read-only; name a tenant that may write' in done.stderr


def test_an_export_without_its_switch_is_not_written() -> None:
    with two_switches() as switches:
        text = document(switches).replace('"tenant": "a"', '"tenant": "b"').replace("nbd+unix:///a?", "nbd+unix:///b?")
        done = blobload(text)
        assert all(switch.state()["drives"][0]["scheduler"]["tenants"] == [] for switch in switches)
    assert done.returncode == 2
    assert "the switch has no tenant of this name" in done.stderr


@pytest.mark.parametrize(
    ("size_bytes", "said"),
    [
        (SIZE_BYTES, "the tenant had 0 connections there before, and 0 with that to the export"),
        (2 * SIZE_BYTES, "its export has 33554432 bytes, and the tenant's region there 16777216"),
    ],
)
def test_an_export_of_another_switch_is_not_written(size_bytes: int, said: str) -> None:
    larger = CONFIG | {"drive": {"kind": "memory", "bytes": size_bytes}}
    with running_switch(CONFIG) as checked, running_switch(larger) as other:
        done = blobload(document([replace(checked, nbd=other.nbd)], layout=ONE_REPLICA))
        written = [switch.tenant("a")["latency"]["write"]["drive_ns"]["n"] for switch in (checked, other)]
    assert (done.returncode, done.stdout, written) == (2, "", [0, 0])
    assert f"{other.uri('a')} is not of this switch: {said}" in done.stderr


def test_an_export_of_another_tenant_is_not_written() -> None:
    with running_switch(CONFIG | {"tenants": [{"name": "a"}, {"name": "b"}]}) as switch:
        done = blobload(document([switch], layout=ONE_REPLICA).replace("nbd+unix:///a?", "nbd+unix:///b?"))
        written = [switch.tenant(name)["latency"]["write"]["drive_ns"]["n"] for name in "ab"]
    assert (done.returncode, done.stdout, written) == (2, "", [0, 0])
    assert 'drive "a": uri: its export is "b"; name that of the tenant' in done.stderr
