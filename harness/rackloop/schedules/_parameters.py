"""Parameters of a fault: from the texts of a file to values, and times back to texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rackloop.description._fields import INTEGER, NUMBER
from rackloop.names import guess, kind_of
from rackloop.units import parse_quantity, parse_size

if TYPE_CHECKING:
    from rackloop.faults import FaultKind, Parameter

# What the end of a parameter's name says of its unit: how many of it are a second.
_TIMES = {"_s": 1.0, "_ms": 1e3, "_us": 1e6}


def parameters_of(kind: FaultKind, written: Mapping[str, Any], problems: dict[str, str]) -> dict[str, Any]:
    """The values of a fault's parameters as a file has them; what is wrong with one is put into ``problems``.

    Times and sizes, whose names end in ``_s``, ``_ms``, ``_us`` and ``_bytes``, may have units.
    """
    values = {}
    for name, text in written.items():
        if name not in kind.parameters:
            problems[name] = f"{kind.name} has no such parameter; {guess(name, kind.parameters)}"
            continue
        try:
            value = _value(name, kind.parameters[name], text)
        except ValueError as error:
            problems[name] = str(error)
            continue
        if problem := kind.parameters[name].problem(value):
            problems[name] = problem
        values[name] = value
    return values


def missing_parameters(kind: FaultKind, written: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each parameter that must be given and is not."""
    for name, parameter in kind.parameters.items():
        if parameter.is_required and name not in written:
            yield f"{kind.name} needs {name}: {parameter.meaning}"


def _value(name: str, parameter: Parameter, text: object) -> Any:
    if not isinstance(text, str):
        raise ValueError(f"expected a {'text' if parameter.type is str else 'number'}, found {kind_of(text)}")  # noqa: TRY004 - the file is wrong
    if parameter.type is str:
        return text
    if INTEGER.fullmatch(text):
        return int(text)
    if NUMBER.fullmatch(text):
        return float(text)
    if name.endswith("_bytes"):
        return parse_size(text)
    for ending, in_a_second in _TIMES.items():
        if name.endswith(ending):
            return parse_quantity(text, "s") * in_a_second
    raise ValueError(f"expected a number, found {kind_of(text)}")


def time_text(seconds: float) -> str:
    """A time as a file has it, in full: ``50 ms``, ``1.5 s``; it reads back as the same number."""
    exact = Decimal(repr(seconds))
    if 0 < exact < 1:
        return f"{(exact * 1000).normalize():f} ms"
    return f"{exact.normalize():f} s"
