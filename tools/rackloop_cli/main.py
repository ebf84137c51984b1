"""The `rackloop` command: verbs, options and exit codes. What a verb does is imported when it is called."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rackloop.errors import EXIT_INTERRUPTED, EXIT_PASS, RackloopError
from rackloop_cli.epilog import examples
from rackloop_cli.model_app import model_app
from rackloop_cli.power_app import power_app
from rackloop_cli.trace_app import trace_app

# Plain help reads the same in a terminal, a log and the documents.
app = typer.Typer(
    name="rackloop",
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
  3    the lab or the harness failed, or nothing can be said
  130  interrupted""",
)
lab_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Check, start, stop and look at labs.",
    epilog=examples("rackloop lab check labs/", "rackloop lab up mock", "rackloop lab cabling mock"),
)
app.add_typer(lab_app, name="lab")
fabric_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Look at a lab's circuit switch and change its map by hand.",
    epilog=examples(
        "rackloop fabric mock show",
        "rackloop fabric mock map srv1.p0=d05",
        "rackloop fabric mock drop srv1.p0 --ms 50",
    ),
)
app.add_typer(fabric_app, name="fabric")
app.add_typer(power_app, name="power")
app.add_typer(trace_app, name="trace")
app.add_typer(model_app, name="model")

LabArgument = Annotated[str, typer.Argument(metavar="LAB", help="A lab description: a file, or the name of one.")]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Directory for the results, new or empty; else one below runs/."),
]
SeedOption = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", min=0, max=2**63 - 1, help="Replay with this seed; else one is chosen."),
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


@app.command(
    epilog=examples(
        "rackloop demo",
        "rackloop demo --out first --seed 42",
        "rackloop demo --set trace=recorded.csv.gz --set fold=true",
    )
)
def demo(out: OutOption = None, seed: SeedOption = None, settings: SetOption = None) -> None:
    """Run the smoke plan on a mock rack.

    Brings a simulated rack up, runs the plan, leaves an Allure report and takes the rack down.
    """
    from rackloop_cli import run as verb

    raise typer.Exit(
        verb.run(verb.Request(plan="smoke", lab="mock", out=out, seed=seed, settings=tuple(settings or ())))
    )


@app.command(
    epilog=examples(
        "rackloop run smoke --lab mock",
        "rackloop run replay --lab mock --set trace=recorded.csv.gz --set speed=10",
        "rackloop run smoke --lab mock -n 2 -k 'identity or phy_drop'",
        "rackloop run plans/vendor.yaml --lab labs/rack7.yaml --dry-run",
        "rackloop run plans/vendor.yaml --lab labs/rack7.yaml --testplans tests --out results --seed 42",
    )
)
def run(
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan file, or the name of a packaged one.")],
    lab: Annotated[str, typer.Option("--lab", metavar="LAB", help="A lab description: a file, or the name of one.")],
    out: OutOption = None,
    seed: SeedOption = None,
    expression: Annotated[
        str | None, typer.Option("-k", metavar="EXPR", help="Only tests whose names match, as pytest's -k.")
    ] = None,
    workers: Annotated[int, typer.Option("-n", metavar="WORKERS", min=1, help="Racks to run on side by side.")] = 1,
    testplans: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the plan's tests are, instead of those that are packaged."),
    ] = None,
    settings: SetOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print tests, drives erased, faults and a time estimate; do nothing.")
    ] = False,
) -> None:
    """Run a plan on a lab.

    A lab that `lab up` left running is used; else one is brought up for the run and taken down after it.
    """
    from rackloop_cli import run as verb

    request = verb.Request(
        plan=plan,
        lab=lab,
        out=out,
        seed=seed,
        expression=expression,
        workers=workers,
        testplans=testplans,
        settings=tuple(settings or ()),
        dry_run=dry_run,
    )
    raise typer.Exit(verb.run(request))


@app.command(epilog=examples("rackloop heal mock"))
def heal(lab: LabArgument) -> None:
    """Give a lab back its baseline.

    Undoes what a dead run, or a change by hand, left standing, then reads the switch back.
    """
    from rackloop_cli import heal as verb

    raise typer.Exit(verb.run(lab))


