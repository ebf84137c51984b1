"""`rackloop run` and `rackloop demo`: a plan on a lab, from validation to the report."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING

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
from rackloop.lab import Lab, LabState
from rackloop.names import printable
from rackloop.plan import Plan, path_of
from rackloop.units import counted, format_duration
from rackloop_cli.shared.interruption import interruptible_run
from rackloop_cli.shared.output import print_json
from rackloop_cli.shared.quiet_session import QuietSession
from rackloop_cli.shared.run_display import RunDisplay
from rackloop_fixtures import (
    DEFAULT_LAB,
    PlannedSession,
    added_s,
    has_own_tests,
    import_folders,
    require_plan,
    results_folder,
)
from rackloop_labs.readiness import unready

if TYPE_CHECKING:
    from rackloop_fixtures import DryRunEntry, PreparedRun, RunRequest


def run(
    request: RunRequest,
    *,
    pytest_options: Sequence[str] = (),
    workers: int = 1,
    steal: bool = False,
    yes: bool = False,
    with_report: bool = True,
    verbose: int = 0,
    shows_pytest: bool = False,
    as_json: bool = False,
) -> int:
    """Run the plan of ``request``; returns the exit status. Raises BadInput before anything was touched.

    ``pytest_options`` are options of pytest, such as ``-k EXPRESSION`` and ``-x``. With ``steal`` the rack is taken
    from its holder, once the user agrees, which ``yes`` says beforehand. ``verbose`` shows all measurements, and
    pytest's own words, as ``shows_pytest`` does; ``as_json`` prints the summary, or the dry run, as JSON. Raises
    LabError where the results could not be written: the rack is given back, and there is no report.
    """
    prepared = request.read()
    lab = prepared.rack
    if workers > 1:
        prepared.require_racks(f"-n {workers}")
        if steal:
            raise BadInput(f"-n {workers} makes a rack for each worker: leave --steal out")
    arguments = _pytest_arguments(prepared, pytest_options)
    if request.dry_run:
        return _dry_run(prepared, arguments, as_json=as_json)
    if workers > 1 and not _is_sound(prepared, arguments):
        return EXIT_BAD_INPUT
    if steal:
        prepared = _agreed_to_steal(prepared, yes=yes)
    with RunDisplay() as display:
        with _fresh_directory(request.out, prepared.plan, lab) as directory:
            prepared = replace(prepared, request=replace(prepared.request, out=directory))
            arguments += [f"--alluredir={directory / 'allure-results'}", *([f"-n{workers}"] if workers > 1 else [])]
            arguments += ["-v"] * verbose
            status = _run_pytest(prepared, arguments, directory, display, is_quiet=not (verbose or shows_pytest))
        if status == EXIT_BAD_INPUT:
            return status
        display.pytest_rackloop_step("writing the report")
        return _report(
            directory, lab, status, with_report, everything=bool(verbose), as_json=as_json, rendered=display.stop
        )


def lab_for(plan: str, lab: str | None, testplans: Path | None = None) -> str:
    """The lab to run ``plan`` on: the one that was chosen; a test file, or a folder of them, has a default."""
    if lab is None and not has_own_tests(plan):
        require_plan(plan, testplans)
        raise BadInput(f"--lab is missing: on which lab? `--lab {DEFAULT_LAB}` is the simulated one")
    return lab or DEFAULT_LAB


def options_of_pytest(given: Sequence[str]) -> Sequence[str]:
    """The options given after ``--``. Raises BadInput where the first is none."""
    if given and not given[0].startswith("-"):
        raise BadInput(
            f"one plan, test file or folder a run: {given[0]!r} is one too many; options of pytest go after --"
        )
    return given


def _is_sound(prepared: PreparedRun, arguments: list[str]) -> bool:
    """True where the tests can be collected; checked once, before several workers each report the same errors."""
    return _dry_session(prepared, arguments)[0].dry_run is not None


def _run_pytest(
    prepared: PreparedRun, arguments: list[str], directory: Path, display: RunDisplay, *, is_quiet: bool
) -> int:
    session = PlannedSession(prepared)
    plugins = [display, *([QuietSession(display.say)] if is_quiet else [])]
    with interruptible_run(lambda: display.interrupted(session.acts_to_undo)):
        pytest_status = _pytest_main(arguments, session, *plugins)
    if pytest_status == _USAGE_ERROR or (pytest_status == _INTERRUPTED and session.status is None):
        # Another run may have begun there between the look at the directory and this one's record.
        if session.has_begun or not (directory / _RECORD).exists():
            _empty(directory)
        if pytest_status == _USAGE_ERROR:
            return EXIT_BAD_INPUT
        display.say("rackloop: interrupted before anything was done")
        return EXIT_INTERRUPTED
    if session.problem is not None:
        # Neither would a report of what there is find room.
        raise LabError(session.problem)
    if session.interrupted:
        return EXIT_INTERRUPTED
    # What pytest holds against the session, a plugin that broke for one, is never green.
    return session.status or (EXIT_LAB_FAILED if pytest_status or session.status is None else EXIT_PASS)


_INTERRUPTED, _BROKEN, _USAGE_ERROR = 2, 3, 4
_RECORD = "events.jsonl"
# A mock lab's.
_START_S, _PROVISION_S = 3.0, 9.0
_FAULTS_IN_A_LINE = 3
_WORD = re.compile(r"[A-Za-z0-9_-]+")


def _pytest_arguments(prepared: PreparedRun, options: Sequence[str]) -> list[str]:
    try:
        shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))
    except ValueError as error:
        raise BadInput(f"PYTEST_ADDOPTS cannot be split into options of pytest: {error}") from None
    files = [str(path_of(prepared.tests_root, entry.file)) for entry in prepared.plan.tests]
    return [
        *dict.fromkeys(files),
        f"-c{data_path('testplans') / 'pytest.ini'}",
        f"--rootdir={prepared.tests_root}",
        *(f"--rackloop-import-from={folder}" for folder in import_folders(prepared.plan, prepared.tests_root)),
        *options,
    ]


def _agreed_to_steal(prepared: PreparedRun, *, yes: bool) -> PreparedRun:
    """The run with the leases to steal and the reason, once the user agrees; unchanged where the rack is free."""
    from rackloop.safety.leases import Leases
    from rackloop.safety.store import open_lab_store
    from rackloop_cli.shared.steal_prompt import stealing

    lab, terms = prepared.rack, prepared.terms
    with closing(open_lab_store(lab, LabState.of(lab.name), RealClock())) as store:
        leases = Leases(store, lab.name)
        terms = stealing(leases, terms.parts_of(lab, leases), terms, yes=yes)
    return replace(prepared, request=replace(prepared.request, terms=terms))


def _pytest_main(arguments: list[str], session: PlannedSession, *plugins: object) -> int:
    import pytest

    from rackloop_cli.shared.pytest_memory import pytest_memory
    from rackloop_fixtures import ENDS_SESSION

    with pytest_memory(_memory_of(session.prepared)) as memory:
        try:
            status = int(pytest.main([memory.option, *arguments], plugins=[session, *plugins]))
        except ENDS_SESSION as error:
            # By a conftest.py or a plugin, beside all tests: whatever status that says, none of them passed by it.
            print(f"rackloop: {_place(error)}: ended by {type(error).__name__}: {error}", file=sys.stderr)
            return _BROKEN if session.has_begun else _USAGE_ERROR
        if status != _USAGE_ERROR and session.status is not None:
            memory.keep()
    return status


def _place(error: BaseException) -> str:
    """The line that raised ``error``, that of pytest aside."""
    frames = [frame for frame in extract_tb(error.__traceback__) if "_pytest" not in Path(frame.filename).parts]
    return f"{frames[-1].filename}:{frames[-1].lineno}"


def _memory_of(prepared: PreparedRun) -> str:
    """The name of what is remembered of a lab and the tests of a folder: others may have files and tests so called."""
    root = prepared.tests_root
    own = "" if root == data_path("testplans") else f"-{hashlib.sha256(os.fsencode(root)).hexdigest()[:12]}"
    return prepared.rack.name + own


def _dry_run(prepared: PreparedRun, arguments: list[str], *, as_json: bool = False) -> int:
    session, status = _dry_session(prepared, arguments)
    if session.dry_run is None:
        return EXIT_BAD_INPUT if status == _USAGE_ERROR else EXIT_LAB_FAILED
    if as_json:
        tests = list(map(asdict, session.dry_run))
        about = {"plan": prepared.plan.plan, "lab": prepared.rack.name, "kind": prepared.rack.kind}
        print_json(**about, servers=prepared.terms.servers or list(prepared.rack.servers), tests=tests)
        return EXIT_PASS
    _print_dry_run(session.dry_run, prepared.plan, prepared.rack, prepared.terms.servers)
    if stops := unready(prepared.rack):
        print("the run would stop here:", *stops, sep="\n  ", file=sys.stderr)
    return EXIT_PASS


def _dry_session(prepared: PreparedRun, arguments: list[str]) -> tuple[PlannedSession, int]:
    """A session that ends before its first test, and pytest's status."""
    session = PlannedSession(replace(prepared, request=replace(prepared.request, dry_run=True)))
    return session, _pytest_main(arguments, session, QuietSession(lambda text: print(text, file=sys.stderr)))


