"""`rackloop run` and `rackloop demo`: a plan on a lab, from validation to the report."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from rich.console import Console
from rich.markup import escape

from rackloop.clock import RealClock
from rackloop.data import data_path
from rackloop.errors import (
    EXIT_BAD_INPUT,
    EXIT_INTERRUPTED,
    EXIT_LAB_FAILED,
    EXIT_PASS,
    BadInput,
    LabError,
    RackloopError,
)
from rackloop.lab import Lab, LabKind, LabState, load_lab
from rackloop.names import names_in
from rackloop.plan import Plan, find_testplans, load_plan, override, require_parts
from rackloop.units import counted
from rackloop_fixtures import Observer, path_of

if TYPE_CHECKING:
    from rackloop_fixtures import DryRunEntry


@dataclass(frozen=True)
class RunRequest:
    """What the user asked to run."""

    plan: str
    lab: str
    out: Path | None = None
    seed: int | None = None
    expression: str | None = None
    workers: int = 1
    testplans: Path | None = None
    settings: tuple[str, ...] = ()
    servers: str | None = None
    lease: str | None = None
    wait_s: float = 0.0
    priority: int = 0
    steal: bool = False
    yes: bool = False
    with_report: bool = True
    dry_run: bool = False


def run(request: RunRequest) -> int:
    """Run the plan; returns the exit status of the interface. Raises BadInput before anything was touched.

    Raises LabError where the results could not be written: the rack is given back, and there is no report.
    """
    tests_root = find_testplans(request.testplans)
    lab = load_lab(request.lab)
    plan = override(load_plan(request.plan, tests_root), request.settings, tests_root)
    require_parts(plan, lab, tests_root)
    files = [str(path_of(tests_root, entry.file)) for entry in plan.tests]
    if request.workers > 1 and lab.kind is not LabKind.MOCK:
        raise BadInput(f"-n {request.workers} needs as many racks, and lab {lab.name} is one: leave -n out")
    names_in(request.servers)
    if request.workers > 1 and (request.servers or request.lease or request.steal):
        raise BadInput(f"-n {request.workers} makes a rack for each worker: leave --servers, --lease and --steal out")
    arguments = _common_arguments(request, files, tests_root)
    if request.dry_run:
        return _dry_run(arguments, lab, plan)
    if request.workers > 1 and not _is_sound(arguments):
        return EXIT_BAD_INPUT
    if request.steal:
        arguments += _steal_arguments(request, lab, plan)
    with _fresh_directory(request.out, plan, lab) as directory:
        status = _run_pytest(request, arguments, directory)
    return status if status == EXIT_BAD_INPUT else _report(directory, lab, status, request.with_report)


def _is_sound(arguments: list[str]) -> bool:
    """Whether the tests can be collected, which several processes would each complain of in their own way."""
    observer = Observer()
    _pytest_main([*arguments, *_DRY], observer)
    return observer.dry_run is not None


def _run_pytest(request: RunRequest, arguments: list[str], directory: Path) -> int:
    observer = Observer()
    arguments = [
        *arguments,
        f"--rackloop-out={directory}",
        f"--alluredir={directory / 'allure-results'}",
        *([f"-n{request.workers}"] if request.workers > 1 else []),
    ]
    with terminate_as_interrupt():
        pytest_status = _pytest_main(arguments, observer)
    if pytest_status == _USAGE_ERROR:
        _empty(directory)
        return EXIT_BAD_INPUT
    if observer.problem is not None:
        # Neither would a report of what there is find room.
        raise LabError(observer.problem)
    if observer.interrupted:
        return EXIT_INTERRUPTED
    # What pytest holds against the session, a plugin that broke for one, is never green.
    return observer.status or (EXIT_LAB_FAILED if pytest_status or observer.status is None else EXIT_PASS)


_USAGE_ERROR = 4
_FAULTS_IN_A_LINE = 3
_WORD = re.compile(r"[A-Za-z0-9_-]+")
_DRY = ("--rackloop-dry-run", "-qq", "--no-header")


def _common_arguments(request: RunRequest, files: list[str], tests_root: Path) -> list[str]:
    arguments = [
        *dict.fromkeys(files),
        f"-c{data_path('testplans') / 'pytest.ini'}",
        f"--rootdir={tests_root}",
        f"--rackloop-testplans={tests_root}",
        f"--rackloop-plan={request.plan}",
        f"--rackloop-lab={request.lab}",
    ]
    arguments += (f"--rackloop-set={setting}" for setting in request.settings)
    if request.seed is not None:
        arguments.append(f"--rackloop-seed={request.seed}")
    arguments += _lease_arguments(request)
    if request.expression:
        arguments.append(f"-k={request.expression}")
    return arguments


def _lease_arguments(request: RunRequest) -> list[str]:
    arguments = [f"--rackloop-wait={request.wait_s:g}", f"--rackloop-priority={request.priority}"]
    if request.servers is not None:
        arguments.append(f"--rackloop-servers={request.servers}")
    if request.lease is not None:
        arguments.append(f"--rackloop-lease={request.lease}")
    return arguments


def _steal_arguments(request: RunRequest, lab: Lab, plan: Plan) -> list[str]:
    """Why the rack is taken, and from which leases, once the user has agreed; none where nobody has it."""
    from rackloop.safety.leases import Leases, LeaseTerms
    from rackloop.safety.store import open_lab_store
    from rackloop_cli.shared.steal_prompt import agree_to_steal

    with closing(open_lab_store(lab, LabState.of(lab.name), RealClock())) as store:
        leases = Leases(store, lab.name)
        wanted = LeaseTerms(servers=names_in(request.servers), within=request.lease).part_of(lab, leases)
        agreed = agree_to_steal(leases, wanted, f"plan {plan.plan}", yes=request.yes, within=request.lease)
    if agreed.why is None:
        return []
    return [f"--rackloop-steal={agreed.why}", f"--rackloop-steal-from={','.join(sorted(agreed.leases))}"]


def _pytest_main(arguments: list[str], *plugins: object) -> int:
    import pytest

    return int(pytest.main(arguments, plugins=list(plugins)))


def _dry_run(arguments: list[str], lab: Lab, plan: Plan) -> int:
    observer = Observer()
    status = _pytest_main([*arguments, *_DRY], observer)
    if observer.dry_run is None:
        return EXIT_BAD_INPUT if status == _USAGE_ERROR else EXIT_LAB_FAILED
    _print_dry_run(observer.dry_run, plan, lab)
    return EXIT_PASS


def _print_dry_run(entries: list[DryRunEntry], plan: Plan, lab: Lab) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"Plan {plan.plan} on lab {lab.name} ({lab.kind}): dry run, nothing was touched")
    if plan.provision is not None:
        console.print(f"Servers are provisioned first: playbook {escape(str(plan.provision))}")
    for test in entries:
        console.print(
            f"\n[bold]{escape(test.test)}[/bold]" + ("" if test.skipped else f"  about {test.estimate_s:.0f} s")
        )
        console.print(f"  this test will {escape(test.purpose)}")
        if test.skipped:
            console.print(f"  it is skipped: {escape('; '.join(test.skipped))}")
            continue
        console.print(f"  drives erased: {escape(', '.join(test.erases)) or 'none'}")
        if disturbed := _disturbed(test, lab):
            console.print(f"  drives disturbed, not erased: {escape(', '.join(disturbed))}")
        if len(test.faults) <= _FAULTS_IN_A_LINE:
            console.print(f"  faults: {escape(', '.join(test.faults)) or 'none'}")
        else:
            console.print(f"  faults: {len(test.faults)}")
            console.print(escape("\n".join(f"    {fault}" for fault in test.faults)))
    total_s = sum(test.estimate_s for test in entries)
    erased = {drive for test in entries for drive in test.erases}
    console.print(f"\n{counted(len(entries), 'test')}, about {total_s:.0f} s, {counted(len(erased), 'drive')} erased")


def _disturbed(test: DryRunEntry, lab: Lab) -> list[str]:
    """The drives that the faults of a test name and that it does not erase."""
    named = {word for fault in test.faults for word in _WORD.findall(fault)}
    return [drive for drive in lab.drives if drive in named and drive not in test.erases]


def _report(directory: Path, lab: Lab, status: int, with_html: bool) -> int:
    """Render the reports; a report that cannot be made does not change what the run found, unless it was a pass."""
    from rackloop_reports import ReportToolMissing, render, write_summary
    from rackloop_reports.terminal import render as render_table

    console = Console()
    if not (directory / "events.jsonl").exists():
        return status
    try:
        if with_html:
            rendered = render(directory, history=LabState.of(lab.name).history)
            summary, where = rendered.summary, f"Report: {rendered.index}"
        else:
            summary, where = write_summary(directory), f"Results: {directory}"
    except ReportToolMissing as error:
        # A machine without Node.js can run plans; what was found stands.
        print(f"rackloop: {error}", file=sys.stderr)
        summary, where = write_summary(directory), f"Results: {directory}"
    except RackloopError as error:
        print(f"rackloop: {error}", file=sys.stderr)
        return status or EXIT_LAB_FAILED
    console.print(render_table(summary))
    console.print(where, soft_wrap=True)
    return status


@contextmanager
def _fresh_directory(chosen: Path | None, plan: Plan, lab: Lab) -> Iterator[Path]:
    """The directory for the results, made; raises BadInput where it cannot be or holds something already.

    A run that never began leaves it, and the folders above it, as they were.
    """
    if chosen is None:
        stamp = RealClock().wall().astimezone().strftime("%Y%m%d-%H%M%S")
        chosen = Path("runs") / f"{plan.plan}-{lab.name}-{stamp}"
    try:
        made = [folder for folder in (chosen, *chosen.parents) if not folder.exists()]
        chosen.mkdir(parents=True, exist_ok=True)
        occupied = any(chosen.iterdir())
        writable = os.access(chosen, os.W_OK | os.X_OK)
    except OSError as error:
        raise BadInput(f"cannot use {chosen} for the results: {error.strerror}; choose another --out") from error
    if occupied:
        raise BadInput(f"{chosen} is not empty: results are never mixed; choose another --out")
    if not writable:
        raise BadInput(f"{chosen} cannot be written; choose another --out")
    directory = chosen.resolve()
    try:
        yield directory
    finally:
        if not any(directory.iterdir()):
            # Another run may have begun beside it meanwhile.
            with suppress(OSError):
                for folder in made:
                    folder.rmdir()


def _empty(directory: Path) -> None:
    for entry in directory.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """Have SIGTERM end a run as Ctrl-C does: the rack is healed and the report written."""

    def interrupt(_number: int, _frame: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
