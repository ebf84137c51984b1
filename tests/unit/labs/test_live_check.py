"""The time that a live check of a rack may take."""

from __future__ import annotations

from pathlib import Path

from rackloop.lab import load_lab
from rackloop_labs.live_check import live_check_s


def test_a_check_has_the_time_of_the_description_for_a_survey_and_each_port(tmp_path: Path) -> None:
    path = tmp_path / "rack.yaml"
    path.write_text(
        "name: rack\nkind: mock\nfabric: {driver: flexfabric, ports: 40}\ntimes: {tools: 7 min}\n"
        "servers:\n  srv1: {ports: {p0: 1, p1: 2, p2: 3}}\n  srv2: {ports: {p0: 4}}\n"
        "drives:\n  d1: {profile: sata-ssd, serial: S1, wwn: 5000c500a0000001, size: 8 GiB, port: 21, scratch: true}\n"
    )
    assert live_check_s(load_lab(path)) == 4 * 7 * 60
