"""The errors of a striped store, beside those of the codec and the drives."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rackloop.errors import BadInput, ProductFailed
from rackloop_models.erasure import UnrecoverableError


class NoStripedStore(BadInput):
    """A drive carries no striped store, another store's, or is another than it was said to be."""


class NoSuchObject(BadInput):
    """There is no object of this number, or it was removed."""


class StripeLost(UnrecoverableError):
    """More than ``m`` units of a stripe cannot be had: its object cannot be read until drives come back.

    ``number`` is the object's and the stripe's, ``drives`` are those whose units are missing, in codeword order, and
    ``erased`` are their positions in the codeword.
    """

    def __init__(self, number: int, erased: Collection[int], drives: Sequence[str], m: int, why: str) -> None:
        self.number = number
        self.drives = tuple(drives)
        self.erased = tuple(erased)
        self.m = m
        positions = ", ".join(
            f"{position} on {drive}" for position, drive in zip(self.erased, self.drives, strict=True)
        )
        ProductFailed.__init__(
            self,
            f"object {number}: {len(self.erased)} units of stripe {number} are lost ({positions}) and its {m} "
            f"redundancy units recover {m} at most; bring drives back{f' ({why})' if why else ''}",
        )


class TooFewDrives(ProductFailed):
    """A write found fewer than ``k`` drives of its stripe that take it. The message says what the object has now."""
