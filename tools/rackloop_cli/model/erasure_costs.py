"""`rackloop model erasure overhead`, `update` and `slowdown`: the costs of local erasure coding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from rackloop.clock import Deadline, RealClock
from rackloop.errors import EXIT_PASS
from rackloop.units import format_quantity
from rackloop_cli.shared.output import each_once, make_directory, write_results
from rackloop_cli.shared.progress import watched
from rackloop_cli.shared.tables import print_whole, table_of_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rackloop_models.tail_latency import ChosenCode, FileSizes, Slowdown, UpdateCost

    Shares = Mapping[str, Mapping[ChosenCode, float]]

_WITHIN_S = 1800.0
_UPDATED = (50, 200)


def overhead(
    paths: Sequence[Path],
    ph: Sequence[float] | None,
    codeword: Sequence[int] | None,
    out: Path | None,
    *,
    as_json: bool = False,
) -> int:
    """The overhead of each set of file sizes with each code."""
    from rackloop_models.tail_latency import (
        BENCHMARKS,
        CODEWORDS,
        FAILURE_PROBABILITIES,
        capacity_overhead,
        read_file_sizes,
        synthetic_file_sizes,
        table_of_codes,
    )

    codes = table_of_codes(each_once(codeword or CODEWORDS), each_once(ph or FAILURE_PROBABILITIES))
    read = {path.absolute(): read_file_sizes(path) for path in paths}
    files = [_called(sizes, path, paths) for path, sizes in read.items()] or [
        synthetic_file_sizes(name) for name in BENCHMARKS
    ]
    found = {sizes.name: {code: capacity_overhead(sizes, code.k, code.m) for code in codes} for sizes in files}
    assumed = {sizes.name: sizes.assumed for sizes in files if sizes.assumed}
    make_directory(out)
    _print_overhead(Console(quiet=as_json), found, codes, assumed)

    def draw() -> Figure:
        return _figure_overhead(found, codes, is_made_up=not paths)

    write_results(out, "overhead", {"assumed": assumed}, _rows_overhead(found), draw, as_json=as_json)
    return EXIT_PASS


def _print_overhead(console: Console, found: Shares, codes: Sequence[ChosenCode], assumed: Mapping[str, str]) -> None:
    console.print("redundancy sectors over user sectors", highlight=False)
    for length, here in _by_length(codes).items():
        table = table_of_figures(f"{length}", *map(_heading, here), left={f"{length}"})
        for name, shares in found.items():
            table.add_row(name, *(f"{shares[code]:.2%}" for code in here))
        print_whole(console, table)
    for name, said in assumed.items():
        console.print(f"{name}: {said}", soft_wrap=True, markup=False, highlight=False)


def _figure_overhead(found: Shares, codes: Sequence[ChosenCode], *, is_made_up: bool) -> Figure:
    from rackloop_models.tail_latency import SOURCE
    from rackloop_reports.plots import BarPanel, bar_sheet

    panels = []
    for length, here in _by_length(codes).items():
        series = {f"ph {code.ph:g}": [shares[code] for shares in found.values()] for code in here}
        panels.append(BarPanel(f"Codewords of {length} sectors", list(found), series))
    made_up = "File sizes are made up from what the paper says of its benchmarks. " if is_made_up else ""
    caption = f"{made_up}As Figure 10 of: {SOURCE}."
    return bar_sheet(panels, "Capacity overhead by file sizes", "Redundancy over user sectors", caption, is_share=True)


def _rows_overhead(found: Shares) -> list[dict[str, Any]]:
    return [
        {"files": name, "ph": code.ph, "k": code.k, "m": code.m, "overhead": share}
        for name, shares in found.items()
        for code, share in shares.items()
    ]


def update(
    sectors: Sequence[int] | None,
    ph: Sequence[float] | None,
    codeword: int,
    groups: int,
    name: str,
    seed: int,
    out: Path | None,
    *,
    as_json: bool = False,
) -> int:
    """Updates by both methods, over those without a code."""
    from rackloop.lab import load_profile
    from rackloop_drivers.host import LocalExecutor
    from rackloop_models.tail_latency import FAILURE_PROBABILITIES, Update, table_of_codes, update_costs

    profile, clock = load_profile(name), RealClock()
    codes = table_of_codes((codeword,), each_once(ph or FAILURE_PROBABILITIES))
    updates = [Update(code.k, code.m, count, groups) for count in each_once(sectors or _UPDATED) for code in codes]
    make_directory(out)
    console = Console(quiet=as_json)
    with LocalExecutor(clock) as executor, watched(f"{groups:,} groups on {profile.name}") as progress:
        costs = update_costs(updates, profile, executor, Deadline.after(clock, _WITHIN_S), seed=seed, progress=progress)
    console.print(f"[bold]simulated[/bold] {profile.name}, {groups:,} groups, seed {seed}", highlight=False)
    _print_update(console, costs)

    def draw() -> Figure:
        return _figure_update(costs, f"{groups:,} groups on profile {profile.name}, seed {seed}, in virtual time")

    settings = {"simulated": True, "profile": profile.name, "groups": groups, "seed": seed}
    write_results(out, "update", settings, _rows_update(costs), draw, as_json=as_json)
    return EXIT_PASS


def _print_update(console: Console, costs: Sequence[UpdateCost]) -> None:
    table = table_of_figures(
        "sectors", "code", "method", "reads a group", "time", "times that without", left={"sectors"}
    )
    for cost in costs:
        table.add_row(
            str(cost.update.sectors),
            _code_of(cost),
            cost.method,
            str(cost.update.reads(cost.method)),
            format_quantity(cost.seconds, "s"),
            f"{cost.over_baseline:.2f}",
        )
    print_whole(console, table)


def _figure_update(costs: Sequence[UpdateCost], measured: str) -> Figure:
    from rackloop_models.tail_latency import SOURCE, UpdateMethod
    from rackloop_reports.plots import BarPanel, bar_sheet

    panels = []
    for count in dict.fromkeys(cost.update.sectors for cost in costs):
        by_method = {
            method: [cost for cost in costs if cost.update.sectors == count and cost.method is method]
            for method in UpdateMethod
        }
        names = [_code_of(cost) for cost in by_method.pop(UpdateMethod.NONE)]
        series = {str(method): [cost.over_baseline for cost in here] for method, here in by_method.items()}
        panels.append(BarPanel(f"{count} sectors of each group", names, series))
    caption = (
        f"{measured}; 1 is the same without a code. Direct: read the rest of the group. Indirect: read what is "
        f"replaced and the redundancy. As Figure 11 of: {SOURCE}."
    )
    return bar_sheet(panels, "Updates of parts of groups (simulated)", "Time, over none", caption, is_share=False)


def _rows_update(costs: Sequence[UpdateCost]) -> list[dict[str, Any]]:
    return [
        {
            "sectors": cost.update.sectors,
            "k": cost.update.k,
            "m": cost.update.m,
            "method": str(cost.method),
            "reads": cost.update.reads(cost.method),
            "seconds": cost.seconds,
            "over_baseline": cost.over_baseline,
        }
        for cost in costs
    ]


def _code_of(cost: UpdateCost) -> str:
    return f"({cost.update.k}, {cost.update.m})"


def slowdown(
    ph: Sequence[float] | None,
    codeword: Sequence[int] | None,
    name: str,
    seed: int,
    out: Path | None,
    *,
    as_json: bool = False,
) -> int:
    """Print the slowdown of each workload."""
    from rackloop.lab import load_profile
    from rackloop_drivers.host import LocalExecutor
    from rackloop_models.tail_latency import CODEWORDS, FAILURE_PROBABILITIES, paper_drive, slowdowns, table_of_codes

    clock, phs = RealClock(), each_once(ph or FAILURE_PROBABILITIES)
    codes = table_of_codes(each_once(codeword or CODEWORDS), phs)
    drive = paper_drive(load_profile(name), phs[0], 0.02)
    make_directory(out)
    console = Console(quiet=as_json)
    with LocalExecutor(clock) as executor, watched(f"{len(codes)} codes on {drive.name}") as progress:
        found = slowdowns(codes, drive, executor, Deadline.after(clock, _WITHIN_S), seed=seed, progress=progress)
    console.print(f"[bold]simulated[/bold] {drive.name}, throughput lost, seed {seed}", highlight=False)
    _print_slowdown(console, found, codes)

    def draw() -> Figure:
        return _figure_slowdown(found, codes, f"Profile {drive.name} at 250 sectors a revolution, seed {seed}")

    settings = {"simulated": True, "profile": drive.name, "seed": seed}
    write_results(out, "slowdown", settings, _rows_slowdown(found), draw, as_json=as_json)
    return EXIT_PASS


def _print_slowdown(console: Console, found: Sequence[Slowdown], codes: Sequence[ChosenCode]) -> None:
    for codec, lost in _by_codec(found).items():
        for length, here in _by_length(codes).items():
            corner = f"{codec}, {length}"
            table = table_of_figures(corner, *map(_heading, here), left={corner})
            for workload, shares in lost.items():
                table.add_row(workload, *(f"{shares[code]:.2%}" for code in here))
            print_whole(console, table)
    console.print(
        "each workload is a mix of reads and writes whose shares are assumed; nothing is cached or computed",
        soft_wrap=True,
    )


def _figure_slowdown(found: Sequence[Slowdown], codes: Sequence[ChosenCode], measured: str) -> Figure:
    from rackloop_models.tail_latency import SOURCE
    from rackloop_reports.plots import BarPanel, bar_sheet

    panels = []
    for length, here in _by_length(codes).items():
        for codec, lost in _by_codec(found).items():
            series = {f"ph {code.ph:g}": [shares[code] for shares in lost.values()] for code in here}
            panels.append(BarPanel(f"{length} sectors, {codec}", list(lost), series))
    caption = (
        "Mixes of streams and random reads stand for benchmarks; their shares are assumed. "
        f"{measured}, in virtual time, without page cache or computation. As Figure 9 of: {SOURCE}."
    )
    return bar_sheet(panels, "Throughput lost to local erasure coding (simulated)", "Lost", caption, is_share=True)


def _rows_slowdown(found: Sequence[Slowdown]) -> list[dict[str, Any]]:
    return [
        {
            "workload": entry.workload,
            "codec": entry.codec,
            "ph": entry.code.ph,
            "k": entry.code.k,
            "m": entry.code.m,
            "lost": entry.lost,
        }
        for entry in found
    ]


def _by_codec(found: Sequence[Slowdown]) -> dict[str, dict[str, dict[ChosenCode, float]]]:
    """For each codec the throughput that is lost, by workload and code."""
    by_codec: dict[str, dict[str, dict[ChosenCode, float]]] = {}
    for entry in found:
        by_codec.setdefault(entry.codec, {}).setdefault(entry.workload, {})[entry.code] = entry.lost
    return by_codec


def _called(sizes: FileSizes, path: Path, paths: Sequence[Path]) -> FileSizes:
    """Sizes by their file's name, and as many folders of its path as tell it from the others."""
    others = {other.absolute().parts for other in paths if other.absolute() != path.absolute()}
    parts = path.absolute().parts
    for count in range(1, len(parts)):
        if all(other[-count:] != parts[-count:] for other in others):
            return replace(sizes, name="/".join(parts[-count:]))
    return replace(sizes, name=str(path))


def _by_length(codes: Sequence[ChosenCode]) -> dict[int, list[ChosenCode]]:
    """Codes by the length of their codewords."""
    by_length: dict[int, list[ChosenCode]] = {}
    for code in codes:
        by_length.setdefault(code.codeword, []).append(code)
    return by_length


def _heading(code: ChosenCode) -> str:
    return f"({code.k}, {code.m})\nph {code.ph:g}"
