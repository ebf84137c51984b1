"""`rackloop lab maintain|quarantine`: what of a rack is not to be used, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from rackloop.clock import RealClock
from rackloop.errors import EXIT_LAB_FAILED, EXIT_PASS, BadInput
from rackloop.journal import Journal
from rackloop.journalled import ActRecorder, undoing
from rackloop.lab import Lab, load_lab
from rackloop.leases import Holder, Leases, holding, slice_of
from rackloop.state import LabState
from rackloop.store import Store, open_lab_store
from rackloop.upkeep import Finding, Gear, GearKind, OutOfService, State, Upkeep, gear_named
from rackloop_labs import open_leased


def maintain(name: str, part: str, reason: str | None, until: str | None, *, end: bool) -> int:
    """Take a server or a drive out of service for somebody to work on it, or end that."""
    if end:
        if reason or until:
            raise BadInput("--end ends a maintenance: --reason and --until begin one; give either")
        return _lift(name, part, State.MAINTENANCE, "")
    if reason is None:
        raise BadInput("say why with --reason TEXT: whoever meets it will ask; or end a maintenance with --end")
    with _upkeep(name) as (lab, upkeep):
        gear = gear_named(lab, part)
        if gear.kind is GearKind.PORT:
            raise BadInput(f"{gear.said} is not taken into maintenance by itself: name its server, or its drive")
        out = upkeep.maintain(gear, reason, _who(), _moment(until))
    _say(str(out))
    _say(f"end it with `rackloop lab maintain {name} {part} --end`")
    return EXIT_PASS


def retest(name: str, part: str) -> int:
    """Try a part that is in quarantine again, and lift the quarantine where it works; exit 3 where it does not.

    A drive is tried at its port and at another, with one that works; a port or a server by its first drive.
    """
    from rackloop_labs.retest import retest as tried

    lab, clock = load_lab(name), RealClock()
    gear = gear_named(lab, part)
    drive = _drive_to_try(lab, gear)
    state = LabState.of(lab.name)
    with (
        closing(open_lab_store(lab, state, clock)) as store,
        holding(Leases(store, lab.name), slice_of(lab), purpose=f"retest {part}") as held,
        open_leased(lab, clock, state, held, bring_up=False) as bench,
    ):
        upkeep = Upkeep(store, lab.name)
        standing = upkeep.standing().get(gear)
        if standing is None or standing.state is not State.QUARANTINE:
            raise BadInput(str(standing) if standing else f"{gear.said} is not in quarantine; there is nothing to lift")
        recorder = ActRecorder(bench.lab, Journal(store), f"retest {part}", lease=held)
        with undoing(bench.equipment, recorder, clock) as equipment:
            found = tried(bench, equipment, drive)
        _say(str(found))
        if found.finding is not Finding.NOT_REPRODUCED:
            _say(f"{gear.said} stays in quarantine")
            return EXIT_LAB_FAILED
        upkeep.lift(gear, State.QUARANTINE, _who(), str(found))
    _say(f"{gear.said} is in service again: it passed")
    return EXIT_PASS


def _drive_to_try(lab: Lab, gear: Gear) -> str:
    """The drive of the baseline that shows whether a part works."""
    for drive, (server, port) in lab.places.items():
        if gear in {Gear.drive(drive), Gear.server(server), Gear.port(server, port)}:
            return drive
    raise BadInput(f"no drive shows whether {gear.said} works: the baseline has none there; lift it by hand (--lift)")


def quarantine(name: str, lift: str | None, reason: str, *, as_json: bool) -> int:
    """Print what is in quarantine with what it failed, or lift one."""
    if lift is not None:
        return _lift(name, lift, State.QUARANTINE, reason)
    with _upkeep(name) as (lab, upkeep):
        outs = [out for out in upkeep.standing().values() if out.state is State.QUARANTINE]
        rule = lab.quarantine
    if as_json:
        print(json.dumps({"lab": lab.name, "quarantine": [_as_json(out) for out in outs]}, indent=2))
        return EXIT_PASS
    for out in outs:
        _say(str(out))
        for failure in out.evidence:
            _say(f"  {failure}")
    if not outs:
        _say(
            f"nothing of lab {lab.name} is in quarantine; {rule.failures} failures within {rule.tests} tests lead there"
        )
    return EXIT_PASS


def out_of_service(lab: Lab, store: Store) -> list[dict[str, Any]]:
    """What of ``lab`` is not used now, as ``lab status --json`` prints it."""
    return [_as_json(out) for out in Upkeep(store, lab.name).standing().values()]


def in_maintenance(lab: Lab, store: Store) -> dict[Gear, OutOfService]:
    """The parts of ``lab`` that somebody works on, which nothing is done to."""
    standing = Upkeep(store, lab.name).standing()
    return {gear: out for gear, out in standing.items() if out.state is State.MAINTENANCE}


def _as_json(out: OutOfService) -> dict[str, Any]:
    return {
        "gear": str(out.gear),
        "state": out.state,
        "reason": out.reason,
        "by": out.by,
        "since": out.since.isoformat(),
        "until": None if out.until is None else out.until.isoformat(),
        "evidence": list(out.evidence),
        "said": str(out),
    }


def _lift(name: str, part: str, state: State, why: str) -> int:
    with _upkeep(name) as (lab, upkeep):
        gear = gear_named(lab, part)
        ended = upkeep.lift(gear, state, _who(), why)
    if ended is None:
        raise BadInput(f"{gear.said} is not in {state}; `rackloop lab status {name}` says what is")
    _say(f"{gear.said} is in service again: its {state} ended")
    return EXIT_PASS


@contextmanager
def _upkeep(name: str) -> Iterator[tuple[Lab, Upkeep]]:
    lab, clock = load_lab(name), RealClock()
    with closing(open_lab_store(lab, LabState.of(lab.name), clock)) as store:
        yield lab, Upkeep(store, lab.name)


def _who() -> str:
    here = Holder.here(bound=False)
    return f"{here.user}@{here.host}"


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        raise BadInput(f"--until {text!r} is no moment: write it as 2026-11-23 or 2026-11-23T18:00") from None


def _say(line: str) -> None:
    Console(highlight=False, soft_wrap=True, markup=False).print(line)