@app.command(epilog=examples("rackloop report results"))
def report(directory: Annotated[Path, typer.Argument(metavar="DIR", help="The output directory of a run.")]) -> None:
    """Render the reports of a run again.

    Everything but the event stream is made anew from it, also for a run that was killed.
    """
    from rackloop_cli import report as verb

    raise typer.Exit(verb.run(directory))


@lab_app.command(
    "check",
    epilog=examples(
        "rackloop lab check labs/my-rack.yaml",
        "rackloop lab check racks/ --json",
        "rackloop lab check --schema > lab.schema.json",
    ),
)
def lab_check(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="LAB", help="Files, folders of files, or names of labs.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema for editors.")] = False,
) -> None:
    """Check lab descriptions.

    Every problem is told at once, with its place and what to do; one in any file is exit code 2.
    """
    from rackloop_cli import lab_check as verb

    raise typer.Exit(verb.run(paths or [], json=as_json, schema=schema))


@lab_app.command("up", epilog=examples("rackloop lab up mock"))
def lab_up(lab: LabArgument) -> None:
    """Bring a lab up and leave it running."""
    from rackloop_cli import lab as verb

    raise typer.Exit(verb.up(lab))


@lab_app.command("down", epilog=examples("rackloop lab down mock"))
def lab_down(lab: LabArgument) -> None:
    """Take a lab down and leave nothing behind."""
    from rackloop_cli import lab as verb

    raise typer.Exit(verb.down(lab))


@lab_app.command("status", epilog=examples("rackloop lab status mock", "rackloop lab status mock --json"))
def lab_status(
    lab: LabArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print every endpoint as JSON.")] = False,
) -> None:
    """Say where everything in a lab answers.

    A lab that is down is exit code 3.
    """
    from rackloop_cli import lab as verb

    raise typer.Exit(verb.status(lab, as_json=as_json))


