"""Reads of many sectors on hard disks whose sectors often fail: retried by the drive, or decoded from their group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rackloop.abilities.blocks import FailFastBlocks, Part, part_of
from rackloop.errors import NotSupported
from rackloop.lab import Lab
from rackloop.measurement import Distribution
from rackloop.parameters import part, whole
from rackloop_fixtures import (
    Compared,
    Labels,
    Measure,
    Progress,
    Rack,
    Stopwatch,
    Took,
    drive_places,
    measure_compared,
    reached_drive,
)
from rackloop_models.local_erasure import SECTOR_BYTES, Layout, LocalStore, ReadMode, format_drive

# ``request_sectors`` is what the store is asked for at once: 1 MiB, as by the kernel where it is mounted.
PARAMETERS = {
    "drives": part([""], "drives to read, each in turn; all whose sectors often fail where empty", of="drive"),
    "sectors": whole(10_000, "sectors that are read in a turn", most=10_000_000),
    "trials": whole(6, "turns, of both ways each", most=10_000),
    "codeword": whole(1023, "sectors of a codeword", least=2, most=65_536),
    "request_sectors": whole(256, "sectors of a request", most=16_384),
}
MEASURES = {
    "tail.latency": "s",
    "tail.cut": "1",
    "tail.decoded_groups": "1",
    "tail.reread_sectors": "1",
    "tail.wrong": "1",
}
HEADLINES = ("tail.latency",)

pytestmark = pytest.mark.rackloop(
    purpose="read thousands of sectors from drives that often fail at the first attempt, retried and decoded",
    requires=["probe", "blocks.harness"],
    destructive=True,
    time_class="minutes",
)

Place = tuple[str, str, str]

_FILE = "streamed"
# Read between turns, each place far from the next, so that the drive has nothing of the last turn in its track buffer.
_ELSEWHERE_BYTES = 256 << 20
_ELSEWHERE_STEP = 4 << 20


def drives_erased(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The hard disks whose sectors fail, or those that are named."""
    return [drive for drive, _, _ in _places(lab, parameters)]


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """A sector takes 33 us, twice and once more to be written, and a failed one its retry."""
    sectors, trials = parameters["sectors"], parameters["trials"]
    drives = [drive for drive, _, _ in _places(lab, parameters)]
    retries_s = sum(_ph(lab, drive) * _retry_s(lab, drive) for drive in drives)
    streamed_s = len(drives) * (2 * trials + 1) * 40e-6
    return float(2 + sectors * (trials * retries_s + streamed_s) + len(drives) * (1 + 2 * trials * 0.1))


def _places(lab: Lab, parameters: Mapping[str, Any]) -> list[Place]:
    """The drives, each with the server port that has it at the baseline."""
    failing = [drive for drive in lab.places if _ph(lab, drive) > 0 and lab.drives[drive].scratch]
    named = [drive for drive in parameters["drives"] if drive]
    never = [drive for drive in named if drive in lab.drives and not _ph(lab, drive)]
    if never or not (named or failing):
        raise NotSupported(
            f"nothing would fail: the description of lab {lab.name} gives no read_error_probability to "
            f"{', '.join(never) or 'any scratch drive at a server'}"
        )
    return drive_places(lab, {"drives": named or failing})


def _ph(lab: Lab, drive: str) -> float:
    return float(lab.drives[drive].simulated_timing.get("read_error_probability", 0.0))


def _retry_s(lab: Lab, drive: str) -> float:
    low, high = lab.drives[drive].simulated_timing["retry_ms"]
    return float(low + high) / 2e3


