"""The cost of fine-grained updates to a store with local erasure coding: both methods, against writing alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from rackloop.errors import BadInput
from rackloop.lab import Lab
from rackloop.parameters import erasure_code, part, whole
from rackloop_fixtures import Labels, Measure, Progress, Rack, code_of, drive_places, reached_drive
from rackloop_models.local_erasure import SECTOR_BYTES, Layout, LocalStore, StoredFile, UpdateMethod, format_drive

# Figure 11 of the paper on local erasure coding: codewords of 255 sectors, 50 or 200 of which are updated.
PARAMETERS = {
    "drives": part([""], "drives that carry a store, each in turn; a hard disk of the lab where empty", of="drive"),
    "codes": erasure_code(["252+3", "246+9"], "user sectors and redundancy of each code"),
    "updated": whole([50, 200], "sectors of a codeword that are updated, each in turn", most=65_535),
    "codewords": whole(12, "codewords that are updated by each method", most=100_000),
}
MEASURES = {"update.latency": "s", "update.read_sectors": "1", "update.wrong": "1"}
HEADLINES = ("update.latency",)

pytestmark = pytest.mark.rackloop(
    purpose="update some sectors in each codeword of a file, with redundancy computed anew and by difference",
    requires=["fabric.remap", "probe", "blocks.harness"],
    destructive=True,
    time_class="minutes",
)

_METHODS = {"direct": UpdateMethod.DIRECT, "indirect": UpdateMethod.INDIRECT}


def drives_erased(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The drives that carry a store."""
    return [drive for drive, _, _ in drive_places(lab, parameters)]


def check(_lab: Lab, parameters: Mapping[str, Any]) -> None:
    """Raise BadInput for more sectors to update than a codeword has."""
    for code, updated in _turns(parameters):
        if updated > (k := code_of(code)[0]):
            raise BadInput(f"updated: code {code} has 1 to {k} sectors to update in a codeword, found {updated}")
        Layout(*code_of(code))


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """An update takes a few revolutions of the disk."""
    times = len(parameters["codes"]) * len(parameters["updated"]) * 3 * int(parameters["codewords"])
    return 2 + 0.03 * times * len(drive_places(lab, parameters))


def test_update(
    rack: Rack, labels: Labels, parameters: Mapping[str, Any], measure: Measure, progress: Progress
) -> None:
    """Per code, number of sectors and method: write a file, then update each of its codewords once."""
    turns = list(_turns(parameters))
    for place in drive_places(rack.lab, parameters):
        for number, (code, updated) in enumerate(turns):
            progress(number, len(turns), f"kinds of updates of {place[0]}")
            _update(rack, labels, place, code, updated, parameters, measure)


def _turns(parameters: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for code in parameters["codes"]:
        for updated in parameters["updated"]:
            yield code, int(updated)


def _update(
    rack: Rack,
    labels: Labels,
    place: tuple[str, str, str],
    code: str,
    updated: int,
    parameters: Mapping[str, Any],
    measure: Measure,
) -> None:
    """The same sectors of the same file by each method; and once as if there were no redundancy."""
    k, m = code_of(code)
    codewords = int(parameters["codewords"])
    content = bytearray(rack.chance.randbytes(codewords * k * SECTOR_BYTES))
    starts = [group * k + rack.chance.randrange(k - updated + 1) for group in range(codewords)]
    size_bytes = (codewords + 2) * (k + m) * SECTOR_BYTES + (16 << 20)
    about = {"code": code, "updated": str(updated)}
    with reached_drive(rack, labels, place, size_bytes) as reached:
        format_drive(reached, Layout(k, m), files=16)
        # Without a cache: what an update needs has to come from the drive, as after dropping the page cache.
        with LocalStore(reached, rack.clock, cache_bytes=0) as store:
            file = store.create("updated")
            file.write(0, bytes(content))
            store.flush()
            for name, method in _METHODS.items():
                store.update_method = method
                before = store.statistics.update_read_sectors
                took_s = []
                for start in starts:
                    data = rack.chance.randbytes(updated * SECTOR_BYTES)
                    content[start * SECTOR_BYTES : start * SECTOR_BYTES + len(data)] = data
                    began_ns = rack.clock.now_ns()
                    file.write(start * SECTOR_BYTES, data)
                    store.flush()
                    took_s.append((rack.clock.now_ns() - began_ns) / 1e9)
                measure("update.latency", took_s, method=name, **about)
                read = store.statistics.update_read_sectors - before
                measure("update.read_sectors", read / codewords, method=name, **about)
            measure("update.wrong", _wrong(store, file, content), **about)
            places = [store.places("updated", group)[0] for group in range(codewords)]
        took_s = []
        for start, first in zip(starts, places, strict=True):
            data = rack.chance.randbytes(updated * SECTOR_BYTES)
            began_ns = rack.clock.now_ns()
            reached.write(first + start % k * SECTOR_BYTES, data)
            reached.flush()
            took_s.append((rack.clock.now_ns() - began_ns) / 1e9)
        measure("update.latency", took_s, method="no redundancy", **about)


def _wrong(store: LocalStore, file: StoredFile, content: bytearray) -> int:
    """The pieces of a file that are not ``content``, and its codewords whose redundancy does not belong to their data.

    An update that leaves old redundancy behind is the quickest, and reads show nothing of it.
    """
    pieces = range(0, len(content), 1 << 20)
    wrong = sum(file.read(at, 1 << 20) != content[at : at + (1 << 20)] for at in pieces)
    scrubbed = store.scrub(repair=False)
    return wrong + len({*scrubbed.mismatches, *scrubbed.unprotected, *scrubbed.unrecoverable})
