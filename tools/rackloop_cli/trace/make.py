"""`rackloop trace make`: a synthetic trace with the statistics of another, or of round numbers."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

from rackloop.clock import RealClock
from rackloop.errors import EXIT_PASS, BadInput
from rackloop.names import quoted
from rackloop.seed import choose_seed
from rackloop.units import counted, format_quantity, parse_size
from rackloop_cli.shared.interruption import ended_in_order
from rackloop_cli.shared.progress import counted_requests
from rackloop_cli.trace.remarks import malformed_remarks, require_new
from rackloop_traces import (
    Clock,
    Origin,
    TraceMeter,
    TraceProfile,
    find_trace,
    open_trace,
    read_statistics,
    synthesize,
    write_trace,
)

# Formats that stamp the time of day need one; always the same, so that the same seed makes the same file.
_ORIGIN = Origin(ns=1_767_225_600 * 10**9, clock=Clock.UNIX)
_HEAVIEST = 1e9


@dataclass(frozen=True)
class SynthesisRequest:
    """The options of `rackloop trace make`; None keeps the value of the --like trace, or of the plain load."""

    out: Path
    format: str | None = None
    like: str | None = None
    seed: int | None = None
    requests: int | None = None
    duration_s: float | None = None
    rate: float | None = None
    read_percent: float | None = None
    sizes: str | None = None
    footprint: str | None = None
    span: str | None = None
    burstiness: float | None = None
    sequential_percent: float | None = None
    hot: str | None = None
    swing_percent: float | None = None
    period_s: float | None = None
    force: bool = False


def run(request: SynthesisRequest) -> int:
    """Write the trace and print a summary; returns 0. Raises BadInput for impossible options, before writing."""
    if request.requests and request.duration_s and request.rate:
        raise BadInput("--requests, --duration and --rate say one thing too many: give two of them")
    require_new(request.out, force=request.force)
    seed = choose_seed() if request.seed is None else request.seed
    profile = _changed(_plain(request) if request.like is None else _profile_like(request.like, request), request)
    clock = RealClock()
    started_ns = clock.now_ns()
    frames = synthesize(profile, seed, request.requests)
    # Whichever signal ends it, nothing half written is left beside the file.
    with ended_in_order():
        written = write_trace(counted_requests(frames), request.out, request.format, origin=_ORIGIN)
    seconds = (clock.now_ns() - started_ns) / 1e9
    print(
        f"{request.out}: {counted(written.requests, 'request')}, {written.format.title}, seed {seed}, "
        f"made in {format_quantity(seconds, 's')}",
    )
    return EXIT_PASS


def _profile_like(name: str, request: SynthesisRequest) -> TraceProfile:
    if request.swing_percent is not None or request.period_s is not None:
        raise BadInput(
            "--swing-percent and --period are for traces that are not --like another, which has its own course"
        )
    if name.endswith(".json"):
        return TraceProfile.of(read_statistics(Path(name)))
    trace = open_trace(find_trace(name))
    meter = TraceMeter()
    for frame in counted_requests(trace.batches()):
        meter.add(frame)
    if not meter.requests:
        raise BadInput(f"{name} holds no request: nothing can be made like it")
    statistics = meter.result(trace.doubts)
    for remark in (*malformed_remarks(trace.malformed), *(f"doubt: {doubt}" for doubt in statistics.doubts)):
        print(remark, file=sys.stderr)
    return TraceProfile.of(statistics)


def _plain(request: SynthesisRequest) -> TraceProfile:
    """The plain load; as long as the requests wanted take at the rate wanted."""
    plain = TraceProfile.plain()
    duration_s, rate = request.duration_s, request.rate
    if duration_s is None:
        duration_s = request.requests / (rate or plain.mean_rate) if request.requests else plain.duration_s
    period_s = 86400.0 if request.period_s is None else request.period_s
    return TraceProfile.plain(duration_s=duration_s, swing=(request.swing_percent or 0) / 100, period_s=period_s)


def _changed(profile: TraceProfile, request: SynthesisRequest) -> TraceProfile:
    """The profile with what the command line sets."""
    if request.duration_s is not None:
        profile = replace(profile, duration_s=request.duration_s)
    rate = request.rate
    if request.requests and request.duration_s:
        rate = request.requests / request.duration_s
    if rate is not None:
        profile = profile.at_rate(rate)
    if request.read_percent is not None:
        profile = profile.with_read_share(request.read_percent / 100)
    if request.footprint is not None:
        profile = profile.with_footprint(_size(request.footprint, "--footprint"))
    if request.span is not None:
        profile = profile.with_span(_size(request.span, "--span"))
    if request.sizes is not None:
        profile = profile.with_sizes(_weighted_sizes(request.sizes))
    if request.burstiness is not None:
        try:
            profile = profile.with_bias(request.burstiness)
        except BadInput as error:
            raise BadInput(f"--burstiness {request.burstiness:g}: {error}") from None
    if request.sequential_percent is not None:
        # 99.9 / 100 is more than 0.999, which is the most there may be.
        profile = profile.with_sequential(round(request.sequential_percent / 100, 9))
    if request.hot is not None:
        profile = profile.with_hot(*_hot(request.hot))
    return profile


def _size(text: str, option: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise BadInput(f"{option}: {error}") from None


def _weighted_sizes(text: str) -> list[tuple[int, float]]:
    sizes = []
    for part in text.split(","):
        size, _, weight = part.partition(":")
        sizes.append((_size(size, "--sizes"), _number(weight, "--sizes", "4KiB:60,64KiB:40") if weight else 1.0))
    if not all(0 < weight <= _HEAVIEST for _, weight in sizes):
        raise BadInput(f"--sizes: expected weights above 0, at most 1e9, as in 4KiB:60,64KiB:40, found {quoted(text)}")
    return sizes


def _hot(text: str) -> tuple[float, float]:
    blocks, _, touches = text.partition(":")
    example = "10:60"
    return _number(blocks, "--hot", example) / 100, _number(touches, "--hot", example) / 100


def _number(text: str, option: str, example: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"{option}: expected numbers as in {example}, found {text!r}") from None
