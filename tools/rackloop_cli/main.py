"""The `rackloop` command: verbs, options and exit codes. What a verb does is imported when it is called."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rackloop.errors import EXIT_INTERRUPTED, EXIT_PASS, RackloopError

app = typer.Typer(
    name="rackloop",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Test harness and lab automation for disaggregated storage racks.",
    epilog="Start with [bold]rackloop demo[/bold]. Exit codes: 0 pass, 1 a product failed its limits, 2 bad input, "
    "3 the lab or the harness failed or nothing could be said, 130 interrupted.",
)
lab_app = typer.Typer(no_args_is_help=True, help="Check, start, stop and look at labs.")
app.add_typer(lab_app, name="lab")
fabric_app = typer.Typer(
    no_args_is_help=True,
    help="Look at a lab's circuit switch and change its map by hand.",
    epilog="Examples: [bold]rackloop fabric mock show[/bold]; [bold]rackloop fabric mock map 1!117 2!118[/bold]; "
    "[bold]rackloop fabric mock drop 1 --ms 50[/bold]",
)
app.add_typer(fabric_app, name="fabric")

LabArgument = Annotated[str, typer.Argument(metavar="LAB", help="A lab description: a file, or the name of one.")]
OutOption = Annotated[
    Path | None, typer.Option("--out", help="Directory for the results; must be new or empty.", show_default=False)
]
SeedOption = Annotated[
    int | None,
    typer.Option("--seed", min=0, max=2**63 - 1, help="Replay with this seed; chosen and printed if absent."),
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


@app.command(epilog="Example: [bold]rackloop demo --out my-first-run[/bold]")
def demo(out: OutOption = None, seed: SeedOption = None) -> None:
    """Bring up the mock rack, run the smoke plan on it and leave an Allure report."""
    from rackloop_cli import run as verb

    raise typer.Exit(verb.run(verb.Request(plan="smoke", lab="mock", out=out, seed=seed)))


@app.command(
    epilog="Examples: [bold]rackloop run smoke --lab mock[/bold]; "
    "[bold]rackloop run plans/vendor.yaml --lab labs/rack7.yaml --out results --seed 42 -k identity[/bold]"
)
def run(
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan file, or the name of a packaged one.")],
    lab: Annotated[str, typer.Option("--lab", help="A lab description: a file, or the name of one.")],
    out: OutOption = None,
    seed: SeedOption = None,
    expression: Annotated[
        str | None, typer.Option("-k", metavar="EXPR", help="Only tests whose names match, as pytest's -k.")
    ] = None,
    workers: Annotated[int, typer.Option("-n", metavar="WORKERS", min=1, help="Racks to run on side by side.")] = 1,
    testplans: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where the plan's tests are, instead of those that are packaged.", show_default=False
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print tests, drives erased, faults and a time estimate; do nothing.")
    ] = False,
) -> None:
    """Run a plan on a lab, on the one that `lab up` left running or else on one brought up for the run."""
    from rackloop_cli import run as verb

    request = verb.Request(
        plan=plan,
        lab=lab,
        out=out,
        seed=seed,
        expression=expression,
        workers=workers,
        testplans=testplans,
        dry_run=dry_run,
    )
    raise typer.Exit(verb.run(request))


@app.command(epilog="Example: [bold]rackloop heal mock[/bold]")
def heal(lab: LabArgument) -> None:
    """Undo what a dead run left standing on a lab, and verify the baseline."""
    from rackloop_cli import heal as verb

    raise typer.Exit(verb.run(lab))


@app.command(epilog="Example: [bold]rackloop report runs/smoke-mock-1[/bold]")
def report(directory: Annotated[Path, typer.Argument(metavar="DIR", help="The output directory of a run.")]) -> None:
    """Render the reports of a run again from its events, also of a run that was killed."""
    from rackloop_cli import report as verb

    raise typer.Exit(verb.run(directory))


@lab_app.command(
    "check",
    epilog="Examples: [bold]rackloop lab check labs/mock.yaml[/bold]; [bold]rackloop lab check racks/[/bold]; "
    "[bold]rackloop lab check --schema > lab.schema.json[/bold]",
)
def lab_check(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="LAB...", help="Files, folders of files, or names of labs.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema for editors.")] = False,
) -> None:
    """Check lab descriptions: every problem at once, with its place and what to do."""
    from rackloop_cli import lab_check as verb

    raise typer.Exit(verb.run(paths or [], json=as_json, schema=schema))


@lab_app.command("up", epilog="Example: [bold]rackloop lab up mock[/bold]")
def lab_up(lab: LabArgument) -> None:
    """Bring a lab up and leave it running."""
    from rackloop_cli import lab as verb

    raise typer.Exit(verb.up(lab))


@lab_app.command("down", epilog="Example: [bold]rackloop lab down mock[/bold]")
def lab_down(lab: LabArgument) -> None:
    """Take a lab down and leave nothing behind."""
    from rackloop_cli import lab as verb

    raise typer.Exit(verb.down(lab))


@lab_app.command("status", epilog="Example: [bold]rackloop lab status mock --json[/bold]")
def lab_status(
    lab: LabArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print every endpoint as JSON.")] = False,
) -> None:
    """Say whether a lab is up and where everything in it answers."""
    from rackloop_cli import lab as verb

    raise typer.Exit(verb.status(lab, as_json=as_json))


@fabric_app.callback()
def _fabric(ctx: typer.Context, lab: LabArgument) -> None:
    ctx.obj = lab


@fabric_app.command("show")
def fabric_show(ctx: typer.Context) -> None:
    """Draw the live map: which server port sees which drive."""
    from rackloop_cli import fabric as verb

    raise typer.Exit(verb.show(ctx.obj))


@fabric_app.command("map")
def fabric_map(
    ctx: typer.Context,
    pairs: Annotated[
        list[str], typer.Argument(metavar="PAIR...", help="Pairs such as 1!117, or names such as srv1.p0=d05.")
    ],
    full: Annotated[bool, typer.Option("--full", help="Replace the whole map.")] = False,
) -> None:
    """Join ports; every other circuit stays as it is."""
    from rackloop_cli import fabric as verb

    raise typer.Exit(verb.map_pairs(ctx.obj, pairs, full=full))


@fabric_app.command("unmap")
def fabric_unmap(
    ctx: typer.Context,
    ports: Annotated[
        list[str], typer.Argument(metavar="PORT...", help="Switch ports, or names such as srv1.p0 or d05.")
    ],
) -> None:
    """Open ports."""
    from rackloop_cli import fabric as verb

    raise typer.Exit(verb.unmap(ctx.obj, ports))


@fabric_app.command("drop")
def fabric_drop(
    ctx: typer.Context,
    ports: Annotated[
        list[str], typer.Argument(metavar="PORT...", help="Switch ports, or names such as srv1.p0 or d05.")
    ],
    ms: Annotated[float, typer.Option("--ms", help="How long the signal is away, in milliseconds.")] = 100.0,
) -> None:
    """Take the signal away from ports for a time."""
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
