"""`rackloop lab cabling`: how long it may take."""

from __future__ import annotations

import pytest

from rackloop.lab import load_lab
from rackloop_cli.lab.cabling import within_s


@pytest.mark.parametrize(("name", "least_s"), [("mock", 30), ("virtual", 120)])
def test_servers_have_the_time_to_tell_of_their_drives_after_the_rack_has_settled(name: str, least_s: float) -> None:
    lab = load_lab(name)
    assert within_s(lab) == least_s >= lab.time_s("settle") + lab.time_s("tools")
