"""Acts on a rack, the acts that undo them, and the JSON of both in undo journals and event streams.

An act stands there under its ``do``, an inverse act under its ``act``, with the names and values of its fields.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar, assert_never, get_args

from rackloop.portmap import Full, MapChange, Open, Pair, Partial, PortMap

Json = Mapping[str, Any]
T = TypeVar("T")

_LONGEST_KEY = 200
_MALFORMED = "malformed journal entry"
_NO_OBJECT = f"{_MALFORMED}: act or inverse is not an object"


@dataclass(frozen=True)
class ChangeMap:
    """A change of the switch's map, journalled on ``generation``; ``staged`` where the switch holds it ready first."""

    ability: ClassVar[str] = "fabric"
    do: ClassVar[str] = "apply"
    change: MapChange
    generation: int
    staged: bool | None = None


@dataclass(frozen=True)
class SaveBootMap:
    """The live map saved as the power-on map."""

    ability: ClassVar[str] = "fabric"
    do: ClassVar[str] = "save_boot_map"


@dataclass(frozen=True)
class DropSignal:
    """The signal of ``ports`` taken away once."""

    ability: ClassVar[str] = "phy"
    do: ClassVar[str] = "drop"
    ports: frozenset[int]
    down_ms: float
    request_id: int


@dataclass(frozen=True)
class FlapSignal:
    """The signal of ``ports`` taken away ``count`` times, ``up_ms`` apart."""

    ability: ClassVar[str] = "phy"
    do: ClassVar[str] = "flap"
    ports: frozenset[int]
    down_ms: float
    up_ms: float
    count: int
    request_id: int


@dataclass(frozen=True)
class ResetLink:
    """The links of ``ports`` trained anew."""

    ability: ClassVar[str] = "phy"
    do: ClassVar[str] = "reset"
    ports: frozenset[int]
    is_hard: bool


@dataclass(frozen=True)
class TurnOn:
    """A power port turned on."""

    ability: ClassVar[str] = "power"
    do: ClassVar[str] = "turn_on"


@dataclass(frozen=True)
class TurnOff:
    """A power port turned off."""

    ability: ClassVar[str] = "power"
    do: ClassVar[str] = "turn_off"


@dataclass(frozen=True)
class BreakPart:
    """A part broken under ``key``; ``fault`` has its ``kind`` and what else the part is told."""

    ability: ClassVar[str] = "fault"
    do: ClassVar[str] = "break"
    key: str
    fault: Json


@dataclass(frozen=True)
class SanitizeDrive:
    """A drive told to erase itself by a sanitize method."""

    ability: ClassVar[str] = "drive"
    do: ClassVar[str] = "sanitize"
    method: str


@dataclass(frozen=True)
class TrimDrive:
    """All of a drive trimmed."""

    ability: ClassVar[str] = "drive"
    do: ClassVar[str] = "trim"


@dataclass(frozen=True)
class AskGuard:
    """The destructive guard asked whether ``drive`` may be written through ``path``."""

    ability: ClassVar[str] = "guard"
    do: ClassVar[str | None] = None
    drive: str
    path: str


@dataclass(frozen=True)
class EndOrphan:
    """A command ended that ran for ``lease``, which is over."""

    ability: ClassVar[str] = "orphan"
    do: ClassVar[str] = "end"
    lease: str
    command: str


@dataclass(frozen=True)
class OtherAct:
    """An act of another version of Rackloop, by its JSON."""

    ability: str
    facts: Json


@dataclass(frozen=True)
class RestoreBootMap:
    """The inverse act that gives the switch its power-on map back."""

    pairs: PortMap


@dataclass(frozen=True)
class RestorePower:
    """The inverse act that gives a power port its state back."""

    on: bool


@dataclass(frozen=True)
class MendPart:
    """The inverse act that mends what is broken under ``key``."""

    key: str


