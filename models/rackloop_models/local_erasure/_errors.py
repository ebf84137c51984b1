"""The errors of a store on one drive, beside those that every drive can give."""

from __future__ import annotations

from collections.abc import Sequence

from rackloop.errors import BadInput, ProductFailed
from rackloop_models.erasure import UnrecoverableError


class NoStore(BadInput):
    """The drive carries no store."""


class UnknownSuperblock(BadInput):
    """The drive carries a store of a version that is not known here."""


class StoreInUse(BadInput):
    """Another process has the store open, or has taken it since it was opened here."""


class NoSuchFile(BadInput):
    """No file, or folder, has that name, or it was removed since it was opened."""


class FileExists(BadInput):
    """A file or a folder has that name already."""


class NameTooLong(BadInput):
    """A name, with those of the folders it lies in, has more bytes than there is room for."""


class FolderNotEmpty(BadInput):
    """A folder has something in it."""


class NoRoom(BadInput):
    """The drive has no room for what was asked. Nothing of it was done."""


class ReplicasDisagree(ProductFailed):
    """No replica of a metadata sector can be believed. ``sectors`` are their numbers on the drive, the lead first."""

    def __init__(self, what: str, sectors: Sequence[int], why: str) -> None:
        self.sectors = tuple(sectors)
        places = ", ".join(map(str, self.sectors))
        super().__init__(
            f"{what}: {why} in the replicas at sectors {places}; see that the drive answers; what is on it is "
            "lost only if it does"
        )


class GroupUnrecoverable(UnrecoverableError):
    """More sectors of a group cannot be read, by any means, than its redundancy can stand for.

    ``file`` and ``group`` say whose it is, ``sectors`` are the numbers on the drive of those that cannot be read, and
    ``erased`` their positions in the group. ``m`` is how many could have been computed.
    """

    def __init__(self, file: str, group: int, sectors: Sequence[int], erased: Sequence[int], m: int) -> None:
        super().__init__(erased, m)
        self.file = file
        self.group = group
        self.sectors = tuple(sectors)
        shown = ", ".join(map(str, self.sectors[:20])) + (", ..." if len(self.sectors) > 20 else "")
        worth = f"its redundancy recovers {m} at most" if m else "its redundancy is not up to date"
        found = f"{len(self.sectors)} sectors cannot be read (drive sectors {shown}) and {worth}"
        self.args = (f"file {file!r}, group {group}: {found}; restore the file from another copy",)
