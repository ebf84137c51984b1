"""`rackloop model erasure codes` and `redundancy`: the codes that failure probabilities require."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from rackloop.errors import EXIT_PASS, BadInput
from rackloop_cli.shared.output import each_once, make_directory, write_results
from rackloop_cli.shared.tables import print_whole, table_of_figures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from rackloop_models.tail_latency import RedundancyStep

_SHORTEST = 16
_LONGEST = 65_536


def codes(
    ph: Sequence[float] | None, codeword: Sequence[int] | None, ps: float, out: Path | None, *, as_json: bool = False
) -> int:
    """The table of codes."""
    from rackloop_models.tail_latency import CODEWORDS, FAILURE_PROBABILITIES, metadata_replicas, table_of_codes

    found = table_of_codes(each_once(codeword or CODEWORDS), each_once(ph or FAILURE_PROBABILITIES), ps)
    make_directory(out)
    table = table_of_figures("codeword", "ph", "k", "m", "redundancy", "fails", "with m - 1", "copies")
    rows = []
    for code in found:
        copies = metadata_replicas(code.ph, ps)
        rows.append({"codeword": code.codeword, **asdict(code), "metadata_replicas": copies})
        table.add_row(
            str(code.codeword),
            f"{code.ph:g}",
            str(code.k),
            str(code.m),
            f"{code.redundancy:.2%}",
            f"{code.fails:.3e}",
            f"{code.fails_with_less:.3e}",
            str(copies),
        )
    print_whole(Console(quiet=as_json), table)
    write_results(out, "codes", {"target": ps}, rows, as_json=as_json)
    return EXIT_PASS


def redundancy(ph: Sequence[float] | None, ps: float, longest: int, out: Path | None, *, as_json: bool = False) -> int:
    """Redundancy by codeword length: some lengths as a table, all of them as steps in files and a plot."""
    from rackloop_models.tail_latency import FAILURE_PROBABILITIES, SOURCE, redundancy_steps

    if not _SHORTEST <= longest <= _LONGEST:
        raise BadInput(f"--longest {longest}: give {_SHORTEST} to {_LONGEST:,} sectors")
    phs = each_once(ph or FAILURE_PROBABILITIES)
    steps = redundancy_steps(_SHORTEST, longest, phs, ps)
    if not steps:
        raise BadInput(f"no code of up to {longest} sectors fails as rarely as {ps:g}; take a larger --longest or --ps")
    make_directory(out)
    table = table_of_figures("codeword", *(f"ph {value:g}" for value in phs))
    for length in _lengths(longest):
        table.add_row(str(length), *(_at(length, [step for step in steps if step.ph == value]) for value in phs))
    console = Console(quiet=as_json)
    console.print(f"m, and m / k, for codewords of which decoding fails with {ps:g} at most", highlight=False)
    print_whole(console, table)
    rows = [
        {
            **asdict(step),
            "ratio_shortest": step.m / (step.shortest - step.m),
            "ratio_longest": step.m / (step.longest - step.m),
        }
        for step in steps
    ]

    def draw() -> Figure:
        from rackloop_reports.plots import RedundancyStretch, redundancy_curves

        lines = {
            f"$p_h$ = {value:g}": [RedundancyStretch(s.shortest, s.longest, s.m) for s in steps if s.ph == value]
            for value in phs
        }
        caption = f"Decoding fails with {ps:g} at most. Every length is drawn. As Figure 4 of: {SOURCE}."
        return redundancy_curves(lines, "Redundancy that codewords need, by their length", caption)

    write_results(out, "redundancy", {"target": ps}, rows, draw, as_json=as_json)
    return EXIT_PASS


def _at(length: int, steps: Sequence[RedundancyStep]) -> str:
    for step in steps:
        if step.shortest <= length <= step.longest:
            return f"{step.m}  {step.m / (length - step.m):.2%}"
    return "-"


def _lengths(longest: int) -> list[int]:
    """The powers of two, and the longest."""
    return sorted({1 << power for power in range(_SHORTEST.bit_length() - 1, longest.bit_length())} | {longest})
