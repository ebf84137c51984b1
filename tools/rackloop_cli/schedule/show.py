"""`rackloop schedule make|show`: schedules of faults, generated and printed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from rackloop.errors import EXIT_PASS, BadInput, LabError
from rackloop.faults.schedules import (
    RandomSchedule,
    Schedule,
    left_out,
    load_schedule,
    on_lab,
    schedule_yaml,
    taking_of,
    unsupported_out_of_service,
)
from rackloop.lab import Lab, Part, load_lab
from rackloop.lab.yaml import compose_file
from rackloop.names import guess
from rackloop.plan import Plan, PlanEntry, files_by_name, find_testplans, load_plan, read_declared
from rackloop.record import TestFinished, read_events
from rackloop.seed import choose_seed
from rackloop.units import counted, format_quantity
from rackloop_cli.shared.output import make_directory, print_json, write_files, write_whole
from rackloop_cli.shared.tables import plain_table, print_whole
from rackloop_labs.offered import unsupported_in

FOLDER = "schedules"
_WIDEST = 72
_NAMES = 4


@dataclass(frozen=True)
class ScheduleRequest:
    """The source of schedules: a file or the directory of a run, the lab, and one of several tests."""

    source: Path
    lab: str
    seed: int | None = None
    test: str | None = None
    testplans: Path | None = None


@dataclass(frozen=True)
class Found:
    """A schedule as it is played on a lab; ``never`` lists faults that the lab does not support, which are not drawn.

    ``not_now`` are those that would reach what is out of service: not drawn either, and a script with one is refused.
    ``plan`` and ``entry`` are those it is of, where it is of any.
    """

    title: str
    schedule: Schedule
    seed: int
    plan: Plan | None = None
    entry: PlanEntry | None = None
    never: tuple[str, ...] = ()
    not_now: tuple[str, ...] = ()


def make(request: ScheduleRequest, *, out: Path | None) -> int:
    """Draw the schedule and print it, or write it to ``out``."""
    (found,) = find(request, load_lab(request.lab))[:1]
    text = schedule_yaml(found.schedule)
    if out is None:
        print(text, end="")
        return EXIT_PASS
    write(out, text, replacing=False)
    print(f"{out}: {counted(len(found.schedule.steps), 'fault')}, seed {found.seed}")
    return EXIT_PASS


def show(request: ScheduleRequest, *, out: Path | None, as_json: bool = False) -> int:
    """Print the schedules as tables and time lines, or as JSON."""
    lab = load_lab(request.lab)
    schedules = find(request, lab)
    make_directory(out)
    console = Console(highlight=False, quiet=as_json)
    for found in schedules:
        _show(console, found, lab)
    if as_json:
        print_json(schedules=[_described(found, lab) for found in schedules])
    if out is not None:
        from rackloop_reports.plots import schedule_timeline

        for number, found in enumerate(schedules, 1):
            name = f"schedule-{number}" if len(schedules) > 1 else "schedule"
            write_files(out, {}, name, schedule_timeline(found.schedule, found.title))
        console.print(f"The drawings are in {out}", soft_wrap=True)
    return EXIT_PASS


def find(request: ScheduleRequest, lab: Lab) -> list[Found]:
    """The schedules of a file or of a run, drawn. Raises BadInput where there is none."""
    source = request.source
    if source.is_dir():
        found = list(_played(request, lab))
    elif _is_schedule(source):
        seed = request.seed if request.seed is not None else choose_seed()
        given = load_schedule(source, lab)
        one = _Chosen(lab).of(given, seed, str(source))
        found = [replace(one, seed=seed if one.schedule.seed is None else one.schedule.seed)]
    else:
        found = list(_of_plan(request, source, lab))
    if request.test is not None:
        known = [each.title for each in found]
        found = [each for each in found if request.test in {each.title, each.title.partition("::")[0]}]
        if not found:
            raise BadInput(f"{source} has no schedule of a test {request.test!r}; {guess(request.test, known)}")
    if not found:
        raise BadInput(f"{source} has no schedule of faults")
    return found


def _is_schedule(source: Path) -> bool:
    if not source.is_file():
        return False
    written = compose_file(source).value
    return not (isinstance(written, dict) and "plan" in written)


def _played(request: ScheduleRequest, lab: Lab) -> Iterator[Found]:
    """The schedules that a run played, those of failed tests first."""
    from rackloop_fixtures import schedule_file_name

    directory = request.source
    plans = sorted((directory / FOLDER).glob("*.yaml"))
    if not plans:
        raise BadInput(f"{directory} has no {FOLDER}/: it is no directory of a run that played a schedule")
    verdicts = _verdicts(directory)
    tests = {schedule_file_name(test): test for test in verdicts}
    for path in sorted(plans, key=lambda path: (verdicts.get(tests.get(path.name, "")) != "fail", path.name)):
        for found in _of_plan(replace(request, seed=None), path, lab):
            yield replace(found, title=tests.get(path.name, found.title))


def _verdicts(directory: Path) -> dict[str, str]:
    """The verdict of each test of a run, as far as it came."""
    try:
        events = [stamped.event for stamped in read_events(directory / "events.jsonl")]
    except BadInput:
        return {}
    return {event.test: event.verdict for event in events if isinstance(event, TestFinished)}


def _of_plan(request: ScheduleRequest, source: Path, lab: Lab) -> Iterator[Found]:
    """The schedules of a plan's tests, drawn as a run with this seed draws them."""
    from rackloop_fixtures import on_rack

    root = find_testplans(request.testplans)
    plan = on_rack(load_plan(source, root), lab)
    chosen = request.seed if request.seed is not None else plan.seed
    seed = choose_seed() if chosen is None else chosen
    files = files_by_name(root)
    choose = _Chosen(lab)
    for file in dict.fromkeys(entry.file for entry in plan.tests if entry.schedule is not None):
        for function in sorted(read_declared(files[file]).playing):
            entries = [
                entry
                for entry in plan.tests
                if entry.file == file and entry.function in {None, function}
                for _ in range(entry.repeats)
            ]
            for number, entry in enumerate(entries, 1):
                turn = f"[{number}]" if len(entries) > 1 else ""
                title = f"{file}::{function.removeprefix('test_')}{turn}"
                one = replace(entry, function=function, repeats=1)
                if entry.schedule is not None:
                    yield replace(choose.of(entry.schedule, seed, title, title), plan=plan, entry=one)


