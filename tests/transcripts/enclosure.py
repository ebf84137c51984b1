"""A server with a SAS expander of eight slots: drives in slots 2 and 5, and one in slot 6 that is switched off.

The recordings of sg_ses and smp_utils show it: the real programs decoded the pages and frames of such an expander.
"""

from __future__ import annotations

from dataclasses import replace

from rackloop_labs.mock_hosts._view import AttachedDrive, AttachedExpander, HbaPort, HostView
from tests.transcripts.guest import GUEST, SAS

PORTS = tuple(HbaPort(f"p{i}", i, i + 1, f"500605b0{1:04x}{i:04x}", is_linked=i == 1, phy_resets=0) for i in range(2))
EXPANDER = AttachedExpander("exp1", PORTS[1], 8, "500605b100000000", "sg0", frozenset({6}))


def _in_slot(slot: int, name: str, wwn: str) -> AttachedDrive:
    return replace(
        SAS, drive_id=name, kernel_name=name, number=1, port=PORTS[1], wwn=wwn, expander=EXPANDER, slot=slot,
        generic=f"sg{slot}",
    )  # fmt: skip


SERVER: HostView = replace(
    GUEST,
    ports=PORTS,
    expanders=(EXPANDER,),
    drives=(_in_slot(2, "sda", "5000c500a0000005"), _in_slot(5, "sdb", "5000c500a0000006")),
)
