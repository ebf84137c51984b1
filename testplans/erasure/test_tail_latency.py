"""Reads of many sectors on hard disks whose sectors often fail: retried by the drive, or decoded from their group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import pytest

from rackloop.blocks import BLOCK_BYTES, IoFailed
from rackloop.distribution import Distribution
from rackloop.errors import NotSupported
from rackloop.lab import Lab
from rackloop_drivers.block import NbdExport
from rackloop_drivers.block.nbd_session import NbdSession
from rackloop_fixtures import Measure, Progress, Rack
from rackloop_models.erasure import Code
from rackloop_models.tail_latency import ChosenCode, choose_code

# Requests are small where they fail fast: what lies behind a failed sector in one is missing as well. Several are in
# flight, so that the next one is there when the platter has come to it.
PARAMETERS: dict[str, Any] = {
    "drives": [],
    "sectors": 10_000,
    "trials": 6,
    "codeword": 1023,
    "request_sectors": 4,
    "retried_request_sectors": 256,
    "in_flight": 8,
}
MEASURES = {
    "tail.latency": "s",
    "tail.cut": "1",
    "tail.decoded_groups": "1",
    "tail.reread_sectors": "1",
    "tail.wrong": "1",
}

# Behind the regions of identified sectors and of fio.
_OFFSET = 2 << 30
# Read between turns, each place far from the next, so that the drive has nothing of the last turn in its track buffer.
_ELSEWHERE = range(1 << 30, 2 << 30, 16 << 20)

pytestmark = pytest.mark.rackloop(
    purpose="read thousands of sectors from drives that often fail at the first attempt, retried and decoded",
    requires=[],
    destructive=True,
    time_class="minutes",
)


def drives_erased(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The hard disks whose sectors fail, or those that are named."""
    return list(_places(lab, parameters))


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """A sector takes 33 us, twice and once more to be written, and a failed one its retry."""
    sectors, trials = parameters["sectors"], parameters["trials"]
    retries_s = sum(_ph(lab, drive) * _retry_s(lab, drive) for drive in _places(lab, parameters))
    drives = len(_places(lab, parameters))
    return float(
        2 + sectors * (trials * retries_s + drives * (2 * trials + 1) * 40e-6) + drives * (1 + 2 * trials * 0.8)
    )


