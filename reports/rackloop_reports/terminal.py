"""The summary at the end of a run: a line for each test, and more on what is not a pass."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.text import Text

from rackloop.measurement import Verdict
from rackloop.units import counted, format_duration
from rackloop_reports.formatting import cause_text, is_provisioning, is_test, limit_text, measure_text, value_text
from rackloop_reports.reasons import in_full, reasons
from rackloop_reports.sentences import missed_word
from rackloop_reports.summary import MeasurementSummary, Summary, TestSummary

_STYLES = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.UNKNOWN: "magenta",
    Verdict.BLOCKED: "yellow",
    Verdict.SKIPPED: "dim",
}
_MOST_HEADLINES = 12
_INDENT = 4
_NO_BREAK = "\N{NO-BREAK SPACE}"
_STEERING = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_AFTER_NUMBER = re.compile(r"(?<=\d) (?=\S)")


@dataclass(frozen=True)
class _Line:
    """A line: a styled ``word``, if any, before ``text``; where it is wrapped it goes on at ``indent``."""

    text: str
    style: str = ""
    word: str = ""
    indent: int = 0


def print_summary(summary: Summary, console: Console, *, everything: bool = False) -> None:
    """Print the summary; with ``everything`` all measurements of each test as well.

    On a terminal the columns are aligned and long lines wrapped, but never between a number and its unit. In a pipe or
    a file every line is whole and nothing is padded.
    """
    for line in _lines(summary, is_aligned=console.is_terminal, everything=everything):
        text = " " * (0 if line.word else line.indent) + line.word + _harmless(line.text)
        if console.is_terminal:
            text = _wrapped(text, console.width, line.indent)
        shown = Text(text, style="" if line.word else line.style)
        if line.word:
            shown.stylize(line.style, 0, len(line.word))
        console.print(shown, soft_wrap=True)


def _harmless(text: str) -> str:
    """``text`` in one line, with what would steer a terminal as Python writes it: it may be what a drive said."""
    return _STEERING.sub(lambda found: repr(found[0])[1:-1], " ".join(text.splitlines()))


def _wrapped(text: str, width: int, indent: int) -> str:
    """``text`` in lines of ``width``; a number stays with the word after it."""
    lines = textwrap.wrap(
        _AFTER_NUMBER.sub(_NO_BREAK, text),
        max(width, 2 * indent, 1),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
    return "\n".join(lines).replace(_NO_BREAK, " ")


def _lines(summary: Summary, *, is_aligned: bool, everything: bool) -> Iterator[_Line]:
    simulated = " (simulated)" if summary.lab_kind == "mock" else ""
    yield _Line(f"Plan {summary.plan} on lab {summary.lab}{simulated}")
    if summary.healed:
        yield _Line(f"healed before the first test: {'; '.join(summary.healed)}")
    yield _Line("")
    names = {test.id: short_name(test.id) for test in summary.tests}
    times = {test.id: _time(test) for test in summary.tests}
    widths = [max(map(len, column.values()), default=0) * is_aligned for column in (names, times)]
    blocked: dict[str, str] = {}
    for test in summary.tests:
        first = blocked.setdefault(str(test.reason), test.id) if test.verdict is Verdict.BLOCKED else test.id
        told = test if first == test.id else replace(test, reason=f"as {names[first]}")
        word = f"{test.verdict.upper():<{7 * is_aligned}}"
        rest = [
            f" {names[test.id]:<{widths[0]}}",
            f"{times[test.id]:>{widths[1]}}",
            _in_short(told, is_simulated=bool(simulated)),
        ]
        text = "  ".join(part for part in rest if part.strip() or is_aligned).rstrip()
        # What goes on below stands below the name, as what is said of the test does.
        yield _Line(text, _STYLES[test.verdict], word, 2 * _INDENT)
        yield from _details(told, is_simulated=bool(simulated), everything=everything)
    if summary.profiles:
        yield _Line("")
        for profile, verdict in summary.profiles.items():
            yield _Line(f" profile {profile}", _STYLES[verdict], f"{verdict.upper():<{7 * is_aligned}}", _INDENT)
    if summary.out_of_service:
        yield from (_Line(""), _Line("not used"))
        yield from (_Line(out.reason, indent=_INDENT) for out in summary.out_of_service)
    yield _Line("")
    took = format_duration(summary.wall_s)
    tests = sum(is_test(test.id) for test in summary.tests)
    beside = " and provisioning" if any(is_provisioning(test.id) for test in summary.tests) else ""
    said = f", {counted(tests, 'test')}{beside}, {took}, seed {summary.seed}{simulated}"
    yield _Line(said, _STYLES[summary.verdict], f"verdict {summary.verdict}")


def short_name(test: str) -> str:
    """The id of a test as people say it: ``fabric/identity`` for ``fabric/identity::identity``."""
    name, _, function = test.partition("::")
    own, bracket, parameters = function.partition("[")
    return f"{name}{bracket}{parameters}" if name and name.rpartition("/")[2] == own else test


def _time(test: TestSummary) -> str:
    return "" if test.duration_s is None or test.verdict is Verdict.SKIPPED else format_duration(test.duration_s)


def _in_short(test: TestSummary, *, is_simulated: bool) -> str:
    """The rest of a test's line: the number of limits that were kept, and the closest."""
    if test.verdict in {Verdict.SKIPPED, Verdict.BLOCKED}:
        return _with_cause(test, test.reason or "", is_simulated=is_simulated)
    verdicts = [measured.verdict for measured in test.measurements if measured.verdict]
    missed, unknown = verdicts.count(Verdict.FAIL), verdicts.count(Verdict.UNKNOWN)
    counts = [(missed, missed_word(test.verdict)), (unknown, "unknown")]
    said = [f"{counted(number, 'limit')} {what}" for number, what in counts if number]
    if kept := verdicts.count(Verdict.PASS):
        said.append(f"{kept} kept" if said else f"{counted(kept, 'limit')} kept")
    if not said:
        # What is no test of a file, as provisioning is, has nothing to measure.
        is_judged_by_asserts = test.verdict is Verdict.PASS and "::" in test.id
        return "no limits" if test.measurements else "nothing measured" if is_judged_by_asserts else ""
    closest = max(filter(_closeness, test.measurements), key=_closeness, default=None)
    return ", ".join(said) + (f", closest: {_against_limit(closest)}" if closest else "")


