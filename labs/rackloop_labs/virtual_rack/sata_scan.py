"""Having guests find the SATA drives that their saved one did not have: as after a start with these."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import ExitStack, closing

from rackloop.clock import Clock, Deadline
from rackloop_drivers.host import SshAccess, SshHost, run_on_all

_LOOK_S = 60.0
# A scan resets the link of every port, and what is there answers.
_SCAN = 'for host in /sys/class/ata_port/ata*/device/host*/scsi_host/host*; do echo "- - -" >"$host/scan"; done'


def look_for_drives(accesses: Mapping[str, SshAccess], servers: Collection[str], clock: Clock) -> None:
    """Have the guests of these servers look at their SATA ports. Raises LabError where one cannot be told."""
    if not servers:
        return
    with ExitStack() as stack:
        hosts = [stack.enter_context(closing(SshHost(accesses[server], clock))) for server in servers]
        run_on_all(hosts, lambda host, by: host.run(["sh", "-c", _SCAN], by), Deadline.after(clock, _LOOK_S))
