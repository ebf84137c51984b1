"""`rackloop lab maintain|quarantine`: what of a rack is not to be used, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from rackloop.clock import RealClock
from rackloop.errors import EXIT_PASS, BadInput
from rackloop.lab import Lab, load_lab
from rackloop.leases import Holder
from rackloop.state import LabState
from rackloop.store import Store, open_lab_store
from rackloop.upkeep import Gear, GearKind, OutOfService, State, Upkeep, gear_named


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
