"""A scheduler with its parameters, written ``KIND[:NAME=VALUE,...]``."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from rackloop.errors import BadInput
from rackloop.names import guess

SCHEDULERS = ("none", "reflex", "parda", "flashfq", "gimbal")
_EXAMPLES = (
    "gimbal:thresh_max_us=2000, gimbal:priority_quotas=[16,4,2,1] or "
    "flashfq:read_cost.base_us=3,read_cost.per_kib_us=0.5"
)
_OPENING, _CLOSING = "[{", "]}"


def scheduler_of(text: str, given_as: str) -> dict[str, Any]:
    """The scheduler as the storage switch and drivesim take it, which know the parameters.

    A value is JSON: a number, a word of it, a list, an object; a point in a name leads into an object. Raises BadInput,
    which begins with the option or parameter it was ``given_as``, for a name that is given twice or that is no
    parameter's (``kind``), and for an infinite number.
    """
    kind, _, rest = text.partition(":")
    if kind not in SCHEDULERS:
        raise BadInput(f"{given_as} {text}: there is no scheduler {kind!r}; {guess(kind, SCHEDULERS)}")
    scheduler: dict[str, Any] = {"kind": kind}
    for part in _parts(rest):
        name, equals, written = part.partition("=")
        if not equals or not all(name.split(".")):
            raise BadInput(f"{given_as} {text}: {part!r} is not NAME=VALUE, as in {_EXAMPLES}")
        *groups, last = name.split(".")
        if (groups or [last])[0] == "kind":
            raise BadInput(
                f"{given_as} {text}: kind is no parameter; the scheduler is {kind}, which stands before the colon"
            )
        try:
            value = json.loads(written, parse_constant=_no_number, parse_float=_finite, object_pairs_hook=_each_once)
        except _Refused as refused:
            raise BadInput(f"{given_as} {text}: {name}: {refused}") from None
        except ValueError:
            raise BadInput(
                f"{given_as} {text}: {written!r}, the value of {name}, is not JSON; write it as in {_EXAMPLES}"
            ) from None
        inner = scheduler
        for group in groups:
            inner = inner.setdefault(group, {})
            if not isinstance(inner, dict):
                raise BadInput(f"{given_as} {text}: {group} has a value already, so it cannot have {name} as well")
        if last in inner:
            raise BadInput(f"{given_as} {text}: {name} is given twice; give it once")
        inner[last] = value
    return scheduler


class _Refused(Exception):
    """The reason why a value that is JSON is none of a parameter."""


def _finite(written: str) -> float:
    if math.isinf(value := float(written)):
        raise _Refused(f"{written} is infinite; give a finite number")
    return value


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Refused(f"{twice} is given twice; give it once")
    return found


def _no_number(word: str) -> Any:
    raise ValueError(word)


def _parts(text: str) -> Iterator[str]:
    """The parts between commas that are in no brackets."""
    depth, part = 0, ""
    for letter in text:
        depth += (letter in _OPENING) - (letter in _CLOSING)
        if letter == "," and depth == 0:
            yield part
            part = ""
        else:
            part += letter
    if part:
        yield part
