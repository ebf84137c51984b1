"""The switch's SCPI dialect as pure functions: requests and answers to text and back. Does no I/O.

A program line holds requests parted by ``;`` (IEEE 488.2-1992 chapter 7, SCPI 1999.0 volume 1 chapter 6). A header
after a semicolon is looked up beside the one before it first, then from the root; a leading colon means the root.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from itertools import product
from typing import Any, TypeVar

from rackloop_drivers.fabric.flexfabric.dialect import answers
from rackloop_drivers.fabric.flexfabric.dialect import messages as m
from rackloop_drivers.fabric.flexfabric.dialect import parameters as p
from rackloop_drivers.fabric.flexfabric.dialect import scpi_errors as refusals
from rackloop_drivers.fabric.flexfabric.dialect.scpi_errors import ScpiError

T = TypeVar("T")

_BYTE = p.Integer("mask", 0, 255)
_TOKEN = p.Integer("token", 1)
_GENERATION = p.Integer("generation", 0)
_ID = p.Integer("id", 0)
_PAIRS = p.Pairs()
_PORTS = p.Ports()


@dataclass(frozen=True)
class _Entry:
    pattern: str
    request: type[m.Request]
    parameters: tuple[p.Parameter, ...] = ()
    required: int = 0
    answer: answers.Answer | None = None


_TABLE = (
    _Entry("*IDN?", m.Identify, answer=answers.IDENTITY),
    _Entry("*RST", m.Reset),
    _Entry("*CLS", m.ClearStatus),
    _Entry("*ESR?", m.EventStatus, answer=answers.INTEGER),
    _Entry("*ESE", m.SetEventEnable, (_BYTE,), 1),
    _Entry("*ESE?", m.EventEnable, answer=answers.INTEGER),
    _Entry("*SRE", m.SetServiceEnable, (_BYTE,), 1),
    _Entry("*SRE?", m.ServiceEnable, answer=answers.INTEGER),
    _Entry("*STB?", m.StatusByte, answer=answers.INTEGER),
    _Entry("*OPC", m.NoteCompletion),
    _Entry("*OPC?", m.AwaitCompletion, answer=answers.INTEGER),
    _Entry("*WAI", m.Wait),
    _Entry("*TST?", m.SelfTest, answer=answers.INTEGER),
    _Entry("SYSTem:ERRor[:NEXT]?", m.NextError, answer=answers.ERROR),
    _Entry("SYSTem:ERRor:COUNt?", m.ErrorCount, answer=answers.INTEGER),
    _Entry("SYSTem:VERSion?", m.Version, answer=answers.VERSION),
    _Entry("SYSTem:PORTs?", m.PortCount, answer=answers.INTEGER),
    _Entry("SYSTem:LOCK:REQuest", m.RequestLock, (_TOKEN,), 1),
    _Entry("SYSTem:LOCK:RELease", m.ReleaseLock, (_TOKEN,), 1),
    _Entry("SYSTem:LOCK?", m.LockHolder, answer=answers.INTEGER),
    _Entry("SYSTem:LOCK:HIGHest?", m.HighestToken, answer=answers.INTEGER),
    _Entry("ROUTe:LOAD", m.LoadPartial, (_PAIRS,), 1),
    _Entry("ROUTe:LOAD:FULL", m.LoadFull, (_PAIRS,), 1),
    _Entry("ROUTe:LOAD?", m.StagedMap, answer=answers.PAIRS),
    _Entry("ROUTe:LOAD:CRC?", m.StagedCrc, answer=answers.INTEGER),
    _Entry("ROUTe:LOAD:CLEar", m.ClearStaged),
    _Entry("TRIGger[:ROUTe]", m.Trigger, (_GENERATION,)),
    _Entry("ROUTe:GENeration?", m.Generation, answer=answers.INTEGER),
    _Entry("ROUTe:MAP?", m.LivePairs, (_PORTS,), answer=answers.PAIRS),
    _Entry("ROUTe:STATe?", m.States, (_PORTS,), 1, answers.STATES),
    _Entry("ROUTe:OPEN", m.OpenPorts, (_PORTS, _GENERATION), 1),
    _Entry("ROUTe:OPEN:ALL", m.OpenAll, (_GENERATION,)),
    _Entry("PHY:DROP", m.DropPhy, (_PORTS, p.Milliseconds("down time"), _ID), 2),
    _Entry(
        "PHY:FLAP",
        m.FlapPhy,
        (_PORTS, p.Milliseconds("down time"), p.Milliseconds("up time"), p.Integer("count", 1, p.MOST_FLAPS), _ID),
        4,
    ),
    _Entry("PHY:COUNt?", m.DropCounts, (_PORTS,), 1, answers.INTEGERS),
    _Entry("CONFiguration:SAVE", m.SaveMap),
    _Entry("CONFiguration:BOOT?", m.BootMap, answer=answers.PAIRS),
)


def _spellings(pattern: str) -> set[str]:
    """Every upper-case header that means ``pattern``: long or short nodes, with and without the optional one."""
    query = "?" if pattern.endswith("?") else ""
    choices: list[tuple[str, ...]] = []
    for node in re.findall(r"\[:\w+\]|[*\w]+", pattern):
        name = node.strip("[:]")
        short = name if name.startswith("*") else "".join(c for c in name if c.isupper())
        choices.append((name.upper(), short, "") if node.startswith("[") else (name.upper(), short))
    return {":".join(filter(None, nodes)) + query for nodes in product(*choices)}


_BY_HEADER = {spelling: entry for entry in _TABLE for spelling in _spellings(entry.pattern)}
_ANSWERS = {entry.request: entry.answer for entry in _TABLE if entry.answer is not None}
# Of each request the header from the root, and the name and kind of each of its parameters.
_WRITTEN = {
    entry.request: (
        header if (header := min(_spellings(entry.pattern), key=len)).startswith("*") else f":{header}",
        tuple(zip((field.name for field in fields(entry.request)), entry.parameters, strict=True)),
    )
    for entry in _TABLE
}
_HEADER = re.compile(r"(:?)([A-Za-z]+(?::[A-Za-z]+)*\??|\*[A-Za-z]+\??)")


@dataclass(frozen=True)
class Unit:
    """One request of a line as the switch reads it: understood, or refused; ``path`` is where the next is looked up."""

    request: m.Request | None
    refusal: ScpiError | None
    path: str


_LONGEST_REMEMBERED = 256


def parse_line(line: bytes, port_count: int) -> Sequence[Unit]:
    """The units of a line to a switch with ``port_count`` ports. Never raises, whatever the bytes.

    Controllers repeat their requests in ever new lines, so the last thousand short requests are remembered.
    """
    try:
        text = line.decode("ascii")
    except UnicodeDecodeError:
        return (Unit(None, ScpiError(refusals.COMMAND_ERROR, "not ASCII"), ""),)
    units: list[Unit] = []
    path = ""
    for part in text.split(";"):
        if stripped := part.strip():
            read = _parse_short if len(stripped) <= _LONGEST_REMEMBERED else _parse
            units.append(unit := read(stripped, path, port_count))
            path = unit.path
    return units


def _parse(text: str, path: str, port_count: int) -> Unit:
    header, *rest = text.split(maxsplit=1)
    match = _HEADER.fullmatch(header)
    if match is None:
        return Unit(None, ScpiError(refusals.COMMAND_ERROR, f"{header} is no header"), path)
    name = match[2].upper()
    if name.startswith("*"):
        full, next_path = name, path
    else:
        full = name if match[1] or path + name not in _BY_HEADER else path + name
        next_path = full[: full.rfind(":") + 1]
    entry = _BY_HEADER.get(full)
    if entry is None or (match[1] and name.startswith("*")):
        return Unit(None, ScpiError(refusals.UNDEFINED_HEADER, header), path)
    try:
        return Unit(_build(entry, rest[0] if rest else "", port_count), None, next_path)
    except ScpiError as refusal:
        return Unit(None, refusal, next_path)


_parse_short = lru_cache(maxsize=1024)(_parse)


def _build(entry: _Entry, text: str, port_count: int) -> m.Request:
    given = p.split_parameters(text)
    if len(given) > len(entry.parameters):
        raise ScpiError(refusals.PARAMETER_NOT_ALLOWED, f"{entry.pattern} takes {len(entry.parameters)}")
    if len(given) < entry.required or "" in given:
        raise ScpiError(refusals.MISSING_PARAMETER, f"{entry.pattern} needs {entry.required}")
    values = [kind.read(value, port_count) for kind, value in zip(entry.parameters, given, strict=False)]
    return entry.request(*values)


def format_request(request: m.Request) -> str:
    """The request in its shortest spelling, from the root: ``:ROUT:GEN?``, ``*IDN?``."""
    root, parameters = _WRITTEN[type(request)]
    given = [(kind, getattr(request, name)) for name, kind in parameters]
    text = ",".join([kind.write(value) for kind, value in given if value is not None])
    return f"{root} {text}" if text else root


@dataclass(frozen=True)
class Line:
    """A program line, ended by LF, and how to read the answer to each query in it, in order."""

    text: bytes
    readers: tuple[Callable[[str], Any], ...]


@lru_cache(maxsize=256)
def format_line(requests: tuple[m.Request, ...]) -> Line:
    """The line that asks all of this."""
    text = ";".join(map(format_request, requests)).encode("ascii") + b"\n"
    return Line(text, tuple([_reader(query) for query in requests if isinstance(query, m.Query)]))


def _reader(query: m.Query[Any]) -> Callable[[str], Any]:
    read = _ANSWERS[type(query)].read
    return partial(_one_each, read, len(query.ports)) if isinstance(query, m.States | m.DropCounts) else read


def _one_each(read: Callable[[str], tuple[Any, ...]], ports: int, text: str) -> tuple[Any, ...]:
    """A value for each of so many ports: of an answer that lost some on the way none can be told."""
    if len(values := read(text)) != ports:
        raise ValueError(f"{text!r} has {len(values)} values, for {ports} ports")
    return values


def format_answer(query: m.Query[T], value: T) -> str:
    """The switch's answer to ``query``."""
    return _ANSWERS[type(query)].write(value)


def parse_answer(query: m.Query[T], text: str) -> T:
    """The value of the switch's answer to ``query``. Raises ``ValueError`` where it cannot be an answer to it."""
    value: T = _ANSWERS[type(query)].read(text)
    return value
