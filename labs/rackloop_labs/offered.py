"""The faults that a rack, or a lease of it, can have by its description, known before anything is broken."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from rackloop.errors import BadInput, NotSupported
from rackloop.faults import FaultKind, FaultSpec, RequiredPart, kind_of_fault
from rackloop.faults.schedules import Unsupported
from rackloop.lab import Lab, LabKind, Part, PartKind, fed_by, feeds_switch, parts_of, phy_number
from rackloop_drivers.breakable import RackdBreakable
from rackloop_labs.host_breakables import runs_kernels
from rackloop_labs.media_places import can_have
from rackloop_labs.mock_faults.breakables import KINDS

_OF_A_MOCK = {**KINDS, PartKind.DRIVE: RackdBreakable.kinds}
_MEDIA_ERROR = "media_error"
_OF_A_SWITCH = frozenset({PartKind.CABLING, PartKind.CONTROL, PartKind.SWITCH_PORT})
_OF_A_SERVER = frozenset({PartKind.PHY, PartKind.SLOT})
_POWERED_IN_A_MOCK = frozenset({PartKind.SERVER, PartKind.DRIVE, PartKind.SWITCH})


def unsupported_in(rack: Lab, leased: Lab | None = None, *, disturbs: Collection[str] | None = None) -> Unsupported:
    """A function that says why ``rack``, or a lease of its part ``leased``, cannot have a fault, by the descriptions.

    What only the equipment can tell, such as a slot without a power switch, is taken to be there. With ``disturbs``,
    the drives that lose their links where they are not scratch, a fault of others that are not is one it cannot have.
    """
    is_part = leased is not None and leased is not rack
    parts = parts_of(rack, leased.servers) if is_part and leased is not None else parts_of(rack)

    def unsupported(spec: FaultSpec) -> str | None:
        kind = kind_of_fault(spec)
        try:
            request = kind.request(rack, spec)
            need = kind.mechanism.requires(rack, request)
        except NotSupported as error:
            return str(error)
        if not _is_there(rack, need):
            does = f"can break {need.part} as {need.how}" if need.how != "off" else f"switches the power of {need.part}"
            return f"nothing in the rack {rack.name} {does}"
        if (why := _beyond_drives(rack, need, request.parameters)) is not None:
            return why
        if disturbs is not None and (kept := kind.worth_keeping(rack, spec, disturbs)):
            return "; ".join(kept)
        is_switched = parts.switch_ports >= need.ports and rack.has_switch
        if parts.whole or (is_switched if need.ports else parts.covers(need.part)):
            return None
        leased = ", ".join(sorted(parts.servers))
        return f"it needs {need.part}, which is not in the lease of {leased}; lease the whole rack"

    return unsupported


def never_in(rack: Lab, kind: FaultKind) -> str | None:
    """The reason why no part of ``rack`` can have faults of this kind, by its description; None where one may.

    What a kind has to be told besides its target is another one, which is taken to be the next.
    """
    unsupported = unsupported_in(rack)
    told = [name for name, parameter in kind.parameters.items() if parameter.is_required]
    targets = [target.name or str(target) for target in _targets(rack) if target.kind in kind.targets]
    for target, other in zip(targets, [*targets[1:], *targets[:1]], strict=True):
        try:
            if unsupported(FaultSpec(kind.name, target, dict.fromkeys(told, other))) is None:
                return None
        except BadInput:
            # Of a drive that no server port has, for one, this is no fault.
            continue
    return f"no part of the rack {rack.name} can have the fault {kind.name}"


def _targets(rack: Lab) -> Iterator[Part]:
    """The parts that faults may be of, as tests name them."""
    yield from map(Part.server, rack.servers)
    yield from map(Part.drive, rack.drives)
    yield from (Part.port(server, port) for server, described in rack.servers.items() for port in described.ports)
    yield from (Part.outlet(name, number) for name, pdu in rack.pdus.items() for number in range(1, pdu.outlets + 1))
    if rack.has_switch:
        yield Part(PartKind.SWITCH)


def _is_there(rack: Lab, need: RequiredPart) -> bool:
    part, is_mock = need.part, rack.kind is LabKind.MOCK
    if need.ports:
        without = {phy_number(rack, Part.port(*place)) for place in _without_phys(rack)}
        return rack.phy is not None or without.isdisjoint(need.ports)
    if need.how == "off":
        is_simulated = (is_mock and part.kind in _POWERED_IN_A_MOCK) or _breaks_drives(rack, part)
        return is_simulated or _is_fed(rack, part)
    if part.kind in _OF_A_SERVER:
        # What is attached for good to a real server is asked of the equipment itself.
        is_none = part.kind is PartKind.PHY and tuple(part.name.split("/")) in _without_phys(rack)
        is_asked = not rack.has_switch and rack.kind is not LabKind.VIRTUAL and not is_none
        return is_asked or need.how in _kinds_of_hosts(rack).get(part, ())
    if part.kind is PartKind.SERVER and need.how == "nmi" and rack.servers[part.name].bmc is None:
        return False
    if runs_kernels(rack) and part.kind in {PartKind.NETWORK, PartKind.SERVER}:
        # Its power is what ends a panic.
        return need.how in {"hang", "partition"} or _is_fed(rack, part)
    if _breaks_drives(rack, part):
        return need.how in RackdBreakable.kinds
    if part.kind is PartKind.DRIVE and need.how == _MEDIA_ERROR:
        return can_have(rack, part.name)
    is_missing = part.kind in _OF_A_SWITCH and not rack.has_switch
    if not is_mock or is_missing or need.how not in _OF_A_MOCK.get(part.kind, ()):
        return False
    return part.kind is not PartKind.BMC or rack.servers[part.name].bmc is not None


def _beyond_drives(rack: Lab, need: RequiredPart, parameters: Mapping[str, Any]) -> str | None:
    """The reason why real drives do not have media errors as they are wanted; None where they do, or are simulated."""
    if need.how != _MEDIA_ERROR or _breaks_drives(rack, need.part):
        return None
    from rackloop_drivers.drive import beyond_drives

    return beyond_drives(parameters)


def _breaks_drives(rack: Lab, part: Part) -> bool:
    """Whether a part is a drive that rackd keeps, which can be broken by itself."""
    return part.kind is PartKind.DRIVE and rack.kind is not LabKind.PHYSICAL


def _kinds_of_hosts(rack: Lab) -> dict[Part, frozenset[str]]:
    """The ways in which servers can break their own links and slots."""
    from rackloop_labs.discovery import with_paths
    from rackloop_labs.host_parts import host_parts

    if rack.kind is LabKind.VIRTUAL:
        from rackloop_labs.virtual_rack.described_rack import with_places

        return {each.part: each.kinds for each in host_parts(with_places(rack))}
    return {each.part: each.kinds for each in host_parts(with_paths(rack))}


def _without_phys(rack: Lab) -> set[tuple[str, str]]:
    """The ports of real servers without a switch that are no PHYs of an HBA's by their paths."""
    if rack.has_switch or rack.kind is not LabKind.PHYSICAL:
        return set()
    from rackloop_labs._fixed_cabling import sas_ports

    known = {(name, port) for name, server in rack.servers.items() for port in server.paths}
    return known - sas_ports(rack).keys()


def _is_fed(rack: Lab, part: Part) -> bool:
    """Whether a management controller or an outlet of a PDU switches the power, as in any rack that has these."""
    if part.kind is PartKind.SERVER:
        return rack.servers[part.name].bmc is not None or rack.servers[part.name].outlet is not None
    if part.kind is PartKind.SWITCH:
        return rack.fabric.outlet is not None
    return part.kind is PartKind.OUTLET and (bool(fed_by(rack, part)) or feeds_switch(rack, part))
