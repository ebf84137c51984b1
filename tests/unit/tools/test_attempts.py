"""Every attempt to write a drive is on record, granted only under a lease that is held then, and shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rackloop.clock import VirtualClock
from rackloop.lab import LabState
from rackloop.safety.leases import Holder, Lease, LeaseLost, Leases
from rackloop.safety.store import open_store
from rackloop_cli.lab import status as lab_status
from tests.parts import parts
from tests.unit.harness.sim_rack import described

WHOLE, ANN = parts(whole=True), Holder("ann", "here")


@pytest.fixture
def leases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Leases]:
    monkeypatch.setenv("RACKLOOP_STATE_HOME", str(tmp_path / "state"))
    with closing(open_store(LabState.of("bench").store, VirtualClock())) as store:
        yield Leases(store, "bench")


def leased(leases: Leases) -> Lease:
    lease = leases.request(WHOLE, ANN, term_s=60.0).lease
    assert lease
    return lease


def test_no_drive_is_granted_under_a_lease_that_is_over_by_then(leases: Leases) -> None:
    lease = leased(leases)
    leases.steal(leases.request(WHOLE, Holder("eve", "there")), "an outage")
    with pytest.raises(LeaseLost, match="stolen by eve"):
        leases.record_attempt(lease, "d01", [])
    [attempt] = leases.attempts()
    assert attempt.drive == "d01"
    assert "stolen by eve@there (an outage)" in attempt.reasons[0]


def test_the_status_of_a_lab_shows_the_last_attempts(
    leases: Leases, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = VirtualClock()
    lease = leased(leases)
    leases.record_attempt(lease, "d01", ["it is the boot drive", "it is in use"])
    leases.record_attempt(lease, "d02", [])
    lab = described(tmp_path)
    held = lab_status.holders(lab, clock)
    assert [(one["drive"], one["lease"], one["reasons"]) for one in held["attempts"]] == [
        ("d02", lease.id, []),
        ("d01", lease.id, ["it is the boot drive", "it is in use"]),
    ]
    going_on = {"id": lease.id, "holder": "ann@here", "slice": {"short": "all"}, "purpose": "", "process": None}
    going_on |= {"granted_at": lease.granted_at.isoformat(), "until": lease.until.isoformat()}
    lab_status.print_holders(lab, held | {"leases": [going_on]})
    said = capsys.readouterr().out
    under = f"to ann@here under lease {lease.id}"
    assert re.search(rf"^permission to write d02 granted .* {under}$", said, re.MULTILINE)
    assert re.search(
        rf"^permission to write d01 refused .* {under}: it is the boot drive; it is in use$", said, re.MULTILINE
    )
