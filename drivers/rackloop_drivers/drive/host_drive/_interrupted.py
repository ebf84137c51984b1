"""The erasure under way on a server, as a fault that heal ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackloop.abilities import Host
from rackloop.clock import Deadline
from rackloop.errors import BadInput, LabError
from rackloop_drivers.drive.host_drive._erasing import ErasureSeen, ErasureState
from rackloop_drivers.drive.host_drive._erasure_of import erasure_by

ERASING = "erasing"
_EVERY_S = 0.5
_THERE = '[ -e "$1" ]'


class InterruptedErasure:
    """:class:`~rackloop_drivers.host_tools.Breaking` of a drive that erases itself; its one kind is ``erasing``.

    It erases nothing: it is noted before a permitted erasure begins, with the ``protocol`` of the drive and ``node``,
    a name that leads to it and to no other, and ended when that is over. It stands where the drive still erases itself,
    failed to, or has the password of an erasure, and where the drive is gone. To end it waits for the drive, and takes
    the password away; LabError says what is left.
    """

    kinds = frozenset({ERASING})

    def __init__(self, host: Host) -> None:
        self._host = host

    def prepare(self, fault: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:  # noqa: ARG002 - nothing to see
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        if fault.keys() != {"kind", "method", "node", "protocol"}:
            raise BadInput(f"{ERASING} takes method, node and protocol, not {', '.join(sorted(fault))}")
        return {}

    def start(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        """See :class:`~rackloop_drivers.host_tools.Breaking`; others begin the erasure, with the guard's permission."""

    def stands(self, note: Mapping[str, Any], deadline: Deadline) -> bool:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        return not self._is_there(note, deadline) or self._seen(note, deadline).state is not ErasureState.OVER

    def end(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        node = note["fault"]["node"]
        if not self._is_there(note, deadline):
            raise LabError(
                f"{self._host.name}: the drive {node} erased itself when it was left, and is gone: plug it in there "
                "again, so that it can be told whether it is done"
            )
        last = deadline.poll(
            lambda: self._seen(note, deadline), lambda now: now.state is not ErasureState.UNDER_WAY, every_s=_EVERY_S
        )
        if last.state is ErasureState.UNDER_WAY:
            raise LabError(f"{self._host.name}: the drive {node} still erases itself, {last.said}; heal again later")
        erasure_by(self._host, note["fault"]["protocol"], node).end(deadline)

    def _seen(self, note: Mapping[str, Any], deadline: Deadline) -> ErasureSeen:
        return erasure_by(self._host, note["fault"]["protocol"], note["fault"]["node"]).seen(deadline)

    def _is_there(self, note: Mapping[str, Any], deadline: Deadline) -> bool:
        return self._host.run(["sh", "-c", _THERE, "there", note["fault"]["node"]], deadline).status == 0
