"""Faults and their kinds: targets, parameters, mechanism, and reasons against one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from rackloop.errors import BadInput
from rackloop.lab import Part, PartKind, Parts, reach_of
from rackloop.names import guess
from rackloop.parameters import Parameter

if TYPE_CHECKING:
    from rackloop.clock import Deadline
    from rackloop.lab import Lab
    from rackloop.safety.undo import Equipment


@dataclass(frozen=True)
class FaultSpec:
    """A fault of a kind on a target, as the lab names it: ``d01``, ``srv1``, ``srv1.p0``, ``switch``.

    ``parameters`` are values that JSON has; those not given keep the kind's defaults.
    """

    kind: str
    target: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind} of {self.target}"


@dataclass(frozen=True)
class FaultRequest:
    """A fault to be made: its target found, its parameters complete, the key or id that it goes by."""

    target: Part
    parameters: Mapping[str, Any]
    key: str = ""
    request_id: int = 0


@dataclass(frozen=True)
class RequiredPart:
    """The part that a fault acts on and what is done to it.

    ``how`` is a kind of its :class:`~rackloop.abilities.Breakable`, ``off`` of power, or ``dropped`` of the signals of
    ``ports``, whose part is a PHY without a name.
    """

    part: Part
    how: str
    ports: frozenset[int] = frozenset()


class Mechanism(Protocol):
    """A mechanism that makes faults with a rack's equipment. Acts on ``acting`` are journalled there.

    ``begin`` raises NotSupported where nothing in the rack can make the fault; ``objections`` are reasons why it should
    not be made now. Those of a mechanism that ``takes_links`` take it from the drives within its radius, those of one
    ``mended_by_power`` once they end; one that ``needs_signal`` cannot be made where it has been taken.
    """

    takes_links: bool = False
    mended_by_power: bool = False
    needs_signal: bool = False

    def requires(self, lab: Lab, request: FaultRequest) -> RequiredPart: ...
    def begin(self, lab: Lab, acting: Equipment, request: FaultRequest, deadline: Deadline) -> None: ...
    def objections(self, lab: Lab, equipment: Equipment, request: FaultRequest, deadline: Deadline) -> list[str]: ...

    def check(self, _lab: Lab, _request: FaultRequest) -> list[str]:
        """Problems of a fault by the description alone, besides those the kind has found; none by default."""
        return []

    def radius(self, lab: Lab, request: FaultRequest) -> Parts:
        """The parts that a fault reaches: by default those of one which takes its target away whole."""
        return reach_of(lab, request.target)


@dataclass(frozen=True)
class FaultKind:
    """A kind of fault of the catalogue. ``endangers_data`` keeps it away from drives that are not scratch.

    ``ends_after_s`` says by complete parameters after how many seconds it is over by itself; None where it is not.
    """

    name: str
    does: str
    targets: frozenset[PartKind]
    mechanism: Mechanism
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    endangers_data: bool = False
    ends_after_s: Callable[[Mapping[str, Any]], float | None] = lambda _given: None

    def problems(self, lab: Lab, spec: FaultSpec, words: Iterable[str] = ()) -> list[str]:
        """The problems of a specification, by the description alone; empty where there are none.

        ``words`` are what its target could have been besides what the lab has.
        """
        found = []
        target = None
        try:
            target = lab.part(spec.target, words)
            if target.kind not in self.targets:
                fitting = " or ".join(sorted(kind.noun for kind in self.targets))
                found.append(f"{self.name} is of a {fitting}, and {spec.target} is a {target.kind.noun}")
        except BadInput as error:
            found.append(str(error))
        found += self.missing(spec.parameters)
        for name, value in spec.parameters.items():
            if name not in self.parameters:
                found.append(f"{self.name} has no parameter {name}; {guess(name, self.parameters)}")
            elif problem := self.parameters[name].problem(value):
                found.append(f"{self.name}: {name}: {problem}")
        if target is not None and not found:
            found += self.mechanism.check(lab, FaultRequest(target, self.completed(spec)))
        return found

    def missing(self, given: Mapping[str, Any]) -> list[str]:
        """A sentence for each parameter that must be given and is not."""
        needed = {name: each.meaning for name, each in self.parameters.items() if each.is_required}
        return [f"{self.name} needs {name}: {meaning}" for name, meaning in needed.items() if name not in given]

    def request(self, lab: Lab, spec: FaultSpec, *, key: str = "", request_id: int = 0) -> FaultRequest:
        """The specification with its target found and its parameters complete. Raises BadInput with every problem."""
        if found := self.problems(lab, spec):
            raise BadInput("; ".join(found))
        return FaultRequest(lab.part(spec.target), self.completed(spec), key, request_id)

    def blast_radius(self, lab: Lab, spec: FaultSpec) -> Parts:
        """The parts that the fault may reach at the baseline. Raises BadInput where the specification is wrong."""
        return self.mechanism.radius(lab, self.request(lab, spec))

    def preconditions(
        self,
        lab: Lab,
        equipment: Equipment,
        spec: FaultSpec,
        deadline: Deadline,
        disturbs: frozenset[str] = frozenset(),
    ) -> Sequence[str]:
        """Every reason not to make the fault now; empty where there is none. ``disturbs`` may lose their links by it.

        Raises BadInput where the specification is wrong, NotSupported where nothing in the rack can make the fault,
        LabError where the equipment cannot be asked.
        """
        request = self.request(lab, spec)
        reasons = list(self.mechanism.objections(lab, equipment, request, deadline))
        return list(dict.fromkeys((*reasons, *self.worth_keeping(lab, spec, disturbs))))

    def worth_keeping(self, lab: Lab, spec: FaultSpec, disturbs: Collection[str] = ()) -> list[str]:
        """The reasons against the fault by the drives that are not scratch: their data, and links not in ``disturbs``.

        Raises BadInput where the specification is wrong.
        """
        if not (self.endangers_data or self.mechanism.takes_links or self.mechanism.mended_by_power):
            return []
        reached = self.blast_radius(lab, spec).drives
        if not self.endangers_data:
            reached &= {drive for server in lab.servers for drive in lab.drives_of(server)}.difference(disturbs)
        return worth_keeping(lab, reached)

    def completed(self, spec: FaultSpec) -> dict[str, Any]:
        """The parameters of a specification with the defaults of those not given; what has none is left out."""
        complete = {name: parameter.default for name, parameter in self.parameters.items()} | dict(spec.parameters)
        return {name: value for name, value in complete.items() if value is not None}


def worth_keeping(lab: Lab, drives: Iterable[str]) -> list[str]:
    """A reason for each of these drives that tests may not erase."""
    return [
        f"drive {drive} is not marked scratch: true; its content may be worth keeping"
        for drive in sorted(drives)
        if not lab.drives[drive].scratch
    ]
