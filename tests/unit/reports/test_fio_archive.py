"""What fio was told and answered stands in the run's directory and in the report."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest

from rackloop.seed import stream
from rackloop_drivers.workload import recording_fio
from rackloop_drivers.workload._fio_records import tell
from rackloop_reports import fio_archive as module
from rackloop_reports.allure_results import complete
from rackloop_reports.fio_archive import fio_archive
from rackloop_reports.record import read_run
from tests.unit.reports.example_stream import small_run


def test_every_fio_of_a_block_is_told_to_those_who_listen() -> None:
    heard: list[tuple[str, str, str]] = []
    tell("fio-1", "fio", "before")
    with recording_fio(lambda *told: heard.append(told)):
        tell("fio-2", "fio", "[job]")
        tell("fio-2", "json", "{}")
    tell("fio-3", "fio", "after")
    assert heard == [("fio-2", "fio", "[job]"), ("fio-2", "json", "{}")]


def test_the_files_are_attached_to_their_test_and_reporting_twice_gives_the_same(tmp_path: Path) -> None:
    run = read_run(small_run(tmp_path))
    folder = tmp_path / "fio/a-b"
    folder.mkdir(parents=True)
    (folder / "0001.fio").write_text("[job]\n")
    (folder / "0001.json").write_text("{}\n")
    results = tmp_path / "allure-results"
    complete(run, results, tmp_path)
    (page,) = (json.loads(path.read_text()) for path in results.glob("*-result.json"))
    (attached,) = [one for one in page["attachments"] if one["type"] == "application/zip"]
    once = (results / attached["source"]).read_bytes()
    with zipfile.ZipFile(io.BytesIO(once)) as archive:
        assert archive.namelist() == ["0001.fio", "0001.json"]
        assert archive.read("0001.fio") == b"[job]\n"
    complete(run, results, tmp_path)
    assert (results / attached["source"]).read_bytes() == once


def test_a_test_without_fio_has_no_archive(tmp_path: Path) -> None:
    assert fio_archive(tmp_path, "a/b") is None


@pytest.mark.parametrize(("random_bytes", "is_attached"), [(1000, True), (module.MOST_BYTES, False)])
def test_what_is_too_large_to_send_on_stays_in_the_directory(
    tmp_path: Path, random_bytes: int, *, is_attached: bool
) -> None:
    folder = tmp_path / "fio/a-b"
    folder.mkdir(parents=True)
    (folder / "0001.json").write_bytes(stream(7, "fio").randbytes(random_bytes))
    assert (fio_archive(tmp_path, "a/b") is not None) is is_attached