@dataclass(frozen=True)
class SettleSignal:
    """The inverse act that ends a disturbance of ``lasts_ms``, or waits it out, until ``ports`` have their signal."""

    ports: frozenset[int]
    lasts_ms: float


Act = (
    ChangeMap
    | SaveBootMap
    | DropSignal
    | FlapSignal
    | ResetLink
    | TurnOn
    | TurnOff
    | BreakPart
    | SanitizeDrive
    | TrimDrive
    | AskGuard
    | EndOrphan
    | OtherAct
)
InverseAct = MapChange | RestoreBootMap | RestorePower | MendPart | SettleSignal

_ACTS = {(kind.ability, kind.do): kind for kind in get_args(Act) if kind is not OtherAct}
_CHANGES: Mapping[str, type[MapChange]] = {"open": Open, "join": Partial, "replace": Full}
_INVERSES: Mapping[str, type[InverseAct]] = {
    **_CHANGES,
    "save": RestoreBootMap,
    "power": RestorePower,
    "mend": MendPart,
    "settle": SettleSignal,
}
_NAMES = {kind: name for name, kind in _INVERSES.items()}


def act_json(act: Act) -> Json:
    """``act`` as it stands in a journal."""
    if isinstance(act, OtherAct):
        return act.facts
    do = {} if act.do is None else {"do": act.do}
    return {**do, "key": act.key, **act.fault} if isinstance(act, BreakPart) else {**do, **_fields(act)}


def inverse_json(act: InverseAct) -> Json:
    """An inverse act as it stands in a journal."""
    return {"act": _NAMES[type(act)], **_fields(act)}


def announced_json(act: Act, resource: str | None) -> Json:
    """``act`` as an event announces it, with the ``resource`` that it is made on."""
    facts = act_json(act)
    if resource is None:
        return facts
    first = {"do": facts["do"]} if act.ability == "drive" else {}
    return {**first, "resource": resource, **facts}


def announced_act(ability: str, what: Json) -> tuple[Act, str | None]:
    """The act that an event announces, and the resource that it is made on."""
    return act_of(ability, {name: value for name, value in what.items() if name != "resource"}), what.get("resource")


def act_of(ability: str, facts: Json) -> Act:
    """The act that ``facts`` tell of; an :class:`OtherAct` where this version would write them otherwise."""
    do = facts.get("do")
    kind = _ACTS.get((ability, do)) if isinstance(do, str | None) else None
    act = kind and _act(kind, facts)
    return act if act is not None and act_json(act) == facts else OtherAct(ability, facts)


def entry_acts(ability: str, what: object, inverse: object) -> tuple[Act, tuple[InverseAct, ...]]:
    """The act and the inverse acts of a journal entry.

    Raises ValueError or TypeError where they are malformed, or an inverse act is none that this version carries out.
    """
    if not isinstance(what, dict) or not isinstance(inverse, list) or not all(isinstance(act, dict) for act in inverse):
        raise TypeError(_NO_OBJECT)
    if not inverse:
        raise ValueError(f"{_MALFORMED}: it has no inverse")
    act, undoes = act_of(ability, what), tuple(_inverse(each) for each in inverse)
    # Each is of one thing, which has one state to be given back.
    for once in (RestoreBootMap, RestorePower, SettleSignal):
        if sum(isinstance(each, once) for each in undoes) > 1:
            raise ValueError(f"{_MALFORMED}: its inverse has {_NAMES[once]} more than once")
    touched_ports(act)
    return act, undoes


def touched_ports(act: Act, inverse: Iterable[InverseAct] = ()) -> frozenset[int]:
    """The switch ports that an act, or its inverse, touches. Raises ValueError for ports that are none."""
    return _act_ports(act).union(*(inverse_ports(undo) for undo in inverse))


def inverse_ports(act: InverseAct) -> frozenset[int]:
    """The switch ports that an inverse act touches."""
    match act:
        case Open(ports) | SettleSignal(ports):
            return ports
        case Partial(pairs) | Full(pairs) | RestoreBootMap(pairs):
            return pairs.ports()
        case RestorePower() | MendPart():
            return frozenset()
        case _:
            assert_never(act)