def _print_dry_run(entries: list[DryRunEntry], plan: Plan, lab: Lab, servers: Sequence[str] = ()) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"Plan {plan.plan} on lab {lab.name} ({lab.kind}): dry run, nothing was touched")
    if servers:
        console.print(f"Servers leased: {', '.join(servers)}")
    if plan.provision is not None:
        console.print(f"Servers are provisioned first: playbook {escape(str(plan.provision))}")
    for test in entries:
        console.print(
            f"\n[bold]{escape(test.test)}[/bold]"
            + (f"  about {format_duration(test.estimate_s)}" if test.is_run else "")
        )
        console.print(f"  this test will {escape(test.purpose)}")
        if not test.is_run:
            becomes, why = ("blocked", test.blocked) if test.blocked else ("skipped", test.skipped)
            console.print(f"  it is {becomes}: {escape('; '.join(why))}")
            continue
        console.print(f"  drives erased: {escape(', '.join(test.erases)) or 'none'}")
        if disturbed := _disturbed(test, lab):
            console.print(f"  drives disturbed, not erased: {escape(', '.join(disturbed))}")
        if len(test.faults) <= _FAULTS_IN_A_LINE:
            console.print(f"  faults: {escape(', '.join(test.faults)) or 'none declared'}")
        else:
            console.print(f"  faults: {len(test.faults)}")
            console.print(escape("\n".join(f"    {fault}" for fault in test.faults)))
    total_s = start_s(plan, entries, lab) + sum(test.estimate_s for test in entries)
    erased = {drive for test in entries for drive in test.erases}
    took = f"about {format_duration(total_s)}"
    blocked = sum(1 for test in entries if test.blocked)
    ends = f"; {blocked} of them blocked: the run would end with status {EXIT_LAB_FAILED}" if blocked else ""
    console.print(f"\n{counted(len(entries), 'test')}, {took}, {counted(len(erased), 'drive')} erased{ends}")


