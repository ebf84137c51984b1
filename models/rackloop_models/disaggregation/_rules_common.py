"""Rules that hold in more than one design."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from rackloop.units import counted
from rackloop_models.disaggregation._history import (
    DriveFailed,
    Erred,
    History,
    Io,
    Located,
    Mapped,
    ServerFailed,
    ServerRecovered,
    Stay,
)
from rackloop_models.disaggregation._judging import Findings

# Far more than the moments of a day lose as seconds in floating point, and less than any move takes.
_ROUNDING_S = 1e-6


def one_drive_a_place(history: History) -> Findings:
    """A server port has one drive at a time, and a drive one server port."""
    broken = []
    at_place: dict[tuple[str, str], Stay] = {}
    stays = history.stays()
    for stay in stays:
        before = at_place.get((stay.server, stay.port))
        if before is not None and stay.since_s < before.until_s:
            broken.append(
                f"{stay.server}.{stay.port} had {before.drive} until {before.until_s:g} s and {stay.drive} from "
                f"{stay.since_s:g} s on"
            )
        at_place[stay.server, stay.port] = stay
    return Findings(len(stays), broken)


def answers_only_while_mapped(history: History) -> Findings:
    """A drive answers a server only while it is mapped to it: in the request that was answered, not in those before."""
    stays: dict[tuple[str, str], list[Stay]] = {}
    for stay in history.stays():
        stays.setdefault((stay.drive, stay.server), []).append(stay)
    answered = [io for io in history.of(Io) if io.ok]
    broken = [
        f"{io.drive} answered {io.server} between {io.asked_s:g} and {io.ended_s:g} s, and was not mapped to it"
        for io in answered
        if not any(stay.meets(io.asked_s, io.ended_s) for stay in stays.get((io.drive, io.server), ()))
    ]
    return Findings(len(answered), broken)


def the_mapping_service_is_right(history: History) -> Findings:
    """The server that the rack-local service names has the drive at that moment."""
    stays: dict[str, list[Stay]] = {}
    for stay in history.stays():
        stays.setdefault(stay.drive, []).append(stay)
    named = [located for located in history.of(Located) if located.server is not None]
    broken = [
        f"{located.drive} was said to be at {located.server} at {located.t_s:g} s, and was not"
        for located in named
        if not any(
            stay.server == located.server and stay.since_s <= located.t_s <= stay.until_s
            for stay in stays.get(located.drive, ())
        )
    ]
    return Findings(len(named), broken)


def no_io_is_lost(history: History) -> Findings:
    """Data is read as it was written, and no client was told that an I/O failed, even if it was done when tried again.

    An error is allowed while its drive moves, and from the moment on at which its drive or server may have failed. Of
    an I/O that its client gave up, the time that it took has to be judged: it may be the machine's that all runs on.
    """
    ios = history.of(Io)
    given_up = [io for io in ios if io.gave_up]
    written = {io.record: io.crc for io in ios if io.is_write and io.ok}
    failed = [f"{_named(io)} failed" for io in ios if not io.ok and not io.gave_up]
    reads = [io for io in ios if not io.is_write and io.ok]
    wrong = [
        f"{io.record} was read at {io.ended_s:g} s with other content than was written"
        for io in reads
        if io.crc != written.get(io.record)
    ]
    lost = sorted(written.keys() - {io.record for io in [*reads, *given_up]})
    unread = [f"{record} was written and never read again" for record in lost]
    unsure = [
        f"{_named(io)} was given up after {io.ended_s - io.began_s:.0f} s; see the longest I/O for whose time that was"
        for io in given_up
    ]
    return Findings(len(reads), [*failed, *wrong, *unread, *_unexplained_errors(history)], unsure)


def _unexplained_errors(history: History) -> list[str]:
    """A sentence for each I/O that was answered with an error by a server that was up, and had the drive, all along."""
    failing = {event.drive: _failing_since_s(event) for event in history.of(DriveFailed)}
    failing_at = _moments((event.server, _failing_since_s(event)) for event in history.of(ServerFailed))
    back_at = _moments((event.server, event.t_s) for event in history.of(ServerRecovered))
    well = [
        replace(stay, since_s=since_s, until_s=min(until_s, failing.get(stay.drive, math.inf)))
        for stay in history.stays()
        for since_s, until_s in _alive(stay, failing_at, back_at)
    ]
    said = []
    for io in history.of(Io):
        errors = [error for error in io.errors if any(_is_within(error, io.drive, stay) for stay in well)]
        if errors:
            first = errors[0]
            said.append(
                f"{_named(io)} met {counted(len(errors), 'error')} that nothing explains, first from {first.server}, "
                f"which had {io.drive}, at {first.answered_s:g} s: {first.why}"
            )
    return said


def _failing_since_s(event: DriveFailed | ServerFailed) -> float:
    """The moment from which on it may have failed."""
    return min(event.began_s, event.t_s)


def _is_within(error: Erred, drive: str, stay: Stay) -> bool:
    """Whether a request on the drive went to its server and was answered during this stay."""
    is_there = (stay.drive, stay.server) == (drive, error.server)
    return is_there and stay.since_s <= error.asked_s and error.answered_s <= stay.until_s


def _named(io: Io) -> str:
    return f"{'write' if io.is_write else 'read'} of {io.record} at {io.began_s:g} s"


def always_mapped_or_moving(drives: tuple[str, ...], within_s: float, history: History) -> Findings:
    """Every drive is mapped to a server, or has left one for less than ``within_s``. Failed drives are left out.

    A drive at a server that failed counts as moving from that moment on.
    """
    failed_at = _moments((event.server, event.t_s) for event in history.of(ServerFailed))
    back_at = _moments((event.server, event.t_s) for event in history.of(ServerRecovered))
    gone = {event.drive: event.t_s for event in history.of(DriveFailed)}
    began_s = min((mapped.t_s for mapped in history.of(Mapped)), default=0.0)
    broken, seen = [], 0
    longest_s = within_s + _ROUNDING_S
    for drive in drives:
        reached_s = began_s
        ends_s = min(history.ends_s, gone.get(drive, math.inf))
        for stay in (stay for stay in history.stays() if stay.drive == drive):
            seen += 1
            for since_s, until_s in _alive(stay, failed_at, back_at):
                if since_s - reached_s > longest_s:
                    broken.append(f"{drive} was at no server from {reached_s:g} to {since_s:g} s")
                reached_s = max(reached_s, until_s)
        if ends_s - reached_s > longest_s:
            broken.append(f"{drive} was at no server from {reached_s:g} s on")
    return Findings(seen, broken)


def _moments(named: Iterable[tuple[str, float]]) -> dict[str, list[float]]:
    """The moments of each name."""
    moments: dict[str, list[float]] = {}
    for name, t_s in named:
        moments.setdefault(name, []).append(t_s)
    return moments


def _alive(stay: Stay, failed_at: dict[str, list[float]], back_at: dict[str, list[float]]) -> list[tuple[float, float]]:
    """The parts of a stay in which its server was up."""
    parts = []
    since_s = stay.since_s
    for down_s in sorted(failed_at.get(stay.server, ())):
        if down_s >= stay.until_s:
            break
        up_s = min((t_s for t_s in back_at.get(stay.server, ()) if t_s > down_s), default=math.inf)
        if up_s <= since_s:
            continue
        if down_s > since_s:
            parts.append((since_s, down_s))
        since_s = max(since_s, up_s)
    if since_s < stay.until_s:
        parts.append((since_s, stay.until_s))
    return parts
