"""The worker of each test on guests: one has all files of a rack, in order.

Files go on with the rack as the file before left it. Groups of pytest-xdist 3.8 name a test's group in its node id,
which pytest 9.2 leaves as it is: every worker had tests of every rack, and a set of racks of its own.
"""

from __future__ import annotations

from pathlib import PurePath

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

RACKS = {
    "one guest": (
        "test_ahci_notice",
        "test_build",
        "test_guest_drives",
        "test_guest_memory_order",
        "test_virtual_faults",
        "test_virtual_power",
    ),
    "three guests": (
        "test_contracts",
        "test_rehearsal",
        "test_remote_flash",
        "test_virtual_drives",
        "test_virtual_kills",
        "test_virtual_plans",
        "test_virtual_rack",
    ),
}
"""The files that use each rack. Those of one guest may bring up others besides."""


class RackScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """The tests of a rack are a worker's."""

    def _split_scope(self, nodeid: str) -> str:
        return rack_of(nodeid)


def rack_of(nodeid: str) -> str:
    """The rack of a test. Raises AssertionError for a file that none of :data:`RACKS` has."""
    file = PurePath(nodeid.partition("::")[0]).stem
    found = [rack for rack, files in RACKS.items() if file in files]
    assert len(found) == 1, f"{file} is to be in one of {__name__}.RACKS, and is in {found}"
    return found[0]