class _Chosen:
    """Schedules as a run that began now would play them on ``lab``."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        out = _out_of_service(lab)
        self._never = unsupported_in(lab)
        self._not_now = unsupported_out_of_service(lab, out)
        self._either = unsupported_out_of_service(lab, out, self._never)

    def of(self, given: Schedule | RandomSchedule, seed: int, title: str, *names: str) -> Found:
        # A script is shown whole: what a run would refuse for now is said beside it.
        unsupported = self._either if isinstance(given, RandomSchedule) else self._never
        schedule = on_lab(given, self._lab, seed, *names, unsupported=unsupported)
        never, not_now = (tuple(left_out(given, self._lab, each)) for each in (self._never, self._not_now))
        return Found(title, schedule, seed, never=never, not_now=not_now)


def _out_of_service(lab: Lab) -> Collection[Part]:
    """The parts in maintenance or quarantine, by the lab's store; none without a store, or where it does not answer."""
    from rackloop_fixtures import out_of_service_by_store

    try:
        return out_of_service_by_store(lab).keys()
    except (BadInput, LabError):
        return ()


def _show(console: Console, found: Found, lab: Lab) -> None:
    schedule = found.schedule.unrolled()
    most = schedule.most
    seed = f", drawn with seed {schedule.seed}" if schedule.seed is not None else ""
    console.print(f"[bold]{escape(found.title)}[/bold]: schedule {escape(schedule.name)}{seed}", soft_wrap=True)
    console.print(
        f"{counted(len(schedule.steps), 'fault')} in {schedule.lasts_s:g} s; at most {counted(most.faults, 'fault')}, "
        f"{counted(most.drives, 'drive')} and {counted(most.servers, 'server')} at once",
        soft_wrap=True,
    )
    taking = taking_of(lab)
    table = plain_table()
    for name in ("", "start", "duration"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("fault", "target"):
        table.add_column(name, no_wrap=True)
    for name in ("with", "affects"):
        table.add_column(name)
    for number, step in enumerate(schedule.steps, 1):
        taken = taking(step.fault)
        table.add_row(
            str(number),
            f"{step.at_s:.3f} s",
            format_quantity(step.stands_s, "s"),
            step.fault.kind,
            step.fault.target,
            ", ".join(f"{name}: {value}" for name, value in step.fault.parameters.items()),
            ", ".join(filter(None, [_named(taken.servers, "server"), _named(taken.drives, "drive")])),
        )
    print_whole(console, table)
    for line in time_line(schedule):
        console.print(line, soft_wrap=True, markup=False)
    for said in found.never:
        console.print(f"never {said}", soft_wrap=True, markup=False)
    for said in found.not_now:
        console.print(f"not now {said}", soft_wrap=True, markup=False)
    console.print()


def _described(found: Found, lab: Lab) -> dict[str, Any]:
    """A schedule as JSON: what its table shows, with times in seconds."""
    taking, schedule = taking_of(lab), found.schedule.unrolled()
    steps = [
        {
            "begins_s": step.at_s,
            "lasts_s": step.stands_s,
            "fault": step.fault.kind,
            "target": step.fault.target,
            "with": dict(step.fault.parameters),
            "servers": sorted(taken.servers),
            "drives": sorted(taken.drives),
        }
        for step in schedule.steps
        for taken in [taking(step.fault)]
    ]
    left = {"never": list(found.never), "not_now": list(found.not_now)}
    return {"title": found.title, "schedule": schedule.name, "seed": schedule.seed, "steps": steps, **left}


def _named(names: Iterable[str], noun: str) -> str:
    """A few names, or how many there are."""
    found = sorted(names)
    return ", ".join(found) if len(found) <= _NAMES else counted(len(found), noun)


def time_line(schedule: Schedule) -> Iterator[str]:
    """A line for each target: the times at which it has a fault, with the half of a cell where each begins."""
    if not schedule.steps:
        return
    width = _WIDEST
    a_cell_s = schedule.lasts_s / width
    targets = list(dict.fromkeys(step.fault.target for step in schedule.steps))
    longest = max(map(len, targets))
    for target in targets:
        cells = ["·"] * width
        for step in schedule.steps:
            if step.fault.target == target:
                first = min(width - 1, int(step.at_s / a_cell_s))
                last = max(first + 1, round(step.ends_s / a_cell_s))
                cells[first:last] = "▐" + "█" * (min(width, last) - first - 1)
        yield f"{target:<{longest}} {''.join(cells[:width])}"
    yield f"{'':<{longest}} 0{schedule.lasts_s:>{width - 3}g} s"


def write(out: Path, text: str, *, replacing: bool = True) -> None:
    """Write a file whole. Raises BadInput where it cannot be, or is there already and not ``replacing``."""
    try:
        write_whole(out, text, replacing=replacing)
    except FileExistsError as error:
        raise BadInput(f"{out} is there already: choose another file with --out, or delete it first") from error
    except OSError as error:
        raise BadInput(f"--out {out}: {error.strerror}; name a file that can be written") from error
