"""The traces of errors, beside a message that says the same: each text once."""

from __future__ import annotations

from rackloop.measurement import Verdict
from rackloop_reports.record import TestRecord

_CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)


def trace_beside(test: TestRecord, trace: str) -> str:
    """``trace`` without the reason of ``test``; empty where a limit decided, for then no line of code did.

    Of exceptions in a chain that say the same, the first stays: it was raised where it happened.
    """
    if not trace or _is_decided_by_limits(test):
        return ""
    reason = " ".join((test.reason or "").split())
    kept: list[str] = []
    for part in _parts(trace):
        if kept and reason and _says(part, reason) and any(_says(earlier, reason) for earlier in kept):
            continue
        kept.append(part)
    lines = [line for part in kept for line in part.splitlines() if not _repeats(line, reason)]
    return "\n".join(lines).strip("\n")


def _is_decided_by_limits(test: TestRecord) -> bool:
    limited = (measured for measured in test.measurements if measured.limits and measured.reason)
    told = test.reason or ""
    return any(
        measured.verdict == test.verdict != Verdict.PASS and str(measured.reason) in told for measured in limited
    )


def _parts(trace: str) -> list[str]:
    parts = [trace]
    for mark in _CHAINED:
        parts = [piece for part in parts for piece in part.split(mark)]
    return [part.strip("\n") for part in parts if part.strip()]


def _says(part: str, reason: str) -> bool:
    return reason in " ".join(line.removeprefix("E").strip() for line in part.splitlines())


def _repeats(line: str, reason: str) -> bool:
    """Whether a line of pytest's, ``E   LabError: ...``, has nothing but the reason."""
    told = " ".join(line.removeprefix("E").split())
    name, _, rest = told.partition(": ")
    return bool(reason) and line.startswith("E") and (told == reason or (rest == reason and " " not in name))
