"""The faults of each part of a mock rack: how its simulated box or rackd makes and ends them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from rackloop.errors import BadInput
from rackloop.lab import Lab, Part, PartKind
from rackloop_drivers.boxes import Chassis, SimulatedController, SimulatedSwitch
from rackloop_drivers.fabric.flexfabric import LineFault
from rackloop_drivers.rackd import RackdLink
from rackloop_labs.labd_control import HostState
from rackloop_labs.mock_faults.ledger import FaultyPart, Standing
from rackloop_labs.mock_hosts import AT_NMI, MockHost
from rackloop_labs.mock_hosts.hosts import MockServers
from rackloop_labs.power_peers import PowerPeers

_SLOWEST = 1000.0
# How a server in this state was broken; by the first where nobody says.
_AS_FAULT: dict[HostState, tuple[Literal["crash", "nmi", "hang"], ...]] = {
    HostState.CRASHED: ("crash", "nmi"),
    HostState.HUNG: ("hang",),
}


class _Fault(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _ServerFault(_Fault):
    kind: Literal["crash", "nmi", "hang"]


class _NetworkFault(_Fault):
    kind: Literal["partition"]


class _ControllerFault(_Fault):
    kind: Literal["unreachable"]


class _ControlFault(_Fault):
    """Lines that contain ``match`` are not heard, or answered with noise, each with ``probability``."""

    kind: Literal["lost", "garbled"]
    match: str = ""
    probability: Annotated[float, Field(gt=0, le=1)] = 1.0


class _Stuck(_Fault):
    kind: Literal["stuck"]


class _SlowTraining(_Fault):
    kind: Literal["slow_training"]
    factor: Annotated[float, Field(ge=1, le=_SLOWEST)]


class _Miswire(_Fault):
    kind: Literal["miswire"]
    ports: tuple[int, int]


def faulty_parts(
    lab: Lab, switch: SimulatedSwitch | None, link: RackdLink, servers: MockServers, power: PowerPeers
) -> dict[str, FaultyPart]:
    """Everything of a mock rack that labd can break, by the names of ``Equipment.breakable``."""
    parts: dict[Part, FaultyPart] = {Part(PartKind.CABLING): _Cabling(link)}
    if switch is not None:
        parts[Part(PartKind.CONTROL)] = _ControlLink(switch)
    controlled = {name: box for name, box in power.chassis.items() if name in power.controllers}
    parts |= {Part.server(name): _Server(host, controlled.get(name)) for name, host in servers.items()}
    parts |= {Part(PartKind.NETWORK, name): _Network(host) for name, host in servers.items()}
    parts |= {Part(PartKind.BMC, name): _Controller(controller) for name, controller in power.controllers.items()}
    parts |= {Part.switch_port(number): _Port(link, number) for number in range(1, lab.fabric.ports + 1)}
    return {str(part): faulty for part, faulty in parts.items()}


class _Server:
    """A server's kernel: it crashes, also at an NMI of its ``controller``, and is booted, or hangs and goes on."""

    faults = TypeAdapter(_ServerFault)

    def __init__(self, host: MockHost, controller: Chassis | None) -> None:
        self._host = host
        self._controller = controller

    async def begin(self, _key: str, fault: _ServerFault, standing: Standing) -> None:
        if self._alike(fault, standing):
            return
        if fault.kind != "nmi":
            await (self._host.crash if fault.kind == "crash" else self._host.hang)()
        elif self._controller is None:
            raise BadInput("a server without a management controller gets no NMI; break it as crash")
        else:
            await self._controller.interrupt()
            await self._host.crash(AT_NMI)

    async def end(self, _key: str, fault: _ServerFault, remains: Standing) -> None:
        if not self._alike(fault, remains):
            await (self._host.resume if fault.kind == "hang" else self._host.reset)()

    async def found(self, known: Standing) -> Standing:
        kinds = _AS_FAULT.get(self._host.state, ())
        found = {key: fault for key, fault in known.items() if fault.kind in kinds}
        return found or {f"#{kind}": _ServerFault(kind=kind) for kind in kinds[:1]}

    def _alike(self, fault: _ServerFault, standing: Standing) -> bool:
        """Whether one of these faults keeps the server in the state that ``fault`` does."""
        return any((other.kind == "hang") is (fault.kind == "hang") for other in standing.values())


