"""The faults that a rack, or a lease of it, can have by its description, known before anything is broken."""

from __future__ import annotations

from rackloop.errors import NotSupported
from rackloop.faults import FaultSpec, RequiredPart, kind_of_fault
from rackloop.faults.schedules import Unsupported
from rackloop.lab import Lab, LabKind, Part, PartKind, fed_by, parts_of
from rackloop_drivers.breakable import RackdBreakable
from rackloop_labs.mock_faults.breakables import KINDS

_OF_A_MOCK = {**KINDS, PartKind.DRIVE: RackdBreakable.kinds}
_OF_A_SWITCH = frozenset({PartKind.CABLING, PartKind.CONTROL, PartKind.SWITCH_PORT})
_OF_A_SERVER = frozenset({PartKind.PHY, PartKind.SLOT})
_POWERED_IN_A_MOCK = frozenset({PartKind.SERVER, PartKind.DRIVE, PartKind.SWITCH})


def unsupported_in(rack: Lab, leased: Lab | None = None) -> Unsupported:
    """A function that says why ``rack``, or a lease of its part ``leased``, cannot have a fault, by the descriptions.

    What only the equipment can tell, such as a slot without a power switch, is taken to be there.
    """
    is_part = leased is not None and leased is not rack
    parts = parts_of(rack, leased.servers) if is_part and leased is not None else parts_of(rack)

    def unsupported(spec: FaultSpec) -> str | None:
        kind = kind_of_fault(spec)
        try:
            need = kind.mechanism.requires(rack, kind.request(rack, spec))
        except NotSupported as error:
            return str(error)
        if not _is_there(rack, need):
            does = f"can break {need.part} as {need.how}" if need.how != "off" else f"switches the power of {need.part}"
            return f"nothing in the rack {rack.name} {does}"
        is_switched = parts.switch_ports >= need.ports and rack.has_switch
        if parts.whole or (is_switched if need.ports else parts.covers(need.part)):
            return None
        leased = ", ".join(sorted(parts.servers))
        return f"it needs {need.part}, which is not in the lease of {leased}; lease the whole rack"

    return unsupported


def _is_there(rack: Lab, need: RequiredPart) -> bool:
    part, is_mock = need.part, rack.kind is LabKind.MOCK
    if need.ports:
        return True
    if need.how == "off":
        return (is_mock and part.kind in _POWERED_IN_A_MOCK) or _is_fed(rack, part)
    if part.kind in _OF_A_SERVER:
        return not rack.has_switch
    is_missing = part.kind in _OF_A_SWITCH and not rack.has_switch
    if not is_mock or is_missing or need.how not in _OF_A_MOCK.get(part.kind, ()):
        return False
    return part.kind is not PartKind.BMC or rack.servers[part.name].bmc is not None


def _is_fed(rack: Lab, part: Part) -> bool:
    """Whether a management controller or an outlet of a PDU switches the power, as in any rack that has these."""
    if part.kind is PartKind.SERVER:
        return rack.servers[part.name].bmc is not None or rack.servers[part.name].outlet is not None
    return part.kind is PartKind.OUTLET and bool(fed_by(rack, part))
