"""Which faults a rack can have by its description, and of these a lease: asked before anything is broken."""

from __future__ import annotations

from rackloop.errors import NotSupported
from rackloop.faults import FaultSpec, Need, kind_of_fault
from rackloop.faults.schedules import Lacking
from rackloop.lab import Lab, LabKind
from rackloop.safety.leases import slice_of
from rackloop_drivers.breakable import RackdBreakable
from rackloop_labs.mock_faults.breakables import KINDS

_OF_A_MOCK = {**KINDS, "drive": RackdBreakable.kinds}
_OF_A_SWITCH = frozenset({"cabling", "control", "port"})
_OF_A_SERVER = frozenset({"phy", "slot"})


def lacking_in(rack: Lab, leased: Lab | None = None) -> Lacking:
    """Says what ``rack`` cannot do, nor a lease that has ``leased`` of it, by the descriptions alone.

    What only the equipment can tell, such as a slot without a power switch, is taken to be there.
    """
    is_part = leased is not None and leased is not rack
    part = slice_of(rack, leased.servers) if is_part and leased is not None else slice_of(rack)

    def lacking(spec: FaultSpec) -> str | None:
        kind = kind_of_fault(spec)
        try:
            need = kind.way.needs(rack, kind.wanted(rack, spec))
        except NotSupported as error:
            return str(error)
        if not _is_there(rack, need):
            does = f"can break {need.part} as {need.how}" if need.how != "off" else f"switches the power of {need.part}"
            return f"nothing in the rack {rack.name} {does}"
        if part.whole or (part.ports >= need.ports and rack.has_switch if need.ports else part.covers(need.part)):
            return None
        return (
            f"it needs {need.part}, which the lease of {', '.join(sorted(part.servers))} has not; lease the whole rack"
        )

    return lacking


def _is_there(rack: Lab, need: Need) -> bool:
    what, _, name = need.part.partition(":")
    is_mock = rack.kind is LabKind.MOCK
    if need.ports:
        return True
    if need.how == "off":
        return (is_mock and what in {"server", "drive", "switch"}) or _is_fed(rack, what, name)
    if what in _OF_A_SERVER:
        return not rack.has_switch
    if not is_mock or (what in _OF_A_SWITCH and not rack.has_switch) or need.how not in _OF_A_MOCK.get(what, ()):
        return False
    return what != "bmc" or rack.servers[name].bmc is not None


def _is_fed(rack: Lab, what: str, name: str) -> bool:
    """Whether a management controller or an outlet of a PDU switches the power, as in any rack that has these."""
    if what == "server":
        return rack.servers[name].bmc is not None or rack.servers[name].outlet is not None
    fed = {f"{unit}/{number}" for each in rack.servers.values() if each.outlet for unit, number in [each.outlet]}
    return what == "outlet" and name in fed
