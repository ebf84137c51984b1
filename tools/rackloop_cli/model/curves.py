"""`rackloop model list|curves`: the drive profiles, and their models compared with published figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from rackloop.clock import Deadline, RealClock
from rackloop.errors import EXIT_PASS, EXIT_PRODUCT_FAILED, BadInput
from rackloop.lab import Profile, load_profile, profile_names
from rackloop.units import counted, format_quantity, parse_size
from rackloop_cli.shared.output import make_directory, print_json, write_files
from rackloop_cli.shared.progress import watched
from rackloop_cli.shared.tables import plain_table, print_whole, table_of_figures
from rackloop_drivers.host import LocalExecutor

if TYPE_CHECKING:
    from rackloop_models.drives import Check, Curve

_SCHEMA = 1
_WITHIN_S = 600.0
# A smaller drive is hardly larger than the caches of the one it stands for; a larger SSD takes long to fragment.
_SMALLEST_BYTES = 4 << 30
_LARGEST_BYTES = 64 << 30


def show_profiles(*, as_json: bool = False) -> int:
    """A line for each profile that is shipped, or all of them as JSON."""
    if as_json:
        profiles = [
            {
                "name": profile.name,
                "protocol": profile.protocol,
                "model": str(profile.timing["kind"]),
                "like": profile.like,
                "published_figures": len(profile.published),
            }
            for profile in map(load_profile, profile_names())
        ]
        print_json(profiles=profiles)
        return EXIT_PASS
    table = plain_table("profile", "protocol", "model", "like", "published figures")
    for profile in map(load_profile, profile_names()):
        figures = str(len(profile.published))
        table.add_row(profile.name, profile.protocol, str(profile.timing["kind"]), profile.like, figures)
    print_whole(Console(), table)
    return EXIT_PASS


def curves(name: str, *, out: Path | None, size: str, seed: int, as_json: bool = False) -> int:
    """Measure a profile's model in virtual time; 1 where it misses a published figure."""
    from rackloop_models.drives import DriveSim, characterized

    profile, size_bytes, clock = load_profile(name), size_of(size), RealClock()
    make_directory(out)
    console = Console(quiet=as_json)
    shown = f"{profile.name}, {format_quantity(size_bytes, 'B')}"
    with LocalExecutor(clock) as executor, watched(shown) as progress:
        sim = DriveSim(executor, profile, size_bytes=size_bytes, seed=seed)
        checks, found = characterized(sim, Deadline.after(clock, _WITHIN_S), progress)
    console.print(f"[bold]simulated[/bold] {profile.name}, like {profile.like}", highlight=False)
    print_whole(console, _verdicts(checks))
    document = _document(profile, size_bytes, seed, checks, found)
    if as_json:
        print(json.dumps(document, indent=2, ensure_ascii=False))
    if out is not None:
        _write(out, profile, document, found)
        console.print(f"curves.json, curves.svg and curves.png are in {out}", soft_wrap=True, markup=False)
    missed = [check for check in checks if not check.is_met]
    if missed:
        console.print(f"{counted(len(missed), 'published figure')} of {len(checks)} missed", highlight=False)
    return EXIT_PRODUCT_FAILED if missed else EXIT_PASS


def size_of(text: str) -> int:
    """The bytes that ``--size`` says; raises BadInput where drives are not simulated as small or large."""
    try:
        size_bytes = parse_size(text)
    except ValueError as error:
        raise BadInput(f"--size: {error}") from error
    if not _SMALLEST_BYTES <= size_bytes <= _LARGEST_BYTES or size_bytes % 4096:
        raise BadInput(f"--size {text}: give 4 GiB to 64 GiB, in whole blocks of 4 KiB")
    return size_bytes


def _verdicts(checks: Sequence[Check]) -> Table:
    columns = ("figure", "model", "published", "within", "off by", "verdict")
    table = table_of_figures(*columns, left={"figure", "verdict"})
    for check in checks:
        published = check.published
        table.add_row(
            published.figure,
            _shown(check.model, published.unit),
            _shown(published.value, published.unit),
            f"{published.within:.0%}",
            f"{check.deviation:+.1%}",
            "met" if check.is_met else "[bold red]missed[/bold red]",
        )
    return table


def _shown(value: float, unit: str) -> str:
    """A figure for people; counts a second in full, as data sheets print them."""
    return f"{value:,.0f}" if unit == "1" and value >= 100 else format_quantity(value, unit)


def _document(
    profile: Profile, size_bytes: int, seed: int, checks: Sequence[Check], found: Sequence[Curve]
) -> dict[str, Any]:
    return {
        "schema": _SCHEMA,
        "simulated": True,
        "profile": profile.name,
        "like": profile.like,
        "bytes": size_bytes,
        "seed": seed,
        "figures": [
            {
                "figure": check.published.figure,
                "value": check.published.value,
                "unit": check.published.unit,
                "within": check.published.within,
                "source": check.published.source,
                "model": check.model,
                "deviation": check.deviation,
                "verdict": "met" if check.is_met else "missed",
            }
            for check in checks
        ],
        "curves": [asdict(curve) for curve in found],
    }


def _write(out: Path, profile: Profile, document: Mapping[str, Any], found: Sequence[Curve]) -> None:
    from rackloop_reports.plots import ModelCurve, PublishedPoint, SimulatedDrive, drive_model_sheet

    sheet = drive_model_sheet(
        [
            ModelCurve(curve.name, curve.lines, [PublishedPoint(**asdict(mark)) for mark in curve.marks])
            for curve in found
        ],
        SimulatedDrive(profile.name, profile.like, document["bytes"], document["seed"]),
    )
    write_files(out, {"curves.json": json.dumps(document, indent=1) + "\n"}, "curves", sheet)
