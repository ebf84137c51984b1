"""The kinds of parameter the switch's commands take: each reads its text and writes it back.

Reading raises :class:`ScpiError` with the SCPI number that fits: -100 where the text has the wrong shape, -222 where a
number is too small or too large, -224 where a port is named twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Protocol

from rackloop.portmap import PortMap
from rackloop_drivers.fabric.flexfabric.dialect import scpi_errors as refusals
from rackloop_drivers.fabric.flexfabric.dialect.scpi_errors import ScpiError

BIGGEST_NUMBER = 2**63 - 1
LONGEST_OUTAGE_MS = 3_600_000
MOST_FLAPS = 1_000_000

_CHANNELS = re.compile(r"\(\s*@([^()]*)\)")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_MOST_DIGITS = 19


class Parameter(Protocol):
    """One kind of parameter. ``read`` and ``write`` undo each other."""

    def read(self, text: str, port_count: int) -> Any:
        """The value of a text. Raises a refusal for any other."""
        ...

    def write(self, value: Any) -> str:
        """The text of a value."""
        ...


def split_parameters(text: str) -> list[str]:
    """The parameters of a command: parted by commas, except inside a channel list."""
    if not text:
        return []
    parts: list[str] = []
    depth = 0
    start = 0
    for at, character in enumerate(text):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
        if not 0 <= depth <= 1:
            raise ScpiError(refusals.COMMAND_ERROR, "parentheses do not match")
    if depth:
        raise ScpiError(refusals.COMMAND_ERROR, "parentheses do not match")
    parts.append(text[start:].strip())
    return parts


def read_integer(text: str, low: int, high: int, what: str) -> int:
    """A whole number between ``low`` and ``high``, both included."""
    if _INTEGER.fullmatch(text) is None:
        raise ScpiError(refusals.COMMAND_ERROR, f"{what} {text} is no whole number")
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > _MOST_DIGITS or not low <= (value := int(text)) <= high:
        raise ScpiError(refusals.OUT_OF_RANGE, f"{what} {text} is not in {low}..{high}")
    return value


def _channel_entries(text: str) -> list[str]:
    match = _CHANNELS.fullmatch(text)
    if match is None:
        raise ScpiError(refusals.COMMAND_ERROR, f"{text} is no channel list")
    inside = match[1].strip()
    return [entry.strip() for entry in inside.split(",")] if inside else []


@dataclass(frozen=True)
class Integer:
    """A whole number in a range."""

    what: str
    low: int
    high: int = BIGGEST_NUMBER

    def read(self, text: str, port_count: int) -> int:  # noqa: ARG002 - same shape as its siblings
        """The number."""
        return read_integer(text, self.low, self.high, self.what)

    def write(self, value: int) -> str:
        """Its decimal digits."""
        return str(value)


@dataclass(frozen=True)
class Milliseconds:
    """A length of time in milliseconds, at most an hour; fractions are allowed."""

    what: str

    def read(self, text: str, port_count: int) -> float:  # noqa: ARG002 - same shape as its siblings
        """The number of milliseconds."""
        if _DECIMAL.fullmatch(text) is None:
            raise ScpiError(refusals.COMMAND_ERROR, f"{self.what} {text} is no number")
        value = float(text)
        if not 0 <= value <= LONGEST_OUTAGE_MS:
            raise ScpiError(refusals.OUT_OF_RANGE, f"{self.what} {text} is not in 0..{LONGEST_OUTAGE_MS} ms")
        return value

    def write(self, value: float) -> str:
        """The shortest decimal that reads back as the same number."""
        return str(int(value)) if value == int(value) else repr(value)


class Pairs:
    """A channel list of port pairs, ``(@1!17,2!18)``; ``(@)`` is the empty map."""

    def read(self, text: str, port_count: int) -> PortMap:
        """The map the list describes; refused whole if any pair is bad."""
        pairs: list[tuple[int, int]] = []
        for entry in _channel_entries(text):
            low, bang, high = entry.partition("!")
            if not bang:
                raise ScpiError(refusals.COMMAND_ERROR, f"{entry} is no port pair")
            pairs.append((self._port(low, port_count), self._port(high, port_count)))
        try:
            return PortMap.of(pairs)
        except ValueError as error:
            raise ScpiError(refusals.ILLEGAL_VALUE, str(error)) from None

    @staticmethod
    def _port(text: str, port_count: int) -> int:
        return read_integer(text.strip(), 1, port_count, "port")

    def write(self, value: PortMap) -> str:
        """The canonical list."""
        return f"(@{value.canonical_text()})"


class Ports:
    """A channel list of ports, ``(@1,2,5:9)``, in the order written; a port may be named once."""

    def read(self, text: str, port_count: int) -> tuple[int, ...]:
        """The ports, ranges spelled out."""
        ports: list[int] = []
        for entry in _channel_entries(text):
            first_text, colon, last_text = entry.partition(":")
            first = read_integer(first_text.strip(), 1, port_count, "port")
            last = read_integer(last_text.strip(), 1, port_count, "port") if colon else first
            step = 1 if last >= first else -1
            ports.extend(range(first, last + step, step))
            if len(ports) > port_count:
                break
        if len(set(ports)) != len(ports):
            twice = next(port for at, port in enumerate(ports) if port in ports[:at])
            raise ScpiError(refusals.ILLEGAL_VALUE, f"port {twice} named twice")
        return tuple(ports)

    def write(self, value: tuple[int, ...]) -> str:
        """The list, with runs of three or more ascending ports written as ranges."""
        entries: list[str] = []
        at = 0
        while at < len(value):
            end = at
            while end + 1 < len(value) and value[end + 1] == value[end] + 1:
                end += 1
            if end - at >= 2:
                entries.append(f"{value[at]}:{value[end]}")
                at = end + 1
            else:
                entries.append(str(value[at]))
                at += 1
        return f"(@{','.join(entries)})"
