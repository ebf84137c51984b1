"""Writing of traces in any format, complete or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rackloop.errors import BadInput
from rackloop.units import format_quantity
from rackloop_traces._format import NS_PER_S, Clock, Format, Origin
from rackloop_traces._recognise import FORMATS, format_named
from rackloop_traces._sink import replace_with
from rackloop_traces._volumes import VolumeNames

if TYPE_CHECKING:
    import polars

_LATEST_TICK = 2**63 - 1


@dataclass(frozen=True)
class WrittenReport:
    """The result of :func:`write_trace`: ``requests`` written, and losses of the format.

    ``left_out`` and ``changed`` count requests by what was wrong with them: those not written, and those written
    differently. ``renamed`` holds the number that stands for each volume where the format cannot say names. ``notes``
    lists what is lost of all requests.
    """

    path: Path
    format: Format
    requests: int
    left_out: Mapping[str, int]
    changed: Mapping[str, int]
    renamed: Mapping[str, str]
    notes: tuple[str, ...]


def format_for(path: Path, name: str | None = None) -> Format:
    """The format to write ``path`` in: ``name``, else the one that a part of the file's name says.

    ``x.msr.csv.gz`` is MSR, ``x.iolog`` is fio's version 3. Raises BadInput where neither says one that is written.
    """
    if name is None:
        parts = path.name.lower().split(".")[1:]
        name = next((part for part in parts if part in FORMATS), "iolog3" if "iolog" in parts else None)
    if name is None:
        raise BadInput(
            f"{path.name} does not say a format: name it as in trace.iolog or trace.msr.csv.gz, or give one "
            f"of {', '.join(_written())}"
        )
    return format_named(name)


def _written() -> list[str]:
    return [name for name, form in FORMATS.items() if form.write is not None]


def write_trace(
    frames: Iterable[polars.DataFrame],
    path: str | Path,
    format: str | None = None,  # noqa: A002 - what users call it
    *,
    origin: Origin | None = None,
) -> WrittenReport:
    """Write ``frames`` of :func:`columns` as a trace at ``path``, which is replaced when all of it is there.

    ``format`` names one of :data:`FORMATS`, by default the one that the file's name says (``x.iolog``, ``x.msr.csv``);
    ``.gz`` and ``.zst`` at its end compress. ``origin`` is the moment that ``t_ns`` counts from. Raises BadInput where
    there is no request, the format is not written, it needs requests in the order of time and they are not, a time
    comes before its clock's zero, or the disk refuses; then nothing is left at ``path`` that was not there.
    """
    path = Path(path)
    form = format_for(path, format)
    writer = _Writer(form, origin or Origin())
    replace_with(path, writer.texts(frames))
    return WrittenReport(
        path,
        form,
        writer.requests,
        dict(writer.left_out),
        dict(writer.changed),
        writer.names.renamed,
        tuple(writer.notes()),
    )


class _Writer:
    """Conversion of frames to text, with a count of losses."""

    def __init__(self, form: Format, origin: Origin) -> None:
        if form.write is None:
            raise BadInput(f"{form.title} is read and not written: choose one of {', '.join(_written())}")
        self._write = form.write
        self._form = form
        self._first_tick, self._rest_ns = _first_tick(form, origin)
        if abs(self._first_tick) > _LATEST_TICK:
            raise BadInput(f"the trace begins at a time that {form.title} cannot say: choose another format")
        self.names = VolumeNames(form)
        self.requests = 0
        self.left_out: Counter[str] = Counter()
        self.changed: Counter[str] = Counter()
        self._latest_ns: int | None = None
        self._had_response = False

    def texts(self, frames: Iterable[polars.DataFrame]) -> Iterator[bytes]:
        """The header, then the text of each frame."""
        if self._form.header and self._form.writes_header:
            yield f"{self._form.header}\n".encode()
        for frame in frames:
            if (kept := self._sayable(frame)).height:
                yield self._text(kept)
        if not self.requests:
            raise BadInput(f"there is no request to write as {self._form.title}")

    def notes(self) -> Iterator[str]:
        """The properties of requests that the format does not keep."""
        if self._had_response and not self._form.keeps_response:
            yield "response times are not kept"
        if len(self.names.seen) > 1 and not self._form.keeps_volume:
            yield f"volumes are not kept: the requests of {len(self.names.seen)} are all of one"

    def _sayable(self, frame: polars.DataFrame) -> polars.DataFrame:
        """The requests that the format can say; the others, and those that it says differently, are counted."""
        for loss in self._form.losses:
            concerned = frame.select(loss.concerned()).to_series()
            if count := int(concerned.sum()):
                (self.left_out if loss.left_out else self.changed)[loss.what] += count
                frame = frame.filter(~concerned) if loss.left_out else frame
        return frame

    def _text(self, frame: polars.DataFrame) -> bytes:

        form = self._form
        if form.in_order:
            self._check_order(frame["t_ns"])
        since = frame["t_ns"] + self._rest_ns
        if rounded := int((since % form.tick_ns != 0).sum()):
            self.changed[f"given a time rounded down to {format_quantity(form.tick_ns / NS_PER_S, 's')}"] += rounded
        stamps = since // form.tick_ns + self._first_tick
        if (stamps < 0).any():
            raise BadInput(f"a request is before the zero of {form.title}'s clock: put the requests in order first")
        self._had_response = self._had_response or frame["response_ns"].null_count() < frame.height
        named, fresh = self.names.fitted(frame.with_columns(stamps.alias("stamp")))
        self.requests += frame.height
        announced = form.announce(fresh, stamps[0]) if form.announce else ""
        lines = self._write(named).write_csv(include_header=False, separator=form.separator, quote_style="never")
        return (announced + lines).encode()

    def _check_order(self, t_ns: polars.Series) -> None:
        if self._latest_ns is None:  # the first of all may come before the one that the times count from
            early = (self._form.starts_at or 0) - self._first_tick - (t_ns[0] + self._rest_ns) // self._form.tick_ns
            self._rest_ns += max(0, early) * self._form.tick_ns
        if not t_ns.is_sorted() or (self._latest_ns is not None and t_ns[0] < self._latest_ns):
            raise BadInput(f"{self._form.title} needs requests in the order of their time, and these are not")
        self._latest_ns = t_ns[-1]


def _first_tick(form: Format, origin: Origin) -> tuple[int, int]:
    """The stamp of a request at ``t_ns`` 0 in ticks of ``form``, and the nanoseconds that it is later than that."""
    if form.starts_at is not None:
        return form.starts_at, 0
    keeps = form.clock is not Clock.START or origin.clock is not Clock.UNIX
    return divmod((origin.ns if keeps else 0) - form.epoch_ns, form.tick_ns)
