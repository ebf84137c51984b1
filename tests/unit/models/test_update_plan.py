"""The plan of updates: what it counts as wrong is data, and redundancy that does not belong to it."""

from __future__ import annotations

import pytest

from rackloop_models.local_erasure import UpdateMethod
from tests.plan_modules import plan_module
from tests.unit.models.local_erasure_case import LAYOUT, SECTOR, pattern, sectors_of, with_file

UPDATE = plan_module("erasure/update")
K = LAYOUT.k


@pytest.mark.parametrize("method", [UpdateMethod.DIRECT, UpdateMethod.INDIRECT])
def test_updates_that_are_right_leave_nothing_wrong(method: UpdateMethod) -> None:
    content = bytearray(pattern(2 * K))
    _, store = with_file(bytes(content))
    with store:
        store.update_method = method
        content[SECTOR : 3 * SECTOR] = bytes(2 * SECTOR)
        store.open("a").write(SECTOR, bytes(2 * SECTOR))
        store.flush()
        assert UPDATE._wrong(store, store.open("a"), content) == 0


@pytest.mark.parametrize("place", [0, K], ids=["data", "redundancy"])
def test_what_is_left_of_older_content_is_wrong(place: int) -> None:
    content = pattern(2 * K)
    drive, store = with_file(content)
    with store:
        drive.memory.write(sectors_of(store, 1)[place] * SECTOR, bytes(SECTOR))
        # A wrong sector of data is one that reads, too.
        assert UPDATE._wrong(store, store.open("a"), bytearray(content)) == (2 if place < K else 1)