def inverse_pairs(act: InverseAct) -> Sequence[Pair]:
    """The circuits that an inverse act gives back, live or at power-on."""
    return act.pairs.pairs if isinstance(act, (Partial, Full, RestoreBootMap)) else ()


def _act_ports(act: Act) -> frozenset[int]:
    match act:
        case ChangeMap(change):
            return inverse_ports(change)
        case DropSignal(ports) | FlapSignal(ports) | ResetLink(ports):
            return ports
        case BreakPart(fault=facts):
            return _named_ports(facts)
        case OtherAct(facts=facts):
            return _named_ports(facts) | _named_ports(facts.get("change", {}))
        case SaveBootMap() | TurnOn() | TurnOff() | SanitizeDrive() | TrimDrive() | AskGuard() | EndOrphan():
            return frozenset()
        case _:
            assert_never(act)


def _named_ports(facts: object) -> frozenset[int]:
    if not isinstance(facts, Mapping):
        raise TypeError(_NO_OBJECT)
    return _ports(facts.get("ports", [])) | _pairs(facts.get("pairs", [])).ports()


def _fields(act: Act | InverseAct) -> dict[str, Any]:
    return {name: _plain(value) for name, value in vars(act).items() if value is not None}


def _plain(value: object) -> object:
    match value:
        case frozenset():
            return sorted(value)
        case PortMap():
            return [list(pair) for pair in value]
        case Open() | Partial() | Full():
            return inverse_json(value)
    return value


def _act(kind: type[Act], facts: Json) -> Act | None:
    try:
        if kind is BreakPart:
            fault = {name: value for name, value in facts.items() if name not in {"do", "key"}}
            return BreakPart(_value("key", facts["key"]), {"kind": _value("kind", fault["kind"]), **fault})
        return _read(kind, facts)
    except (ValueError, TypeError, KeyError):
        return None


def _inverse(facts: Json) -> InverseAct:
    name = facts.get("act")
    kind = _INVERSES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ValueError(f"{_MALFORMED}: its inverse is an act of another version of Rackloop: {_shown(name)}")
    try:
        return _read(kind, facts)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{_MALFORMED}: its inverse, {name}, cannot be carried out: {error}") from error


def _read(kind: type[T], facts: Json) -> T:
    """The act that has its fields from ``facts``. Raises ValueError or TypeError where one is wrong or missing."""
    names = [field.name for field in fields(kind) if field.name in facts]  # type: ignore[arg-type]
    return kind(**{name: _value(name, facts[name]) for name in names})


def _value(name: str, value: Any) -> Any:
    """The value of a field. Raises ValueError where it is none."""
    match name:
        case "change":
            return _read(_CHANGES[value["act"]], value)
        case "ports":
            return _ports(value)
        case "pairs":
            return _pairs(value)
        case "down_ms" | "up_ms" | "lasts_ms":
            is_right = type(value) in {int, float} and 0 <= value < math.inf
        case "generation" | "request_id" | "count":
            is_right = type(value) is int
        case "staged" | "on" | "is_hard":
            is_right = type(value) is bool
        case "key":
            is_right = isinstance(value, str) and 0 < len(value) <= _LONGEST_KEY and value.isprintable()
        case _:
            is_right = isinstance(value, str)
    if not is_right:
        raise ValueError(f"{name} {_shown(value)}")
    return value


def _ports(value: object) -> frozenset[int]:
    if not isinstance(value, list) or not all(type(port) is int and port > 0 for port in value):
        raise ValueError(f"ports {_shown(value)}")
    return frozenset(value)


def _pairs(value: object) -> PortMap:
    if not isinstance(value, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        raise ValueError(f"pairs {_shown(value)}")
    _ports([port for pair in value for port in pair])
    return PortMap.of((low, high) for low, high in value)


def _shown(value: object) -> str:
    return ascii(value)[:60]
