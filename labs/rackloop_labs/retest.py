"""Retests of a failed drive on another port, and of its port with another drive."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rackloop.clock import Deadline
from rackloop.drive_identifiers import normal_text
from rackloop.errors import (
    DeadlineExceeded,
    FabricError,
    LabError,
    NotSupported,
    RackloopError,
    ToolError,
    UnknownFormat,
)
from rackloop.portmap import PortMap
from rackloop.safety.maintenance import Diagnosis, Seen, Trial, diagnose
from rackloop.safety.undo import Equipment, LinkKept
from rackloop_drivers import workload
from rackloop_labs.bench import Bench
from rackloop_labs.remapping import ServerPort, attach
from rackloop_labs.unreached import UNREACHED

# Of a server that cannot be asked, or whose tools are not understood: it says nothing about its drives.
_OF_THE_SERVER = (*UNREACHED, ToolError, UnknownFormat)
_GOES_WITHIN_S = 2.0
# At the least: on a rack whose servers are slow it is as long as their tools may take.
_READ_WITHIN_S = 4.0
_ANSWER_S = 2.0
_READ_AGAIN_S = 0.3
_POLL_NS = 5_000_000
_FIRST_SECTORS = 256
"""The first MiB is read: where the identified sectors of a test are, if it wrote any."""


def try_drive(bench: Bench, drive: str, place: ServerPort, lbas: Collection[int] = ()) -> Trial:
    """Look for ``drive`` at a server port and read it there: its first MiB, and what is at ``lbas``.

    Nothing is written, and the switch is not touched. ``lbas`` count sectors of 4 KiB. What takes long is read once
    more, and the quicker time counts: a drive that is slow is slow again, a server that was busy is not.
    Raises LabError or ToolError where it is the server that does not answer in time, or lacks a tool.
    """
    began_ns = bench.clock.now_ns()
    seen, detail = _look(bench, drive, place, Deadline.after(bench.clock, bench.lab.time_s("online") + _ANSWER_S))
    took_s = (bench.clock.now_ns() - began_ns) / 1e9
    if seen is not Seen.WORKS:
        return Trial(drive, *place, seen, took_s, detail)
    seen, detail, read_s = _timed_read(bench, drive, place, lbas)
    if seen is Seen.WORKS and read_s > _READ_AGAIN_S:
        seen, detail, again_s = _timed_read(bench, drive, place, lbas)
        read_s = min(read_s, again_s)
    return Trial(drive, *place, seen, took_s + read_s, detail)


def retest(bench: Bench, equipment: Equipment, drive: str, lbas: Collection[int] = ()) -> Diagnosis:
    """Try ``drive`` at its port and at another, and a drive that works at both, and say whose fault it is.

    The two drives change places and come back, by ``equipment``, which journals it; the other is a scratch drive. Where
    the rack has no switch, the drive keeps its link, or nothing works to compare with, it is tried where it is, which
    cannot tell it from its cable. What came or was read slowly is tried once more, and the quicker time counts: a part
    that is slow is slow again, a machine that was busy is not. Raises NotSupported for a drive that has no port to
    itself at the baseline, LabError where the switch does not act, and as :func:`try_drive` does for a server.
    """
    places = bench.lab.places
    if drive not in places:
        raise NotSupported(f"drive {drive} has no port to itself: it cannot be tried elsewhere")
    here = places[drive]
    other = _one_that_works(bench, drive) if bench.lab.has_switch else None
    if other is None:
        return diagnose([try_drive(bench, drive, here, lbas)])
    there = places[other]

    def there_and_back() -> list[Trial]:
        swapped = _moved(bench, equipment, {here: other, there: drive}, {drive: lbas})
        return [*_moved(bench, equipment, {here: drive, there: other}, {drive: lbas}), *swapped]

    try:
        trials = there_and_back()
    except LinkKept:
        return diagnose([try_drive(bench, drive, here, lbas)])
    found = diagnose(trials)
    if any(trial.seen is Seen.SLOW for trial in found.trials):
        again = {trial.parts: trial for trial in there_and_back()}
        found = diagnose([_worse_or_quicker(trial, again.get(trial.parts, trial)) for trial in trials])
    return found


def _worse_or_quicker(first: Trial, again: Trial) -> Trial:
    """Of two trials of one drive at one port the one that failed, or else the quicker."""
    return min(first, again, key=lambda trial: (trial.seen is Seen.WORKS, trial.took_s))


def _one_that_works(bench: Bench, drive: str) -> str | None:
    """Another scratch drive that works where it is, of the same server if there is one."""
    places, drives = bench.lab.places, bench.lab.drives
    server, _ = places[drive]
    # The others keep their links.
    scratch = (other for other in places if other != drive and drives[other].scratch)
    others = sorted(scratch, key=lambda other: places[other][0] != server)
    return next((other for other in others if _works(bench, other, places[other])), None)


def _works(bench: Bench, drive: str, place: ServerPort) -> bool:
    try:
        return try_drive(bench, drive, place).seen is Seen.WORKS
    except (DeadlineExceeded, *_OF_THE_SERVER):
        # There is nothing to compare with at a server that cannot be asked.
        return False


def _moved(
    bench: Bench, equipment: Equipment, drives: Mapping[ServerPort, str], lbas: Mapping[str, Collection[int]]
) -> list[Trial]:
    """Have these drives change places, and try each where it came to."""
    deadline = Deadline.after(bench.clock, bench.lab.time_s("act"))
    before = equipment.fabric.live_map(deadline).pairs
    try:
        attach(bench, equipment.fabric, drives, deadline)
    except FabricError as error:
        kept = _kept(bench, before, equipment.fabric.live_map(deadline).pairs, drives)
        if not kept:
            raise
        return [Trial(drives[place], *place, Seen.STUCK, detail=str(error)) for place in kept]
    return [try_drive(bench, drive, place, lbas.get(drive, ())) for place, drive in drives.items()]


def _kept(bench: Bench, before: PortMap, after: PortMap, drives: Mapping[ServerPort, str]) -> list[ServerPort]:
    """The places whose circuit is the one they had, and not the one that was asked for."""
    ports = {place: bench.lab.switch_port(*place) for place in drives}
    return [
        place
        for place, port in ports.items()
        if after.peer_of(port) == before.peer_of(port) != bench.lab.where_is(drives[place])
    ]


def _look(bench: Bench, drive: str, place: ServerPort, deadline: Deadline) -> tuple[Seen, str]:
    """Look for the drive at the port; what is there instead may go yet, so it is looked at a while longer."""
    wanted = normal_text(bench.lab.drives[drive].serial)
    gone: Deadline | None = None
    while True:
        # An answer may take long: the last is to a question that was asked after the drive's time.
        is_last = (gone or deadline).is_over()
        try:
            found = bench.drive(*place).identify(_tools_deadline(bench, _ANSWER_S))
        except _OF_THE_SERVER:
            raise
        except LabError as error:
            _require_answer(bench, place[0], error)
            seen, detail, gone = Seen.ABSENT, str(error), None
        else:
            if normal_text(found.serial) == wanted:
                return Seen.WORKS, ""
            seen, detail = Seen.ANOTHER, f"its serial is {found.serial}"
            gone = gone or deadline.sooner(_GOES_WITHIN_S)
        if is_last:
            return seen, detail
        bench.clock.sleep_until_ns(bench.clock.now_ns() + _POLL_NS)


def _timed_read(bench: Bench, drive: str, place: ServerPort, lbas: Collection[int]) -> tuple[Seen, str, float]:
    began_ns = bench.clock.now_ns()
    seen, detail = _read(bench, drive, place, lbas)
    return seen, detail, (bench.clock.now_ns() - began_ns) / 1e9


def _read(bench: Bench, drive: str, place: ServerPort, lbas: Collection[int]) -> tuple[Seen, str]:
    expected = workload.Expected(bench.lab.drives[drive].serial)
    probe = workload.RackProbe(bench.host(place[0]), bench.clock)
    for start, sectors in ((0, _FIRST_SECTORS), *((lba, 1) for lba in sorted(set(lbas)))):
        deadline = _tools_deadline(bench, _READ_WITHIN_S)
        try:
            found = probe.verify(bench.device(*place), expected, deadline, start_lba=start, sectors=sectors)
        except _OF_THE_SERVER:
            raise
        except RackloopError as error:
            _require_answer(bench, place[0], error)
            return Seen.UNREADABLE, str(error)
        if found.unreadable:
            return Seen.UNREADABLE, f"sector {found.unreadable[0].lba}: {found.unreadable[0].error}"
        if found.verdicts.get("wrong_drive"):
            serials = {offender.found_serial for offender in found.offenders if offender.verdict == "wrong_drive"}
            return Seen.ANOTHER, f"its sectors say {', '.join(sorted(map(str, serials)))}"
    return Seen.WORKS, ""


def _tools_deadline(bench: Bench, least_s: float) -> Deadline:
    return Deadline.after(bench.clock, bench.lab.time_s("tools", at_least=least_s))


def _require_answer(bench: Bench, server: str, error: RackloopError) -> None:
    """Raise ``error`` where it came of a server that is late: one that answers now waited for its drive."""
    if not isinstance(error, DeadlineExceeded):
        return
    answer_s = bench.lab.time_s("answer", at_least=_ANSWER_S)
    try:
        bench.host(server).run(("true",), Deadline.after(bench.clock, answer_s))
    except (LabError, ToolError):
        raise error from None
