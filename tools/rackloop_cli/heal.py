"""`rackloop heal LAB`: give a rack back its baseline, whoever left it otherwise."""

from __future__ import annotations

from rich.console import Console

from rackloop.clock import Deadline, RealClock
from rackloop.errors import EXIT_LAB_FAILED, EXIT_PASS
from rackloop.fencing import next_token
from rackloop.guard import require_may_disturb
from rackloop.heal import heal
from rackloop.journal import Journal
from rackloop.lab import load_lab
from rackloop.state import LabState
from rackloop.store import open_lab_store
from rackloop.units import counted
from rackloop_labs import only_run_on, open_lab

_WITHIN_S = 60.0


def run(name: str) -> int:
    """Heal the lab; one that is not up is brought up, healed and taken down, so that its journal comes out clean."""
    lab = load_lab(name)
    require_may_disturb(lab)
    clock = RealClock()
    state = LabState.of(lab.name)
    journal = Journal(open_lab_store(lab, state, clock))
    try:
        with only_run_on(state), open_lab(lab, clock, state, next_token(journal.store, lab.name)) as bench:
            report = heal(lab, journal, bench.equipment, clock, Deadline.after(clock, _WITHIN_S))
    finally:
        journal.close()
    console = Console()
    console.print(
        f"lab {lab.name}: {counted(len(report.undone), 'act')} undone, "
        f"{counted(len(report.restored_ports), 'further port')} given back their baseline circuits, "
        f"in {report.took_s:.2f} s",
        soft_wrap=True,
    )
    for problem in report.problems:
        console.print(f"  not healed: {problem}", soft_wrap=True)
    console.print("the baseline stands and was read back" if report.is_healed else "the rack is not at its baseline")
    return EXIT_PASS if report.is_healed else EXIT_LAB_FAILED
