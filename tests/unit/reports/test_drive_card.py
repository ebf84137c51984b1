"""A drive's card and its health: what the drive said, what its server said, and what the snapshots have besides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rackloop.record import DriveSeen, HealthCompared
from rackloop_reports.attachments import description_html
from rackloop_reports.drive_card import unit_of
from rackloop_reports.record import read_run
from tests.unit.reports.example_stream import ExampleRun

FACTS = {"LBA format": "512 B, physical 4096 B", "Link": "8.0 GT/s PCIe x4"}


def page(run_dir: Path, after: str = "health/0002.json", before: str = "health/0001.json") -> str:
    (run_dir / "health").mkdir(parents=True)
    for number, degrees in ((1, 35), (2, 51)):
        counters = {"temperature_c": degrees, "percentage_used": 3, "available_spare": 97, "media_errors": number}
        (run_dir / f"health/000{number}.json").write_text(json.dumps({"drives": {"d01": counters}}))
    example = ExampleRun(run_dir)
    example.start("a/b", "qualify it")
    example.write(DriveSeen("a/b", "d01", "srv1", "p0", "RL", "S1", "1.0", "nvme", 8 << 30, {}, [], FACTS))
    for name, value in (("before", 7.0), ("after", 8.0)):
        example.measure("a/b", f"health.{name}", "1", [value], {"counter": "bytes_read"})
    example.write(HealthCompared("a/b", (), {}, before, after))
    example.finish("a/b")
    run = read_run(example.close())
    return description_html(run.tests[0], run, None, run_dir)


def test_a_card_has_link_sectors_temperature_wear_and_spare(tmp_path: Path) -> None:
    html = page(tmp_path)
    for name, value in (*FACTS.items(), ("Temperature", "51 °C"), ("Wear", "3 % used"), ("Spare", "97 %")):
        assert f"<th>{name}</th><td>{value}</td>" in html


def test_the_health_table_has_units_and_what_the_snapshots_say_besides(tmp_path: Path) -> None:
    html = page(tmp_path)
    assert "<td>bytes_read</td><td>B</td><td>7</td><td>8</td><td>+1</td><td>not judged</td>" in html
    assert "<td>temperature_c</td><td>°C</td><td>35</td><td>51</td><td>+16</td><td>not judged</td>" in html
    assert "<td>percentage_used</td><td>%</td><td>3</td><td>3</td><td>0</td><td>not judged</td>" in html
    assert "<b>media_errors went from 1 to 2" in html


@pytest.mark.parametrize("path", ["health/none.json", "../outside.json", "events.jsonl", "health"])
def test_a_snapshot_that_cannot_be_read_or_is_elsewhere_costs_no_page(tmp_path: Path, path: str) -> None:
    (tmp_path / "outside.json").write_text(json.dumps({"drives": {"d01": {"temperature_c": 99}}}))
    html = page(tmp_path / "run", path)
    assert "Identity card" in html
    assert "99 °C" not in html


def test_counters_of_a_drive_that_could_not_be_read_before_are_not_new(tmp_path: Path) -> None:
    html = page(tmp_path, before="health/none.json")
    assert "<td>bytes_read</td>" in html
    assert "media_errors" not in html


@pytest.mark.parametrize(
    ("counter", "unit"), [("bytes_written", "B"), ("temperature_c", "°C"), ("power_on_hours", "h"), ("crc_errors", "")]
)
def test_units(counter: str, unit: str) -> None:
    assert unit_of(counter) == unit