def start_s(plan: Plan, entries: Sequence[DryRunEntry], lab: Lab) -> float:
    """The time to expect before the first test and after the last: the rack's start, provisioning, its end."""
    if not any(test.is_run for test in entries):
        return 0.0
    provision_s = 0.0 if plan.provision is None else _PROVISION_S + added_s(lab, tests=2)
    return _START_S + added_s(lab, tests=1) + provision_s


def _disturbed(test: DryRunEntry, lab: Lab) -> list[str]:
    """The drives that the faults of a test name and that it does not erase."""
    named = {word for fault in test.faults for word in _WORD.findall(fault)}
    return [drive for drive in lab.drives if drive in named and drive not in test.erases]


def _report(
    directory: Path,
    lab: Lab,
    status: int,
    with_html: bool,
    *,
    everything: bool = False,
    as_json: bool = False,
    rendered: Callable[[], None] = lambda: None,
) -> int:
    """Render the reports and print the summary, once ``rendered`` was called; returns the status of the run.

    A report that cannot be made does not change what the run found, unless it was a pass.
    """
    from rackloop_reports import ReportToolMissing, render, write_summary
    from rackloop_reports.summary import to_json
    from rackloop_reports.terminal import print_summary

    if not (directory / _RECORD).exists():
        return status
    try:
        if with_html:
            made = render(directory, history=lambda _: LabState.of(lab.name).history)
            summary, where = made.summary, f"Report: {made.index}"
        else:
            summary, where = write_summary(directory), f"Results: {directory}"
    except RackloopError as error:
        print(f"rackloop: {error}", file=sys.stderr)
        if not isinstance(error, ReportToolMissing):
            # A machine without Node.js can run plans; what else keeps a report from being made is broken.
            status = status or EXIT_LAB_FAILED
        try:
            summary, where = write_summary(directory), f"Results: {directory}"
        except RackloopError:
            return status
    rendered()
    if as_json:
        print(to_json(summary), end="")
        return status
    console = Console(highlight=False)
    print_summary(summary, console, everything=everything)
    console.print(where, soft_wrap=True, markup=False)
    return status


@contextmanager
def _fresh_directory(chosen: Path | None, plan: Plan, lab: Lab) -> Iterator[Path]:
    """The directory for the results, made; raises BadInput where it cannot be or holds something already.

    A run that never began leaves it, and the folders above it, as they were.
    """
    try:
        chosen, made = _made_directory(chosen, plan, lab)
        occupied = any(chosen.iterdir())
        writable = os.access(chosen, os.W_OK | os.X_OK)
    except OSError as error:
        where = chosen or "runs"
        raise BadInput(f"cannot use {where} for the results: {error.strerror}; choose another --out") from error
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


def _made_directory(chosen: Path | None, plan: Plan, lab: Lab) -> tuple[Path, list[Path]]:
    """The directory, and the folders that were made for it. One that was not chosen is no other run's."""
    while True:
        place = results_folder(plan, lab, RealClock()) if chosen is None else chosen
        _require_utf8(place.absolute())
        above = [folder for folder in place.parents if not folder.exists()]
        try:
            place.mkdir(parents=True)
        except FileExistsError:
            if chosen is None:
                continue
            if not place.is_dir():
                raise
            return place, []
        return place, [place, *above]


def _require_utf8(place: Path) -> None:
    """Raise BadInput for a path that Node.js, which makes the report, does not open."""
    try:
        os.fsencode(place).decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{printable(str(place))} is not UTF-8, as the report needs it; choose another --out") from error


def _empty(directory: Path) -> None:
    for entry in directory.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()
