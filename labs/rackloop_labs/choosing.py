"""Servers chosen by their tags: ``tag:nvme8`` is a free server with the tag."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from rackloop.clock import RealClock
from rackloop.errors import BadInput
from rackloop.lab import Lab, LabState, Part
from rackloop.names import guess, quoted
from rackloop.safety.leases import Leases
from rackloop.safety.maintenance import OutOfServiceStore
from rackloop.safety.store import open_lab_store

TAG = "tag:"


def chosen_servers(lab: Lab, wanted: Sequence[str], *, within: str | None = None) -> tuple[str, ...]:
    """The servers named in ``wanted``, with one server for each ``tag:NAME``, no server twice.

    Of those with the tag it is the first, in the order of the description, that is in service and in no lease;
    where there is none such, the first in service, whose holder the lease then waits for. With ``within``, the id of
    a lease, it is one of that lease. Raises BadInput where no server has the tag, where fewer have it than are wanted,
    and where all are out of service.
    """
    if not any(name.startswith(TAG) for name in wanted):
        return tuple(wanted)
    chosen = [name for name in wanted if not name.startswith(TAG)]
    with closing(open_lab_store(lab, LabState.of(lab.name), RealClock())) as store:
        leases = Leases(store, lab.name)
        own = leases.find(within).parts.servers if within else None
        held = set() if own else {name for lease in leases.held() for name in lease.parts.servers}
        out = {part.name for part in OutOfServiceStore(store, lab.name).standing() if part == Part.server(part.name)}
    for tag in (name.removeprefix(TAG) for name in wanted if name.startswith(TAG)):
        having = [name for name, server in lab.servers.items() if tag in server.tags]
        if not having:
            known = {one for server in lab.servers.values() for one in server.tags}
            raise BadInput(f"no server of lab {lab.name} has the tag {quoted(tag)}; {guess(tag, known)}")
        if own is not None and not own.intersection(having):
            raise BadInput(f"lease {within} has no server with the tag {quoted(tag)}; {', '.join(having)} would be one")
        left = [name for name in having if name not in chosen and name not in out and (own is None or name in own)]
        if not left:
            taken = (
                f"of {', '.join(having)} each is wanted already{', not in the lease' if own else ''} or out of service"
            )
            raise BadInput(f"lab {lab.name} has no further server with the tag {quoted(tag)}: {taken}")
        chosen.append(next((name for name in left if name not in held), left[0]))
    return tuple(chosen)
