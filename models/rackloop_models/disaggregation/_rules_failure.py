"""Rules of failure disaggregation."""

from __future__ import annotations

from collections import Counter
from functools import partial

from rackloop_models.disaggregation._failures import Redistribution
from rackloop_models.disaggregation._history import (
    Announced,
    DriveFailed,
    History,
    Mapped,
    ServerFailed,
    ServerRecovered,
    Stay,
)
from rackloop_models.disaggregation._judging import Findings, Rule
from rackloop_models.disaggregation._rules_common import (
    always_mapped_or_moving,
    answers_only_while_mapped,
    no_io_is_lost,
    one_drive_a_place,
)
from rackloop_models.disaggregation._shape import Shape


def failure_rules(
    shape: Shape, policy: Redistribution, *, within_s: float, drives_fail: bool, with_io: bool
) -> list[tuple[str, Rule]]:
    """The rules of failure disaggregation. A failure is over ``within_s`` after it; a history that ends sooner fails.

    ``drives_fail`` where drives were made to fail and not only servers, ``with_io`` where I/O was made.
    """
    rules: list[tuple[str, Rule]] = [
        ("half the ports of a server are free at first", partial(half_is_free_at_first, shape)),
        ("one drive a server port", one_drive_a_place),
        ("a failed server's drives go where they should", partial(redistributed, shape, policy, within_s)),
        ("no drive is lost", partial(no_drive_is_lost, shape, within_s)),
        ("blocks are announced again", partial(announced_again, within_s)),
    ]
    if drives_fail:
        rules.append(("a spare takes a failed drive's place", partial(a_spare_comes, shape, within_s)))
    if with_io:
        rules += [
            ("a drive answers only while it is mapped", answers_only_while_mapped),
            ("no I/O is lost", no_io_is_lost),
        ]
    return rules


def half_is_free_at_first(shape: Shape, history: History) -> Findings:
    """Before anything fails each server has k/2 drives."""
    failures = [event.t_s for event in history.events if isinstance(event, ServerFailed | DriveFailed)]
    first_s = min(failures, default=history.ends_s)
    counts = Counter(stay.server for stay in history.stays() if stay.since_s <= first_s <= stay.until_s)
    broken = [
        f"{server} has {counts[server]} drives, not {shape.k // 2}"
        for server in shape.servers
        if counts[server] != shape.k // 2
    ]
    return Findings(sum(counts.values()), broken)


def a_spare_comes(shape: Shape, within_s: float, history: History) -> Findings:
    """A spare is mapped to the place of each drive that fails, as long as there are spares."""
    left = set(shape.spares)
    failed = history.of(DriveFailed)
    broken = []
    for failure in failed:
        was = next(
            (stay for stay in history.stays() if stay.drive == failure.drive and stay.until_s == failure.t_s), None
        )
        if was is None:
            broken.append(f"{failure.drive} failed, and was at no server")
            continue
        left.discard(failure.drive)
        came = [
            mapped
            for mapped in history.of(Mapped)
            if failure.t_s <= mapped.t_s <= failure.t_s + within_s
            and (mapped.server, mapped.port) == (was.server, was.port)
            and mapped.drive in left
        ]
        if came:
            left.discard(came[0].drive)
        elif left:
            broken.append(f"{failure.drive} failed at {failure.t_s:g} s, and no spare came to {was.server}.{was.port}")
    return Findings(len(failed), broken)


def redistributed(shape: Shape, policy: Redistribution, within_s: float, history: History) -> Findings:
    """The drives of a failed server go to as few survivors as have ports for them, or to all as evenly as can be.

    Spread over n - 1 servers with ports free, that adds at most ceil((k/2)/(n-1)) to each.
    """
    stays = history.stays()
    broken, seen = [], 0
    for failure in history.of(ServerFailed):
        up = [server for server in shape.servers if _is_up(server, failure.t_s, history)]
        counts = Counter(stay.server for stay in stays if stay.since_s <= failure.t_s < stay.until_s)
        orphans = _drives_at(failure.server, failure.t_s, stays)
        takers = Counter(
            taker
            for drive in orphans
            if (taker := _first_taker(drive, failure.t_s, failure.t_s + within_s, stays)) in up
        )
        seen += len(orphans)
        room = {server: shape.k - counts[server] for server in up}
        if sum(takers.values()) != len(orphans):
            broken.append(f"{sum(takers.values())} of {len(orphans)} drives of {failure.server} came to a survivor")
        elif policy is Redistribution.ONE and len(takers) > _least_takers(room, len(orphans)):
            broken.append(f"the drives of {failure.server} went to {len(takers)} survivors, fewer had the ports")
        elif policy is Redistribution.SPREAD and max(takers.values(), default=0) > _even_share(room, len(orphans)):
            most = max(takers.values())
            broken.append(f"{most} drives of {failure.server} went to one survivor: that is not spread")
    return Findings(seen, broken)


def no_drive_is_lost(shape: Shape, within_s: float, history: History) -> Findings:
    """Every drive that did not fail is at a server that is up, while at most half of the servers are down."""
    down = 0
    for event in history.events:
        down += isinstance(event, ServerFailed) - isinstance(event, ServerRecovered)
        if down > shape.n // 2:
            return Findings(0, ())
    return always_mapped_or_moving(shape.drives, within_s, history)


def announced_again(within_s: float, history: History) -> Findings:
    """Every block that was announced on a drive of a failed server is announced by the server that took the drive.

    A report counts only of a server that has the drive at that moment.
    """
    stays, reports = history.stays(), history.of(Announced)
    broken, seen = [], 0
    for failure in history.of(ServerFailed):
        for drive in sorted(_drives_at(failure.server, failure.t_s, stays)):
            known = [report.blocks for report in reports if report.drive == drive and report.t_s <= failure.t_s]
            if not known:
                continue
            seen += 1
            after = [
                report
                for report in reports
                if report.drive == drive
                and failure.t_s < report.t_s <= failure.t_s + within_s
                and report.server != failure.server
                and drive in _drives_at(report.server, report.t_s, stays)
            ]
            missing = known[-1] - frozenset[str]().union(*(report.blocks for report in after))
            if missing:
                broken.append(
                    f"{len(missing)} blocks of {drive} were not announced by who has it after {failure.server} failed"
                )
    return Findings(seen, broken)


def _is_up(server: str, t_s: float, history: History) -> bool:
    """Whether a server is up right after ``t_s``."""
    up = True
    for event in history.events:
        if isinstance(event, ServerFailed | ServerRecovered) and event.server == server and event.t_s <= t_s:
            up = isinstance(event, ServerRecovered)
    return up


def _drives_at(server: str, t_s: float, stays: list[Stay]) -> set[str]:
    return {stay.drive for stay in stays if stay.server == server and stay.since_s <= t_s < stay.until_s}


def _first_taker(drive: str, after_s: float, until_s: float, stays: list[Stay]) -> str | None:
    """The server that a drive came to first after a moment, if it came to one in time."""
    later = (stay.server for stay in stays if stay.drive == drive and after_s < stay.since_s <= until_s)
    return next(later, None)


def _least_takers(room: dict[str, int], count: int) -> int:
    """The number of servers that take ``count`` drives, those with the most room first."""
    takers = 0
    for free in sorted(room.values(), reverse=True):
        if count <= 0:
            break
        count -= free
        takers += 1
    return takers


def _even_share(room: dict[str, int], count: int) -> int:
    """The least that the server which gets most must get: ceil(count / servers) where all have the room."""
    share = 0
    while sum(min(share, free) for free in room.values()) < min(count, sum(room.values())):
        share += 1
    return share
