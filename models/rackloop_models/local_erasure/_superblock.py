"""The superblock: the layout that a drive was formatted with, and the store's owner."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Self

from rackloop_models.erasure import GF8, GF16
from rackloop_models.local_erasure._drive import Drive
from rackloop_models.local_erasure._errors import NoStore, ReplicasDisagree, StoreInUse, UnknownSuperblock
from rackloop_models.local_erasure._layout import MOST_REPLICAS, SECTOR_BYTES, Geometry, Layout
from rackloop_models.local_erasure._owner import Owner
from rackloop_models.local_erasure._replicas import Sealed, seal, unseal

VERSION = 1
_KIND = b"SUPR"
_OWN_MAGIC = b"LEC1"


@dataclass(frozen=True)
class Superblock:
    """The newest superblock of a drive. ``generation`` counts what was written to it; ``owner`` has it open."""

    store_id: bytes
    generation: int
    geometry: Geometry
    owner: Owner | None = None

    @classmethod
    def read(cls, drive: Drive) -> Self:
        """Read the drive; replicas that are damaged or old are written again.

        Raises NoStore, UnknownSuperblock, and ReplicasDisagree where there was one and it cannot be believed.
        """
        raws = drive.read_metadata(0, MOST_REPLICAS)
        found = [unseal(raw, _KIND) if raw is not None else None for raw in raws]
        if not any(found):
            raws = [drive.retry_metadata(sector) for sector in range(MOST_REPLICAS)]
            found = [unseal(raw, _KIND) if raw is not None else None for raw in raws]
        valid = [entry for entry in found if entry]
        if not valid:
            if any(raw is None or raw.startswith(_OWN_MAGIC) for raw in raws):
                raise ReplicasDisagree("superblock", range(MOST_REPLICAS), "nothing whole can be read")
            raise NoStore("the drive carries no local erasure-coded store; format it first")
        newest = max(valid, key=lambda entry: entry[2].generation)
        if any(entry[2].generation == newest[2].generation and entry != newest for entry in valid):
            raise ReplicasDisagree("superblock", range(MOST_REPLICAS), "different contents of one generation")
        superblock = cls._parsed(newest[1], newest[2])
        wrong = [place for place in superblock.places() if found[place] != newest]
        drive.statistics.metadata_repairs += len(wrong)
        for place in wrong:
            drive.write_metadata(place, [superblock.sealed()])
        return superblock

    @classmethod
    def _parsed(cls, store_id: bytes, content: Sealed) -> Self:
        fields = json.loads(content.payload.rstrip(b"\0"))
        if fields["version"] != VERSION:
            raise UnknownSuperblock(
                f"the drive carries a store of version {fields['version']}, version {VERSION} is known here; "
                "use the Rackloop that formatted it"
            )
        field = {GF8.bits: GF8, GF16.bits: GF16}[fields["bits"]]
        layout = Layout(fields["k"], fields["m"], field, fields["replicas"])
        counts = (fields[name] for name in ("sectors", "files", "records", "journal", "pages"))
        owner = Owner.parsed(fields["owner"]) if fields["owner"] else None
        return cls(store_id, content.generation, Geometry(layout, *counts), owner)

    @property
    def _closed(self) -> Self:
        """The one that says that this owner has closed the store."""
        return replace(self, generation=self.generation + 1, owner=None)

    def places(self) -> list[int]:
        """The sectors of the drive that hold it, the lead first."""
        return list(range(self.geometry.layout.replicas))

    def sealed(self) -> bytes:
        """The superblock as a sector."""
        layout = self.geometry.layout
        fields = {
            "version": VERSION,
            "k": layout.k,
            "m": layout.m,
            "bits": layout.field.bits,
            "replicas": layout.replicas,
            "sectors": self.geometry.sectors,
            "files": self.geometry.files,
            "records": self.geometry.records,
            "journal": self.geometry.journal,
            "pages": self.geometry.pages,
            "owner": self.owner.fields() if self.owner else None,
        }
        return seal(_KIND, 0, self.store_id, Sealed(self.generation, json.dumps(fields).encode()))

    def write(self, drive: Drive) -> None:
        """Write all replicas and flush."""
        drive.write_metadata(0, [self.sealed()] * self.geometry.layout.replicas)
        drive.flush()

    def taken(self, drive: Drive, owner: Owner, *, take_over: bool) -> Self:
        """Mark the store as open by ``owner``. Raises StoreInUse while another owner may be alive."""
        if self.owner and not take_over and not self.owner.is_gone():
            raise StoreInUse(
                f"the store is open: {self.owner}; close it there, or take it over if that owner is certainly dead"
            )
        mine = replace(self, generation=self.generation + 1, owner=owner)
        mine.write(drive)
        mine.require_mine(drive)
        return mine

    def released(self, drive: Drive) -> None:
        """Mark the store as closed."""
        self._closed.write(drive)

    def taken_back(self, drive: Drive) -> Self:
        """Mark the store as open by the same owner, after a release that may have failed half-way.

        Raises StoreInUse where another has taken it since.
        """
        found = Superblock.read(drive)
        if found not in (self, self._closed):
            raise StoreInUse(f"the store was taken over: {found.owner or 'it was closed or formatted'}; open it anew")
        mine = replace(self, generation=found.generation + 1)
        mine.write(drive)
        mine.require_mine(drive)
        return mine

    def require_mine(self, drive: Drive) -> None:
        """Raise StoreInUse where another has taken the store."""
        lead = drive.read_metadata(0, 1)[0]
        if lead is not None and lead == self.sealed():
            return
        found = Superblock.read(drive)
        if found.owner != self.owner or found.store_id != self.store_id:
            raise StoreInUse(f"the store was taken over: {found.owner or 'it was closed or formatted'}; open it anew")


def erase_superblock(drive: Drive) -> None:
    """Have no store on the drive any more."""
    drive.write_metadata(0, [bytes(SECTOR_BYTES)] * MOST_REPLICAS)
    drive.flush()
