"""`rackloop model remote-flash`: ReFlex on small cores, beside the figures of the poster and of the paper."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from rackloop.clock import Deadline, RealClock
from rackloop.errors import EXIT_PASS, BadInput
from rackloop.lab import load_profile
from rackloop.units import format_quantity
from rackloop_cli.model.curves import size_of
from rackloop_cli.model.tenancy_results import claim_rows, verdict
from rackloop_cli.shared.output import make_directory, print_json, say, write_files
from rackloop_cli.shared.progress import watched
from rackloop_cli.shared.tables import print_whole, table_of_figures
from rackloop_drivers.host import LocalExecutor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rackloop_models.drives import DriveSim
    from rackloop_models.remote_flash import Admission, CurvePoint, Loaded, Scaled
    from rackloop_models.tenancy import Claim

_WITHIN_S = 3600.0
_CORES = 4
_STEPS = 9


@dataclass(frozen=True)
class _Found:
    drives: int
    scaling: Sequence[Scaled]
    scaling_of_twice: Sequence[Scaled]
    sweeps: Mapping[str, Sequence[Loaded]]
    curve: Sequence[CurvePoint]
    admissions: Sequence[Admission]
    claims: Sequence[Claim]


def remote_flash(*, drives: int, profile_name: str, size: str, seed: int, out: Path | None, as_json: bool) -> int:
    """Run everything, print the tables, and write the files and the plot."""
    from rackloop_models.drives import DriveSim

    profile, size_bytes, clock = load_profile(profile_name), size_of(size), RealClock()
    if profile.timing["kind"] != "ssd":
        raise BadInput(f"profile {profile.name} is of kind {profile.timing['kind']}: name one of an SSD, as nvme-ssd")
    make_directory(out)
    with LocalExecutor(clock) as executor:

        def sim_of(count: int) -> DriveSim:
            return DriveSim(executor, profile, size_bytes=size_bytes, seed=seed, drives=count)

        found = _measure(sim_of(drives), sim_of(2 * drives), sim_of(1), drives, Deadline.after(clock, _WITHIN_S))
    settings = {
        "simulated": True,
        "profile": profile.name,
        "like": profile.like,
        "bytes": size_bytes,
        "seed": seed,
        "drives": drives,
    }
    document = {**settings, **_document(found)}
    if as_json:
        print_json(model="remote-flash", **document)
    else:
        _print(found)
    if out is not None:
        texts = {"remote-flash.json": json.dumps({"schema": 1, "model": "remote-flash", **document}, indent=1) + "\n"}
        whole = format_quantity(size_bytes, "B")
        caption = f"{profile.name}, {drives} drives of {whole}, seed {seed}, in virtual time."
        write_files(out, texts, "remote-flash", _figure(found, caption))
        if not as_json:
            say(f"remote-flash.json, remote-flash.svg and remote-flash.png are in {out}")
    return EXIT_PASS


def _measure(sim: DriveSim, twice: DriveSim, single: DriveSim, drives: int, deadline: Deadline) -> _Found:
    from rackloop_models.remote_flash import (
        A72,
        CORE_KINDS,
        OFFERED_TOKENS_PER_S,
        WRITE_PERCENTS,
        Measured,
        added_s,
        admissions,
        claims,
        large_reads_bytes_per_s,
        load_sweep,
        offered_up_to,
        p95_by_mix,
        scaling,
        slo_curve,
    )

    with watched("remote flash") as progress:
        over = 0

        def step() -> None:
            nonlocal over
            over += 1
            progress(over, _STEPS)

        scaled: list[Scaled] = []
        of_twice: list[Scaled] = []
        sweeps: dict[str, Sequence[Loaded]] = {}
        for kind in CORE_KINDS:
            scaled += scaling(sim, kind, drives, deadline)
            step()
            of_twice += scaling(twice, kind, 2 * drives, deadline)
            step()
            most = next(one.iops for one in scaled if (one.kind, one.cores) == (kind, _CORES))
            sweeps[kind.name] = load_sweep(sim, kind, _CORES, drives, offered_up_to(most), deadline)
            step()
        added = {kind.name: added_s(sim, kind, drives, deadline) for kind in CORE_KINDS}
        large = large_reads_bytes_per_s(sim, A72.hardware(_CORES), drives, deadline)
        (at_400k,) = load_sweep(sim, A72, _CORES, drives, (400e3,), deadline)
        step()
        offered = OFFERED_TOKENS_PER_S
        curve = slo_curve(offered, p95_by_mix(single, offered, WRITE_PERCENTS, deadline))
        step()
        admitted = admissions(single, curve, deadline)
        step()
    measured = Measured(drives, scaled, of_twice, added, large, at_400k, admitted)
    return _Found(drives, scaled, of_twice, sweeps, curve, admitted, claims(measured))


def _document(found: _Found) -> dict[str, Any]:
    return {
        "scaling": [
            {
                "cores_of": one.kind.name,
                "cores": one.cores,
                "drives": drives,
                "iops": one.iops,
                "bound": one.bound,
                "core_use": one.core_use,
                "link_use": one.link_use,
            }
            for drives, rows in ((found.drives, found.scaling), (2 * found.drives, found.scaling_of_twice))
            for one in rows
        ],
        "load_sweeps": {name: [asdict(one) for one in rows] for name, rows in found.sweeps.items()},
        "curve": [{**asdict(one), "fitting_write_cost": one.fitting_write_cost} for one in found.curve],
        "admissions": [{**asdict(one), "is_kept": one.is_kept} for one in found.admissions],
        "claims": claim_rows(found.claims),
    }


def _print(found: _Found) -> None:
    console = Console()
    columns = ("cores", "number", f"{found.drives} drives", "bound", f"{2 * found.drives} drives", "bound")
    table = table_of_figures(*columns, left={"cores", "bound"}, title="4 KiB random reads, K IOPS (simulated)")
    for one, more in zip(found.scaling, found.scaling_of_twice, strict=True):
        cells = (
            one.kind.name,
            str(one.cores),
            f"{one.iops / 1e3:.0f}",
            one.bound,
            f"{more.iops / 1e3:.0f}",
            more.bound,
        )
        table.add_row(*cells)
    print_whole(console, table)
    mixes = tuple(found.curve[0].by_write_percent)
    table = table_of_figures("p95 within", *(f"{percent} % writes" for percent in mixes), "write cost that fits")
    table.title = "Tokens/s of one fragmented drive, by mix (simulated)"
    for point in found.curve:
        tokens = (f"{point.by_write_percent[percent]:.0f}" for percent in mixes)
        table.add_row(f"{point.p95_us:.0f} us", *tokens, str(point.fitting_write_cost or "-"))
    print_whole(console, table)
    of_admission = ("p95 within", "tokens/s", "admitted", "p95 of all", "worst p95", "kept", "writer IOPS")
    table = table_of_figures(*of_admission, left={"kept"}, title="Objectives on that drive, by ReFlex (simulated)")
    for point, admitted in zip(found.curve, found.admissions, strict=True):
        together, worst = (
            "-" if one is None else f"{one:.0f} us" for one in (admitted.readers_p95_us, admitted.worst_p95_us)
        )
        kept = {True: "yes", False: "no", None: "unknown"}[admitted.is_kept]
        table.add_row(
            f"{point.p95_us:.0f} us",
            f"{point.tokens_per_s:.0f}",
            str(admitted.admitted),
            together,
            worst,
            kept,
            f"{admitted.writer_iops:.0f}",
        )
    print_whole(console, table)
    table = table_of_figures("claim", "published", "ours", "", left={"claim", "published", "ours", ""})
    for claim in found.claims:
        table.add_row(claim.claim, claim.published, claim.ours, verdict(claim))
    print_whole(console, table)


def _figure(found: _Found, caption: str) -> Figure:
    from rackloop_reports.plots import LinePanel, line_panels

    by_cores: dict[str, list[tuple[float, float]]] = {}
    for drives, rows in ((found.drives, found.scaling), (2 * found.drives, found.scaling_of_twice)):
        for one in rows:
            by_cores.setdefault(f"{one.kind.name}, {drives} drives", []).append((one.cores, one.iops))
    tails = {name: [(one.iops / 1e3, one.p95_s) for one in rows] for name, rows in found.sweeps.items()}
    curve = {
        f"{percent} % writes": [(one.p95_us / 1e3, one.by_write_percent[percent]) for one in found.curve]
        for percent in found.curve[0].by_write_percent
    }
    kept = [(one.p95_us / 1e3, one.worst_p95_us / 1e6) for one in found.admissions if one.worst_p95_us is not None]
    bound = {"the objective": [(one.p95_us / 1e3, one.p95_us / 1e6) for one in found.admissions]}
    published = {"2100 K IOPS on 4 cores": [(4.0, 2_100e3)], "850 K IOPS on a core": [(1.0, 850e3)]}
    panels = [
        LinePanel("Scaling over cores", "Cores", "4 KiB random reads", by_cores, "IOPS", published),
        LinePanel(f"Tail by load, {_CORES} cores", "K IOPS", "p95", tails, "s", {"400 us at 400 K": [(400.0, 400e-6)]}),
        LinePanel("The drive's curve", "p95 within, ms", "Tokens/s", curve),
        LinePanel("Admitted by ReFlex", "p95 asked for, ms", "Worst p95", {"worst p95": kept, **bound}, "s"),
    ]
    return line_panels(panels, "ReFlex on small cores (simulated)", caption)
