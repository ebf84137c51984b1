"""The capacity overhead of redundancy by file sizes: eq. 2 and Fig. 10 of the paper."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rackloop.errors import BadInput
from rackloop_models.tail_latency._codes import SECTOR_BYTES

_STEPS = 400
_LINE = re.compile(r"(\d{1,18})(?:[\s,;]+(\d{1,15}))?")
_KB, _MB, _GB = 10**3, 10**6, 10**9


@dataclass(frozen=True)
class FileSizes:
    """The number of files of each size in bytes; ``assumed`` says what is made up, and from what."""

    name: str
    files: Mapping[int, float]
    assumed: str = ""

    @property
    def count(self) -> float:
        """The number of files."""
        return math.fsum(self.files.values())

    @property
    def bytes(self) -> float:
        """The bytes in them."""
        return math.fsum(size * count for size, count in self.files.items())


def capacity_overhead(sizes: FileSizes, k: int, m: int) -> float:
    """Redundancy sectors over user sectors: each file of x sectors has ceil(x / k) groups of m (eq. 2).

    A file without a byte has neither. Raises BadInput where all files are empty, or the code cannot be.
    """
    if k < 1 or m < 0:
        raise BadInput(f"a group has at least 1 user sector and no less than 0 redundancy sectors, found ({k}, {m})")
    user = redundancy = 0.0
    for size, count in sizes.files.items():
        sectors = -(-size // SECTOR_BYTES)
        user += sectors * count
        redundancy += -(-sectors // k) * m * count
    if not user:
        raise BadInput(f"{sizes.name}: no file has a byte in it; an overhead is a share of what is stored")
    return redundancy / user


def read_file_sizes(path: Path) -> FileSizes:
    r"""The sizes in a text file: one in bytes a line (``find -printf '%s\n'``), or a size and how many files have it.

    Columns are parted by blanks, a comma or a semicolon; empty lines and what follows a ``#`` do not count. Raises
    BadInput with the line's number for anything else.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise BadInput(f"{path}: cannot be read: {reason}; give a text file of file sizes") from error
    files: dict[int, float] = {}
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        found = _LINE.fullmatch(text)
        if not found:
            raise BadInput(
                f"{path}:{number}: expected a size in bytes, or a size and a number of files, found {text[:60]!r}"
            )
        files[int(found[1])] = files.get(int(found[1]), 0.0) + float(found[2] or 1)
    if not files:
        raise BadInput(f"{path}: has no file size in it; write one with find DIR -type f -printf '%s\\n'")
    return FileSizes(path.name, files)


@dataclass(frozen=True)
class _Class:
    """A share of what is stored, in files from ``low`` to ``high`` bytes."""

    share: float
    low: int
    high: int


_SMALL_KB, _LARGE_MB = (1, 10 * _KB), (100 * _MB, _GB)
_MIDDLE = (100 * _KB, _MB)


@dataclass(frozen=True)
class _Benchmark:
    """A benchmark's files, the part of it that the paper says, and the part that it does not."""

    known: str
    assumed: str
    classes: tuple[_Class, ...]


_BENCHMARKS = {
    "pagerank": _Benchmark(
        "more than 95 % of the storage used is in files of 100 kB to 1 MB, 1.4 % in files below 10 kB",
        "the rest is in files of 1 MB to 100 MB",
        (_Class(0.95, *_MIDDLE), _Class(0.014, *_SMALL_KB), _Class(0.036, _MB, 100 * _MB)),
    ),
    "bayes": _Benchmark(
        "a large number of files is small",
        "70 % are in files of 100 kB to 1 MB, 0.7 % in files below 10 kB, the rest in 1 MB to 1 GB",
        (_Class(0.70, *_MIDDLE), _Class(0.007, *_SMALL_KB), _Class(0.293, _MB, _GB)),
    ),
    "nutch": _Benchmark(
        "a large number of files is small",
        "45 % are in files of 100 kB to 1 MB, 0.5 % in files below 10 kB, the rest in 1 MB to 1 GB",
        (_Class(0.45, *_MIDDLE), _Class(0.005, *_SMALL_KB), _Class(0.545, _MB, _GB)),
    ),
    "kmeans": _Benchmark(
        "large files dominate",
        "98 % are in files of 100 MB to 1 GB, the rest in 10 kB to 100 MB",
        (_Class(0.98, *_LARGE_MB), _Class(0.02, 10 * _KB, 100 * _MB)),
    ),
    "hivebench": _Benchmark(
        "more than 99 % of the storage used is in files above 100 MB",
        "these go to 1 GB, and the rest is in files of 10 kB to 100 MB",
        (_Class(0.99, *_LARGE_MB), _Class(0.01, 10 * _KB, 100 * _MB)),
    ),
}
BENCHMARKS = tuple(_BENCHMARKS)


def synthetic_file_sizes(benchmark: str) -> FileSizes:
    """Made-up sizes that stand for a benchmark of the paper's, from what it says of them; the rest is ``assumed``.

    Shares of the storage used are shares of the sectors. Raises BadInput for a name that is not among
    :data:`BENCHMARKS`.
    """
    if benchmark not in _BENCHMARKS:
        raise BadInput(
            f"there is no benchmark {benchmark!r}; choose of {', '.join(BENCHMARKS)}, or give a file of sizes"
        )
    found = _BENCHMARKS[benchmark]
    files: dict[int, float] = {}
    for part in found.classes:
        for size, count in _spread(part):
            files[size] = files.get(size, 0.0) + count
    known = f"known: {found.known}; assumed: {found.assumed}, and within a range every size is equally frequent"
    return FileSizes(benchmark, files, known)


def _spread(part: _Class) -> Iterable[tuple[int, float]]:
    """Sizes evenly over the range, as often each as gives the class its share of one sector."""
    width = (part.high - part.low) / _STEPS
    sizes = [round(part.low + (step + 0.5) * width) for step in range(_STEPS)]
    count = part.share / sum(-(-size // SECTOR_BYTES) for size in sizes)
    return [(size, count) for size in sizes]
