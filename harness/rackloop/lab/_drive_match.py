"""Comparing a drive with its description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rackloop.drive_identifiers import conflicts, normal_text
from rackloop.errors import LabError, NameUnknown

if TYPE_CHECKING:
    from rackloop.abilities import Drive, DriveIdentity
    from rackloop.clock import Deadline
    from rackloop.lab._hardware import Drive as DescribedDrive

_POLL_S = 1e-3


def once_online(drive: Drive, deadline: Deadline) -> DriveIdentity:
    """The identity of a drive, once its server has it after a remap. Raises LabError where it never can, or does."""
    return deadline.retry(lambda: drive.identify(deadline), LabError, every_s=_POLL_S, final=(NameUnknown,))


def mismatches(described: DescribedDrive, reported: DriveIdentity) -> Iterator[str]:
    """Differences between a drive's model, serial and identifiers and its description, in words."""
    names = (("model", described.model, reported.model), ("serial", described.serial, reported.serial))
    for name, wanted, found in names:
        if normal_text(wanted) != normal_text(found):
            yield f"the {name} is described as {wanted!r}, the drive reports {found!r}"
    for name, wanted in described.identifiers.items():
        if name not in reported.identifiers:
            yield f"the {name} is described as {wanted}, the drive reports none"
    yield from conflicts({"serial": described.serial, **described.identifiers}, reported.identifiers, "the drive")