@lab_app.command("cabling", epilog=examples("rackloop lab cabling mock", "rackloop lab cabling my-rack --json"))
def lab_cabling(
    lab: LabArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Check the cables of a lab that is up.

    A row for each server port: the drive that should be there by the description and the live map, and the one its
    server sees. A cable that disagrees is named; one is exit code 3.
    """
    from rackloop_cli import lab_cabling as verb

    raise typer.Exit(verb.run(lab, as_json=as_json))


@lab_app.command(
    "discover",
    epilog=examples(
        "rackloop lab discover mock --name copy",
        "rackloop lab discover --name rack7 --host srv1=root@10.0.0.11 --host srv2=root@10.0.0.12",
        "rackloop lab discover --name rack7 --host srv1=root@10.0.0.11 --switch tcp://10.0.0.2:5025 --out rack7.yaml",
    ),
)
def lab_discover(
    lab: Annotated[
        str | None, typer.Argument(metavar="LAB", help="A lab that is up, whose servers are surveyed anew.")
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="The name of the description; else LAB's.")] = None,
    hosts: Annotated[
        list[str] | None,
        typer.Option("--host", metavar="NAME=USER@HOST", help="A server, 'user@host' or 'user@host:port'; repeat it."),
    ] = None,
    known_hosts: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The known_hosts file with the servers' keys; else ~/.ssh/known_hosts."),
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The private SSH key to log in with; else the agent's.")
    ] = None,
    switch: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The switch: tcp://host:port, or a device such as /dev/ttyUSB0."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The file to write; else NAME.yaml here.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
) -> None:
    """Write a first lab description from what the servers of a live rack see.

    What could not be found out is a comment that says what to fill in. No drive is marked for erasing.
    """
    from rackloop_cli import lab_discover as verb

    raise typer.Exit(
        verb.run(
            verb.Request(
                lab=lab,
                name=name,
                hosts=tuple(hosts or ()),
                known_hosts=known_hosts,
                key_file=key,
                switch=switch,
                out=out,
                force=force,
            )
        )
    )


@lab_app.command(
    "provision",
    epilog=examples(
        "rackloop lab provision mock",
        "rackloop lab provision mock --roles base_tools,fio_workers",
        "rackloop lab provision mock --roles network_tuning --set network_tuning_links=[ens1f0]",
        "rackloop lab provision mock --undo",
    ),
)
def lab_provision(
    lab: LabArgument,
    roles: Annotated[
        str | None, typer.Option("--roles", metavar="ROLE,...", help="Only these roles of the playbook; else all.")
    ] = None,
    undo: Annotated[
        bool, typer.Option("--undo", help="Take the roles back: what was there before is put back.")
    ] = False,
    playbook: Annotated[
        str | None,
        typer.Option("--playbook", metavar="FILE", help="A playbook of your own instead of the shipped one."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a variable of the playbook; may be given again."),
    ] = None,
    timeout_s: Annotated[
        float, typer.Option("--timeout-s", metavar="SECONDS", min=1.0, help="How long it may take.")
    ] = 600.0,
) -> None:
    """Make the servers of a lab what tests expect.

    Runs an Ansible playbook on them; a second run changes nothing. A mock lab must be up.
    """
    from rackloop_cli import lab_provision as verb

    request = verb.Request(
        lab=lab, roles=roles, undo=undo, playbook=playbook, settings=tuple(settings or ()), timeout_s=timeout_s
    )
    raise typer.Exit(verb.run(request))


@fabric_app.callback()
def _fabric(ctx: typer.Context, lab: LabArgument) -> None:
    ctx.obj = lab


@fabric_app.command("show", epilog=examples("rackloop fabric mock show"))
def fabric_show(ctx: typer.Context) -> None:
    """Draw the live map.

    A line for each server port: the drive it sees, and the state of its link.
    """
    from rackloop_cli import fabric as verb

    raise typer.Exit(verb.show(ctx.obj))


@fabric_app.command(
    "map",
    epilog=examples(
        "rackloop fabric mock map 1=117 2=118",
        "rackloop fabric mock map srv1.p0=d05",
        "rackloop fabric mock map --full 1=101 2=102",
    ),
)
def fabric_map(
    ctx: typer.Context,
    pairs: Annotated[
        list[str],
        typer.Argument(metavar="PAIR", help="Pairs of switch ports such as 1=117, or of names such as srv1.p0=d05."),
    ],
    full: Annotated[bool, typer.Option("--full", help="Replace the whole map: every other circuit opens.")] = False,
) -> None:
    """Join ports.

    Every other circuit stays as it is; `heal` goes back to the baseline.
    """
    from rackloop_cli import fabric as verb

    raise typer.Exit(verb.map_pairs(ctx.obj, pairs, full=full))


@fabric_app.command("unmap", epilog=examples("rackloop fabric mock unmap srv1.p0 d05"))
def fabric_unmap(
    ctx: typer.Context,
    ports: Annotated[list[str], typer.Argument(metavar="PORT", help="Switch ports, or names such as srv1.p0 or d05.")],
) -> None:
    """Open the circuits of ports.

    Every other circuit stays as it is; `heal` goes back to the baseline.
    """
    from rackloop_cli import fabric as verb

    raise typer.Exit(verb.unmap(ctx.obj, ports))


@fabric_app.command("drop", epilog=examples("rackloop fabric mock drop srv1.p0 --ms 50"))
def fabric_drop(
    ctx: typer.Context,
    ports: Annotated[list[str], typer.Argument(metavar="PORT", help="Switch ports, or names such as srv1.p0 or d05.")],
    ms: Annotated[
        float, typer.Option("--ms", metavar="MS", help="How long the signal is away, in milliseconds.")
    ] = 100.0,
) -> None:
    """Take the signal away from ports.

    It comes back by itself after the time given; the circuits stay.
    """
    from rackloop_cli import fabric as verb

    raise typer.Exit(verb.drop(ctx.obj, ports, down_ms=ms))


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit status. Nothing a user can cause ends in a traceback."""
    try:
        app(args=argv, prog_name="rackloop")
    except RackloopError as error:
        print(f"rackloop: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else EXIT_PASS
    return EXIT_PASS


if __name__ == "__main__":
    sys.exit(main())
