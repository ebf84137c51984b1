"""I/O through a storm of faults: nothing wrong is read, and nothing fails but what the faults may touch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from rackloop.faults.schedules import Done, Schedule
from rackloop.lab import Lab
from rackloop.parameters import number, size, whole
from rackloop_drivers.workload import WatchInterval
from rackloop_fixtures import Measure, Progress, Rack, seconds_to_service, unexplained_errors
from rackloop_labs.scratch_ports import first_scratch_drives, first_scratch_ports

PARAMETERS = {
    "size": size(64 << 20, "bytes written and verified on a port of each server", least=1 << 20, most=1 << 50),
    "iodepth": whole(4, "I/Os outstanding on it", most=4096),
    "settle_s": number(2.0, "time after the end of a fault in which it explains errors", most=3600, unit="s"),
}
MEASURES = {
    "storm.faults": "1",
    "storm.late": "s",
    "storm.wrong": "1",
    "storm.lost": "1",
    "storm.unexplained": "1",
    "storm.errors": "1",
    "storm.stall": "s",
    "storm.standing": "1",
    "storm.mending": "s",
    "storm.service": "s",
}
HEADLINES = ("storm.faults", "storm.stall")

pytestmark = pytest.mark.rackloop(
    purpose="read and write through a storm of faults, and show that nothing is wrong or lost and all of it heals",
    requires=["probe", "fio"],
    destructive=True,
    time_class="seconds",
)


def drives_erased(lab: Lab, _parameters: Mapping[str, Any]) -> list[str]:
    """The first two scratch drives of each server: one has identified blocks, on the other fio writes and verifies."""
    return first_scratch_drives(lab, 2)


def estimate_s(_lab: Lab, parameters: Mapping[str, Any]) -> float:
    """Beginning and ending the I/O; the schedule comes on top."""
    return float(8 + 2 * parameters["settle_s"])


def test_storm(
    rack: Rack, schedule: Schedule, parameters: Mapping[str, Any], measure: Measure, progress: Progress
) -> None:
    """Watch identified blocks on the first port of each server, have fio verify on the second, and let it storm."""
    watching, writing = first_scratch_ports(rack.lab, 2)
    settle_ns = round(parameters["settle_s"] * 1e9)
    writes = rack.verified_writes(writing, size_bytes=parameters["size"], iodepth=parameters["iodepth"])
    with rack.watching(watching) as watched, writes as written:
        rack.clock.sleep_until_ns(rack.clock.now_ns() + settle_ns)
        played = rack.play(schedule, progress=progress)
        rack.clock.sleep_until_ns(rack.clock.now_ns() + settle_ns)
    faults = rack.faults.made

    measure("storm.faults", len(played.done))
    measure("storm.standing", sum(fault.stands for fault in faults))
    for server, seen in watched.results.items():
        port = watching[server]
        unexplained = unexplained_errors(
            watched.intervals[server], faults, server, port, settle_s=parameters["settle_s"]
        )
        measure("storm.wrong", seen.wrong, server=server, job="reads")
        measure("storm.lost", seen.lost, server=server)
        measure("storm.unexplained", unexplained.errors, errors=unexplained.uncertain, server=server, job="reads")
        measure("storm.errors", seen.errors, server=server, job="reads")
        measure("storm.stall", seen.longest_stall_s, server=server, job="reads")
    for server, result in written.results.items():
        unexplained = unexplained_errors(
            result.failures, faults, server, writing[server], settle_s=parameters["settle_s"]
        )
        # No fault that ends explains a block that does not verify.
        measure("storm.wrong", result.wrong, server=server, job="writes")
        measure("storm.unexplained", unexplained.errors, errors=unexplained.uncertain, server=server, job="writes")
        measure("storm.errors", result.errors, server=server, job="writes")
        measure("storm.stall", result.longest_stall_s, server=server, job="writes")
    for kind in dict.fromkeys(done.fault.kind for done in played.done):
        of_kind = [done for done in played.done if done.fault.kind == kind]
        ended = [(done, done.mending_ns, done.ended_ns) for done in of_kind if done.mending_ns and done.ended_ns]
        late_s = [max(0.0, done.late_s) for done in of_kind]
        # Whatever a fault comes late by is the harness's.
        measure("storm.late", late_s, errors=late_s, fault=kind)
        measure("storm.mending", [(ended_ns - mending_ns) / 1e9 for _, mending_ns, ended_ns in ended], fault=kind)
        _measure_service(measure, ended, watching, watched.intervals, fault=kind)
    written.require_verified()


def _measure_service(
    measure: Measure,
    ended: Iterable[tuple[Done, int, int]],
    watching: Mapping[str, str],
    intervals: Mapping[str, Sequence[WatchInterval]],
    **labels: str,
) -> None:
    """Measure how long after each fault's mending began reads came back at each port that it may have touched.

    All its ports come back with its one end: together they are one draw.
    """
    back = [
        (seconds, number)
        for number, (done, mending_ns, _) in enumerate(ended)
        for server, port in watching.items()
        if done.injection.radius.may_touch(server=server, port=port)
        and (seconds := seconds_to_service(intervals[server], done.injection, mending_ns)) is not None
    ]
    if back:
        seconds_of, faults = zip(*back, strict=True)
        measure("storm.service", seconds_of, clusters=faults, **labels)
