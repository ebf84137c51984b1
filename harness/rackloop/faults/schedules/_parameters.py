"""Parameters of a fault: from the texts of a file to values, and times back to texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rackloop.names import guess

if TYPE_CHECKING:
    from rackloop.faults import FaultKind


def parameters_of(kind: FaultKind, written: Mapping[str, Any], problems: dict[str, str]) -> dict[str, Any]:
    """The values of a fault's parameters as a file has them; what is wrong with one is put into ``problems``."""
    values = {}
    for name, text in written.items():
        if name not in kind.parameters:
            problems[name] = f"{kind.name} has no such parameter; {guess(name, kind.parameters)}"
            continue
        found: dict[tuple[int, ...], str] = {}
        values[name] = kind.parameters[name].read(text, found)
        if found:
            problems[name] = found[()]
    return values


def missing_parameters(kind: FaultKind, written: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each parameter that must be given and is not."""
    for name, parameter in kind.parameters.items():
        if parameter.is_required and name not in written:
            yield f"{kind.name} needs {name}: {parameter.meaning}"


def time_text(seconds: float) -> str:
    """A time as a file has it, in full: ``50 ms``, ``1.5 s``; it reads back as the same number."""
    exact = Decimal(repr(seconds))
    if 0 < exact < 1:
        return f"{(exact * 1000).normalize():f} ms"
    return f"{exact.normalize():f} s"