def _places(lab: Lab, parameters: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """The drives, and the server ports that have them at the baseline."""
    named = parameters["drives"]
    found = {
        drive: place
        for drive, place in lab.places.items()
        if lab.drives[drive].scratch and (drive in named if named else _ph(lab, drive) > 0)
    }
    if not found or len(found) < len(named):
        raise NotSupported(f"lab {lab.name} has not the scratch drives with read_error_probability in its baseline")
    return found


def _ph(lab: Lab, drive: str) -> float:
    return float(lab.drives[drive].simulated_timing.get("read_error_probability", 0.0))


def _retry_s(lab: Lab, drive: str) -> float:
    low, high = lab.drives[drive].simulated_timing["retry_ms"]
    return float(low + high) / 2e3


@dataclass
class Counts:
    """What decoding took."""

    decoded_groups: int = 0
    reread_sectors: int = 0
    wrong: int = 0


class Stream:
    """Groups of random content on a drive, read with its retries or through the code; every byte is compared."""

    def __init__(self, rack: Rack, place: tuple[str, str], chosen: ChosenCode, parameters: Mapping[str, Any]) -> None:
        device = rack.device(*place)
        if not isinstance(device, NbdExport):
            raise NotSupported(f"{place[0]} reaches its drives by a kernel, which cannot tell them to fail fast")
        self._rack, self._place, self._device = rack, place, device
        self._code = Code(chosen.k, chosen.m)
        self._parameters = parameters
        self._groups = -(-parameters["sectors"] // chosen.k)
        self._codeword = chosen.codeword
        shape = (self._groups, self._codeword, BLOCK_BYTES)
        self._written = np.frombuffer(bytearray(rack.chance.randbytes(int(np.prod(shape)))), np.uint8).reshape(shape)
        for group in self._written:
            self._code.encode(group[: chosen.k], group[chosen.k :])
        self._read = np.zeros_like(self._written)
        self.counts = Counts()

    def write(self) -> None:
        """Put the groups on the drive, one behind the other."""
        with self._rack.writable(*self._place) as permit, NbdSession(permit, self._rack.clock) as session:
            for number, group in enumerate(self._written):
                session.write(_OFFSET + number * group.nbytes, group.tobytes())
            session.flush()

    def retried(self) -> float:
        """The seconds of a read of the user sectors in which the drive retries."""
        return self._timed(self._device, self._parameters["retried_request_sectors"], is_coded=False)

    def decoded(self) -> float:
        """The seconds of a read in which sectors that fail are decoded."""
        return self._timed(self._device.failing_fast(), self._parameters["request_sectors"], is_coded=True)

    def _timed(self, device: NbdExport, size: int, *, is_coded: bool) -> float:
        self._read[:] = 0
        with self._sessions(device) as sessions, self._sessions(self._device, 1) as (patient,):
            for offset in _ELSEWHERE:
                patient.read(offset, BLOCK_BYTES)
            began_ns = self._rack.clock.now_ns()
            missing = self._stream(sessions, list(self._requests(size, with_redundancy=is_coded)))
            for group, sectors in missing.items():
                self._recover(group, sectors, sessions, patient)
            seconds = (self._rack.clock.now_ns() - began_ns) / 1e9
        user = slice(self._code.k)
        self.counts.wrong += int((self._read[:, user] != self._written[:, user]).any(axis=2).sum())
        return seconds

    def _requests(self, size: int, *, with_redundancy: bool) -> Iterator[tuple[int, int, int]]:
        """Group, first sector and the one behind the last; redundancy is passed over on the way to the next group."""
        for group in range(self._groups):
            is_last = group == self._groups - 1
            end = self._codeword if with_redundancy and not is_last else self._code.k
            for first in range(0, end, size):
                yield group, first, min(first + size, end)

    def _stream(
        self, sessions: Sequence[NbdSession], requests: list[tuple[int, int, int]]
    ) -> dict[int, list[tuple[int, int]]]:
        """Read in order, as many at once as there are sessions; what failed, by group."""
        waiting, lock = iter(requests), Lock()
        missing: dict[int, list[tuple[int, int]]] = defaultdict(list)

        def work(session: NbdSession) -> None:
            while True:
                with lock:
                    request = next(waiting, None)
                if request is None:
                    return
                if not self._fill(session, *request):
                    with lock:
                        missing[request[0]].append(request[1:])

        with ThreadPoolExecutor(len(sessions)) as threads:
            list(threads.map(work, sessions))
        return missing

    def _fill(self, session: NbdSession, group: int, first: int, end: int) -> bool:
        offset = _OFFSET + (group * self._codeword + first) * BLOCK_BYTES
        try:
            data = session.read(offset, (end - first) * BLOCK_BYTES)
        except IoFailed:
            return False
        self._read[group, first:end] = np.frombuffer(data, np.uint8).reshape(-1, BLOCK_BYTES)
        return True

    def _recover(
        self, group: int, failed: list[tuple[int, int]], sessions: Sequence[NbdSession], patient: NbdSession
    ) -> None:
        """Decode; before that read again what the group lacks beyond its redundancy, at last with retries."""
        lacks = [sector for first, end in failed for sector in range(first, end)]
        if group == self._groups - 1:
            fetched = self._stream(sessions, [(group, at, at + 1) for at in range(self._code.k, self._codeword)])
            lacks += [first for first, _ in fetched[group]]
        for session in (sessions[0], patient):
            for sector in list(lacks):
                if len(lacks) <= self._code.m:
                    break
                self.counts.reread_sectors += 1
                if self._fill(session, group, sector, sector + 1):
                    lacks.remove(sector)
        self._code.decode(self._read[group], lacks)
        self.counts.decoded_groups += 1

    @contextmanager
    def _sessions(self, device: NbdExport, count: int = 0) -> Iterator[list[NbdSession]]:
        with ExitStack() as stack:
            many = count or self._parameters["in_flight"]
            yield [stack.enter_context(NbdSession(device, self._rack.clock)) for _ in range(many)]


def test_tail_latency(rack: Rack, parameters: Mapping[str, Any], measure: Measure, progress: Progress) -> None:
    """Per drive: groups are written, then read in turns with the drive's retries and through the code."""
    places = _places(rack.lab, parameters)
    for number, (drive, place) in enumerate(places.items()):
        ph = _ph(rack.lab, drive)
        chosen = choose_code(parameters["codeword"], ph or 1e-4)
        labels = {
            "drive": drive,
            "sectors": str(parameters["sectors"]),
            "ph": f"{ph:g}",
            "retry_ms": f"{_retry_s(rack.lab, drive) * 1e3:.1f}",
        }
        stream = Stream(rack, place, chosen, parameters)
        stream.write()
        turns = [(stream.retried(), stream.decoded()) for _ in range(parameters["trials"])]
        retried_s = Distribution.of(retried for retried, _ in turns)
        decoded_s = Distribution.of(decoded for _, decoded in turns)
        measure("tail.latency", retried_s, read="retried", **labels)
        measure("tail.latency", decoded_s, read="decoded", **labels)
        measure("tail.cut", 1 - decoded_s.quantile(0.5) / retried_s.quantile(0.5), **labels)
        measure("tail.decoded_groups", stream.counts.decoded_groups, **labels)
        measure("tail.reread_sectors", stream.counts.reread_sectors, **labels)
        measure("tail.wrong", stream.counts.wrong, **labels)
        progress(number + 1, len(places), f"drives read (ph {ph:g})")
