"""Parts out of service and the failures of each part, in the lab's store."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from rackloop.errors import BadInput
from rackloop.lab import Part
from rackloop.measurement import Cause
from rackloop.names import printable, require_line
from rackloop.safety.maintenance._rule import PartFailure, QuarantineRule
from rackloop.safety.store import Store, Transaction

_COLUMNS = "gear, state, reason, by_whom, since_s, until_s, evidence"
_STANDS = "ended_s IS NULL AND (until_s IS NULL OR until_s > ?)"


class State(StrEnum):
    """The reason why a part is out of service: it is being worked on, or it keeps failing."""

    MAINTENANCE = "maintenance"
    QUARANTINE = "quarantine"


@dataclass(frozen=True)
class OutOfService:
    """A part that must not be used. ``until`` is when it is in service again by itself, None where that is told.

    ``evidence`` are the failures that led to a quarantine, one sentence each.
    """

    part: Part
    state: State
    reason: str
    by: str
    since: datetime
    until: datetime | None = None
    evidence: tuple[str, ...] = ()

    def __str__(self) -> str:
        ends = f" until {_minute(self.until)}" if self.until is not None else ""
        return f"{self.part.said} is in {self.state} since {_minute(self.since)}{ends}, by {self.by}: {self.reason}"


class OutOfServiceStore:
    """The parts of ``lab`` that are out of service and what each failed, in the lab's store.

    Any number of threads and processes may use one. Everything raises LabError where the store refuses.
    """

    def __init__(self, store: Store, lab: str) -> None:
        self._store = store
        self._lab = lab

    def maintain(self, part: Part, reason: str, by: str, until: datetime | None = None) -> OutOfService:
        """Take a part out of service for maintenance.

        Raises BadInput where it is in maintenance already, ``until`` is over, or the reason is no line of text.
        """
        require_line("reason", reason)
        if not reason.strip():
            raise BadInput(f"say why {part.said} is taken out of service: other users will ask")
        with self._store.transaction(self._lab) as tables:
            if standing := self._standing(tables).get((part, State.MAINTENANCE)):
                raise BadInput(f"{standing}; end that first")
            return self._take_out(tables, part, State.MAINTENANCE, reason, by, until=until)

    def quarantine(self, part: Part, reason: str, by: str, evidence: Sequence[str] = ()) -> OutOfService:
        """Take a part out of use until it is lifted; one that is in quarantine already stays there as it is."""
        with self._store.transaction(self._lab) as tables:
            standing = self._standing(tables).get((part, State.QUARANTINE))
            return standing or self._take_out(tables, part, State.QUARANTINE, reason, by, evidence=evidence)

    def lift(self, part: Part, state: State, by: str, why: str = "") -> OutOfService | None:
        """Have a part in service again, and return what ended; None where it was not out of service so.

        What failed before the end of a quarantine counts no more.
        """
        with self._store.transaction(self._lab) as tables:
            now_s = tables.now_s()
            ended = self._standing(tables).get((part, state))
            tables.rows(
                f"UPDATE upkeep SET ended_s = ?, ended_by = ?, ended_why = ? "  # noqa: S608 - no value is in it
                f"WHERE lab = ? AND gear = ? AND state = ? AND {_STANDS}",
                *(now_s, by, why, self._lab, str(part), state.value, now_s),
            )
        return ended

    def standing(self) -> dict[Part, OutOfService]:
        """Every part that is out of service now, by its name; of one that is so twice, the maintenance."""
        with self._store.reading() as tables:
            standing = self._standing(tables)
        # The maintenance last, which takes the place of the quarantine.
        by_state = sorted(standing.values(), key=lambda out: (out.part, out.state is State.MAINTENANCE))
        return {out.part: out for out in by_state}

    def tested(self, tests: int = 1) -> int:
        """Count more tests of the lab; returns the number of the last one, from 1."""
        with self._store.transaction(self._lab, synced=False) as tables:
            [(number,)] = tables.rows(
                "INSERT INTO gear_test (lab, tests) VALUES (?, ?) "
                "ON CONFLICT (lab) DO UPDATE SET tests = gear_test.tests + excluded.tests RETURNING tests",
                *(self._lab, tests),
            )
        return int(number)

    def failed(
        self, part: Part, cause: Cause, reason: str, *, run: str, test: str, number: int, rule: QuarantineRule
    ) -> OutOfService | None:
        """Record that a part failed the test ``number``; where ``rule`` condemns it now, it is in quarantine.

        Returns the new quarantine, None where there is none or it stood before.
        """
        with self._store.transaction(self._lab) as tables:
            tables.rows(
                "INSERT INTO gear_failure (lab, gear, run, test, test_number, at_s, cause, reason) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                *(self._lab, str(part), run, test, number, tables.now_s(), cause.value, reason),
            )
            failures = self._failures(tables, part)
            if (part, State.QUARANTINE) in self._standing(tables) or not rule.condemns(failures, number):
                return None
            evidence = [f"{failure.test} of {failure.run}: {failure.reason}" for failure in failures]
            reason = f"it keeps failing ({rule})"
            return self._take_out(tables, part, State.QUARANTINE, reason, f"run {run}", evidence=evidence)

    def failures(self, part: Part) -> list[PartFailure]:
        """The failures of a part since its last quarantine ended, in the order of the tests."""
        with self._store.reading() as tables:
            return self._failures(tables, part)

    def _failures(self, tables: Transaction, part: Part) -> list[PartFailure]:
        rows = tables.rows(
            "SELECT run, test, test_number, reason FROM gear_failure WHERE lab = ? AND gear = ? AND at_s > "
            "(SELECT coalesce(max(ended_s), 0) FROM upkeep WHERE lab = ? AND gear = ? AND state = ?) ORDER BY id",
            *(self._lab, str(part), self._lab, str(part), State.QUARANTINE.value),
        )
        return [PartFailure(run, test, int(number), reason) for run, test, number, reason in rows]

    def _take_out(
        self,
        tables: Transaction,
        part: Part,
        state: State,
        reason: str,
        by: str,
        *,
        until: datetime | None = None,
        evidence: Sequence[str] = (),
    ) -> OutOfService:
        now_s = tables.now_s()
        until_s = None if until is None else until.timestamp() - self._ahead_s(now_s)
        if until is not None and until_s is not None and until_s <= now_s:
            raise BadInput(f"{until.isoformat()} is over: give a date or time in the future")
        tables.rows(
            f"INSERT INTO upkeep (lab, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - no value is in it
            *(self._lab, str(part), state.value, reason, by, now_s, until_s, json.dumps(list(evidence))),
        )
        return OutOfService(part, state, reason, by, self._moment(now_s, now_s), until, tuple(evidence))

    def _standing(self, tables: Transaction) -> Mapping[tuple[Part, State], OutOfService]:
        now_s = tables.now_s()
        rows = tables.rows(
            f"SELECT {_COLUMNS} FROM upkeep WHERE lab = ? AND {_STANDS} ORDER BY id",  # noqa: S608 - no value is in it
            *(self._lab, now_s),
        )
        found = [
            OutOfService(
                Part.of(part),
                State(state),
                printable(reason),
                by,
                self._moment(since_s, now_s),
                None if until_s is None else self._moment(until_s, now_s),
                tuple(json.loads(evidence)),
            )
            for part, state, reason, by, since_s, until_s, evidence in rows
        ]
        return {(out.part, out.state): out for out in found}

    def _moment(self, at_s: float, now_s: float) -> datetime:
        return datetime.fromtimestamp(at_s + self._ahead_s(now_s), UTC)

    def _ahead_s(self, now_s: float) -> int:
        """By how many whole seconds the wall clock is ahead of the store's time."""
        return round(self._store.clock.wall().timestamp() - now_s)


def _minute(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
