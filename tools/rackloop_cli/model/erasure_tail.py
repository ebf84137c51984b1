"""`rackloop model erasure tail`: the tail latency of consecutive reads, by equations, simulation and measurement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from rackloop.clock import Deadline, RealClock
from rackloop.errors import EXIT_PASS, EXIT_PRODUCT_FAILED, BadInput
from rackloop.units import format_quantity, parse_quantity
from rackloop_cli.shared.output import make_directory, write_results
from rackloop_cli.shared.progress import watched
from rackloop_cli.shared.tables import print_whole, table_of_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rackloop.lab import Profile
    from rackloop.measurement import Distribution
    from rackloop_models.tail_latency import (
        Agreement,
        Charge,
        ChosenCode,
        LatencyPmf,
        LocalErasure,
        MeasuredReads,
        Reading,
    )
    from rackloop_reports.plots import Estimate

_SECTORS = (10_000, 50_000, 100_000, 150_000)
_RETRIES = ("20 ms", "40 ms")
_PROFILE = "sata-hdd"
_REQUEST_SECTORS = 1
# Of the paper's two lengths the one at which its equations come to what it prints.
_PUBLISHED_CODEWORD = 1023
_WITHIN_S = 3600.0
_Q = 0.99
_IN_TITLES = "p_h: the probability that a sector fails at first; (k, m): a code of k user sectors and m of redundancy."


@dataclass(frozen=True)
class TailRequest:
    """The options of `rackloop model erasure tail`; None for one that is not given."""

    sectors: Sequence[int] | None
    ph: Sequence[float] | None
    retry: Sequence[str] | None
    codeword: int
    decoding: str
    charge: Charge
    trials: int
    measured: int
    request_sectors: int | None
    profile: str | None
    seed: int
    out: Path | None
    as_json: bool = False


@dataclass
class _Way:
    """A read with or without a code: by equations, by trial, and measured."""

    model: LatencyPmf
    trials: Distribution | None = None
    agreement: Agreement | None = None
    measured: MeasuredReads | None = None
    on_drive: LatencyPmf | None = None

    @property
    def off(self) -> float | None:
        """The deviation of the drive's p99 from the equations' for its retries, as a ratio of that."""
        if not (self.measured and self.on_drive):
            return None
        return self.measured.samples.quantile(_Q) / self.on_drive.quantile(_Q) - 1


@dataclass
class _Cell:
    reading: Reading
    code: ChosenCode
    erasure: LocalErasure
    plain: _Way
    coded: _Way
    published: float | None

    @property
    def cut(self) -> float:
        return 1 - self.coded.model.quantile(_Q) / self.plain.model.quantile(_Q)

    @property
    def measured_cut(self) -> float | None:
        if not (self.plain.measured and self.coded.measured):
            return None
        return 1 - self.coded.measured.samples.quantile(_Q) / self.plain.measured.samples.quantile(_Q)

    @property
    def agrees(self) -> bool:
        return all(way.agreement is None or way.agreement.is_given for way in (self.plain, self.coded))


def tail(request: TailRequest) -> int:
    """Compute and print every cell; 1 where trials and equations disagree."""
    from rackloop.lab import load_profile

    # What is wrong with the request is told before anything takes its time.
    _require_measured(request)
    profile = load_profile(request.profile or _PROFILE) if request.measured else None
    cells = _cells(request)
    make_directory(request.out)
    console = Console(quiet=request.as_json)
    _try(request, cells)
    if profile is not None:
        _measure(request, profile, cells)
    console.print(
        f"codewords of {request.codeword} sectors, {request.decoding} decoding, seed {request.seed}", highlight=False
    )
    for table in _tables(cells):
        print_whole(console, table)
    for line in _remarks(request, cells):
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    if request.out is not None or request.as_json:
        _write(request, cells)
    return EXIT_PASS if all(cell.agrees for cell in cells) else EXIT_PRODUCT_FAILED


def _require_measured(request: TailRequest) -> None:
    """Raise BadInput for what is about reads on the drive model, where there are none."""
    given = {"--profile": request.profile, "--request": request.request_sectors}
    for option, value in given.items():
        if value is not None and not request.measured:
            raise BadInput(f"{option} is about reads on the drive model, and there are none; give --measure N too")


def _cells(request: TailRequest) -> list[_Cell]:
    from rackloop_models.tail_latency import (
        FAILURE_PROBABILITIES,
        PUBLISHED_REDUCTIONS,
        LocalErasure,
        Reading,
        choose_code,
        latency_with_code,
        latency_without_code,
    )

    cells = []
    for ph in dict.fromkeys(request.ph or FAILURE_PROBABILITIES):
        code = choose_code(request.codeword, ph)
        erasure = LocalErasure(code.k, code.m, _decode_s(request.decoding, code), request.charge)
        for retry_s in dict.fromkeys(map(_seconds, request.retry or _RETRIES)):
            for sectors in dict.fromkeys(request.sectors or _SECTORS):
                reading = Reading(sectors, ph, retry_s)
                published = [
                    entry.reduction
                    for entry in PUBLISHED_REDUCTIONS
                    if (entry.sectors, entry.ph, entry.retry_s) == (sectors, ph, retry_s)
                    and request.codeword == _PUBLISHED_CODEWORD
                ]
                plain, coded = _Way(latency_without_code(reading)), _Way(latency_with_code(reading, erasure))
                cells.append(_Cell(reading, code, erasure, plain, coded, published[0] if published else None))
    return cells


def _seconds(text: str) -> float:
    try:
        return parse_quantity(text, "s")
    except ValueError as error:
        raise BadInput(f"--retry: {error}") from error


def _decode_s(decoding: str, code: ChosenCode) -> tuple[float, ...]:
    from rackloop_models.tail_latency import hardware_decoding, own_decoding, software_decoding

    match decoding:
        case "software":
            return software_decoding(code.k, code.m)
        case "hardware":
            return hardware_decoding(code.k, code.m)
        case _:
            return own_decoding(code.k, code.m, RealClock())


def _try(request: TailRequest, cells: Sequence[_Cell]) -> None:
    from rackloop_models.tail_latency import agreement, distribution, trials_with_code, trials_without_code

    if not request.trials:
        return
    with watched("Monte Carlo", len(cells)) as progress:
        for number, cell in enumerate(cells):
            progress(number)
            seed = request.seed * 2 * len(cells) + 2 * number
            plain = trials_without_code(cell.reading, request.trials, seed)
            coded = trials_with_code(cell.reading, cell.erasure, request.trials, seed + 1)
            for way, trials in ((cell.plain, plain), (cell.coded, coded)):
                way.trials, way.agreement = distribution(trials), agreement(trials, way.model)


def _measure(request: TailRequest, like: Profile, cells: Sequence[_Cell]) -> None:
    from dataclasses import replace

    from rackloop_drivers.host import LocalExecutor
    from rackloop_models.tail_latency import (
        ReadsToMeasure,
        attainable_retry_s,
        latency_with_code,
        latency_without_code,
        measure_reads,
        paper_drive,
    )

    clock = RealClock()
    asked = [
        ReadsToMeasure(
            paper_drive(like, cell.reading.ph, cell.reading.retry_s),
            cell.reading,
            erasure,
            request.measured,
            request.request_sectors or _REQUEST_SECTORS,
        )
        for cell in cells
        for erasure in (None, cell.erasure)
    ]
    with LocalExecutor(clock) as executor, watched("drive model", len(asked)) as progress:
        deadline = Deadline.after(clock, _WITHIN_S)
        found = measure_reads(asked, executor, deadline, seed=request.seed, progress=progress)
    for cell, plain, coded in zip(cells, found[::2], found[1::2], strict=True):
        cell.plain.measured, cell.coded.measured = plain, coded
        on_drive = replace(cell.reading, retry_s=attainable_retry_s(cell.reading.retry_s))
        cell.plain.on_drive = latency_without_code(on_drive)
        cell.coded.on_drive = latency_with_code(on_drive, cell.erasure)


def _tables(cells: Sequence[_Cell]) -> Iterator[Table]:
    """One for each code, without the columns that would have nothing."""
    for code in dict.fromkeys(cell.code for cell in cells):
        rows = [_figures(cell) for cell in cells if cell.code == code]
        names = [name for name in rows[0] if any(row[name] for row in rows)]
        titles = [_COLUMNS.get(name, name) for name in names]
        table = table_of_figures(*titles, title=f"ph {code.ph:g}, code ({code.k}, {code.m})")
        for row in rows:
            table.add_row(*(row[name] or "-" for name in names))
        yield table


_COLUMNS = {"coded p99": "coded", "coded p99.9": "coded"}


def _figures(cell: _Cell) -> dict[str, str]:
    """The figures of a row by name, those that are unknown empty."""
    plain, coded = cell.plain.model, cell.coded.model
    agrees = "agree" if cell.agrees else "[bold red]disagree[/bold red]"
    return {
        "retry": format_quantity(cell.reading.retry_s, "s"),
        "sectors": f"{cell.reading.sectors:,}",
        "p99": format_quantity(plain.quantile(_Q), "s"),
        "coded p99": format_quantity(coded.quantile(_Q), "s"),
        "cut": _share(cell.cut),
        "p99.9": format_quantity(plain.quantile(0.999), "s"),
        "coded p99.9": format_quantity(coded.quantile(0.999), "s"),
        "trials": "" if cell.plain.agreement is None else agrees,
        "drive": _share(cell.measured_cut),
        "paper": _share(cell.published),
    }


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _remarks(request: TailRequest, cells: Sequence[_Cell]) -> list[str]:
    from rackloop_models.tail_latency import SOURCE

    lines = [
        "ph: the probability that a sector fails at first; code (k, m): of k user sectors and m of redundancy",
        f"cut: by how much the code shortens the p99; left out of the equations: {_left_out(cells):.1g} at most",
    ]
    if request.trials:
        lines.append(
            f"trials: {request.trials:,} simulated reads agree where they are distributed as the equations say, but "
            "for what chance gives one time in a million"
        )
    if any(cell.published is not None for cell in cells):
        lines.append(f"paper: the cut in {SOURCE}")
    if request.measured:
        retries = dict.fromkeys(cell.reading.retry_s for cell in cells)
        plain = [cell.plain.off for cell in cells if cell.plain.off is not None]
        coded = [cell.coded.off for cell in cells if cell.coded.off is not None]
        lines.append(
            f"drive: the cut of {request.measured} reads of each on the drive model; its retries take whole "
            f"revolutions, {' and '.join(_attained(retry_s) for retry_s in retries)}, for which its p99 is "
            f"{_between(plain)} off the equations' without a code, {_between(coded)} with one"
        )
    return lines


def _between(shares: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(f"{share:+.1%}" for share in (min(shares), max(shares))))


def _attained(retry_s: float) -> str:
    from rackloop_models.tail_latency import attainable_retry_s

    return f"{format_quantity(attainable_retry_s(retry_s), 's')} for {format_quantity(retry_s, 's')}"


def _left_out(cells: Sequence[_Cell]) -> float:
    return max(way.model.truncated for cell in cells for way in (cell.plain, cell.coded))


def _row(cell: _Cell) -> dict[str, Any]:
    row: dict[str, Any] = {
        "sectors": cell.reading.sectors,
        "ph": cell.reading.ph,
        "retry_s": cell.reading.retry_s,
        "k": cell.code.k,
        "m": cell.code.m,
        "cut": cell.cut,
        "cut_published": cell.published,
        "cut_drive": cell.measured_cut,
    }
    for name, way in (("plain", cell.plain), ("coded", cell.coded)):
        row |= {f"{name}_mean_s": way.model.mean, f"{name}_p99_s": way.model.quantile(_Q)}
        row |= {f"{name}_p99_9_s": way.model.quantile(0.999), f"{name}_left_out": way.model.truncated}
        for source, samples in (("trials", way.trials), ("drive", way.measured.samples if way.measured else None)):
            estimate = _estimate(samples)
            row[f"{name}_{source}_p99_s"] = estimate and estimate.value_s
            row[f"{name}_{source}_p99_low_s"] = estimate and estimate.low_s
            row[f"{name}_{source}_p99_high_s"] = estimate and estimate.high_s
        row[f"{name}_drive_off"] = way.off
        row[f"{name}_distance"] = way.agreement and way.agreement.distance
        row[f"{name}_bound"] = way.agreement and way.agreement.bound
    if cell.coded.measured:
        fates = cell.coded.measured.fates
        row |= {"drive_failed": fates.failed, "drive_decoded": fates.decoded, "drive_retried": fates.retried}
    return row


def _estimate(samples: Distribution | None) -> Estimate | None:
    from rackloop_reports.plots import Estimate

    return None if samples is None else Estimate(samples.quantile(_Q), *samples.quantile_ci95(_Q))


def _write(request: TailRequest, cells: Sequence[_Cell]) -> None:
    from rackloop_models.tail_latency import SOURCE

    def draw() -> Figure:
        from rackloop_reports.plots import TailCell, TailPoint, tail_latency_sheet

        def point(cell: _Cell, way: _Way) -> TailPoint:
            return TailPoint(
                cell.reading.sectors,
                way.model.quantile(_Q),
                _estimate(way.trials),
                _estimate(way.measured.samples if way.measured else None),
            )

        panels = []
        for ph, retry_s in dict.fromkeys((cell.reading.ph, cell.reading.retry_s) for cell in cells):
            here = [cell for cell in cells if (cell.reading.ph, cell.reading.retry_s) == (ph, retry_s)]
            here.sort(key=lambda cell: cell.reading.sectors)
            published = {cell.reading.sectors: cell.published for cell in here if cell.published is not None}
            plain = [point(cell, cell.plain) for cell in here]
            coded = [point(cell, cell.coded) for cell in here]
            panels.append(TailCell(ph, retry_s, f"({here[0].code.k}, {here[0].code.m})", plain, coded, published))
        caption = (
            f"{_IN_TITLES} Lines: equations 4 to 9, {request.decoding} decoding, 33.3 us a sector. "
            + (f"Monte Carlo: {request.trials:,} reads of each. " if request.trials else "")
            + (
                f"Drive model: {request.measured:,} reads of each, retries of whole revolutions "
                f"({', '.join(map(_attained, dict.fromkeys(cell.reading.retry_s for cell in cells)))}). "
                if request.measured
                else ""
            )
            + f"Bars: 95 % intervals. Seed {request.seed}. Paper: {SOURCE}."
        )
        return tail_latency_sheet(panels, caption)

    settings = {
        "simulated": True,
        "codeword": request.codeword,
        "decoding": request.decoding,
        "charge": request.charge,
        "trials": request.trials,
        "measured": request.measured,
        "request_sectors": request.request_sectors or _REQUEST_SECTORS if request.measured else None,
        "profile": request.profile or _PROFILE if request.measured else None,
        "seed": request.seed,
        "source": SOURCE,
    }
    rows = [_row(cell) for cell in cells]
    write_results(request.out, "tail", settings, rows, draw, as_json=request.as_json)