class _Network:
    """The network cable of a server."""

    faults = TypeAdapter(_NetworkFault)

    def __init__(self, host: MockHost) -> None:
        self._host = host

    async def begin(self, _key: str, _fault: _NetworkFault, _standing: Standing) -> None:
        self._host.pull_cable(out=True)

    async def end(self, _key: str, _fault: _NetworkFault, remains: Standing) -> None:
        self._host.pull_cable(out=bool(remains))

    async def found(self, known: Standing) -> Standing:
        return known if self._host.is_cut_off else {}


class _Controller:
    """The network cable of a management controller."""

    faults = TypeAdapter(_ControllerFault)

    def __init__(self, controller: SimulatedController) -> None:
        self._controller = controller

    async def begin(self, _key: str, _fault: _ControllerFault, _standing: Standing) -> None:
        await self._controller.pull_cable(out=True)

    async def end(self, _key: str, _fault: _ControllerFault, remains: Standing) -> None:
        await self._controller.pull_cable(out=bool(remains))

    async def found(self, known: Standing) -> Standing:
        return known if self._controller.is_pulled else {}


class _ControlLink:
    """The switch's control lines, TCP and serial alike."""

    faults = TypeAdapter(_ControlFault)

    def __init__(self, switch: SimulatedSwitch) -> None:
        self._switch = switch

    async def begin(self, key: str, fault: _ControlFault, _standing: Standing) -> None:
        act = LineFault.UNHEARD if fault.kind == "lost" else LineFault.GARBLED
        rule = {"act": act, "match": fault.match, "count": None, "probability": fault.probability}
        await self._switch.mishear(key, rule)

    async def end(self, key: str, _fault: _ControlFault, _remains: Standing) -> None:
        await self._switch.hear(key)

    async def found(self, known: Standing) -> Standing:
        return known


class _Port:
    """A port of the switch: stuck, or training slowly."""

    faults: TypeAdapter[Any] = TypeAdapter(Annotated[_Stuck | _SlowTraining, Field(discriminator="kind")])

    def __init__(self, link: RackdLink, number: int) -> None:
        self._link = link
        self._number = number

    async def begin(self, key: str, fault: _Stuck | _SlowTraining, standing: Standing) -> None:
        await self._settle(fault.kind, {**standing, key: fault})

    async def end(self, _key: str, fault: _Stuck | _SlowTraining, remains: Standing) -> None:
        await self._settle(fault.kind, remains)

    async def _settle(self, kind: str, standing: Standing) -> None:
        """Have rackd's port as the faults of this kind say together: of several slow trainings the slowest counts."""
        of_kind = _of_kind(standing, kind).values()
        if kind == "stuck":
            await self._link.request("stick", port=self._number, stuck=bool(of_kind))
        else:
            factor = max((fault.factor for fault in of_kind), default=1.0)
            await self._link.request("training", ports=[self._number], factor=factor)

    async def found(self, known: Standing) -> Standing:
        disturbed = await self._link.request("disturbances")
        found: Standing = {}
        if self._number in disturbed["stuck"]:
            found |= _of_kind(known, "stuck") or {"#stuck": _Stuck(kind="stuck")}
        if factor := disturbed["training"].get(str(self._number)):
            unknown = _SlowTraining(kind="slow_training", factor=factor)
            found |= _of_kind(known, "slow_training") or {"#slow_training": unknown}
        return found


class _Cabling:
    """The plugs in the switch's ports: two cables may be swapped, each with one other at a time."""

    faults = TypeAdapter(_Miswire)

    def __init__(self, link: RackdLink) -> None:
        self._link = link

    async def begin(self, _key: str, fault: _Miswire, standing: Standing) -> None:
        for other, swapped in standing.items():
            if shared := set(fault.ports) & set(swapped.ports):
                already = f"what is plugged into port {min(shared)} is swapped already, under the key {other}"
                raise BadInput(f"{already}; mend that first")
        await self._link.request("miswire", ports=list(fault.ports))

    async def end(self, _key: str, fault: _Miswire, _remains: Standing) -> None:
        # rackd swaps back what is swapped.
        await self._link.request("miswire", ports=list(fault.ports))

    async def found(self, known: Standing) -> Standing:
        swapped = {frozenset(pair): pair for pair in (await self._link.request("disturbances"))["miswired"]}
        found = {key: fault for key, fault in known.items() if swapped.pop(frozenset(fault.ports), None)}
        return found | {f"#{a}-{b}": _Miswire(kind="miswire", ports=(a, b)) for a, b in swapped.values()}


def _of_kind(standing: Standing, kind: str) -> Standing:
    return {key: fault for key, fault in standing.items() if fault.kind == kind}
