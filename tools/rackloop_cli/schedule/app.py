"""`rackloop schedule`: the verbs for schedules of faults. Each verb's code is imported when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rackloop_cli.shared.groups import Group
from rackloop_cli.shared.options import JsonOption, LabOption, TestplansOption

schedule_app = Group(
    "Draw, show and shrink schedules of faults.",
    "rackloop schedule make storm --lab mock --seed 42",
    "rackloop schedule show storm --lab mock --seed 42",
    "rackloop schedule shrink runs/storm-mock-20260301-101500 --lab mock",
)

Source = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A schedule, a plan with one, or the directory of a run that played some."),
]
Seed = Annotated[
    int | None, typer.Option(metavar="N", min=0, max=2**63 - 1, help="The seed; else the file's, else one is chosen.")
]
Test = Annotated[
    str | None, typer.Option(metavar="TEST", help="Only this test's schedule, by its name in the plan or the report.")
]


@schedule_app.verb(
    "make",
    "rackloop schedule make storm --lab mock --seed 42",
    "rackloop schedule make storm --lab mock --out script.yaml",
)
def schedule_make(
    source: Source,
    lab: LabOption,
    seed: Seed = None,
    test: Test = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The file to write; else it is printed.")] = None,
    testplans: TestplansOption = None,
) -> None:
    """Draw a random schedule.

    Prints it as a script: every fault with its time. The same seed gives the same script, to the byte.
    """
    from rackloop_cli.schedule import show as verb

    raise typer.Exit(verb.make(verb.ScheduleRequest(source, lab, seed, test, testplans), out=out))


@schedule_app.verb(
    "show",
    "rackloop schedule show storm --lab mock --seed 42",
    "rackloop schedule show storm --lab mock --out drawn",
    "rackloop schedule show runs/storm-mock-20260301-101500 --lab mock",
)
def schedule_show(
    source: Source,
    lab: LabOption,
    seed: Seed = None,
    test: Test = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory for schedule.svg and schedule.png; else none.")
    ] = None,
    testplans: TestplansOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a schedule as a table and a time line.

    A row for each fault: its start, its duration, and the parts of the lab that it affects. A schedule that the lab
    does not support, or that exceeds its own bound, is exit code 2.
    """
    from rackloop_cli.schedule import show as verb

    raise typer.Exit(verb.show(verb.ScheduleRequest(source, lab, seed, test, testplans), out=out, as_json=as_json))


@schedule_app.verb(
    "shrink",
    "rackloop schedule shrink runs/storm-mock-20260301-101500 --lab mock",
    "rackloop schedule shrink storm --lab mock --seed 42 --times 3 --out least.yaml",
)
def schedule_shrink(
    source: Source,
    lab: LabOption,
    seed: Seed = None,
    test: Test = None,
    times: Annotated[
        int, typer.Option(metavar="K", min=1, max=100, help="A candidate fails if it does K times of K.")
    ] = 1,
    runs: Annotated[int, typer.Option(metavar="N", min=1, max=100_000, help="At most so many runs.")] = 60,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The plan to write; no file that is there.")] = Path(
        "least.yaml"
    ),
    testplans: TestplansOption = None,
) -> None:
    """Find the least schedule with which a test still fails.

    Runs the test again and again on the lab, with fewer faults and then with simpler ones, and writes a plan that
    reproduces the failure. Ctrl-C keeps the best so far. Where it does not fail at first, that is exit code 3.
    """
    from rackloop_cli.schedule import shrink as verb
    from rackloop_cli.schedule.show import ScheduleRequest

    raise typer.Exit(verb.run(ScheduleRequest(source, lab, seed, test, testplans), times=times, runs=runs, out=out))
