"""`rackloop model list|curves`: the drive profiles, and their models compared with published figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from rackloop.clock import Deadline, RealClock
from rackloop.errors import EXIT_PASS, EXIT_PRODUCT_FAILED, BadInput
from rackloop.lab import Profile, load_profile, profile_names
from rackloop.units import counted, format_quantity, parse_size
from rackloop_cli.model.output import bar, make_directory
from rackloop_cli.shared.tables import table_of_figures
from rackloop_drivers.host import LocalExecutor

if TYPE_CHECKING:
    from rackloop_models.drives import Check, Curve

_SCHEMA = 1
_WITHIN_S = 600.0
# A smaller drive is hardly larger than the caches of the one it stands for; a larger SSD takes long to fragment.
_SMALLEST_BYTES = 4 << 30
_LARGEST_BYTES = 64 << 30


def show_profiles() -> int:
    """A line for each profile that is shipped."""
    table = Table("profile", "protocol", "model", "like", "published figures", box=SIMPLE_HEAD, pad_edge=False)
    for profile in map(load_profile, profile_names()):
        figures = str(len(profile.published))
        table.add_row(profile.name, profile.protocol, str(profile.timing["kind"]), profile.like, figures)
    Console().print(table)
    return EXIT_PASS


def curves(name: str, *, out: Path | None, size: str, seed: int) -> int:
    """Measure a profile's model in virtual time; 1 where it misses a published figure."""
    from rackloop_models.drives import DriveSim, characterized

    profile, size_bytes, clock = load_profile(name), _size(size), RealClock()
    make_directory(out)
    console = Console()
    with LocalExecutor(clock) as executor, bar() as shown:
        task = shown.add_task(f"{profile.name}, {format_quantity(size_bytes, 'B')}", total=None)
        sim = DriveSim(executor, profile, size_bytes=size_bytes, seed=seed)
        checks, found = characterized(
            sim,
            Deadline.after(clock, _WITHIN_S),
            lambda over, total: shown.update(task, completed=over, total=total),
        )
    console.print(f"[bold]simulated[/bold] {profile.name}, like {profile.like}", highlight=False)
    console.print(_verdicts(checks))
    if out is not None:
        _write(out, profile, size_bytes, seed, checks, found)
        console.print(f"curves.json, curves.svg and curves.png are in {out}", highlight=False, soft_wrap=True)
    missed = [check for check in checks if not check.is_met]
    if missed:
        console.print(f"{counted(len(missed), 'published figure')} of {len(checks)} missed", highlight=False)
    return EXIT_PRODUCT_FAILED if missed else EXIT_PASS


def _size(text: str) -> int:
    try:
        size_bytes = parse_size(text)
    except ValueError as error:
        raise BadInput(f"--size: {error}") from error
    if not _SMALLEST_BYTES <= size_bytes <= _LARGEST_BYTES or size_bytes % 4096:
        raise BadInput(f"--size {text}: give 4 GiB to 64 GiB, in whole blocks of 4 KiB")
    return size_bytes


def _verdicts(checks: Sequence[Check]) -> Table:
    table = table_of_figures()
    for name in ("figure", "model", "published", "within", "off by", "verdict"):
        table.add_column(name, justify="left" if name in {"figure", "verdict"} else "right", no_wrap=True)
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


def _write(
    out: Path, profile: Profile, size_bytes: int, seed: int, checks: Sequence[Check], found: Sequence[Curve]
) -> None:
    from rackloop_reports.plots import ModelCurve, PublishedPoint, SimulatedDrive, drive_model_sheet, encode

    sheet = drive_model_sheet(
        [
            ModelCurve(curve.name, curve.lines, [PublishedPoint(**asdict(mark)) for mark in curve.marks])
            for curve in found
        ],
        SimulatedDrive(profile.name, profile.like, size_bytes, seed),
    )
    document: dict[str, Any] = {
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
    try:
        (out / "curves.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        (out / "curves.svg").write_bytes(encode(sheet, "svg"))
        (out / "curves.png").write_bytes(encode(sheet, "png"))
    except OSError as error:
        raise BadInput(f"--out {out}: cannot write {error.filename}: {error.strerror}") from error
