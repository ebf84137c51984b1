"""`rackloop trace convert`: conversion of a trace to another format."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from rackloop.clock import RealClock
from rackloop.errors import EXIT_PASS, BadInput
from rackloop.units import counted
from rackloop_cli.shared.interruption import ended_in_order
from rackloop_cli.shared.progress import counted_requests
from rackloop_cli.trace.remarks import malformed_remarks, require_new
from rackloop_traces import MAX_MALFORMED, Trace, WrittenReport, find_trace, format_for, open_trace, write_trace

_SHOWN_RENAMES = 5


def run(
    name: str,
    out: Path,
    *,
    source: str | None,
    target: str | None,
    volume: str | None,
    max_malformed: int | None,
    strict: bool,
    force: bool,
) -> int:
    """Convert, print the result to standard output and remarks to standard error; returns 0.

    A format is recognised where it is None. Raises BadInput where the trace cannot be read or written as asked; nothing
    is written then.
    """
    if strict and max_malformed is not None:
        raise BadInput("--strict allows no malformed line and --max-malformed some: give one of them")
    path = find_trace(name)
    if out.exists() and out.samefile(path):
        raise BadInput(f"{out} is the trace itself: name another file to write")
    require_new(out, force=force)
    allowed = 0 if strict else MAX_MALFORMED if max_malformed is None else max_malformed
    form = format_for(out, target)
    trace = open_trace(path, source, volume, max_malformed=allowed)
    clock = RealClock()
    began_ns = clock.now_ns()
    batches = counted_requests(trace.batches(in_order=form.in_order))
    # Whichever signal ends it, nothing half written is left beside the file.
    with ended_in_order():
        written = write_trace(batches, out, form.name, origin=trace.origin)
    took_s = (clock.now_ns() - began_ns) / 1e9
    rate = written.requests / took_s
    print(f"{name}: {trace.format.title}, {_number(trace.requests, 'request')}")
    done = f"{_number(written.requests, 'request')} in {took_s:.1f} s, {rate:,.0f}/s"
    print(f"{written.path}: {written.format.title}, {done}")
    for line in _remarks(trace, written):
        print(line, file=sys.stderr)
    return EXIT_PASS


def _remarks(trace: Trace, written: WrittenReport) -> Iterator[str]:
    """Remarks on the conversion, a line each."""
    yield from malformed_remarks(trace.malformed)
    yield from (f"doubt: {doubt}" for doubt in trace.doubts)
    if trace.out_of_order:
        done = "put in order" if written.format.in_order else "left as they stand"
        yield f"out of order: {_number(trace.out_of_order, 'request')} earlier than one before, {done}"
    yield from (f"left out: {_number(count, 'request')}: {what}" for what, count in written.left_out.items())
    yield from (f"changed: {_number(count, 'request')} {what}" for what, count in written.changed.items())
    if written.renamed:
        shown = [f"{name} is {number}" for name, number in list(written.renamed.items())[:_SHOWN_RENAMES]]
        more = len(written.renamed) - len(shown)
        yield f"volumes numbered: {', '.join(shown)}" + (f" and {more} more" if more else "")
    yield from (f"note: {note}" for note in written.notes)


def _number(number: int, noun: str) -> str:
    return counted(number, noun).replace(str(number), f"{number:,}", 1)
