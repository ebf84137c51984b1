"""What a dry run prints of the tests it foresees."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackloop.lab import load_lab
from rackloop.plan import Plan
from rackloop_cli import run
from rackloop_fixtures import DryRunEntry

PLAN = Plan("p", "It is tried.", (), None, Path("p.yaml"))


def test_drives_that_are_broken_and_not_erased_are_listed_beside_those_that_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    faults = ("1 hot_unplug of fast1", "1 hot_unplug of shelf1-0", "1 power_loss of node1")
    broken = DryRunEntry("direct/it::it", "break it", ("fast1",), faults, 1.0)
    run._print_dry_run([broken], PLAN, load_lab("direct-attached"))
    said = capsys.readouterr().out.splitlines()
    assert said[said.index("  drives erased: fast1") + 1] == "  drives disturbed, not erased: shelf1-0"


def test_what_is_blocked_is_said_with_each_reason_and_how_the_run_would_end(capsys: pytest.CaptureFixture[str]) -> None:
    blocked = DryRunEntry("direct/it::it", "break it", (), (), 0.0, blocked=("no switch", "no slots"))
    passed_over = DryRunEntry("direct/other::it", "break it", (), (), 0.0, skipped=("no enclosure",))
    run._print_dry_run([blocked, passed_over], PLAN, load_lab("direct-attached"))
    said = capsys.readouterr().out
    assert "  it is blocked: no switch; no slots\n" in said
    assert "  it is skipped: no enclosure\n" in said
    assert said.endswith("2 tests, about 0 s, 0 drives erased; 1 of them blocked: the run would end with status 3\n")


def test_nothing_is_said_of_disturbed_drives_where_all_are_erased(capsys: pytest.CaptureFixture[str]) -> None:
    erasing = DryRunEntry("direct/it::it", "break it", ("fast1",), ("hang of fast1",), 1.0)
    run._print_dry_run([erasing], PLAN, load_lab("direct-attached"))
    assert "disturbed" not in capsys.readouterr().out
