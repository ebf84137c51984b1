"""The definition of a trace format: the fields of a line, the clock of its stamps, and their conversion to columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars

NS_PER_S = 1_000_000_000
SECTOR_BYTES = 512
SECTOR_DIGITS = 16  # of a sector's number: times 512 it stays within 64 bits
ANY_NAME = r"[^\s,]+"
NOT_A_REQUEST = 255  # the `op` of a line that has the shape of a request and is none


class Clock(Enum):
    """The origin that a format's stamps count from."""

    UNIX = "the time of day"
    OWN = "a moment that the trace does not say"
    START = "the start of the trace"


class Kind(Enum):
    """The type of a field."""

    INTEGER = "a whole number"
    SECONDS = "a number of seconds"
    WORD = "one of a few words"
    TEXT = "a name"


@dataclass(frozen=True)
class Field:
    """One field of a line.

    ``digits`` bounds an integer, so that no product with it leaves 64 bits; ``shape`` is the pattern of a name.
    """

    name: str
    kind: Kind
    digits: int = 15
    words: tuple[str, ...] = ()
    shape: str = ANY_NAME
    may_be_empty: bool = False

    @property
    def pattern(self) -> str:
        """The regular expression of a well-formed value, with the ten digits of ASCII and no other script's."""
        match self.kind:
            case Kind.INTEGER:
                pattern = rf"0*[0-9]{{1,{self.digits}}}"
            case Kind.SECONDS:
                pattern = r"0*[0-8]?[0-9]{1,9}(?:\.[0-9]{1,25})?"
            case Kind.WORD:
                pattern = "|".join(re.escape(word) for word in self.words)
            case Kind.TEXT:
                pattern = self.shape
        return f"(?:{pattern})?" if self.may_be_empty else f"(?:{pattern})"

    @property
    def dtype(self) -> polars.DataType:
        """The type of the column while it is read; a decimal is exact where a float would not be."""
        import polars

        match self.kind:
            case Kind.INTEGER:
                return polars.Int64()
            case Kind.SECONDS:
                return polars.Decimal(38, 9)
            case Kind.WORD:
                return polars.Enum(self.words)
            case Kind.TEXT:
                return polars.String()

    def fits(self) -> polars.Expr:
        """True where a value that could be read is also within bounds."""
        import polars

        column = polars.col(self.name)
        match self.kind:
            case Kind.INTEGER:
                within = column.is_between(0, 10**self.digits - 1)
            case Kind.SECONDS:
                within = column.is_between(0, 9 * NS_PER_S, closed="left")
            case Kind.WORD:
                within = column.is_not_null()
            case Kind.TEXT:
                within = column.str.contains(f"^(?:{self.shape})$")
        return within | column.is_null() if self.may_be_empty else within.fill_null(value=False)

    def complaint(self, text: str) -> str | None:
        """The problem with ``text``, None where there is none."""
        if re.fullmatch(self.pattern, text):
            return None
        if not text.strip():
            return f"{self.name} is missing"
        if self.kind is Kind.WORD:
            return f"unknown {self.name} {text[:20]!r}; known: {', '.join(self.words)}"
        if re.fullmatch(r"-[0-9]+(?:\.[0-9]+)?", text):
            return f"{self.name} is negative"
        if self.kind is not Kind.TEXT and re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text):
            return f"{self.name} {text[:40]} is not {self.kind.value} of a size that can be"
        return f"{self.name} {text[:20]!r} is not {self.kind.value}"


@dataclass(frozen=True)
class Origin:
    """The time of a trace's first request and the clock it was taken on.

    ``ns`` counts from 1970-01-01 UTC where ``clock`` is UNIX, else from the zero of the trace's own stamps.
    """

    ns: int = 0
    clock: Clock = Clock.START


@dataclass(frozen=True)
class Loss:
    """A limitation of a format: ``concerned`` selects the affected requests, ``left_out`` omits them."""

    what: str
    concerned: Callable[[], polars.Expr]
    left_out: bool = False


@dataclass(frozen=True)
class Format:
    """A trace format that Rackloop reads and, where ``write`` is given, writes.

    ``read`` makes of a frame of :attr:`fields` one with ``stamp`` (in ticks of ``tick_ns``), ``op``, ``offset_bytes``,
    ``size_bytes``, ``volume`` and ``response_ns``, row for row. ``write`` goes the
    other way. ``finish(frame, last)`` corrects stamps that depend on lines before; ``last`` is the stamp of the last
    one. ``epoch_ns`` is the zero of the stamps in nanoseconds since 1970. ``announce(volumes, stamp)`` is what stands
    before the first request of new volumes, ``starts_at`` the first stamp where that is not the trace's own.
    """

    name: str
    title: str
    fields: tuple[Field, ...]
    clock: Clock
    tick_ns: int
    read: Callable[[polars.DataFrame], polars.DataFrame]
    write: Callable[[polars.DataFrame], polars.DataFrame] | None = None
    finish: Callable[[polars.DataFrame, int], polars.DataFrame] | None = None
    epoch_ns: int = 0
    separator: str = ","
    header: str | None = None
    writes_header: bool = True
    directive: str | None = None
    further_fields: bool = False
    losses: tuple[Loss, ...] = ()
    keeps_volume: bool = True
    numbers_volumes: bool = False
    keeps_response: bool = False
    in_order: bool = False
    starts_at: int | None = None
    announce: Callable[[Sequence[str], int], str] | None = None

    def __str__(self) -> str:
        return self.title

    @cached_property
    def pattern(self) -> str:
        """The regular expression of a whole line that holds a request."""
        more = f"(?:{self.separator}.*)?" if self.further_fields else ""
        return "^" + self.separator.join(field.pattern for field in self.fields) + more + "$"

    @cached_property
    def suspect(self) -> bytes:
        """Characters that a well-formed line has none of, though the parser of numbers would forgive them."""
        return (
            b"+"
            + (b"" if self.separator == " " else b" ")
            + (b"eE" if any(field.kind is Kind.SECONDS for field in self.fields) else b"")
        )

    def schema(self) -> dict[str, polars.DataType]:
        """Name -> type of the fields, in the order of the file."""
        return {field.name: field.dtype for field in self.fields}

    def complaint(self, line: str, others: Iterable[Format]) -> str:
        """The reason why ``line`` is no request of this format, and the format of ``others`` that it could be in."""
        if not line.strip():
            return "the line is empty"
        for other in others:
            if other is not self and re.match(other.pattern, line):
                return f"this is a line of {other.title}"
        texts = line.split(self.separator)
        count = len(self.fields)
        if len(texts) < count or (len(texts) > count and not self.further_fields):
            return f"{count} fields expected, {len(texts)} found"
        complaints = (field.complaint(text) for field, text in zip(self.fields, texts, strict=False))
        return next((complaint for complaint in complaints if complaint), "the line cannot be read")
