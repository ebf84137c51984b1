"""`rackloop lab cabling`: the expected and the observed drive at every server port."""

from __future__ import annotations

import json

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rackloop.clock import Deadline, RealClock
from rackloop.errors import EXIT_LAB_FAILED, EXIT_PASS
from rackloop.inspection.cabling import PortCheck
from rackloop.lab import Lab, LabKind, LabState, load_lab
from rackloop.units import counted
from rackloop_cli.shared.tables import plain_table, print_whole
from rackloop_labs import open_lab
from rackloop_labs.discovery import cabling

_LEAST_S = 30.0


def run(name: str, *, as_json: bool) -> int:
    """Check a lab that is up, and print a row for each port; a disagreement is exit 3."""
    lab, clock = load_lab(name), RealClock()
    with open_lab(lab, clock, LabState.of(lab.name), token=None, bring_up=False) as bench:
        checks = cabling(bench, Deadline.after(clock, within_s(lab)))
    found = [disagreement for check in checks for disagreement in check.disagreements]
    if as_json:
        print(json.dumps({"schema": 1, "lab": lab.name, "ports": [_as_dict(check) for check in checks]}, indent=2))
    else:
        console = Console()
        simulated = ", simulated" if lab.kind is LabKind.MOCK else ""
        console.print(f"lab {lab.name} ({lab.kind}{simulated}), the map as it is now")
        print_whole(console, _table(checks))
        for disagreement in found:
            console.print(str(disagreement), soft_wrap=True, markup=False, highlight=False)
        console.print(f"{counted(len(checks), 'port')}, {counted(len(found), 'disagreement')}")
    return EXIT_LAB_FAILED if found else EXIT_PASS


def within_s(lab: Lab) -> float:
    """The seconds that a check may take: the rack settles, and then its servers tell of their drives once more."""
    return max(_LEAST_S, lab.time_s("settle") + lab.time_s("tools"))


def _table(checks: list[PortCheck]) -> Table:
    table = plain_table("port", "switch", "expected", "seen", "")
    server = checks[0].server if checks else ""
    for check in checks:
        if check.server != server:
            table.add_section()
            server = check.server
        number = "" if check.switch_port is None else str(check.switch_port)
        verdict = "[red]wrong[/red]" if check.disagreements else "ok"
        # What drives say of themselves is no markup.
        table.add_row(f"{check.server}.{check.port}", number, escape(check.expected), escape(check.found), verdict)
    return table


def _as_dict(check: PortCheck) -> dict[str, object]:
    return {
        "server": check.server,
        "port": check.port,
        "switch_port": check.switch_port,
        "expected": check.expected,
        "seen": check.found,
        "disagreements": [
            {"expected": found.expected, "found": found.found, "advice": found.advice} for found in check.disagreements
        ],
    }
