"""`rackloop trace stat`: the statistics of a trace, printed and plotted."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from rackloop.errors import EXIT_PASS, BadInput
from rackloop_cli.shared.progress import counted_requests
from rackloop_cli.shared.tables import print_whole
from rackloop_cli.trace.remarks import malformed_remarks
from rackloop_traces import TraceMeter, find_trace, open_trace


def run(name: str, *, out: Path | None, as_json: bool, volume: str | None, source: str | None) -> int:
    """Measure the trace called ``name``, print what was found, and draw it into ``out``; returns 0.

    Raises BadInput where the trace cannot be read or holds no request.
    """
    if out is not None and out.exists() and not out.is_dir():
        raise BadInput(f"--out {out} is a file: give a directory, new or not")
    path = find_trace(name)
    trace = open_trace(path, source, volume)
    meter = TraceMeter()
    for frame in counted_requests(trace.batches()):
        meter.add(frame)
    if not meter.requests:
        asked = f" on volume {volume!r}" if volume else ""
        raise BadInput(f"{name} holds no request{asked}: there is nothing to say of it")
    statistics = meter.result(trace.doubts)
    if as_json:
        print(statistics.model_dump_json(indent=1))
    else:
        from rackloop_reports.trace_report import tables

        print(f"{name}: {trace.format.title}")
        console = Console(highlight=False)
        for table in tables(statistics):
            print_whole(console, table)
    for remark in (*malformed_remarks(trace.malformed), *(f"doubt: {doubt}" for doubt in statistics.doubts)):
        print(remark, file=sys.stderr)
    if out is not None:
        from rackloop_reports.trace_report import write_report

        for written in write_report(statistics, meter.heat_map, path.name, out):
            print(f"wrote {written}", file=sys.stderr if as_json else sys.stdout)
    return EXIT_PASS
