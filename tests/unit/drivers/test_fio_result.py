"""fio's JSON, recorded from fio 3.33 on nbdkit, as typed results."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop.errors import ToolError
from rackloop_drivers.workload._fio_result import FioJobResult, complete_documents, last_document, last_text, parse_jobs

RECORDED = Path(__file__).parent / "data" / "fio"


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()


def test_each_job_has_one_result_whatever_its_threads() -> None:
    mixed, reads = parse_jobs(last_document(recorded("mixed.json")))
    assert (mixed.name, reads.name) == ("mixed", "reads")
    assert mixed.transfers.keys() == {"read", "write"}
    assert mixed.io_bytes == 2 * 256 * 1024, "two threads went over 256 KiB each"
    assert reads.io_bytes == 128 * 1024
    assert (mixed.total_err, mixed.error, mixed.error_text) == (0, 0, "")


def test_latencies_are_seconds_and_every_io_is_in_a_bin() -> None:
    (slowed, *_) = parse_jobs(last_document(recorded("interrupted.json")))
    transfer = slowed.transfers["read"]
    assert transfer.latency_s.n == transfer.total_ios
    assert 0.020 < transfer.latency_s.quantile(0.5) < 0.030, "nbdkit delayed every read by 20 ms"
    assert transfer.longest_us == pytest.approx(transfer.latency_s.maximum * 1e6, rel=0.01)
    assert slowed.longest_us == transfer.longest_us
    assert transfer.bandwidth_bytes_per_s == pytest.approx(transfer.io_bytes / transfer.runtime_s, rel=0.01)
    assert transfer.iops == pytest.approx(transfer.total_ios / transfer.runtime_s, rel=0.01)
    assert slowed.runtime_s == transfer.runtime_s


def test_a_job_says_for_which_part_of_the_time_it_was_computing() -> None:
    document = last_document(recorded("interrupted.json"))
    document["jobs"][0] |= {"usr_cpu": 20.5, "sys_cpu": 70.0}
    (busy, *_) = parse_jobs(document)
    assert busy.cpu_share == pytest.approx(0.905)


def test_jobs_at_one_time_are_pooled_as_one() -> None:
    mixed, reads = parse_jobs(last_document(recorded("mixed.json")))
    (faulty,) = parse_jobs(last_document(recorded("eio.json")))
    pooled = FioJobResult.pooled([mixed, replace(reads, cpu_share=0.9), faulty])
    assert (pooled.name, pooled.cpu_share) == ("mixed", 0.9)
    assert (pooled.total_err, pooled.error) == (faulty.total_err, errno.EIO)
    assert pooled.io_bytes == mixed.io_bytes + reads.io_bytes + faulty.io_bytes
    assert pooled.iops == pytest.approx(mixed.iops + reads.iops + faulty.iops)
    assert pooled.bandwidth_bytes_per_s == pytest.approx(
        mixed.bandwidth_bytes_per_s + reads.bandwidth_bytes_per_s + faulty.bandwidth_bytes_per_s
    )
    assert pooled.transfers["write"] == mixed.transfers["write"]
    parts = [job.transfers["read"] for job in (mixed, reads, faulty) if "read" in job.transfers]
    assert pooled.transfers["read"].latency_s.n == sum(part.latency_s.n for part in parts)
    assert pooled.longest_us == max(job.longest_us for job in (mixed, reads, faulty))
    assert FioJobResult.pooled([mixed]) == mixed


def test_errors_that_fio_goes_on_from_are_counted() -> None:
    (faulty,) = parse_jobs(last_document(recorded("eio.json")))
    assert faulty.total_err == json.loads(recorded("eio.json").partition("\n")[2])["jobs"][0]["total_err"] > 0
    assert (faulty.error, faulty.error_text) == (errno.EIO, "Input/output error")


def test_an_error_that_ends_its_job_counts_although_fio_says_none() -> None:
    document = last_document(recorded("enospc.json"))
    assert document["jobs"][0]["total_err"] == 0
    (ended,) = parse_jobs(document)
    assert (ended.total_err, ended.error) == (1, errno.ENOSPC)


def test_an_error_without_errno_is_negative() -> None:
    document = last_document(recorded("enospc.json"))
    document["jobs"][0]["error"] = 4294967295
    (ended,) = parse_jobs(document)
    assert (ended.total_err, ended.error) == (1, -1)


def test_a_job_without_io_has_no_transfers() -> None:
    (refused,) = parse_jobs(last_document(recorded("refused.json")))
    assert refused.transfers == {}
    assert (refused.io_bytes, refused.runtime_s, refused.longest_us) == (0, 0.0, 0.0)


def test_a_report_that_has_counted_an_io_but_not_its_bin_yet_is_no_error() -> None:
    document = last_document(recorded("mixed.json"))
    document["jobs"][0]["read"]["clat_ns"] |= {"N": 1, "bins": {}}
    assert parse_jobs(document)[0].transfers.keys() == {"write"}


def test_text_before_and_between_documents_is_skipped() -> None:
    text = recorded("interrupted.json")
    assert text.startswith("fio: connected to NBD server\n{")
    found, end = complete_documents(text)
    assert len(found) == 4
    assert text[end:].strip() == ""
    done = [parse_jobs(document)[0].io_bytes for document in found]
    assert done == sorted(done), "status reports are totals so far"
    assert parse_jobs(last_document(text))[0].io_bytes == done[-1]


def test_a_message_that_does_not_end_its_line_hides_no_document() -> None:
    document = last_text(recorded("eio.json"))
    said = "\nfio: terminating on signal 2\nfio: select() call in helper thread failed: Interrupted system call"
    assert last_document(said + document) == last_document(document)
    assert last_text(document + said + document) == document
    assert last_text(said) == ""


@given(st.data())
def test_a_document_that_breaks_off_anywhere_is_no_result(data: st.DataObject) -> None:
    text = recorded("eio.json")
    start = text.index("{")
    cut = data.draw(st.integers(start + 1, len(text.rstrip()) - 1))
    assert complete_documents(text[:cut]) == ([], 0)
    with pytest.raises(ToolError, match="breaks off"):
        last_document(text[:cut])


def test_reports_before_the_break_do_not_stand_for_the_result() -> None:
    text = recorded("interrupted.json")
    with pytest.raises(ToolError, match="breaks off"):
        last_document(text[:-200])


def test_no_json_is_told_with_what_was_printed_instead() -> None:
    with pytest.raises(ToolError, match="no JSON, but: fio: engine nosuch not loadable"):
        last_document("fio: engine nosuch not loadable\n")
    with pytest.raises(ToolError, match=r"no JSON$"):
        last_document("")


@pytest.mark.parametrize("document", [{}, {"jobs": [{}]}, {"jobs": [{"error": None}]}, {"jobs": 3}])
def test_json_of_something_else_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(ToolError, match=r"json\+"):
        parse_jobs(document)


@given(
    st.dictionaries(st.integers(1, 17_112_760_320), st.integers(0, 10**6), min_size=1).filter(lambda b: any(b.values()))
)
def test_bins_keep_every_count_in_its_place(bins: dict[int, int]) -> None:
    document = last_document(recorded("mixed.json"))
    side = document["jobs"][1]["read"]
    longest = max(ns for ns, count in bins.items() if count)
    side["clat_ns"] = {"N": sum(bins.values()), "max": longest, "bins": {str(ns): n for ns, n in bins.items()}}
    latency = parse_jobs(document)[1].transfers["read"].latency_s
    assert dict(zip(latency.values, latency.counts, strict=True)) == {ns / 1e9: n for ns, n in bins.items() if n}
    assert latency.maximum == longest / 1e9


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("io_bytes", -1),
        ("io_bytes", True),
        ("total_ios", "12"),
        # What fio prints for a time below zero, after a clock was set back.
        ("runtime", 18446744073709551),
        ("bw_bytes", None),
        ("iops", float("nan")),
        ("iops", float("inf")),
    ],
)
def test_a_figure_that_is_none_is_refused(name: str, value: object) -> None:
    document = last_document(recorded("mixed.json"))
    document["jobs"][0]["read"][name] = value
    with pytest.raises(ToolError, match=rf"json\+.*{name} is "):
        parse_jobs(document)


@pytest.mark.parametrize("value", [-1, 1.5, "0", False])
def test_a_number_of_errors_that_is_none_is_refused(value: object) -> None:
    document = last_document(recorded("mixed.json"))
    document["jobs"][0]["total_err"] = value
    with pytest.raises(ToolError, match="total_err is "):
        parse_jobs(document)