class Stream:
    """A file of random content in a store on ``reached``, read again and again; every byte is compared.

    ``wrong`` counts sectors; ``decodes`` and ``retried_sectors`` are the store's own counts, summed up.
    """

    def __init__(self, rack: Rack, reached: Part, layout: Layout, parameters: Mapping[str, Any]) -> None:
        self._rack = rack
        self._reached = reached
        self._blocks = part_of(reached, 0, reached.size_bytes - _ELSEWHERE_BYTES)
        self._content = rack.chance.randbytes(parameters["sectors"] * SECTOR_BYTES)
        self._request_bytes = parameters["request_sectors"] * SECTOR_BYTES
        self.wrong = self.decodes = self.retried_sectors = 0
        format_drive(self._blocks, layout, files=16)
        with LocalStore(self._blocks, rack.clock) as store:
            store.create(_FILE).write(0, self._content)

    def read(self, mode: ReadMode) -> Took:
        """The time of a read of all of it, of which neither the store nor the drive has anything yet."""
        with LocalStore(self._blocks, self._rack.clock, read_mode=mode) as store:
            file = store.open(_FILE)
            for offset in range(self._blocks.size_bytes, self._reached.size_bytes, _ELSEWHERE_STEP):
                self._reached.read(offset, SECTOR_BYTES)
            rack = self._rack
            watch = Stopwatch(lambda: rack.clock.now_ns() / 1e9, rack.waited_s, rack.late_with)
            found = [file.read(at, self._request_bytes) for at in range(0, len(self._content), self._request_bytes)]
            took = watch.stop()
            self.decodes += store.statistics.decodes
            self.retried_sectors += store.statistics.retried_sectors
        self.wrong += _differing_sectors(b"".join(found), self._content)
        return took


def test_tail_latency(
    rack: Rack, labels: Labels, parameters: Mapping[str, Any], measure: Measure, progress: Progress
) -> None:
    """Per drive: a file is written to a store, then read in turns with the drive's retries and failing fast."""
    places = _places(rack.lab, parameters)
    for number, place in enumerate(places):
        drive, server, _ = place
        ph = _ph(rack.lab, drive)
        about = {
            "drive": drive,
            "sectors": str(parameters["sectors"]),
            "ph": f"{ph:g}",
            "retry_ms": f"{_retry_s(rack.lab, drive) * 1e3:.1f}",
        }
        layout = Layout.for_failure_probability(ph, parameters["codeword"])
        groups = -(-parameters["sectors"] // layout.k) + 2
        size_bytes = groups * layout.group_sectors * SECTOR_BYTES + (16 << 20) + _ELSEWHERE_BYTES
        with reached_drive(rack, labels, place, size_bytes) as reached:
            if not isinstance(reached, FailFastBlocks):
                raise NotSupported(f"{server} reaches {drive} by a kernel, which cannot tell it to fail fast")
            stream = Stream(rack, reached, layout, parameters)
            turns = [
                (stream.read(ReadMode.RETRY), stream.read(ReadMode.FAIL_FAST)) for _ in range(parameters["trials"])
            ]
        retried_s = Distribution.of(retried.seen_s for retried, _ in turns)
        decoded_s = Distribution.of(decoded.seen_s for _, decoded in turns)
        measure("tail.latency", retried_s, read="retried", **about)
        measure("tail.latency", decoded_s, read="decoded", **about)
        cuts = [Compared.of(decoded, retried, _cut) for retried, decoded in turns]
        measure_compared(measure, "tail.cut", cuts, **about)
        measure("tail.decoded_groups", stream.decodes, **about)
        measure("tail.reread_sectors", stream.retried_sectors, **about)
        measure("tail.wrong", stream.wrong, **about)
        progress(number + 1, len(places), f"drives read (ph {ph:g})")


def _cut(decoded_s: float, retried_s: float) -> float:
    """The share of the time that decoding saves."""
    return 1 - decoded_s / retried_s


def _differing_sectors(found: bytes, content: bytes) -> int:
    """The number of sectors whose content differs."""
    at = range(0, len(content), SECTOR_BYTES)
    return sum(found[first : first + SECTOR_BYTES] != content[first : first + SECTOR_BYTES] for first in at)
