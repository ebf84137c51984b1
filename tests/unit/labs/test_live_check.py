"""A live check of a rack: the time that it may take, and what it says of a clock."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rackloop.errors import LabError
from rackloop.lab import load_lab
from rackloop_drivers.clock_access import ClockAccess
from rackloop_labs.live_check import _require_clock, live_check_s
from tests.deadlines import soon


def test_a_check_has_the_time_of_the_description_for_a_survey_and_each_port(tmp_path: Path) -> None:
    path = tmp_path / "rack.yaml"
    path.write_text(
        "name: rack\nkind: mock\nfabric: {driver: flexfabric, ports: 40}\ntimes: {tools: 7 min}\n"
        "servers:\n  srv1: {ports: {p0: 1, p1: 2, p2: 3}}\n  srv2: {ports: {p0: 4}}\n"
        "drives:\n  d1: {profile: sata-ssd, serial: S1, wwn: 5000c500a0000001, size: 8 GiB, port: 21, scratch: true}\n"
    )
    assert live_check_s(load_lab(path)) == 4 * 7 * 60


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (None, "its TCP port 6170 is not reached at rack1:7001: let it through the firewall, or take clock"),
        ("Address in use", r"rackprobe cannot have its TCP port 6170 \(Address in use\): free it, or take clock"),
    ],
)
def test_a_clock_that_is_not_shown_is_told_with_its_reason(refusal: str | None, said: str) -> None:
    clock = SimpleNamespace(is_own=False)
    session = SimpleNamespace(is_clock_shown=False, host_clock=clock, clock_refusal=refusal)
    probe: Any = SimpleNamespace(device_events=lambda *_: nullcontext(session))
    access = ClockAccess("rack1", 7001, listens_at=6170)
    with pytest.raises(LabError, match=said):
        _require_clock(probe, access, soon(5))
    clock.is_own = True
    _require_clock(probe, access, soon(5))
