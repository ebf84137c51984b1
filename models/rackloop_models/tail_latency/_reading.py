"""The parameters of a read: its sectors, the drive, and the decoding; the terms of eq. 4-9."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rackloop.errors import BadInput
from rackloop_models.erasure import require_probability
from rackloop_models.tail_latency._codes import SECTOR_BYTES

SECTOR_S = 60 / 7200 / 250
"""The time of a sector that does not fail: 7200 revolutions a minute, 250 sectors a track."""
MOST_SECTORS = 10_000_000

Charge = Literal["missing", "most"]
"""The charge for decoding the last group: for what it is missing, as eq. 7-9 say, or the most there can be."""


@dataclass(frozen=True)
class Reading:
    """``sectors`` consecutive user sectors, each of which fails at the first attempt with ``ph``.

    One that fails takes the drive ``retry_s`` to read after all, one that does not takes ``sector_s``. Raises BadInput
    for values that cannot be.
    """

    sectors: int
    ph: float
    retry_s: float
    sector_s: float = SECTOR_S

    def __post_init__(self) -> None:
        require_probability("ph", self.ph)
        if not 1 <= self.sectors <= MOST_SECTORS:
            raise BadInput(f"read 1 to {MOST_SECTORS:,} consecutive sectors, found {self.sectors:,}")
        for name, value in (("retry", self.retry_s), ("sector", self.sector_s)):
            if not 0 < value < 60:
                raise BadInput(f"{name}: expected a time above 0 and below a minute such as 20 ms, found {value:g} s")


@dataclass(frozen=True)
class LocalErasure:
    """Groups of ``k`` user sectors and ``m`` redundancy sectors; ``decode_s`` is for 1, 2, ... ``m`` missing ones.

    Raises BadInput for a code that cannot be, and for another number of times.
    """

    k: int
    m: int
    decode_s: tuple[float, ...]
    charge: Charge = "missing"

    def __post_init__(self) -> None:
        if self.k < 1 or self.m < 1:
            raise BadInput(
                f"a group has at least 1 user sector and 1 redundancy sector, found k = {self.k}, m = {self.m}"
            )
        if len(self.decode_s) != self.m or min(self.decode_s) < 0:
            raise BadInput(f"expected {self.m} decode times, for 1 to {self.m} missing sectors, found {self.decode_s}")

    @property
    def codeword(self) -> int:
        """Sectors of a group."""
        return self.k + self.m

    def groups(self, sectors: int) -> tuple[int, int]:
        """The number of whole groups before the last, and the user sectors of the last: 1 to ``k``.

        The paper's l is the quotient, and its k' may be 0. With the last group never empty, the one that is charged for
        decoding is there whatever the number of sectors; where ``k`` does not divide it, both say the same.
        """
        whole = (sectors - 1) // self.k
        return whole, sectors - whole * self.k

    def last_decode_s(self, missing: int) -> float:
        """The time charged for decoding a last group with ``missing`` sectors, from 1 on; beyond ``m`` as for ``m``."""
        return self.decode_s[-1] if self.charge == "most" else self.decode_s[min(missing, self.m) - 1]


def software_decoding(k: int, m: int, bytes_per_s: float = 4e9) -> tuple[float, ...]:
    """Decode times where the speed is ``bytes_per_s`` over the missing sectors.

    The paper's jerasure: 400 MB/s of user data with 10 missing ones, so 4 GB/s with one.
    """
    return tuple(k * SECTOR_BYTES * missing / bytes_per_s for missing in range(1, m + 1))


def hardware_decoding(k: int, m: int, bytes_per_s: float = 4e9) -> tuple[float, ...]:
    """Decode times where the speed is the same whatever is missing: the paper's parallel decoder, 4 GB/s."""
    return (k * SECTOR_BYTES / bytes_per_s,) * m
