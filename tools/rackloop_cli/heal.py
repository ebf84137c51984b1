"""`rackloop heal LAB`: restore a rack's baseline."""

from __future__ import annotations

from rich.console import Console

from rackloop.clock import RealClock
from rackloop.errors import EXIT_LAB_FAILED, EXIT_PASS
from rackloop.lab import Lab, LabState, load_lab, parts_of
from rackloop.names import printable
from rackloop.record.acts import act_json
from rackloop.safety import HealReport
from rackloop.safety.leases import Leases, LeaseTerms, leased
from rackloop.safety.undo import Journal
from rackloop.units import counted
from rackloop_cli.shared.lab_session import in_maintenance
from rackloop_cli.shared.lab_store import opened_store
from rackloop_cli.shared.output import print_json
from rackloop_cli.shared.own_lease import own_lease, telling_own
from rackloop_cli.shared.steal_prompt import stealing
from rackloop_labs import open_leased
from rackloop_labs.bench_view import BenchInService


def run(name: str, *, steal: bool = False, yes: bool = False, above: int = 0, as_json: bool = False) -> int:
    """Heal the lab; one that is not up is brought up, healed and taken down, so that its journal comes out clean.

    A live holder keeps it from being healed, unless told to ``steal`` its lease: raises RackLeased. The user's own
    lease of the whole rack does not: it is healed within that. The switch is shown a fencing number ``above`` this one.
    """
    lab = load_lab(name)
    clock = RealClock()
    # Beside JSON on standard output, what is told on the way goes to standard error.
    console = Console(stderr=as_json)
    with opened_store(lab, clock) as store:
        leases, wanted = Leases(store, lab.name), parts_of(lab)
        terms = LeaseTerms(purpose="heal", within=own_lease(leases, wanted))
        if steal:
            terms = stealing(leases, wanted, terms, yes=yes)
        with telling_own(leases, "take it over (--steal)"), leased(lab, store, terms) as held:
            worked_on = in_maintenance(lab, store)
            for out in worked_on.values():
                console.print(f"left alone: {out}", soft_wrap=True, markup=False)
            for lease in held.stolen:
                console.print(f"stolen: {lease}", soft_wrap=True, markup=False)
            with open_leased(lab, clock, LabState.of(lab.name), held, above=above) as opened:
                report = BenchInService(opened, worked_on).heal(Journal(store), held, thorough=True)
    if as_json:
        print_json(
            lab=lab.name,
            is_healed=report.is_healed,
            undone=[
                {"id": entry.id, "resource": entry.resource, "what": act_json(entry.what)} for entry in report.undone
            ],
            restored_ports=list(report.restored_ports),
            ended=list(map(str, report.ended)),
            mended=list(report.mended),
            problems=list(report.problems),
            took_s=round(report.took_s, 3),
        )
    else:
        _print(lab, report, console)
    return EXIT_PASS if report.is_healed else EXIT_LAB_FAILED


def _print(lab: Lab, report: HealReport, console: Console) -> None:
    console.print(
        f"lab {lab.name}: {counted(len(report.undone), 'act')} undone, "
        f"{counted(len(report.restored_ports), 'other port')} reconnected as the baseline says, "
        f"in {report.took_s:.2f} s",
        soft_wrap=True,
    )
    for orphan in report.ended:
        console.print(f"  ended: {orphan}", soft_wrap=True, markup=False, emoji=False)
    for fault in report.mended:
        console.print(
            f"  cleared, though no act in the journal explains it: {fault}", soft_wrap=True, markup=False, emoji=False
        )
    for problem in report.problems:
        console.print(f"  not healed: {printable(problem)}", soft_wrap=True, markup=False, emoji=False)
    console.print("the baseline stands and was read back" if report.is_healed else "the rack is not at its baseline")
