"""Parameters of a test: the text in a plan becomes a value of the type that the default in the test file has."""

from __future__ import annotations

import math
from typing import Any

from rackloop.description._document import Plain
from rackloop.description._fields import INTEGER, NUMBER, flag, text_of, wrong
from rackloop.names import kind_of
from rackloop.units import parse_size


def converted(value: Plain, default: Any) -> Any:
    """``value`` in the type of ``default``; whole numbers may be sizes such as ``4 KiB``, lists hold one type.

    Raises ValueError with a message for the author of the plan.
    """
    match default:
        case bool():
            return flag(value)
        case int():
            return _integer(value)
        case float():
            return _number(value)
        case str():
            return text_of(value, f"a text such as {default}")
        case [first, *_]:
            if not isinstance(value, list):
                raise wrong(f"expected a list such as {default}, found {kind_of(value)}")
            return [converted(item, first) for item in value]
    raise wrong(f"its default in the test file, {default!r}, does not tell its type: a plan cannot set it")


def _integer(value: Plain) -> int:
    expected = "a whole number, or a size such as 4 KiB"
    text = text_of(value, expected)
    if INTEGER.fullmatch(text):
        return int(text)
    try:
        return parse_size(text)
    except ValueError:
        raise wrong(f"expected {expected}, found {kind_of(text)}") from None


def _number(value: Plain) -> float:
    text = text_of(value, "a number")
    if not NUMBER.fullmatch(text) or not math.isfinite(number := float(text)):
        raise wrong(f"expected a number, found {kind_of(text)}")
    return number
