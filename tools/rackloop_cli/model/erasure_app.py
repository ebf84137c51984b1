"""`rackloop model erasure`: the verbs for local erasure coding. Each verb's code is imported when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from rackloop_cli.shared.groups import Group
from rackloop_cli.shared.options import JsonOption

model_erasure_app = Group(
    "Compute the effect of local erasure coding on tail latency, and its costs.",
    "rackloop model erasure codes",
    "rackloop model erasure tail --out tail",
    "rackloop model erasure overhead",
)

PhOption = Annotated[
    list[float] | None, typer.Option(metavar="P", help="Probability that a sector fails at first; may be given again.")
]
CodewordOption = Annotated[list[int] | None, typer.Option(metavar="N", help="Sectors of a group; may be given again.")]
OutOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Directory for JSON, CSV, and the plot as SVG and PNG; else none.")
]
TableOutOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Directory for the table as JSON and CSV; else none.")
]
SeedOption = Annotated[int, typer.Option(metavar="N", min=0, max=2**63 - 1, help="Seed of all random choices.")]
PsOption = Annotated[float, typer.Option(metavar="P", help="Highest allowed probability of a decoding failure.")]
ProfileOption = Annotated[
    str, typer.Option(metavar="PROFILE", help="A hard disk's profile: a file, or the name of one.")
]


@model_erasure_app.verb(
    "codes",
    "rackloop model erasure codes",
    "rackloop model erasure codes --ph 0.002 --codeword 511 --ps 1e-9",
    "rackloop model erasure codes --out codes",
    "rackloop model erasure codes --json",
)
def codes(
    ph: PhOption = None,
    codeword: CodewordOption = None,
    ps: PsOption = 1e-6,
    out: TableOutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Choose codes for failure probabilities.

    The least redundancy with which decoding fails rarely enough, and its failure probability: Table 1 of the paper. The
    last column is the number of copies that a metadata sector needs.
    """
    from rackloop_cli.model import erasure_codes as verb

    raise typer.Exit(verb.codes(ph, codeword, ps, out, as_json=as_json))


@model_erasure_app.verb(
    "redundancy", "rackloop model erasure redundancy", "rackloop model erasure redundancy --ps 1e-6 --out redundancy"
)
def redundancy(
    ph: PhOption = None,
    ps: PsOption = 1e-8,
    longest: Annotated[int, typer.Option(metavar="N", help="Longest codeword, in sectors.")] = 4096,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show redundancy by codeword length.

    Longer codewords need less redundancy: Figure 4 of the paper. The table has some lengths, the plot and the files all
    of them, as steps.
    """
    from rackloop_cli.model import erasure_codes as verb

    raise typer.Exit(verb.redundancy(ph, ps, longest, out, as_json=as_json))


@model_erasure_app.verb(
    "tail",
    "rackloop model erasure tail",
    "rackloop model erasure tail --ph 0.001 --sectors 10000 --retry '20 ms' --measure 400",
    "rackloop model erasure tail --charge most --trials 0",
    "rackloop model erasure tail --measure 400 --out tail --seed 7",
)
def tail(
    sectors: Annotated[
        list[int] | None, typer.Option(metavar="N", help="Consecutive sectors to read; may be given again.")
    ] = None,
    ph: PhOption = None,
    retry: Annotated[
        list[str] | None, typer.Option(metavar="TIME", help="The time of a retry; may be given again.")
    ] = None,
    codeword: Annotated[int, typer.Option(metavar="N", help="Sectors of a group.")] = 1023,
    decoding: Annotated[
        Literal["software", "hardware", "own"],
        typer.Option(metavar="WHOSE", help="Decode times: the paper's software or hardware, or own, timed here."),
    ] = "software",
    charge: Annotated[
        Literal["missing", "most"],
        typer.Option(
            metavar="WHAT", help="Decoding of the last group: of what it is missing, or the most there can be."
        ),
    ] = "missing",
    trials: Annotated[
        int, typer.Option(metavar="N", min=0, max=10_000_000, help="Monte Carlo reads of each; 0 for none.")
    ] = 20_000,
    measure: Annotated[
        int, typer.Option(metavar="N", min=0, max=100_000, help="Reads of each on the drive model; 0 for none.")
    ] = 0,
    request: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, max=16_384, help="With --measure: sectors in a request that fails fast; else 1."
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(metavar="PROFILE", help="With --measure: a hard disk's profile, a file or a name; else sata-hdd."),
    ] = None,
    seed: SeedOption = 1,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compute the tail latency of consecutive reads.

    With retries and with local erasure coding: by the paper's equations, by simulation and, with --measure, on the hard
    disk model in virtual time, beside the paper's figures. Trials that disagree with the equations are exit code 1.
    """
    from rackloop_cli.model import erasure_tail as verb

    asked = verb.TailRequest(
        sectors=sectors,
        ph=ph,
        retry=retry,
        codeword=codeword,
        decoding=decoding,
        charge=charge,
        trials=trials,
        measured=measure,
        request_sectors=request,
        profile=profile,
        seed=seed,
        out=out,
        as_json=as_json,
    )
    raise typer.Exit(verb.tail(asked))


@model_erasure_app.verb(
    "overhead",
    "rackloop model erasure overhead",
    "find /srv -type f -printf '%s\\n' > sizes.txt && rackloop model erasure overhead sizes.txt",
    "rackloop model erasure overhead histogram.csv --codeword 1023 --ph 0.001 --out overhead",
)
def overhead(
    sizes: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[SIZES]...", help="Files of sizes: one in bytes a line, or a size and a count."),
    ] = None,
    ph: PhOption = None,
    codeword: CodewordOption = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compute the share of a drive that redundancy takes.

    By the sizes of the files on it, or else for synthetic sizes that stand for benchmarks: Figure 10 of the paper.
    """
    from rackloop_cli.model import erasure_costs as verb

    raise typer.Exit(verb.overhead(sizes or [], ph, codeword, out, as_json=as_json))


@model_erasure_app.verb(
    "update", "rackloop model erasure update", "rackloop model erasure update --sectors 120 --groups 300"
)
def update(
    sectors: Annotated[
        list[int] | None, typer.Option(metavar="N", help="Sectors to update in each group; may be given again.")
    ] = None,
    ph: PhOption = None,
    codeword: Annotated[int, typer.Option(metavar="N", help="Sectors of a group.")] = 255,
    groups: Annotated[int, typer.Option(metavar="N", help="Groups that are updated.")] = 9574,
    profile: ProfileOption = "sata-hdd",
    seed: SeedOption = 1,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure updates of parts of groups.

    On the hard disk model in virtual time, by both methods and without a code, over 10 GB: Figure 11 of the paper.
    """
    from rackloop_cli.model import erasure_costs as verb

    raise typer.Exit(verb.update(sectors, ph, codeword, groups, profile, seed, out, as_json=as_json))


@model_erasure_app.verb(
    "slowdown", "rackloop model erasure slowdown", "rackloop model erasure slowdown --ph 0.001 --out slowdown"
)
def slowdown(
    ph: PhOption = None,
    codeword: CodewordOption = None,
    profile: ProfileOption = "sata-hdd",
    seed: SeedOption = 1,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the slowdown of workloads by coding.

    Mixes of streams and random reads stand for the paper's benchmarks, on the hard disk model in virtual time, with
    the codec in software and in hardware: Figure 9 of the paper.
    """
    from rackloop_cli.model import erasure_costs as verb

    raise typer.Exit(verb.slowdown(ph, codeword, profile, seed, out, as_json=as_json))
