"""The logs of servers and their management controllers on the run's clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime

from rackloop.abilities import SystemEvent, SystemEventLog
from rackloop.clock import Clock, Deadline
from rackloop.errors import DeadlineExceeded, RackloopError
from rackloop.inspection.health import HealthSnapshot, KernelLine
from rackloop.inspection.timeline import ClockOffset, ClockReading, EvidenceLine, Source, offset_of
from rackloop_drivers.host_tools import kernel_clock
from rackloop_labs.bench import Bench

_SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class Gathered:
    """The lines of one source, and what is known of its clock."""

    source: Source
    lines: tuple[EvidenceLine, ...] = ()


def gather(bench: Bench, began_ns: int, after: HealthSnapshot, deadline: Deadline) -> list[Gathered]:
    """The kernel messages of every server in ``after``, and of every controller's event log what is since ``began_ns``.

    All are asked at once. A source that cannot be read, or not by the deadline, says why; it is no error.
    """
    kernels = {f"{server} kernel": _kernel(bench, server, after, deadline) for server in bench.lab.servers}
    logs = {f"{server} SEL": _sel(log, bench.clock, began_ns, deadline) for server, log in bench.event_logs.items()}
    asked = {**kernels, **logs}
    if not asked:
        return []
    pool = ThreadPoolExecutor(len(asked), thread_name_prefix="evidence")
    try:
        running = {name: pool.submit(_reading, name, ask) for name, ask in asked.items()}
        wait(running.values(), timeout=deadline.remaining_s())
        late = DeadlineExceeded("it did not answer in time")
        return [
            future.result() if future.done() else Gathered(Source(name, unread=str(late)))
            for name, future in running.items()
        ]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


_Ask = Callable[[str], Gathered]


def _reading(name: str, ask: _Ask) -> Gathered:
    try:
        return ask(name)
    except RackloopError as error:
        return Gathered(Source(name, unread=f"not read: {error}"))


def _kernel(bench: Bench, server: str, after: HealthSnapshot, deadline: Deadline) -> _Ask:
    def ask(name: str) -> Gathered:
        seen = after.servers.get(server)
        if seen is None:
            return Gathered(Source(name, unread=f"not read: {after.unreachable.get(server, 'it was not asked')}"))
        lacking = seen.unreadable.get("kernel log")
        if lacking is not None and not seen.kernel:
            return Gathered(Source(name, unread=f"not read: {lacking}"))
        # Of a kernel that said more than its log holds there is the rest, which is what it said last.
        problems = [] if lacking is None else [f"not read in full: {lacking}"]
        offset: ClockOffset | None = None
        try:
            offset = kernel_clock(bench.host(server), bench.clock, deadline)
        except RackloopError as error:
            problems.append(f"its clock is not known: {error}")
        lines = tuple(_kernel_line(name, line, offset) for line in seen.kernel)
        return Gathered(Source(name, offset, "; ".join(problems) or None), lines)

    return ask


def _kernel_line(name: str, line: KernelLine, offset: ClockOffset | None) -> EvidenceLine:
    stamp = f"[{line.at_us // 1_000_000:5}.{line.at_us % 1_000_000:06}]"
    at_ns = offset.run_ns(line.at_us * 1000) if offset else None
    return EvidenceLine(name, stamp, at_ns, offset.error_ns if offset else 0, line.text)


def _sel(log: SystemEventLog, clock: Clock, began_ns: int, deadline: Deadline) -> _Ask:
    def ask(name: str) -> Gathered:
        events = log.events(deadline)
        before_ns = clock.now_ns()
        now = log.now(deadline)
        # Controllers stamp in whole seconds, whatever they print.
        offset = offset_of([ClockReading(before_ns, _unix_ns(now), clock.now_ns(), _SECOND_NS)])
        lines = list(_sel_lines(name, events, offset))
        # Entries without a time belong to the test where they stand behind the last that is older.
        old = [n for n, line in enumerate(lines, 1) if line.at_ns is not None and line.at_ns + line.error_ns < began_ns]
        return Gathered(Source(name, offset), tuple(lines[max(old, default=0) :]))

    return ask


def _sel_lines(name: str, events: list[SystemEvent], offset: ClockOffset) -> Iterator[EvidenceLine]:
    for event in events:
        text = " ".join(part for part in (event.severity, event.sensor, event.text) if part)
        if event.at is None:
            yield EvidenceLine(name, f"#{event.number}", None, 0, text)
            continue
        half = _SECOND_NS // 2
        at_ns = offset.run_ns(_unix_ns(event.at) + half)
        yield EvidenceLine(name, event.at.isoformat(), at_ns, offset.error_ns + half, text)


def _unix_ns(moment: datetime) -> int:
    return round(moment.timestamp() * 1e6) * 1000
