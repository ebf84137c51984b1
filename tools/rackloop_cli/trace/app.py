"""`rackloop trace`: the verbs for block traces. Each verb's code is imported when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rackloop_cli.shared.groups import Group
from rackloop_cli.shared.options import LabOption, ResultsOption, seconds
from rackloop_traces import FORMATS

trace_app = Group(
    "Read, convert, make and replay block traces.",
    "rackloop trace stat trace.csv.gz",
    "rackloop trace convert trace.csv.gz trace.iolog",
    "rackloop trace replay trace.csv.gz --lab mock --speed 10",
)

VolumeOption = Annotated[str | None, typer.Option(metavar="V", help="Only this volume's requests.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")]
TargetArgument = Annotated[
    Path, typer.Argument(metavar="OUT", help="The file to write; .gz and .zst at its end compress.")
]


@trace_app.verb(
    "stat",
    "rackloop trace stat demo",
    "rackloop trace stat trace.csv.gz --out look",
    "rackloop trace stat alibaba.csv.zst --volume 12 --json > volume12.json",
)
def trace_stat(
    trace: Annotated[
        str,
        typer.Argument(metavar="TRACE", help="A block trace, plain or .gz or .zst, or the name of a shipped one."),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory for trace.svg and statistics.json; else none.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every figure as JSON.")] = False,
    volume: VolumeOption = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="FMT", help="The trace's format; else it is recognised.")
    ] = None,
) -> None:
    """Show the statistics of a trace.

    Mix, sizes, rate over time, burstiness, footprint, locality, sequential runs and times between arrivals, in one pass
    over a trace of any length.
    """
    from rackloop_cli.trace import stat as verb

    raise typer.Exit(verb.run(trace, out=out, as_json=as_json, volume=volume, source=source))


@trace_app.verb(
    "convert",
    "rackloop trace convert trace.csv.gz trace.iolog",
    "rackloop trace convert msr.csv.gz volume1.spc.zst --volume usr.1",
    "rackloop trace convert sda.blktrace.0 sda.csv --to systor17",
    "rackloop trace convert vm.csv vm.iolog --from cloudphysics-us --strict",
    more="\n\n\b\nFormats:\n"
    + "\n".join(f"  {form.name:<16} {form.title}{'' if form.write else ' (read only)'}" for form in FORMATS.values()),
)
def trace_convert(
    trace: Annotated[
        str, typer.Argument(metavar="IN", help="A block trace, plain or .gz or .zst, or the name of a shipped one.")
    ],
    out: TargetArgument,
    source: Annotated[str | None, typer.Option("--from", metavar="FMT", help="IN's format; else recognised.")] = None,
    target: Annotated[
        str | None, typer.Option("--to", metavar="FMT", help="OUT's format; else as its name says: x.iolog, x.msr.csv.")
    ] = None,
    volume: VolumeOption = None,
    max_malformed: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Give up after more malformed lines; else 1000.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Give up at the first malformed line.")] = False,
    force: ForceOption = False,
) -> None:
    """Write a trace in another format.

    Malformed lines are reported and left out; the exit code is 0 as long as there are no more than allowed, else 2, and
    then nothing is written. A trace of any length needs the same memory.
    """
    from rackloop_cli.trace import convert as verb

    status = verb.run(
        trace, out, source=source, target=target, volume=volume, max_malformed=max_malformed, strict=strict, force=force
    )
    raise typer.Exit(status)


@trace_app.verb(
    "make",
    "rackloop trace make load.csv.gz --to msr --duration 60 --rate 500 --seed 42",
    "rackloop trace make load.iolog --sizes 4KiB:60,64KiB:40 --read-percent 70 --footprint '2 GiB'",
    "rackloop trace make twin.csv.zst --to alibaba --like trace.csv.gz --requests 1000000",
)
def trace_make(
    out: TargetArgument,
    target: Annotated[
        str | None, typer.Option("--to", metavar="FMT", help="The format to write; else the one that OUT's name says.")
    ] = None,
    like: Annotated[
        str | None, typer.Option(metavar="TRACE", help="Take the statistics of this trace, or of stat's JSON.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=2**63 - 1, help="Make it again; else one is chosen.")
    ] = None,
    requests: Annotated[int | None, typer.Option(metavar="N", min=1, help="How many requests.")] = None,
    duration: Annotated[
        float | None,
        typer.Option(metavar="TIME", parser=seconds, help="How long; a trace that is too short repeats."),
    ] = None,
    rate: Annotated[float | None, typer.Option(metavar="R", help="Mean requests per second.")] = None,
    read_percent: Annotated[
        float | None, typer.Option(metavar="P", min=0, max=100, help="Reads among reads and writes.")
    ] = None,
    sizes: Annotated[
        str | None, typer.Option(metavar="LIST", help="Sizes with weights, such as 4KiB:60,64KiB:40.")
    ] = None,
    footprint: Annotated[
        str | None, typer.Option(metavar="SIZE", help="What a long trace touches, such as '2 GiB'.")
    ] = None,
    span: Annotated[
        str | None, typer.Option(metavar="SIZE", help="How much of the drive that is spread over, at least.")
    ] = None,
    burstiness: Annotated[
        float | None, typer.Option(metavar="B", help="Bias of the b-model, 0.5 (even) to 0.9.")
    ] = None,
    sequential_percent: Annotated[
        float | None, typer.Option(metavar="P", min=0, max=99.9, help="Requests that continue a run.")
    ] = None,
    hot: Annotated[
        str | None, typer.Option(metavar="B:T", help="The busiest B percent of blocks get T percent of touches.")
    ] = None,
    swing_percent: Annotated[
        float | None, typer.Option(metavar="P", min=0, max=100, help="How far the rate swings about its mean.")
    ] = None,
    period: Annotated[
        float | None, typer.Option(metavar="TIME", parser=seconds, help="The time of such a swing; else a day.")
    ] = None,
    force: ForceOption = False,
) -> None:
    """Make a synthetic trace.

    With the statistics of another (--like), or of round numbers; every option replaces what the other one has. The same
    seed makes the same trace.
    """
    from rackloop_cli.trace import make as verb

    request = verb.SynthesisRequest(
        out=out,
        format=target,
        like=like,
        seed=seed,
        requests=requests,
        duration_s=duration,
        rate=rate,
        read_percent=read_percent,
        sizes=sizes,
        footprint=footprint,
        span=span,
        burstiness=burstiness,
        sequential_percent=sequential_percent,
        hot=hot,
        swing_percent=swing_percent,
        period_s=period,
        force=force,
    )
    raise typer.Exit(verb.run(request))


@trace_app.verb(
    "replay",
    "rackloop trace replay demo --lab mock",
    "rackloop trace replay recorded.csv.gz --lab mock --fold --for 60",
    "rackloop trace replay recorded.csv.gz --lab labs/rack7.yaml --drive d05 --speed 10 --reads-only --out results",
)
def trace_replay(
    trace: Annotated[
        str, typer.Argument(metavar="TRACE", help="A block trace in any format, or the name of a shipped one.")
    ],
    lab: LabOption,
    drive: Annotated[
        str | None, typer.Option(metavar="ID", help="The drive to replay on; else the first of the lab.")
    ] = None,
    volume: VolumeOption = None,
    speed: Annotated[float | None, typer.Option(metavar="X", help="Times as fast as it was recorded; else 1.")] = None,
    from_s: Annotated[
        float | None, typer.Option("--from", metavar="TIME", parser=seconds, help="Begin so far into the trace.")
    ] = None,
    duration_s: Annotated[
        float | None, typer.Option("--for", metavar="TIME", parser=seconds, help="Replay so much of the trace.")
    ] = None,
    reads_only: Annotated[bool, typer.Option("--reads-only", help="Leave out what writes; erases nothing.")] = False,
    fold: Annotated[bool, typer.Option("--fold", help="Bring offsets beyond the drive back into it.")] = False,
    out: ResultsOption = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=2**63 - 1, help="The run's seed; else one is chosen.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the drive erased and a time estimate; do nothing.")
    ] = False,
) -> None:
    """Replay a trace on a drive of a lab, through fio.

    A run of the plan `replay`, with its guard, report and exit codes. The report says how late the requests were.
    """
    from rackloop_cli.trace import replay as verb

    given = {
        "trace": trace,
        "drive": drive,
        "volume": volume,
        "speed": speed,
        "from_s": from_s,
        "duration_s": duration_s,
        "reads_only": "true" if reads_only else None,
        "fold": "true" if fold else None,
    }
    raise typer.Exit(verb.run(given, lab, out=out, seed=seed, dry_run=dry_run))
