"""The layout of a drive: its code, its replicas, and the regions of its sectors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

from rackloop.errors import BadInput
from rackloop_models.erasure import GF8, GF16, Field, choose_code, metadata_replicas

SECTOR_BYTES = 4096
MOST_REPLICAS = 8
# The starts of groups that one sector of the record of unprotected groups has room for.
RECORDED_STARTS = 500
# Descriptions of groups that a page has room for behind the first page of a file.
PAGE_GROUPS = 330
_MOST_RECORDS = 16
_MOST_JOURNAL = 64


@dataclass(frozen=True)
class Layout:
    """The code of the user data and the replicas of the metadata, the same for all files of a drive.

    Groups have ``k`` user sectors or fewer, and ``m`` redundancy sectors behind them. Metadata sectors have
    ``replicas`` copies. Raises BadInput for what no code is, or more than 8 replicas.
    """

    sector_bytes: ClassVar[int] = SECTOR_BYTES

    k: int
    m: int
    field: Field = GF8
    replicas: int = 2

    def __post_init__(self) -> None:
        if self.k < 1 or self.m < 1:
            raise BadInput(f"a layout needs k and m of at least 1, found k = {self.k}, m = {self.m}")
        if self.k + self.m > self.field.order:
            raise BadInput(
                f"groups over {self.field} have at most {self.field.order} sectors, found k + m = {self.k + self.m}"
            )
        if not 1 <= self.replicas <= MOST_REPLICAS:
            raise BadInput(f"metadata sectors have 1 to {MOST_REPLICAS} replicas, found {self.replicas}")

    @property
    def group_sectors(self) -> int:
        """Sectors of a whole group on the drive."""
        return self.k + self.m

    @classmethod
    def for_failure_probability(cls, ph: float, codeword: int = 255, ps: float = 1e-6) -> Self:
        """The layout with least redundancy for drives whose sectors fail their first read with probability ``ph``.

        Reading a codeword, and a metadata sector with its replicas, fails with a probability of at most ``ps``. The
        field has 2^8 elements up to a codeword of 256, else 2^16.

        Raises BadInput for probabilities outside 0 to 1, and where no code of that length will do.
        """
        m = max(1, choose_code(codeword, ph, ps).m)
        replicas = metadata_replicas(ph, ps)
        if replicas > MOST_REPLICAS:
            raise BadInput(
                f"no code of {codeword} sectors and {MOST_REPLICAS} replicas reaches {ps} at ph = {ph}; ask for less"
            )
        return cls(codeword - m, m, GF8 if codeword <= GF8.order else GF16, replicas)


@dataclass(frozen=True)
class Geometry:
    """The start of each part of a store, in sectors: superblock, record of unprotected groups, journal, pages, data.

    All but the data are metadata: ``records``, ``journal`` and ``pages`` count sectors before replication.
    """

    layout: Layout
    sectors: int
    files: int
    records: int
    journal: int
    pages: int

    @classmethod
    def of(cls, layout: Layout, sectors: int, files: int) -> Self:
        """The geometry of a drive with so many sectors. Raises BadInput where it is too small, or ``files`` below 1."""
        if files < 1:
            raise BadInput(f"a store has room for at least 1 file, found files = {files}")
        geometry = cls._scaled(layout, sectors, files)
        if sectors < geometry.needed:
            needed = geometry.needed
            while (larger := cls._scaled(layout, needed, files)).needed > needed:
                needed = larger.needed
            raise BadInput(
                f"the drive has {sectors} sectors of {SECTOR_BYTES} bytes; {files} files and one group of "
                f"{layout.group_sectors} need {needed}; take a larger drive, fewer files or shorter groups"
            )
        return geometry

    @classmethod
    def _scaled(cls, layout: Layout, sectors: int, files: int) -> Self:
        groups = -(-sectors // layout.group_sectors)
        records = max(1, min(_MOST_RECORDS, -(-groups // RECORDED_STARTS)))
        pages = files + -(-groups // PAGE_GROUPS)
        return cls(layout, sectors, files, records, min(pages, _MOST_JOURNAL), pages)

    @property
    def needed(self) -> int:
        """Sectors that the metadata and one whole group take."""
        return self.data_at + self.layout.group_sectors

    @cached_property
    def records_at(self) -> int:
        """The first sector of the record of unprotected groups."""
        return MOST_REPLICAS

    @cached_property
    def journal_at(self) -> int:
        """The first sector of the journal, whose first sector before replication says what is in the others."""
        return self.records_at + self.records * self.layout.replicas

    @cached_property
    def pages_at(self) -> int:
        """The first sector of the pages."""
        return self.journal_at + (1 + self.journal) * self.layout.replicas

    @cached_property
    def data_at(self) -> int:
        """The first sector of the data."""
        return self.pages_at + self.pages * self.layout.replicas
