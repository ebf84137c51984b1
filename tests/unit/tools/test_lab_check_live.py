"""A simulated rack is brought up to be checked as it is for a run: under a lease."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from rackloop.clock import RealClock
from rackloop.errors import EXIT_LAB_FAILED
from rackloop.lab import LabState, parts_of
from rackloop.safety.leases import Holder, Leases
from rackloop.safety.store import open_store
from rackloop_cli.lab.check import run
from tests.unit.harness.sim_rack import described


def test_a_rack_that_is_not_up_is_not_brought_up_under_its_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RACKLOOP_STATE_HOME", str(tmp_path / "state"))
    lab = described(tmp_path)
    state = LabState.of(lab.name)
    with closing(open_store(state.store, RealClock())) as store:
        Leases(store, lab.name).request(parts_of(lab), Holder("ann", "there"), term_s=600.0)
    assert run([str(lab.source)], live=True) == EXIT_LAB_FAILED
    assert "bench: opens: " in (said := capsys.readouterr().err)
    assert "held by ann" in said
    assert not state.log.exists()
