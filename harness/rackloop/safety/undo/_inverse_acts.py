"""The acts by which a journal entry is undone, as they stand in the store: what each must have to be carried out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from rackloop.portmap import PortMap

_LONGEST_KEY = 200


def require_acts(inverse: object) -> None:
    """Raise ValueError or TypeError where ``inverse`` is no list of acts that this version can carry out."""
    if not isinstance(inverse, list):
        raise TypeError("what undoes it is no list of acts")
    if not inverse:
        raise ValueError("nothing says how it is undone")
    for act in inverse:
        if not isinstance(act, dict):
            raise TypeError("what undoes it is no act")
        kind = act.get("act")
        required = _KINDS.get(kind) if isinstance(kind, str) else None
        if required is None:
            raise ValueError(f"what undoes it is an act of another version of Rackloop: {_shown(kind)}")
        for name, is_right in required.items():
            if not is_right(act.get(name)):
                raise ValueError(f"what undoes it, {kind}, cannot be done with {name} {_shown(act.get(name))}")
    for kind in _ONCE:
        if sum(act["act"] == kind for act in inverse) > 1:
            raise ValueError(f"what undoes it is {kind} more than once")


def require_ports(act: Mapping[str, Any]) -> None:
    """Raise ValueError where the ports that an act names are none."""
    if "ports" in act and not _are_ports(act["ports"]):
        raise ValueError(f"what was done cannot have been done to ports {_shown(act['ports'])}")
    if "pairs" in act and not _are_pairs(act["pairs"]):
        raise ValueError(f"what was done cannot have been done to pairs {_shown(act['pairs'])}")


def _are_ports(value: object) -> bool:
    return isinstance(value, list) and all(type(port) is int and port > 0 for port in value)


def _are_pairs(value: object) -> bool:
    if not isinstance(value, list) or not all(_are_ports(pair) and len(pair) == 2 for pair in value):
        return False
    try:
        PortMap.of((low, high) for low, high in value)
    except ValueError:
        return False
    return True


def _is_duration(value: object) -> bool:
    return type(value) in {int, float} and 0 <= value < math.inf  # type: ignore[operator]


def _is_key(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_KEY and value.isprintable()


_KINDS: dict[str, dict[str, Callable[[object], bool]]] = {
    "open": {"ports": _are_ports},
    "join": {"pairs": _are_pairs},
    "replace": {"pairs": _are_pairs},
    "save": {"pairs": _are_pairs},
    "power": {"on": lambda value: isinstance(value, bool)},
    "mend": {"key": _is_key},
    "settle": {"ports": _are_ports, "lasts_ms": _is_duration},
}


# Each is of one thing, which has one state to be given back.
_ONCE = ("power", "save", "settle")


def _shown(value: object) -> str:
    return ascii(value)[:60]
