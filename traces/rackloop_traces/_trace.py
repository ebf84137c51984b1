"""A trace on disk: its format, its requests in batches, and its problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from rackloop.errors import BadInput
from rackloop.names import guess
from rackloop.units import counted
from rackloop_traces import _blktrace, _source
from rackloop_traces._format import Clock, Format, Origin
from rackloop_traces._lines import LineReader, Malformed
from rackloop_traces._order import ordered
from rackloop_traces._recognise import FORMATS, format_named, recognised

if TYPE_CHECKING:
    import polars

_NS_PER_YEAR = 31_556_952 * 10**9
_FIRST_YEAR = 1990
_LAST_YEAR = 2100
MAX_MALFORMED = 1000
_SAMPLE_BYTES = 64 << 10
_SAMPLE_LINES = 1000


def open_trace(
    path: str | Path,
    format: str | None = None,  # noqa: A002 - what users call it
    volume: str | None = None,
    *,
    max_malformed: int = MAX_MALFORMED,
) -> Trace:
    """The trace at ``path``, plain or compressed with gzip or zstd; only ``volume``'s requests where that is given.

    ``format`` names one of :data:`FORMATS`; else it is recognised from the first thousand lines. Raises BadInput where
    there is no such file, it may not be read, is empty, binary or in no known format, or the format's name is unknown.
    """
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        raise BadInput(f"{path} is no regular file: a trace is read more than once, so put it into a file first")
    wanted = None if format is None else format_named(format)
    sample = b"".join(_head(_text(path), _SAMPLE_BYTES))
    if not sample:
        raise BadInput(f"{path} is empty: there is no request in it")
    if b"\0" in sample:
        raise BadInput(f"{path} is a binary file and no blktrace recording: a trace is text, or gzip or zstd of text")
    lines = sample.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    if len(sample) >= _SAMPLE_BYTES:
        lines = lines[:-1]
    lines = lines[:_SAMPLE_LINES]
    if wanted is None:
        form, doubts = recognised(lines, str(path))
    else:
        form, doubts = wanted, ()
    return Trace(path, form, "\n".join(lines).encode(), volume=volume, doubts=doubts, max_malformed=max_malformed)


def _text(path: Path) -> Iterator[bytes]:
    """The trace's lines in pieces; a recording of blktrace's is made text."""
    pieces = _source.chunks(path)
    first = next(pieces, b"")
    whole = chain((first,), pieces)
    return _blktrace.parsed(path, whole) if _blktrace.is_recording(first) else whole


def _head(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    held = 0
    for piece in pieces:
        yield piece
        held += len(piece)
        if held >= size:
            return


class _Options(TypedDict):
    volume: str | None
    doubts: tuple[str, ...]
    max_malformed: int


class Trace:
    """A block trace; :func:`open_trace` makes one.

    ``origin`` is the moment that ``t_ns`` counts from. What is counted is counted by the last pass of :meth:`batches`,
    as far as it has come: ``requests`` given, ``out_of_order`` of them earlier than one before, ``malformed`` lines,
    and the requests of each of ``volumes``, also of those that are not given.
    """

    def __init__(self, path: Path, form: Format, sample: bytes, **options: Unpack[_Options]) -> None:
        self.path = path
        self.format = form
        self.volume = options["volume"]
        self.malformed = Malformed()
        self.requests = 0
        self.out_of_order = 0
        self.volumes: Counter[str] = Counter()
        self._max_malformed = options["max_malformed"]
        self._doubts = list(options["doubts"])
        self.origin = self._first_moment(sample)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Reasons to doubt the reading of the trace, as sentences; a pass may add some."""
        return tuple(self._doubts)

    def batches(self, *, in_order: bool = False) -> Iterator[polars.DataFrame]:
        """The requests as frames of :func:`columns`, some hundred thousand rows each; every call is a pass of its own.

        ``in_order`` puts requests in the order of their time, if none is more than 262,144 requests from its place.
        Raises BadInput where there are too many malformed lines, no request, none of the wanted volume, a request too
        far from its place, or the compressed data is damaged or cut short.
        """
        frames = self._frames()
        for frame in ordered(frames, str(self.path)) if in_order else frames:
            yield frame.drop("line")

    def _frames(self) -> Iterator[polars.DataFrame]:
        import polars

        reader = LineReader(self.format, list(FORMATS.values()), str(self.path), self._max_malformed)
        self.malformed = reader.malformed
        self.requests = self.out_of_order = 0
        self.volumes = Counter()
        latest_ns: int | None = None
        block = b""
        try:
            for block in _source.blocks(_text(self.path), self.path):
                frame = reader.read(block)
                self._count_volumes(frame)
                if self.volume is not None:
                    frame = frame.filter(polars.col("volume") == self.volume)
                if frame.height:
                    self.requests += frame.height
                    latest = frame["t_ns"].cum_max().clip(lower_bound=latest_ns)
                    self.out_of_order += int((frame["t_ns"] < latest).sum())
                    latest_ns = latest[-1]
                    yield frame
            if block and not block.endswith(b"\n"):
                self._doubt("the last line has no line end: it may be cut short")
        except _source.CutShort as error:
            raise BadInput(f"{error}, after {counted(self.requests, 'request')}") from error
        self._check_not_empty()

    def _count_volumes(self, frame: polars.DataFrame) -> None:
        if self.format.keeps_volume:
            self.volumes.update(dict(frame["volume"].value_counts().iter_rows()))
        else:
            self.volumes["0"] += frame.height

    def _check_not_empty(self) -> None:
        if self.volume is not None and not self.requests:
            raise BadInput(f"{self.path} has no request of volume {self.volume!r}: {guess(self.volume, self.volumes)}")

    def _doubt(self, doubt: str) -> None:
        if doubt not in self._doubts:
            self._doubts.append(doubt)

    def _first_moment(self, sample: bytes) -> Origin:
        """The origin, from the first lines; raises BadInput where none of them is a request."""
        reader = LineReader(self.format, list(FORMATS.values()), str(self.path), len(sample))
        reader.read(sample)
        if reader.first_stamp is None:
            first = f": {reader.malformed.first[0]}" if reader.malformed.first else ""
            raise BadInput(f"{self.path} has no request in its first lines that is {self.format.title}{first}")
        stamp_ns = reader.first_stamp * self.format.tick_ns + self.format.epoch_ns
        if self.format.clock is Clock.UNIX:
            year = 1970 + stamp_ns // _NS_PER_YEAR
            if not _FIRST_YEAR <= year <= _LAST_YEAR:
                self._doubt(
                    f"its first request is of the year {year}: the stamps may be in another unit, or have another zero"
                )
        return Origin(stamp_ns, self.format.clock)
