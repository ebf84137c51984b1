"""`rackloop model erasure codes` and `redundancy`: which code a failure probability asks for."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from rackloop.errors import EXIT_PASS, BadInput
from rackloop_cli.model_output import make_directory, write_results

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHORTEST = 16
_LONGEST = 65_536
_STEPS_AN_OCTAVE = 8


def codes(ph: Sequence[float] | None, codeword: Sequence[int] | None, ps: float, out: Path | None) -> int:
    """The table of codes."""
    from rackloop_models.tail_latency import CODEWORDS, FAILURE_PROBABILITIES, metadata_replicas, table_of_codes

    found = table_of_codes(codeword or CODEWORDS, ph or FAILURE_PROBABILITIES, ps)
    make_directory(out)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("codeword", "ph", "k", "m", "redundancy", "fails", "with m - 1", "copies"):
        table.add_column(name, justify="right", no_wrap=True)
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
    console = Console()
    console.print(table)
    write_results(console, out, "codes", {"target": ps}, rows, None)
    return EXIT_PASS


def redundancy(ph: Sequence[float] | None, ps: float, longest: int, out: Path | None) -> int:
    """Redundancy by codeword length: some lengths as a table, all of them as a plot."""
    from rackloop_models.tail_latency import FAILURE_PROBABILITIES, SOURCE, redundancy_by_length

    if not _SHORTEST <= longest <= _LONGEST:
        raise BadInput(f"--longest {longest}: give {_SHORTEST} to {_LONGEST:,} sectors")
    phs = tuple(ph or FAILURE_PROBABILITIES)
    lengths = _lengths(longest)
    found = redundancy_by_length(lengths, phs, ps)
    if not found:
        raise BadInput(f"no code of up to {longest} sectors fails as rarely as {ps:g}; take a larger --longest or --ps")
    make_directory(out)
    by_place = {(entry.ph, entry.codeword): entry for entry in found}
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("codeword", justify="right")
    for value in phs:
        table.add_column(f"ph {value:g}", justify="right")
    for length in (length for length in lengths if length == longest or length & (length - 1) == 0):
        entries = [by_place.get((value, length)) for value in phs]
        table.add_row(str(length), *(f"{entry.m}  {entry.ratio:.2%}" if entry else "-" for entry in entries))
    console = Console()
    console.print(f"m, and m / k, for codewords of which decoding fails with {ps:g} at most", highlight=False)
    console.print(table)
    if out is None:
        return EXIT_PASS
    from rackloop_reports.plots import redundancy_curves

    lines = {f"$p_h$ = {value:g}": [(e.codeword, e.ratio) for e in found if e.ph == value] for value in phs}
    caption = f"Decoding fails with {ps:g} at most. As Figure 4 of: {SOURCE}."
    rows = [{**asdict(entry), "ratio": entry.ratio} for entry in found]
    figure = redundancy_curves(lines, "Redundancy that codewords need, by their length", caption)
    write_results(console, out, "redundancy", {"target": ps}, rows, figure)
    return EXIT_PASS


def _lengths(longest: int) -> list[int]:
    """Eight to each doubling, powers of two among them, and the longest."""
    lengths, octave = [], _SHORTEST
    while octave <= longest:
        lengths += [round(octave * 2 ** (step / _STEPS_AN_OCTAVE)) for step in range(_STEPS_AN_OCTAVE)]
        octave *= 2
    return sorted({length for length in lengths if length <= longest} | {longest})
