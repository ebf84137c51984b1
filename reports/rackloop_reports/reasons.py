"""The reasons of a test's verdict, each limit that was not kept by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rackloop.measurement import Cause, Verdict
from rackloop.record import Measured
from rackloop_reports.formatting import interval_text, limit_text, measure_text, value_text
from rackloop_reports.summary import MeasurementSummary


@dataclass(frozen=True)
class Reason:
    """One reason, the verdict it led to, and whose fault it is; None where nothing says so but the test."""

    text: str
    verdict: Verdict
    cause: str | None = None


def reasons(
    verdict: Verdict, cause: Cause | None, told: str | None, measurements: Sequence[Measured | MeasurementSummary]
) -> list[Reason]:
    """The reasons of a test that ended so: of each measurement that was not kept, and what ``told`` says besides.

    Those of its verdict come first, and of these those of its cause: what was missed in a test that is unknown is not
    why it is, nor are few samples where the machine was late.
    """
    rest, found = told or "", []
    for measured in measurements:
        if measured.verdict not in {Verdict.FAIL, Verdict.UNKNOWN}:
            continue
        text = in_full(measured)
        if measured.reason:
            labels = ", ".join(f"{key}={value}" for key, value in measured.labels.items())
            name = f"{measured.name}{{{labels}}}" if labels else measured.name
            rest = rest.replace(f"{name}: {measured.reason}", "", 1)
            text = f"{measure_text(measured.name, measured.labels)}: {measured.reason}"
        found.append(Reason(text, Verdict(measured.verdict), measured.cause))
    # What is left of several reasons in a row are the marks between them.
    rest = re.sub(r"(?:^|(?<=; ))besides, (?=; |$)", "", rest)
    if rest := re.sub(r"^(; )+|(; )+$", "", re.sub(r"(; ){2,}", "; ", rest)):
        found.append(Reason(rest, verdict))
    return sorted(found, key=lambda reason: (reason.verdict is not verdict, reason.cause not in {None, cause}))


def in_full(measured: Measured | MeasurementSummary) -> str:
    """``io.missed p50 200 ms [180 ms to 221 ms], limit max 1 us: fail``."""
    unit = measured.unit
    value = value_text(measured.value, unit)
    interval = interval_text(measured.ci95, unit)
    limit = limit_text(measured.limits, unit)
    return (
        f"{measure_text(measured.name, measured.labels)} {measured.quantile} {value}"
        + (f" [{interval}]" if interval not in {"", f"{value} to {value}"} else "")
        + (f", limit {limit}: {measured.verdict}" if limit else "")
    )
