"""The `rackloop` command: verbs, options and exit codes. Each verb's code is imported when it is called."""

from __future__ import annotations

import os
import re
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from rackloop.errors import EXIT_INTERRUPTED, EXIT_LAB_FAILED, EXIT_PASS, BadInput, RackloopError
from rackloop_cli.fabric.app import fabric_app
from rackloop_cli.lab.app import lab_app
from rackloop_cli.listing.app import driver_app, plan_app, test_app
from rackloop_cli.model.app import model_app
from rackloop_cli.new.app import new_app
from rackloop_cli.power.app import power_app
from rackloop_cli.schedule.app import schedule_app
from rackloop_cli.shared.completion import complete_lab, complete_plan, prepare_completion
from rackloop_cli.shared.groups import PlainCommand, PlainGroup, examples
from rackloop_cli.shared.interruption import answering_interrupt
from rackloop_cli.shared.options import (
    JsonOption,
    LabArgument,
    PriorityOption,
    ResultsOption,
    ServersOption,
    StealOption,
    TestplansOption,
    VerboseOption,
    WaitOption,
    YesOption,
    names_in,
    seconds,
)
from rackloop_cli.shared.standard_streams import prepare_streams
from rackloop_cli.store.app import store_app
from rackloop_cli.trace.app import trace_app

# As of a program that SIGPIPE ends, in the eyes of a shell.
_EXIT_UNREAD = 141
_IS_EMPTY_OPTION = re.compile(r"--[a-z-]+=")
_IS_EMPTY_SETTING = re.compile(r"[^=]+=\s*")
# Plain help reads the same in a terminal, a log and the documents.
app = typer.Typer(
    name="rackloop",
    cls=PlainGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Test harness and lab automation for disaggregated storage racks.",
    epilog=examples(
        "rackloop demo                          a simulated rack, a small plan, a report",
        "rackloop run smoke --lab mock --dry-run",
        "rackloop COMMAND --help",
    )
    + """

\b
Exit codes:
  0    pass
  1    a product failed its limits
  2    bad usage or bad input
  3    the lab or the harness failed, or the verdict is unknown
  130  interrupted""",
)
app.add_typer(lab_app, name="lab")
app.add_typer(plan_app, name="plan")
app.add_typer(test_app, name="test")
app.add_typer(driver_app, name="driver")
app.add_typer(fabric_app, name="fabric")
app.add_typer(power_app, name="power")
app.add_typer(schedule_app, name="schedule")
app.add_typer(store_app, name="store")
app.add_typer(trace_app, name="trace")
app.add_typer(model_app, name="model")
app.add_typer(new_app, name="new")

SeedOption = Annotated[
    int | None, typer.Option(metavar="N", min=0, max=2**63 - 1, help="Replay with this seed; else one is chosen.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set a parameter of the plan's tests; may be given again."),
]


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"rackloop {version('rackloop')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    pass


@app.command("help", hidden=True, epilog=examples("rackloop help"))
def show_help(context: typer.Context) -> None:
    """Print what ``--help`` prints."""
    typer.echo(context.find_root().get_help())


