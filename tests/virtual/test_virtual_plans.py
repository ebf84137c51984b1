"""Shipped tests on guests, to their end: the verdict of each, and what the record says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine, Results
from tests.meta.tree import ROOT
from tests.virtual.guests import baseline_comes

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("three")]

IDENTITY = ROOT / "testplans" / "fabric" / "test_identity.py"


def test_every_port_is_read_after_drives_of_both_kinds_were_dealt_at_once(up: CommandLine, tmp_path: Path) -> None:
    baseline_comes(up)
    ended = up("run", IDENTITY, "--lab", "virtual", "--seed", "7", "--set", "remaps=12", "--out", tmp_path / "out")
    assert ended.status == 0, ended
    results = Results(tmp_path / "out")
    assert {name: test["verdict"] for name, test in results.tests().items()} == {"identity::identity": "pass"}
    measured = {event.name: event.value for event in results.of_kind("measured")}
    assert measured == {
        "identity.remaps": 12,
        "identity.reads": 8,
        "identity.wrong": 0,
        "identity.unread": 0,
        "identity.map_wrong": 0,
    }
    # The rack is given back whole, whatever was ejected meanwhile.
    baseline_comes(up)
