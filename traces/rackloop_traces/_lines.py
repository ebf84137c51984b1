"""Parsing of lines into rows; malformed lines are counted with their number and the reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rackloop.errors import BadInput
from rackloop.units import counted
from rackloop_traces._columns import Op, columns
from rackloop_traces._format import NOT_A_REQUEST, Format

if TYPE_CHECKING:
    import polars

SHOWN_LINES = 20
_SHOWN_CHARACTERS = 80
_NEVER = r"[^\s\S]"
_MINUS_ZERO = b"-0"
_LONGEST_SPAN_NS = 9 * 10**18  # 285 years


class MalformedLine(NamedTuple):
    """A line that is no request: its number from 1, why, and its text, cut where it is long."""

    number: int
    reason: str
    text: str

    def __str__(self) -> str:
        return f"line {self.number}: {self.reason}: {self.text!r}"


@dataclass
class Malformed:
    """The lines that were neither requests nor a header or directive of the format.

    ``total_lines`` counts all lines read so far, ``directives`` those that belong to the format and hold no request,
    ``first`` holds the first malformed ones.
    """

    count: int = 0
    total_lines: int = 0
    directives: int = 0
    first: list[MalformedLine] = field(default_factory=list)


class LineReader:
    """Reads the blocks of one trace in their order. Raises BadInput once more than ``most`` lines were malformed."""

    def __init__(self, form: Format, others: Sequence[Format], where: str, most: int) -> None:
        self.malformed = Malformed()
        self._form = form
        self._separator = form.separator.encode()
        self._others = others
        self._where = where
        self._most = most
        self._first_stamp: int | None = None
        self._last_stamp = 0

    @property
    def first_stamp(self) -> int | None:
        """The stamp of the first request in ticks, None while there was none."""
        return self._first_stamp

    def read(self, block: bytes) -> polars.DataFrame:
        """The requests of ``block``: the columns of a batch, and ``line``, the number of each one's line."""
        import polars

        if not block.endswith(b"\n"):
            block += b"\n"
        first_line = self.malformed.total_lines + 1
        lines = block.count(b"\n")
        self.malformed.total_lines += lines
        if first_line == 1 and self._form.header and self._is_header(block.partition(b"\n")[0]):
            block = block[block.index(b"\n") + 1 :]
            first_line += 1
            lines -= 1
            self.malformed.directives += 1
        fields = self._well_formed(block, lines, first_line)
        if fields is None:
            fields = self._sorted_out(block, first_line)
        frame = self._form.read(fields.drop("line")).with_columns(fields["line"])
        if self._form.finish:
            frame = self._form.finish(frame, self._last_stamp)
        if frame.height:
            self._last_stamp = frame["stamp"][-1]
        requests = frame.filter(polars.col("op") != NOT_A_REQUEST)
        self.malformed.directives += frame.height - requests.height
        return self._sound(requests, block, first_line)

    def _is_header(self, line: bytes) -> bool:
        header = (self._form.header or "").casefold().replace(" ", "")
        return line.decode("utf-8", "replace").lstrip("\ufeff").casefold().replace(" ", "") == header

    def _well_formed(self, block: bytes, lines: int, first_line: int) -> polars.DataFrame | None:
        """The fields of a block whose every line is a request, None where one may not be."""
        import polars

        if any(bytes((character,)) in block for character in self._form.suspect):
            return None
        # Polars reads a minus before zeros as if it were not there.
        if block.startswith(_MINUS_ZERO) or any(before + _MINUS_ZERO in block for before in (b"\n", self._separator)):
            return None
        try:
            fields = _parsed(block, self._form, truncate=False)
        except polars.exceptions.PolarsError:
            return None
        fits = polars.all_horizontal(field.fits() for field in self._form.fields)
        if fields.height != lines or not fields.select(fits.all()).item():
            return None
        numbers = polars.int_range(first_line, first_line + lines, dtype=polars.Int64)
        return fields.with_columns(numbers.alias("line"))

    def _sorted_out(self, block: bytes, first_line: int) -> polars.DataFrame:
        """The fields of the lines of a block that are requests; those that are none are counted."""
        import polars

        lines = polars.Series("text", _texts(block), dtype=polars.String)
        numbers = polars.Series("line", range(first_line, first_line + len(lines)), dtype=polars.Int64)
        is_request = lines.str.contains(self._form.pattern)
        is_directive = lines.str.contains(self._form.directive or _NEVER) & ~is_request
        self.malformed.directives += int(is_directive.sum())
        self._reject(numbers.filter(~is_request & ~is_directive), block, first_line, self._complaint)
        good = lines.filter(is_request)
        if good.is_empty():
            fields = polars.DataFrame(schema=self._form.schema())
        else:
            fields = _parsed("\n".join(good).encode() + b"\n", self._form, truncate=True)
        return fields.with_columns(numbers.filter(is_request))

    def _sound(self, frame: polars.DataFrame, block: bytes, first_line: int) -> polars.DataFrame:
        """The requests of ``frame`` that can be: of some size, and in the time of the others."""
        import polars

        sized = frame.select((polars.col("size_bytes") > 0) | (polars.col("op") == Op.FLUSH)).to_series()
        if not sized.all():
            self._reject(frame["line"].filter(~sized), block, first_line, lambda _text: "the size is 0")
            frame = frame.filter(sized)
        if self._first_stamp is None and frame.height:
            self._first_stamp = frame["stamp"][0]
        since = frame["stamp"] - (self._first_stamp or 0)
        longest = _LONGEST_SPAN_NS // self._form.tick_ns
        timed = since.is_between(-longest, longest)
        if not timed.all():
            self._reject(frame["line"].filter(~timed), block, first_line, lambda _text: "centuries from the first time")
            frame = frame.filter(timed)
            since = since.filter(timed)
        return frame.select((since * self._form.tick_ns).alias("t_ns"), *list(columns())[1:], "line")

    def _complaint(self, text: str) -> str:
        return self._form.complaint(text, self._others)

    def _reject(self, numbers: polars.Series, block: bytes, first_line: int, reason: Callable[[str], str]) -> None:
        """Count the lines of these numbers, keep the first ones, and give up where there are too many."""
        malformed = self.malformed
        malformed.count += len(numbers)
        shown = numbers.head(SHOWN_LINES).to_list()
        texts = _texts(block) if shown else []
        found = [(number, texts[number - first_line]) for number in shown]
        kept = [MalformedLine(number, reason(text), text[:_SHOWN_CHARACTERS]) for number, text in found]
        malformed.first = sorted([*malformed.first, *kept])[:SHOWN_LINES]
        if malformed.count > self._most:
            raise BadInput(
                f"{self._where} has {counted(malformed.count, 'malformed line')} as {self._form.title} in its first "
                f"{counted(malformed.total_lines, 'line')}, more than the {self._most} allowed: "
                + "; ".join(str(line) for line in malformed.first[:3])
            )


def _texts(block: bytes) -> list[str]:
    """The lines of a block that ends with a newline."""
    return block.decode("utf-8", "replace").split("\n")[:-1]


def _parsed(block: bytes, form: Format, *, truncate: bool) -> polars.DataFrame:
    """The fields of every line; raises a PolarsError where one does not have them."""
    import polars

    return polars.read_csv(
        block,
        has_header=False,
        schema=form.schema(),
        separator=form.separator,
        quote_char=None,
        truncate_ragged_lines=truncate,
    )