@app.command(
    cls=PlainCommand,
    epilog=examples(
        "rackloop demo",
        "rackloop demo --out first --seed 42",
        "rackloop demo --set trace=recorded.csv.gz --set fold=true",
    ),
)
def demo(
    out: ResultsOption = None,
    seed: SeedOption = None,
    settings: SetOption = None,
    verbose: VerboseOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Run the smoke plan on a mock rack.

    Brings a simulated rack up, runs the plan, leaves an Allure report and takes the rack down.
    """
    from rackloop_cli import run as verb
    from rackloop_fixtures import RunRequest

    request = RunRequest("smoke", "mock", out=out, seed=seed, settings=tuple(settings or ()))
    raise typer.Exit(verb.run(request, verbose=verbose, as_json=as_json))


@app.command(
    cls=PlainCommand,
    epilog=examples(
        "rackloop run smoke --lab mock",
        "rackloop run replay --lab mock --set trace=recorded.csv.gz --set speed=10",
        "rackloop run smoke --lab mock -n 2 -k 'identity or phy_drop'",
        "rackloop run smoke --lab labs/rack7.yaml --servers srv1,srv2 --wait 600",
        "rackloop run plans/vendor.yaml --lab labs/rack7.yaml --dry-run",
        "rackloop run plans/vendor.yaml --lab labs/rack7.yaml --testplans tests --out results --seed 42",
        "rackloop run my_tests/test_pull.py -x --pdb",
        "rackloop run my_tests",
        "rackloop run smoke --lab mock -- --durations=3",
    ),
)
def run(
    plan: Annotated[
        str,
        typer.Argument(
            metavar="PLAN",
            help="A plan file, the name of a packaged one, a test file, FILE.py[::TEST], or a folder of test files.",
            autocompletion=complete_plan,
        ),
    ],
    pytest_options: Annotated[
        list[str] | None, typer.Argument(metavar="[-- OPTION...]", help="Any other options of pytest.")
    ] = None,
    lab: Annotated[
        str | None,
        typer.Option(
            metavar="LAB",
            help="A lab description: a file, or the name of one; of test files mock.",
            autocompletion=complete_lab,
        ),
    ] = None,
    out: ResultsOption = None,
    seed: SeedOption = None,
    expression: Annotated[
        str | None, typer.Option("-k", metavar="EXPR", help="Only tests whose names match, as pytest's -k.")
    ] = None,
    exit_first: Annotated[
        bool, typer.Option("-x", "--exitfirst", help="End with the first test that does not pass, as pytest's -x.")
    ] = False,
    last_failed: Annotated[
        bool, typer.Option("--lf", "--last-failed", help="Only tests that did not pass the last time, as pytest's.")
    ] = False,
    debugger: Annotated[
        bool, typer.Option("--pdb", help="Enter Python's debugger where a test fails, with the rack as it is then.")
    ] = False,
    uncaptured: Annotated[
        bool, typer.Option("-s", help="Show what tests print while they run, as pytest's -s.")
    ] = False,
    workers: Annotated[
        int,
        typer.Option("-n", metavar="WORKERS", min=1, max=64, help="Workers, each with its own mock rack; 64 at most."),
    ] = 1,
    testplans: TestplansOption = None,
    settings: SetOption = None,
    servers: ServersOption = None,
    lease: Annotated[str | None, typer.Option(metavar="ID", help="Run within a lease taken with `lab lease`.")] = None,
    wait_s: WaitOption = 0.0,
    priority: PriorityOption = 0,
    steal: StealOption = False,
    yes: YesOption = False,
    verbose: VerboseOption = 0,
    no_report: Annotated[bool, typer.Option("--no-report", help="Leave the HTML to `rackloop report DIR`.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print tests, drives erased, faults and a time estimate; do nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a plan, a test file, or a folder of them, on a lab.

    A lab that `lab up` left running is used; else one is brought up for the run and taken down after it. The rack, or
    its --servers, is leased first.
    """
    from rackloop.safety.leases import LeaseTerms
    from rackloop_cli import run as verb
    from rackloop_fixtures import RunRequest

    request = RunRequest(
        plan,
        verb.lab_for(plan, lab, testplans),
        out=out,
        testplans=testplans,
        settings=tuple(settings or ()),
        seed=seed,
        dry_run=dry_run,
        terms=LeaseTerms(servers=names_in(servers), priority=priority, wait_s=wait_s, within=lease),
    )
    options = [
        *([f"-k={expression}"] if expression else []),
        *(["-x"] if exit_first else []),
        *(["--lf"] if last_failed else []),
        *(["--pdb"] if debugger else []),
        *(["-s"] if uncaptured else []),
        *verb.options_of_pytest(pytest_options or ()),
    ]
    status = verb.run(
        request,
        pytest_options=options,
        workers=workers,
        steal=steal,
        yes=yes,
        with_report=not no_report,
        verbose=verbose,
        shows_pytest=bool(pytest_options),
        as_json=as_json,
    )
    raise typer.Exit(status)


@app.command(
    cls=PlainCommand,
    epilog=examples(
        "rackloop console mock srv1",
        "rackloop console mock srv1 --log srv1.log",
        "rackloop console mock srv1 --for 60s | grep panic",
        "rackloop console mock srv1 --once",
    ),
)
def console(
    lab: LabArgument,
    server: Annotated[str, typer.Argument(metavar="SERVER", help="A server of the lab that has a console.")],
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append what is said to this file too, with time stamps.")
    ] = None,
    once: Annotated[
        bool,
        typer.Option("--once", help="End at the first second of silence behind what it said; in 10 s at most."),
    ] = False,
    for_s: Annotated[
        float | None,
        typer.Option("--for", metavar="TIME", parser=seconds, help="End after this time, such as 5min."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Type without a lease, also where another holds it.")] = False,
) -> None:
    """Show the serial console of a server.

    On a terminal what is typed is sent, where the server is in a lease of yours; ~. at the beginning of a line leaves.
    Elsewhere its lines are printed as they come.
    """
    from rackloop_cli.console import verb

    raise typer.Exit(verb.run(lab, server, log=log, once=once, for_s=for_s, force=force))


@app.command(cls=PlainCommand, epilog=examples("rackloop heal mock", "rackloop heal mock --steal"))
def heal(
    lab: LabArgument,
    steal: StealOption = False,
    yes: YesOption = False,
    above: Annotated[
        int,
        # Every later token is higher, and the lab's store holds no more than twice this.
        typer.Option(metavar="TOKEN", min=0, max=2**62, help="Show the switch a fencing token higher than this one."),
    ] = 0,
    as_json: JsonOption = False,
) -> None:
    """Restore a lab's baseline.

    Undoes the acts that a dead run, or a change by hand, left standing, then reads the switch back. A leased lab is
    left alone, unless the lease is stolen.
    """
    from rackloop_cli import heal as verb

    raise typer.Exit(verb.run(lab, steal=steal, yes=yes, above=above, as_json=as_json))


@app.command(cls=PlainCommand, epilog=examples("rackloop report results"))
def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The output directory of a run.")],
    verbose: VerboseOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Render the reports of a run again.

    All files but the event stream are made again from it, also for a run that was killed.
    """
    from rackloop_cli import report as verb

    raise typer.Exit(verb.run(directory, verbose=bool(verbose), as_json=as_json))


def _require_values(arguments: list[str]) -> None:
    """Raise BadInput for an empty argument: a variable that a script forgot to set would mean all there is.

    A parameter of a plan that is set to nothing would mean the first drive there is, and that may be erased.
    """
    sets_parameters = arguments[:1] in (["run"], ["demo"])
    for before, argument in zip(["", *arguments], arguments, strict=False):
        setting = argument if before == "--set" else argument.removeprefix("--set=")
        if sets_parameters and (before == "--set" or setting != argument) and _IS_EMPTY_SETTING.fullmatch(setting):
            raise BadInput(f"--set {setting} is empty: give it a value, or leave the option out")
        if not argument or _IS_EMPTY_OPTION.fullmatch(argument):
            option = before if not argument else argument.removesuffix("=")
            after = f" after {option}" if option else ""
            raise BadInput(f"an argument{after} is empty: give it a value, or leave the option out")


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit status.

    No error that a user can cause ends in a traceback. One that does is the harness's: Python's status for it, 1, would
    say that a product failed.
    """
    try:
        with answering_interrupt():
            status = _main(argv)
    except KeyboardInterrupt:
        # Another one, while the first was being heeded.
        status = EXIT_INTERRUPTED
    except Exception:  # noqa: BLE001 - a mistake in this program
        traceback.print_exc()
        status = EXIT_LAB_FAILED
    if status == EXIT_INTERRUPTED:
        # Another Ctrl-C while Python ends would have it end as if killed.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return status


def tell(error: RackloopError, arguments: Sequence[str] = ()) -> int:
    """Say on standard error what went wrong, and what more did when that was being cleared up; the exit status."""
    from rackloop_cli.shared.labs_as_given import as_given

    for said in (error, *getattr(error, "__notes__", ())):
        print(f"rackloop: {as_given(str(said), arguments)}", file=sys.stderr)
    return error.exit_code


def _main(argv: list[str] | None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    try:
        prepare_streams()
        # Before NumPy is there, in this program and all that it starts: the idle threads of its BLAS spin on cores that
        # drives are timed on, and nothing here multiplies matrices large enough to need them.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        prepare_completion(dict(os.environ))
        _require_values(arguments)
        app(args=argv, prog_name="rackloop")
    except RackloopError as error:
        return tell(error, arguments)
    except OSError as error:
        from rackloop_cli.shared.os_errors import as_refusal

        if (refusal := as_refusal(error)) is None:
            raise
        return tell(refusal, arguments)
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):
            # Typer's status for it, 1, would say that a product failed.
            return _EXIT_UNREAD
        if isinstance(ended.code, str):
            # By what was loaded, such as a driver: Python says it, with a status that says that a product failed.
            print(f"rackloop: {ended.code}", file=sys.stderr)
            return EXIT_LAB_FAILED
        # Typer makes one of Ctrl-C within a verb, with the status of an interrupt.
        return ended.code if isinstance(ended.code, int) else EXIT_PASS
    return EXIT_PASS


if __name__ == "__main__":
    sys.exit(main())
