"""blktrace's recordings: binary records, read through ``blkparse``."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from rackloop.errors import RackloopError, ToolError
from rackloop_traces._columns import Op
from rackloop_traces._expressions import no_response, request_columns, seconds_to_ns
from rackloop_traces._format import NOT_A_REQUEST, SECTOR_BYTES, SECTOR_DIGITS, Clock, Field, Format, Kind

if TYPE_CHECKING:
    import polars

_MAGIC = b"\x65\x61\x74"
_LINE = "%M:%m %T.%9t %d %S %N\\n"
_OF_ONE_CPU = re.compile(r"(?P<base>.+)\.blktrace\.\d+")
_READ_BYTES = 64 << 10


def is_recording(head: bytes) -> bool:
    """True where a file that begins with these bytes holds blktrace's records, of either byte order."""
    return head[:3] == _MAGIC or head[1:4] == _MAGIC[::-1]


def parsed(path: Path, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The output of ``blkparse`` for a recording: a line for each queued request, in the order of time.

    A file called ``NAME.blktrace.0`` is read together with those of the other CPUs beside it; of any other, ``pieces``
    are the bytes. Raises ToolError where ``blkparse`` is missing or fails.
    """
    if shutil.which("blkparse") is None:
        raise ToolError("blkparse is not installed, and it reads blktrace's records: install the package blktrace")
    of_one_cpu = _OF_ONE_CPU.fullmatch(path.name)
    command = ["blkparse", "-q", "-a", "queue", "-f", _LINE, "-i", of_one_cpu["base"] if of_one_cpu else "-"]
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(
            command,
            cwd=path.parent,
            stdin=subprocess.DEVNULL if of_one_cpu else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
        ) as process,
    ):
        feeding = _Feeding(process.stdin, pieces) if process.stdin else None
        try:
            while process.stdout and (chunk := process.stdout.read(_READ_BYTES)):
                yield chunk
        except BaseException:  # the caller wants no more, or was interrupted
            process.kill()
            raise
        finally:
            if feeding:
                feeding.join()
        if feeding and feeding.failure:
            raise feeding.failure
        if status := process.wait():
            said.seek(0)
            raise ToolError(f"blkparse failed on {path} ({status}): {said.read(500).decode(errors='replace').strip()}")


class _Feeding(threading.Thread):
    """Gives a recording to blkparse while its text is taken; ``failure`` is why there was no more to give."""

    def __init__(self, to: IO[bytes], pieces: Iterator[bytes]) -> None:
        super().__init__(daemon=True)
        self.failure: RackloopError | None = None
        self._to = to
        self._pieces = pieces
        self.start()

    def run(self) -> None:
        """Give every piece; blkparse may end first."""
        with suppress(BrokenPipeError), self._to:
            try:
                for piece in self._pieces:
                    self._to.write(piece)
            except RackloopError as error:
                self.failure = error


def _read(frame: polars.DataFrame) -> polars.DataFrame:
    import polars

    rwbs = polars.col("rwbs").str
    op = (
        polars.when(rwbs.contains("D", literal=True))
        .then(Op.TRIM)
        .when(rwbs.contains("F", literal=True) & (polars.col("bytes") == 0))
        .then(Op.FLUSH)
        .when(rwbs.contains("W", literal=True))
        .then(Op.WRITE)
        .when(rwbs.contains("R", literal=True))
        .then(Op.READ)
        .otherwise(NOT_A_REQUEST)
    )
    return frame.select(
        request_columns(
            seconds_to_ns("time"),
            op,
            polars.col("sector") * SECTOR_BYTES,
            polars.col("bytes"),
            polars.col("device"),
            no_response(),
        )
    )


BLKTRACE = Format(
    name="blktrace",
    title="blktrace recording",
    fields=(
        Field("device", Kind.TEXT, shape=r"[0-9]+:[0-9]+"),
        Field("time", Kind.SECONDS),
        Field("rwbs", Kind.TEXT, shape=r"[A-Z]+"),
        Field("sector", Kind.INTEGER, digits=SECTOR_DIGITS),
        Field("bytes", Kind.INTEGER),
    ),
    separator=" ",
    directive=r"^Input file .* added$",
    clock=Clock.START,
    tick_ns=1,
    read=_read,
)
