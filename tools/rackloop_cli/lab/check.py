"""`rackloop lab check`: all problems of one or many lab descriptions."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rackloop.errors import (
    EXIT_BAD_INPUT,
    EXIT_LAB_FAILED,
    EXIT_PASS,
    BadInput,
    Problem,
    RackloopError,
    problem_lines,
)
from rackloop.units import counted

if TYPE_CHECKING:
    from rackloop.clock import Clock
    from rackloop.lab import Lab
    from rackloop_labs import Bench
    from rackloop_labs.live_check import Attempt


def run(paths: Sequence[str], *, json: bool = False, schema: bool = False, live: bool = False) -> int:
    """Check files, folders of files and named labs; returns the exit status, 2 where there is a problem.

    With ``live`` the rack of each sound description is used once, which changes nothing; what fails of it is status 3.

    What a run from this machine would stop at, such as a key file that is not there, is told too, and is no problem of
    the file: it may be right elsewhere. Both go to standard error, a line each; the summary, the findings as JSON or
    the JSON Schema to standard output.
    """
    from json import dumps

    from rackloop.lab import Lab, check_files, find_lab, json_schema

    if schema:
        print(dumps(json_schema(), indent=2))
        return EXIT_PASS
    if not paths:
        raise BadInput("nothing to check: name a lab description, a folder of them, or a lab such as mock")
    checked = check_files([Path(path) if Path(path).exists() else find_lab(path) for path in paths])
    if not checked:
        raise BadInput(f"no .yaml file in {', '.join(paths)}: name a lab description or a folder of them")
    problems = {
        path: _unready(found, "virtual") if isinstance(found, Lab) else found.problems for path, found in checked
    }
    here = {path: _unready(found, "physical") if isinstance(found, Lab) else () for path, found in checked}
    used = {path: _used(found) for path, found in checked if live and isinstance(found, Lab) and not problems[path]}
    if json:
        files = [
            {
                "file": str(path),
                "problems": [_plain(one) for one in found],
                "here": [_plain(one) for one in here[path]],
                **({"live": list(map(vars, used[path]))} if path in used else {}),
            }
            for path, found in problems.items()
        ]
        print(dumps({"schema": 1, "files": files}, indent=2))
    else:
        for line in (line for found in problems.values() for line in problem_lines(found)):
            print(line, file=sys.stderr)
        for problem in (problem for found in here.values() for problem in found):
            print(problem, file=sys.stderr)
        broken = sum(1 for found in problems.values() if found)
        total = sum(len(found) for found in problems.values())
        stops = sum(len(found) for found in here.values())
        more = f"; a run from this machine would stop at {counted(stops, 'thing')}" if stops else ""
        print(f"{counted(len(problems), 'file')}, {broken} with problems, {counted(total, 'problem')}{more}")
        for path, found in checked:
            if path in used and isinstance(found, Lab):
                _tell(found, used[path])
    if any(problems.values()):
        return EXIT_BAD_INPUT
    return EXIT_LAB_FAILED if any(one.problem for tried in used.values() for one in tried) else EXIT_PASS


def _used(lab: Lab) -> Sequence[Attempt]:
    """The uses that were made of the rack; one that failed where it could not be opened."""
    from rackloop.clock import Deadline, RealClock
    from rackloop_labs.live_check import Attempt, live_check, live_check_s

    clock = RealClock()
    try:
        with _opened(lab, clock) as bench:
            return live_check(bench, Deadline.after(clock, live_check_s(lab)))
    except RackloopError as error:
        return [Attempt(lab.name, "opens", str(error))]


@contextmanager
def _opened(lab: Lab, clock: Clock) -> Iterator[Bench]:
    """The bench of the rack, without a lease; a simulated one that is not up is up for as long as the block runs.

    That one is leased: a run that began meanwhile would use it as one that is up, and lose it at the end of the block.
    """
    from rackloop.lab import LabKind, LabState, parts_of
    from rackloop.safety.leases import LeaseTerms, holding, leases_of
    from rackloop_cli.shared.lab_store import opened_store
    from rackloop_cli.shared.own_lease import own_lease, telling_own
    from rackloop_labs import open_lab

    state = LabState.of(lab.name)
    is_there = lab.kind is LabKind.PHYSICAL or state.is_held()
    with ExitStack() as stack:
        if not is_there:
            leases, wanted = leases_of(lab, stack.enter_context(opened_store(lab, clock))), parts_of(lab)
            stack.enter_context(telling_own(leases))
            terms = LeaseTerms(purpose="lab check --live", within=own_lease(leases, wanted))
            stack.enter_context(holding(leases, wanted, terms))
        yield stack.enter_context(open_lab(lab, clock, state, token=None, bring_up=not is_there))


def _tell(lab: Lab, tried: Sequence[Attempt]) -> None:
    """Each failure on standard error, and on standard output how many there were."""
    failed = [attempt for attempt in tried if attempt.problem is not None]
    for attempt in failed:
        print(f"{lab.name}: {attempt}", file=sys.stderr)
    ports = sum(1 for attempt in tried if attempt.did == "reads a sector")
    what = (
        f"{counted(len(tried), 'use')} of it, of {counted(ports, 'port')} and the tools of {len(lab.servers)} servers"
    )
    print(f"lab {lab.name} ({lab.kind}), live: {what}; {len(failed)} failed")


def _unready(lab: Lab, kind: str) -> Sequence[Problem]:
    """The obstacles to a run on a lab of this ``kind``; none for one of another."""
    if lab.kind != kind:
        return ()
    # Its package takes its time to be imported.
    from rackloop_labs.readiness import unready

    return unready(lab)


def _plain(problem: Problem) -> dict[str, object]:
    return {"line": problem.line, "column": problem.column, "path": problem.path, "message": problem.message}
