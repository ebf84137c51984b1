"""Mechanisms of faults: signals taken away, power cut, and parts that break on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rackloop.abilities import Breakable, PhyControl, PortState, PowerPort, SignalRestorer
from rackloop.errors import BadInput, NotSupported
from rackloop.faults._kind import FaultRequest, Mechanism, RequiredPart, worth_keeping
from rackloop.lab import Part, PartKind, Parts, phy_number, reach_of, server_port_of, switch_port_of

if TYPE_CHECKING:
    from rackloop.clock import Deadline
    from rackloop.lab import Lab
    from rackloop.safety.undo import Equipment

# The longest that the reference switch takes a signal away for.
_UNTIL_ENDED_S = 3600.0
_SLOWER_US = 5000.0


class DropSignal(Mechanism):
    """Takes the signal of a port away, once for ``down_s`` or ``count`` times."""

    takes_links = needs_signal = True

    def requires(self, lab: Lab, request: FaultRequest) -> RequiredPart:
        """See :class:`~rackloop.faults._kind.Mechanism`."""
        return RequiredPart(Part(PartKind.PHY), "dropped", frozenset({phy_number(lab, request.target)}))

    def begin(self, lab: Lab, acting: Equipment, request: FaultRequest, deadline: Deadline) -> None:
        """See :class:`~rackloop.faults._kind.Mechanism`."""
        phy, port, given = phy_of(lab, acting), phy_number(lab, request.target), request.parameters
        if "count" in given:
            times = given["down_s"], given["up_s"], given["count"]
            phy.flap([port], *times, deadline, request_id=request.request_id)
        else:
            phy.drop([port], given.get("down_s", _UNTIL_ENDED_S), deadline, request_id=request.request_id)

    def objections(self, lab: Lab, equipment: Equipment, request: FaultRequest, deadline: Deadline) -> list[str]:
        """A signal that is not there cannot be taken away, and one that nothing gives back must come by itself."""
        phy, port = phy_of(lab, equipment), phy_number(lab, request.target)
        if not {"down_s", "count"} & request.parameters.keys() and not isinstance(phy, SignalRestorer):
            return ["nothing here ends a drop early: give down_s"]
        if equipment.fabric.port_states([port], deadline)[port] is PortState.DOWN:
            return [f"port {port} has no signal: it is joined to nothing, or what it leads to is dark already"]
        return []

    def radius(self, lab: Lab, request: FaultRequest) -> Parts:
        """The port, and everything at both ends of its circuit."""
        return _reach_of_port(lab, request.target)


class CutPower(Mechanism):
    """Turns off what feeds the target."""

    takes_links = True

    def requires(self, _lab: Lab, request: FaultRequest) -> RequiredPart:
        """See :class:`~rackloop.faults._kind.Mechanism`."""
        return RequiredPart(request.target, "off")

    def begin(self, lab: Lab, acting: Equipment, request: FaultRequest, deadline: Deadline) -> None:
        """See :class:`~rackloop.faults._kind.Mechanism`."""
        _power(lab, acting, request.target).turn_off(deadline)

    def objections(self, lab: Lab, equipment: Equipment, request: FaultRequest, deadline: Deadline) -> list[str]:
        """Refused where it is off already; a drive may lose what is in its write cache."""
        target, power = request.target, _power(lab, equipment, request.target)
        reasons = [] if power.is_on(deadline) else [f"{target.name or target} has no power already"]
        return reasons + worth_keeping(lab, [target.name] if target.kind is PartKind.DRIVE else [])


@dataclass(frozen=True)
class BreakPart(Mechanism):
    """Breaks a :class:`~rackloop.abilities.Breakable` as ``kind``: the target's ``part``, or what there is one of.

    Where it ``adds_up`` several of the kind may stand in one part.
    """

    part: PartKind
    kind: str
    adds_up: bool = False
    takes_links: bool = False
    mended_by_power: bool = False

    def requires(self, lab: Lab, request: FaultRequest) -> RequiredPart:
        """See :class:`~rackloop.faults._kind.Mechanism`."""
        return RequiredPart(self.broken(lab, request.target), self.kind)

    def begin(self, lab: Lab, acting: Equipment, request: FaultRequest, deadline: Deadline) -> None:
        """See :class:`~rackloop.faults._kind.Mechanism`."""
        fault = {"kind": self.kind, **self.details(lab, request)}
        self._breakable(lab, acting, request).break_as(request.key, fault, deadline)

    def objections(self, lab: Lab, equipment: Equipment, request: FaultRequest, deadline: Deadline) -> list[str]:
        """Refused where it is broken so already, and where the map has the drive elsewhere than at its slot or PHY."""
        part = self._breakable(lab, equipment, request)
        if lab.has_switch and request.target.kind is PartKind.DRIVE and self.part in {PartKind.SLOT, PartKind.PHY}:
            at = server_port_of(lab, request.target)
            far = equipment.fabric.live_map(deadline).pairs.peer_of(switch_port_of(lab, at))
            if far != lab.wired_port(request.target.name):
                return [f"{request.target.name} is not at {at.name} now, its place at the baseline; name the port"]
        alike = {"crash", "nmi"} if self.mended_by_power else {self.kind}  # no kernel panics twice
        kinds = [] if self.adds_up else [fault.get("kind") for fault in part.standing(deadline).values()]
        return [f"{self.broken(lab, request.target)} is broken as {how} already" for how in kinds if how in alike][:1]

    def radius(self, lab: Lab, request: FaultRequest) -> Parts:
        """The parts that the target takes away whole; none where it carries no I/O and only controls the rack."""
        if self.part is PartKind.SWITCH_PORT:
            return _reach_of_port(lab, request.target)
        return Parts() if self.part in {PartKind.CONTROL, PartKind.BMC} else super().radius(lab, request)

    def details(self, _lab: Lab, request: FaultRequest) -> dict[str, Any]:
        """The fields of the fault besides its kind."""
        return dict(request.parameters)

    def broken(self, lab: Lab, target: Part) -> Part:
        """The part that is broken: slot ``node1/p0``, of a drive in slot 3 of the expander there ``node1/p0/3``."""
        match self.part:
            case PartKind.CABLING | PartKind.CONTROL:
                return Part(self.part)
            case PartKind.NETWORK | PartKind.BMC:
                return Part(self.part, target.name)
            case PartKind.SWITCH_PORT:
                return Part.switch_port(switch_port_of(lab, target))
            case PartKind.PHY:
                return Part(PartKind.PHY, "/".join(server_port_of(lab, target).names))
            case PartKind.SLOT:
                drive = lab.drives[target.name] if target.kind is PartKind.DRIVE else None
                within = [] if drive is None or drive.expander is None else [str(drive.slot)]
                return Part(PartKind.SLOT, "/".join([*server_port_of(lab, target).names, *within]))
        return target

    def _breakable(self, lab: Lab, equipment: Equipment, request: FaultRequest) -> Breakable:
        name = self.broken(lab, request.target)
        part = equipment.breakable.get(str(name))
        if part is None or self.kind not in part.kinds:
            raise NotSupported(f"nothing in the rack {lab.name} can break {name} as {self.kind}")
        return part


class BreakSectors(BreakPart):
    """Breaks ``sectors`` of a drive from ``lba`` on."""

    def __init__(self, kind: str) -> None:
        super().__init__(PartKind.DRIVE, kind, adds_up=True)

    def check(self, lab: Lab, request: FaultRequest) -> list[str]:
        """The drive has to have these sectors; a number of requests goes with the mode that counts them."""
        drive, given = lab.drives[request.target.name], request.parameters
        there, lba, many = drive.size // drive.traits.sector_bytes, given["lba"], given["sectors"]
        beyond = f"lba {lba} with sectors {many} is beyond {request.target.name}, whose last sector is {there - 1}"
        found, is_wrong = [beyond] * (lba + many > there), (given.get("mode") == "times") != ("times" in given)
        return [*found, "mode times needs times, and no other mode has it"] if is_wrong else found


class SlowDown(BreakPart):
    """Has a drive take ``extra_us`` longer for each request, or ``factor`` times as long."""

    def __init__(self) -> None:
        super().__init__(PartKind.DRIVE, "slow", adds_up=True)

    def check(self, lab: Lab, request: FaultRequest) -> list[str]:
        """It is one or the other, and no time is not multiplied."""
        timing = lab.drives[name := request.target.name].simulated_timing
        if "factor" in request.parameters and timing["kind"] == "ideal":
            return [f"{name} is ideal and takes no time to multiply: give extra_us, and no factor"]
        return ["give extra_us or factor, not both"] if len(request.parameters) > 1 else []

    def details(self, _lab: Lab, request: FaultRequest) -> dict[str, Any]:
        """The given parameters, or else ones large enough to be noticed."""
        return dict(request.parameters) or {"extra_us": _SLOWER_US}


class SwitchOffPhy(BreakPart):
    """Switches off the PHY of a server port."""

    needs_signal = True

    def __init__(self) -> None:
        super().__init__(PartKind.PHY, "disabled", takes_links=True)

    def objections(self, lab: Lab, equipment: Equipment, request: FaultRequest, deadline: Deadline) -> list[str]:
        """A signal that a drop takes away comes back with the end of the drop: that is waited for first."""
        if reasons := super().objections(lab, equipment, request, deadline):
            return reasons
        port = phy_number(lab, request.target)
        if equipment.fabric.port_states([port], deadline)[port] is PortState.DOWN:
            return [f"port {port} has no signal: it is being dropped, or what it leads to is dark already"]
        return []


class SwapCables(BreakPart):
    """Plugs two cables into each other's places: those of the target and of what ``with`` names."""

    def __init__(self) -> None:
        super().__init__(PartKind.CABLING, "miswire", adds_up=True, takes_links=True)

    def check(self, lab: Lab, request: FaultRequest) -> list[str]:
        """The other cable must be one of the switch's, and another one."""
        try:
            low, high = self.ports(lab, request)
        except BadInput as error:
            return [f"with: {error}"]
        except NotSupported:
            return []
        return ["with names the same port: give another"] if low == high else []

    def objections(self, lab: Lab, equipment: Equipment, request: FaultRequest, deadline: Deadline) -> list[str]:
        """A cable that is in another's place already is not moved on."""
        ports = self.ports(lab, request)
        standing = self._breakable(lab, equipment, request).standing(deadline).values()
        moved = sorted({port for fault in standing for port in fault.get("ports", ()) if port in ports})
        return [f"the cable of port {port} is swapped already" for port in moved]

    def radius(self, lab: Lab, request: FaultRequest) -> Parts:
        """Both cables and what is at their ends."""
        return Parts.all_of(reach_of(lab, Part.switch_port(port)) for port in self.ports(lab, request))

    def details(self, lab: Lab, request: FaultRequest) -> dict[str, Any]:
        """The two ports."""
        return {"ports": list(self.ports(lab, request))}

    def ports(self, lab: Lab, request: FaultRequest) -> tuple[int, int]:
        """The switch ports of both, the lower first."""
        other = lab.part(given := request.parameters["with"])
        if other.kind not in {PartKind.PORT, PartKind.SWITCH_PORT, PartKind.DRIVE}:
            raise BadInput(f"{given} is a {other.kind.noun}, which no cable of the switch leads to")
        low, high = sorted((switch_port_of(lab, request.target), switch_port_of(lab, other)))
        return low, high


def phy_of(lab: Lab, equipment: Equipment) -> PhyControl:
    """The PHY control. Raises NotSupported where nothing in the rack, or in the lease, takes signals away."""
    if equipment.phy is None:
        whole = "" if lab.has_switch else "; without a switch, links are dropped under a lease of the whole rack alone"
        raise NotSupported(f"nothing that is leased of the rack {lab.name} can take a signal away{whole}")
    return equipment.phy


def _power(lab: Lab, equipment: Equipment, target: Part) -> PowerPort:
    """The power port of ``target``; the switch's may have another name among the equipment."""
    name = equipment.switch_power if target.kind is PartKind.SWITCH else str(target)
    if name is None or name not in equipment.power:
        raise NotSupported(f"nothing in the rack {lab.name} switches the power of {target.name or target}")
    return equipment.power[name]


def _reach_of_port(lab: Lab, target: Part) -> Parts:
    """The port, of a drive the one that it is reached through, and everything at both ends of its circuit."""
    port = Part.switch_port(switch_port_of(lab, target)) if lab.has_switch else server_port_of(lab, target)
    return reach_of(lab, port)
