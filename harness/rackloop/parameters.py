"""Parameters of tests and of faults: default, meaning and permitted values of each.

A test file declares its own by calling the functions here, with constants alone: plans are checked against what the
file says without running it. ``PARAMETERS = {"remaps": whole(400, "map changes", most=100_000)}``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rackloop.names import guess, kind_of, quoted
from rackloop.units import INTEGER, NUMBER, format_quantity, parse_quantity, parse_size

if TYPE_CHECKING:
    from rackloop.lab import Lab

Problems = dict[tuple[int, ...], str]
"""The problems of a value, by the place in it: ``()`` is the value itself, ``(2,)`` the third of a list."""

LONGEST_LIST = 1000
LONGEST_TEXT = 200

_IN_A_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6}
_TRUE, _FALSE = frozenset({"true", "yes", "on"}), frozenset({"false", "no", "off"})
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_PARTS = ("drive", "server", "profile")


@dataclass(frozen=True)
class Parameter:
    """A value that a test or a fault takes.

    A number is between ``least`` and ``most``, both allowed, in ``unit``: ``B``, ``B/s``, ``s``, ``ms``, ``us`` or
    none; with a unit it may be written with one, ``64 KiB``. A whole one is a multiple of ``multiple``. A text has at
    most ``longest`` characters; it is one of ``choices`` where there are any, matches ``pattern``, or names a ``part``
    of the lab: a drive, a server, a profile. Where the default is a list, so is the value, of at least one. A text may
    be empty where the default is.

    None as the default means that it may be left out, or, where it ``is_required``, that it must be given.
    """

    default: Any
    meaning: str
    least: float = 0
    most: float = math.inf
    choices: tuple[str, ...] = ()
    type: type[int] | type[float] | type[str] | type[bool] = float
    is_required: bool = False
    unit: str = ""
    multiple: int = 1
    pattern: str = ""
    part: str = ""
    longest: int = LONGEST_TEXT

    @property
    def is_list(self) -> bool:
        """Whether the value is a list."""
        return isinstance(self.default, list)

    @property
    def expected(self) -> str:
        """The permitted values, as a part of a sentence: ``a whole number from 1 to 1000``."""
        if self.type is bool:
            return "true or false"
        if self.type is str:
            return self._expected_text()
        times = f", a multiple of {self._said(self.multiple)}" if self.multiple > 1 else ""
        kind = {"B": "a size", "B/s": "a rate"}.get(self.unit, "a time" if self.unit else "")
        if kind and self.least == -math.inf:
            return "a whole number, or a size such as 4 KiB"
        return f"{kind or ('a whole number' if self.type is int else 'a number')}{self._range()}{times}"

    def read(self, written: object, problems: Problems) -> Any:
        """The value of what a file says: a text, or a list of texts. What is wrong goes into ``problems``."""
        if not self.is_list:
            return self._read_one(written, (), problems)
        if not isinstance(written, list):
            problems[()] = f"expected a list such as {self._example()}, found {kind_of(written)}"
            return None
        if problem := _length_problem(written):
            problems[()] = problem
            return None
        return [self._read_one(item, (index,), problems) for index, item in enumerate(written)]

    def problem(self, value: object) -> str | None:
        """The problem with one value, as a sentence part; None where it is right."""
        if value is None and self.default is None:
            return None
        return None if self._is_right(value) else self._unexpected(value)

    def problem_on(self, lab: Lab, value: object) -> str | None:
        """The problem with a right value on ``lab``, of which it names a part; None where there is none."""
        if not self.part:
            return None
        known = _known(lab, self.part)
        for name in map(str, value if isinstance(value, list) else [value]):
            if name not in known and name:
                return f"lab {lab.name} has no {self.part} {quoted(name)}; {guess(name, known)}"
        return None

    def _read_one(self, written: object, place: tuple[int, ...], problems: Problems) -> Any:
        value = None
        with suppress(ValueError):
            value = self._parsed(written) if isinstance(written, str) else None
        if not self._is_right(value):
            problems[place] = self._unexpected(written)
        return value

    def _parsed(self, written: str) -> Any:
        if self.type is str:
            return written
        if self.type is bool:
            if written.lower() not in _TRUE | _FALSE:
                raise ValueError
            return written.lower() in _TRUE
        if INTEGER.fullmatch(written):
            return int(written) if self.type is int else float(written)
        if self.type is float and NUMBER.fullmatch(written):
            return float(written)
        return self._with_unit(written)

    def _with_unit(self, written: str) -> float:
        match self.unit:
            case "":
                raise ValueError
            case "B":
                return parse_size(written)
            case "B/s":
                found = parse_quantity(written, "B/s")
                return int(found) if self.type is int and found.is_integer() else found
            case _:
                return parse_quantity(written, "s") * _IN_A_SECOND[self.unit]

    def _is_right(self, value: object) -> bool:
        if self.type is bool:
            return isinstance(value, bool)
        if self.type is str:
            return isinstance(value, str) and self._is_right_text(value)
        allowed = (int,) if self.type is int else (int, float)
        if isinstance(value, bool) or not isinstance(value, allowed):
            return False
        is_within = math.isfinite(value) and self.least <= value <= self.most
        return is_within and (self.multiple == 1 or value % self.multiple == 0)

    def _is_right_text(self, value: str) -> bool:
        if not value:
            return self.default in ("", [""]) and not self.is_required
        if self.choices:
            return value in self.choices
        if len(value) > self.longest or _CONTROL.search(value):
            return False
        return not self.pattern or re.fullmatch(self.pattern, value) is not None

    def _unexpected(self, value: object) -> str:
        shown = kind_of(value) if isinstance(value, (str, list, dict)) or value is None else repr(value)
        meant = guess(value, self.choices) if self.choices and isinstance(value, str) else ""
        # The words themselves have been said.
        hint = f"; {meant}" if meant.startswith("did you mean") else ""
        return f"expected {self.expected}, found {shown}{hint}"

    def _expected_text(self) -> str:
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.part:
            return f"the name of a {self.part}"
        if self.pattern:
            return f"a text such as {self._example()}"
        return f"a text of at most {self.longest} characters"

    def _range(self) -> str:
        if self.most == math.inf:
            return "" if self.least == -math.inf else f" of {self._said(self.least)} or more"
        return f" from {self._said(self.least)} to {self._said(self.most)}"

    def _said(self, value: float) -> str:
        if self.unit in {"B", "B/s"}:
            return format_quantity(value, self.unit)
        if self.unit in _IN_A_SECOND:
            seconds = value / _IN_A_SECOND[self.unit]
            return format_quantity(seconds, "s") if 0 < seconds < 1 else f"{seconds:.12g} s"
        return f"{value:.12g}"

    def _example(self) -> str:
        if not self.is_list:
            return self.shown(self.default)
        return f"[{', '.join(self.shown(item) for item in self.default[:2])}]"

    def shown(self, value: object) -> str:
        """One value as people write it in a plan: ``4 KiB``, ``true``, ``''``."""
        match value:
            case bool():
                return str(value).lower()
            case int() | float():
                return self._said(value)
            case _:
                return str(value) or "''"


def declared_by(declared: Any) -> Parameter:
    """The parameter that a test file declares: in full, or by a plain default, which says its type and nothing else."""
    if isinstance(declared, Parameter):
        return declared
    of = declared[0] if isinstance(declared, list) and declared else declared
    plain = Parameter(declared, "", least=-math.inf)
    match of:
        case bool():
            return replace(plain, type=bool)
        case int():
            return replace(plain, type=int, unit="B")
        case float():
            return plain
        case str():
            return replace(plain, type=str)
    message = f"its default in the test file, {declared!r}, does not tell its type: a plan cannot set it"
    raise ValueError(message)


def default_of(declared: Any) -> Any:
    """The value of what a test file declares, where no plan says another."""
    default = declared.default if isinstance(declared, Parameter) else declared
    return list(default) if isinstance(default, list) else default


def whole(default: int | list[int], meaning: str, *, least: int = 1, most: int) -> Parameter:
    """A whole number, or a list of such."""
    return _sound(Parameter(default, meaning, least, most, type=int))


def number(default: float | list[float], meaning: str, *, least: float = 0, most: float, unit: str = "") -> Parameter:
    """A number, or a list of such. In ``unit`` it may be written with one: ``s``, ``ms`` and ``us`` are times."""
    return _sound(Parameter(default, meaning, least, most, unit=unit))


def size(
    default: int | list[int], meaning: str, *, least: int = 1, most: int, multiple: int = 1, unit: str = "B"
) -> Parameter:
    """A number of bytes, or with the unit ``B/s`` a rate, or a list of such: ``4096``, ``64 KiB``."""
    return _sound(Parameter(default, meaning, least, most, type=int, unit=unit, multiple=multiple))


def flag(default: bool, meaning: str) -> Parameter:  # noqa: FBT001 - a value, as those of the others
    """True or false."""
    return _sound(Parameter(default, meaning, type=bool))


def choice(default: str | list[str], meaning: str, *, among: Iterable[str]) -> Parameter:
    """One of some words, or a list of such."""
    return _sound(Parameter(default, meaning, choices=tuple(among), type=str))


def stack(default: str | list[str], meaning: str) -> Parameter:
    """The handling of a drive that appears: one of the stacks that a lab description knows, or a list of such."""
    from rackloop.lab import Stack

    return choice(default, meaning, among=tuple(str(known) for known in Stack))


def part(default: str | list[str], meaning: str, *, of: str) -> Parameter:
    """The name of a ``drive``, a ``server`` or a ``profile`` of the lab, or a list of such."""
    if of not in _PARTS:
        message = f"a lab has no {of}; {guess(of, _PARTS)}"
        raise ValueError(message)
    return _sound(Parameter(default, meaning, type=str, part=of))


def text(default: str | list[str], meaning: str, *, pattern: str = "", longest: int = LONGEST_TEXT) -> Parameter:
    """A text, or a list of such, of the form that the regular expression ``pattern`` says."""
    return _sound(Parameter(default, meaning, type=str, pattern=pattern, longest=longest))


def erasure_code(default: str | list[str], meaning: str) -> Parameter:
    """An erasure code as ``k+m``, or a list of such: ``246+9``."""
    return text(default, meaning, pattern=r"[1-9][0-9]{0,4}\+[1-9][0-9]{0,3}")


VOCABULARY: Mapping[str, Callable[..., Parameter]] = {
    made.__name__: made for made in (choice, erasure_code, flag, number, part, size, stack, text, whole)
}
"""The names that test files declare their parameters with."""


def _sound(made: Parameter) -> Parameter:
    """The parameter, whose default must be one of the values that it may have."""
    for value in made.default if made.is_list else [made.default]:
        if problem := made.problem(value):
            message = f"the default is none of the values allowed: {problem}"
            raise ValueError(message)
    if made.is_list and (problem := _length_problem(made.default)):
        raise ValueError(problem)
    return made


def _length_problem(values: list[Any]) -> str | None:
    if not values:
        return "is empty; give at least one entry"
    return f"has {len(values)} entries, at most {LONGEST_LIST} are allowed" if len(values) > LONGEST_LIST else None


def _known(lab: Lab, part_of_lab: str) -> Iterable[str]:
    """The names of the parts of one kind. A profile may be one that no drive of this lab has."""
    if part_of_lab == "profile":
        from rackloop.lab import profile_names

        return {*profile_names(), *(drive.profile for drive in lab.drives.values())}
    return lab.drives if part_of_lab == "drive" else lab.servers
