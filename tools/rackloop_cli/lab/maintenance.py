"""`rackloop lab maintain|quarantine`: parts of a rack that are out of service."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from rackloop.clock import RealClock
from rackloop.errors import EXIT_LAB_FAILED, EXIT_PASS, BadInput
from rackloop.lab import Lab, Part, PartKind, Parts, load_lab, parts_of
from rackloop.names import quoted
from rackloop.safety.leases import Holder
from rackloop.safety.maintenance import Diagnosis, Finding, OutOfService, OutOfServiceStore, State
from rackloop.safety.store import Store
from rackloop.safety.undo import ActRecorder, Journal, undoing
from rackloop_cli.shared.lab_session import in_maintenance, refuse_in_maintenance
from rackloop_cli.shared.lab_store import opened_store
from rackloop_cli.shared.output import say
from rackloop_cli.shared.own_lease import leased_by_hand
from rackloop_labs.bench_view import BenchInService


def maintain(name: str, written: str, reason: str | None, until: str | None, *, end: bool) -> int:
    """Take a server or a drive into maintenance, or end its maintenance."""
    if end:
        if reason or until:
            raise BadInput("--end ends a maintenance: --reason and --until begin one; give either")
        return _lift(name, written, State.MAINTENANCE, "")
    if reason is None:
        raise BadInput("give a --reason TEXT, which is shown to other users; or end a maintenance with --end")
    ends = _moment(until)
    with _opened(name) as (lab, store):
        part = lab.part(written)
        if part.kind not in {PartKind.SERVER, PartKind.DRIVE}:
            raise BadInput(f"{part.said} is not taken into maintenance by itself: name its server, or its drive")
        out = store.maintain(part, reason, _who(), ends)
    say(str(out))
    say(f"end it with `rackloop lab maintain {shlex.quote(name)} {written} --end`")
    return EXIT_PASS


def retest(name: str, written: str) -> int:
    """Try a part that is in quarantine again, and lift the quarantine where it works; exit 3 where it does not.

    A drive is tried at its port and at another, with one that works; a port or a server by every drive there. What is
    in maintenance is left alone.
    """
    from rackloop_labs.retest import retest as tried

    lab, clock = load_lab(name), RealClock()
    part = lab.part(written)
    with leased_by_hand(lab, clock, parts_of(lab), f"retest {written}") as (held, opened):
        store = held.leases.store
        out_of_service = OutOfServiceStore(store, lab.name)
        standing = out_of_service.standing().get(part)
        if standing is None or standing.state is not State.QUARANTINE:
            raise BadInput(str(standing) if standing else f"{part.said} is not in quarantine; there is nothing to lift")
        out = in_maintenance(lab, store)
        bench = BenchInService(opened, out)
        recorder = ActRecorder(bench.lab, Journal(store), f"retest {written}", lease=held)
        found: dict[str, Diagnosis] = {}
        for drive in _drives_to_try(bench, part, out):
            with undoing(bench.equipment, recorder, clock) as equipment:
                found[drive] = tried(bench, equipment, drive)
            say(f"{drive}: {found[drive]}")
        if any(one.finding is not Finding.NOT_REPRODUCED for one in found.values()):
            say(f"{part.said} stays in quarantine")
            return EXIT_LAB_FAILED
        out_of_service.lift(
            part, State.QUARANTINE, _who(), "; ".join(f"{drive}: {one}" for drive, one in found.items())
        )
    say(f"{part.said} is in service again: it passed with {', '.join(found)}")
    return EXIT_PASS


def _drives_to_try(bench: BenchInService, part: Part, out: Mapping[Part, OutOfService]) -> list[str]:
    """The drives of the baseline that show whether a part works, without those in maintenance."""
    lab = bench.whole.lab
    parts = {
        drive: Parts((Part.drive(drive), Part.server(server), Part.port(server, port)))
        for drive, (server, port) in lab.places.items()
    }
    there = [drive for drive in parts if part in parts[drive]]
    if not there:
        raise BadInput(
            f"no drive shows whether {part.said} works: the baseline has none there; lift it by hand (--lift)"
        )
    left = [drive for drive in there if drive in bench.lab.places]
    if not left:
        refuse_in_maintenance(lab, Parts.all_of(parts[drive] for drive in there), out)
    for drive in there:
        if drive not in left:
            say(f"{drive} is not tried: it is in maintenance")
    return left


def require_one_question(lift: str | None, reason: str, retest: str | None, *, as_json: bool) -> None:
    """Raise BadInput where options were given of which one would have no effect."""
    if lift is not None and retest is not None:
        raise BadInput("--retest lifts a quarantine where the part works, --lift in any case: give one of them")
    if as_json and (lift is not None or retest is not None):
        raise BadInput(f"--json prints what is in quarantine: leave it out with {'--lift' if lift else '--retest'}")
    if reason and lift is None:
        raise BadInput("--reason says why a quarantine is lifted: give it with --lift NAME")


def quarantine(name: str, lift: str | None, reason: str, *, as_json: bool) -> int:
    """Print what is in quarantine with what it failed, or lift one."""
    if lift is not None:
        return _lift(name, lift, State.QUARANTINE, reason)
    with _opened(name) as (lab, store):
        outs = [out for out in store.standing().values() if out.state is State.QUARANTINE]
        rule = lab.quarantine
    if as_json:
        print(json.dumps({"lab": lab.name, "quarantine": [_as_json(out) for out in outs]}, indent=2))
        return EXIT_PASS
    for out in outs:
        say(str(out))
        for failure in out.evidence:
            say(f"  {failure}")
    if not outs:
        say(
            f"nothing of lab {lab.name} is in quarantine; {rule.failures} failures within {rule.tests} tests lead there"
        )
    return EXIT_PASS


def out_of_service(lab: Lab, store: Store) -> list[dict[str, Any]]:
    """The parts of ``lab`` that are out of service, as ``lab status --json`` prints them."""
    return [_as_json(out) for out in OutOfServiceStore(store, lab.name).standing().values()]


def _as_json(out: OutOfService) -> dict[str, Any]:
    return {
        "gear": str(out.part),
        "state": out.state,
        "reason": out.reason,
        "by": out.by,
        "since": out.since.isoformat(),
        "until": None if out.until is None else out.until.isoformat(),
        "evidence": list(out.evidence),
        "said": str(out),
    }


def _lift(name: str, written: str, state: State, why: str) -> int:
    with _opened(name) as (lab, store):
        part = lab.part(written)
        ended = store.lift(part, state, _who(), why)
    if ended is None:
        raise BadInput(f"{part.said} is not in {state}; `rackloop lab status {shlex.quote(name)}` says what is")
    say(f"{part.said} is in service again: its {state} ended")
    return EXIT_PASS


@contextmanager
def _opened(name: str) -> Iterator[tuple[Lab, OutOfServiceStore]]:
    lab, clock = load_lab(name), RealClock()
    with opened_store(lab, clock) as store:
        yield lab, OutOfServiceStore(store, lab.name)


def _who() -> str:
    here = Holder.here(bound=False)
    return f"{here.user}@{here.host}"


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadInput(
            f"--until {quoted(text)} is not a date or time: write it as 2026-11-23 or 2026-11-23T18:00"
        ) from None