def _closeness(measured: MeasurementSummary) -> float:
    """The share of a limit that is used up; 0 where none is kept, or the limit is zero."""
    limits = measured.limits
    if measured.verdict is not Verdict.PASS or not limits:
        return 0.0
    most, least = limits.get("max"), limits.get("min")
    return max(
        measured.value / float(most) if most else 0.0,
        float(least) / measured.value if least and measured.value else 0.0,
    )


def _against_limit(measured: MeasurementSummary) -> str:
    limits, unit = measured.limits or {}, measured.unit
    value = f"{_named(measured)} {value_text(measured.value, unit)}"
    most, least = limits.get("max"), limits.get("min")
    if most is not None and least is None:
        return f"{value} of {value_text(float(most), unit)}"
    return f"{value}, limit {limit_text(limits, unit)}"


def _named(measured: MeasurementSummary) -> str:
    """The measure with its statistic, which is left out where it is the only sample or the extreme that is meant."""
    name = measure_text(measured.name, measured.labels)
    return name if measured.n == 1 or measured.quantile == "max" else f"{name} {measured.quantile}"


def _details(test: TestSummary, *, is_simulated: bool, everything: bool) -> Iterator[_Line]:
    """The reason of what is not a pass, a line for each finding; then figures, or with ``everything`` all there are."""
    if test.verdict not in {Verdict.SKIPPED, Verdict.BLOCKED}:
        yield from _reasons(test, is_simulated=is_simulated)
    if everything:
        chosen = [(in_full(measured), measured.verdict) for measured in test.measurements]
    else:
        chosen = [(text, None) for text in _headlines(test)]
    for text, verdict in chosen:
        yield _Line(text, _STYLES[verdict] if verdict in {Verdict.FAIL, Verdict.UNKNOWN} else "", indent=_INDENT)


def _reasons(test: TestSummary, *, is_simulated: bool) -> Iterator[_Line]:
    """The reason of the verdict, each limit that was not kept on a line of its own."""
    for place, found in enumerate(reasons(test.verdict, test.cause, test.reason, test.measurements)):
        text = found.text if place else _with_cause(test, found.text, is_simulated=is_simulated)
        yield _Line(text, _STYLES[found.verdict], indent=_INDENT)


def _with_cause(test: TestSummary, reason: str, *, is_simulated: bool) -> str:
    return f"{cause_text(test.cause, is_simulated=is_simulated)}: {reason}" if test.cause else reason


def _headlines(test: TestSummary) -> Sequence[str]:
    """The figures that a test declares as its headlines."""
    rows = {
        (measured.name, *measured.labels.items()): _headline(measured)
        for name in test.headlines
        for measured in test.measurements
        if measured.name == name
    }
    shown = list(rows.values())
    more = [f"and {len(shown) - _MOST_HEADLINES} more, with -v"] if len(shown) > _MOST_HEADLINES else []
    return shown[:_MOST_HEADLINES] + more


def _headline(measured: MeasurementSummary) -> str:
    name, unit = measure_text(measured.name, measured.labels), measured.unit
    if measured.n > 1 and measured.p50 is not None and measured.quantile != "mean":
        p99 = "" if measured.p99 is None else f", p99 {value_text(measured.p99, unit)}"
        return f"{name} p50 {value_text(measured.p50, unit)}{p99}"
    return f"{_named(measured)} {value_text(measured.value, unit)}"
