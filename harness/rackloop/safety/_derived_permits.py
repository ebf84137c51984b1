"""Permits for the tenants of one drive, and for an array of several, derived from those that the guard minted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from rackloop.abilities import BlockDevice, Claim, WritableDrive
from rackloop.abilities.storage import _MINT
from rackloop.drive_identifiers import conflicts, is_one_drive
from rackloop.errors import GuardRefused, LabError
from rackloop.safety._destructive_guard import ReportsIdentity, SingleSurvey, place_of

if TYPE_CHECKING:
    from rackloop.clock import Deadline


@dataclass(frozen=True)
class TenantRegion:
    """A part of a drive, or all of it, that one tenant writes through ``device``, an export of that alone.

    ``identifiers``, with ``serial`` among the keys, are those that the export must report: none where it is NBD.
    """

    tenant: str
    device: BlockDevice
    offset_bytes: int
    size_bytes: int
    identifiers: Mapping[str, str] = field(default_factory=dict)


def tenant_exports(
    writable: WritableDrive, regions: Sequence[TenantRegion], deadline: Deadline
) -> tuple[WritableDrive, ...]:
    """The permits of the tenants of a drive, one for each of its ``regions`` in their order, to be closed.

    Each is good as long as ``writable`` is, and has its drive and its serial: a tenant may write because the guard
    permitted the drive. Exports are claimed where they can be. Raises GuardRefused with every reason against it, such
    as regions that overlap or an export that two have; otherwise as :meth:`WritableDrive.require` does.
    """
    writable.require()
    reasons = [*_division_reasons(writable, regions)]
    with ExitStack() as held:
        permits = []
        earlier: list[tuple[TenantRegion, Mapping[str, str]]] = []
        for region in regions:
            device, found, against = _looked_at(region, deadline)
            same = [other for other, its in earlier if region.device == other.device or is_one_drive(found, its)]
            reasons += [*against, *(f"tenants {other.tenant} and {region.tenant} have one export" for other in same)]
            earlier.append((region, found))
            claim: Claim | None = None
            try:
                claim = device.claim_exclusive()
            except LabError as error:
                reasons.append(f"the export of tenant {region.tenant}: {error}")
            drive = (writable.drive_id, writable.serial, writable.size_bytes)
            permits.append(held.enter_context(WritableDrive(_MINT, *drive, device, claim, parents=(writable,))))
        if reasons:
            raise GuardRefused(writable.drive_id, list(dict.fromkeys(reasons)))
        held.pop_all()
    return tuple(permits)


def array_export(drives: Sequence[WritableDrive], device: BlockDevice, uuid: str) -> WritableDrive:
    """The permit of an array of ``drives`` and nothing else, which is reached by ``device``; to be closed.

    It is good as long as each of theirs is: ``uuid`` takes the place of a serial. Raises GuardRefused with every reason
    against it; otherwise as :meth:`WritableDrive.require` does.
    """
    for drive in drives:
        drive.require()
    name = "+".join(drive.drive_id for drive in drives)
    reasons = [f"{drive.drive_id} is permitted by a derived permission" for drive in drives if drive.is_derived]
    reasons += [f"{drive.drive_id} has tenants or is in an array already" for drive in drives if drive.has_tenants]
    if not drives or len({drive.drive_id for drive in drives}) < len(drives):
        reasons.append("an array is of several drives, each named once")
    if reasons:
        raise GuardRefused(name, reasons)
    return WritableDrive(_MINT, name, uuid, device.size_bytes, device, None, parents=tuple(drives))


def _division_reasons(writable: WritableDrive, regions: Sequence[TenantRegion]) -> Iterator[str]:
    if writable.is_derived:
        yield "the permission is a tenant's own, which is not divided again"
    if writable.has_tenants:
        yield "it is divided among tenants already, whose permissions stand"
    if not regions:
        yield "it was to be divided among no tenants"
    for name in sorted({one for one, other in pairwise(sorted(region.tenant for region in regions)) if one == other}):
        yield f"tenant {name} has more than one region"
    for region in regions:
        end = region.offset_bytes + region.size_bytes
        if region.offset_bytes < 0 or region.size_bytes <= 0 or end > writable.size_bytes:
            where = f"bytes {region.offset_bytes} to {end}, is not within the {writable.size_bytes} bytes of the drive"
            yield f"the region of tenant {region.tenant}, {where}"
    for one, other in pairwise(sorted(regions, key=lambda region: region.offset_bytes)):
        if other.offset_bytes < one.offset_bytes + one.size_bytes:
            yield f"the regions of tenants {one.tenant} and {other.tenant} overlap at byte {other.offset_bytes}"


def _looked_at(region: TenantRegion, deadline: Deadline) -> tuple[BlockDevice, Mapping[str, str], list[str]]:
    """The export, bound to what it reports where it can be, what it reports, and every reason against writing it."""
    device, whose = region.device, f"the export of tenant {region.tenant}, {place_of(region.device)},"
    if isinstance(device, SingleSurvey) and isinstance(device, ReportsIdentity):
        seen = device.seen(deadline)
        size_bytes, usage = seen.identity.size_bytes, seen.usage
        found: Mapping[str, str] = {"serial": seen.identity.serial, **seen.identity.identifiers}
        device = device.bound_to(seen.identity)
    else:
        size_bytes, usage = device.size_bytes, device.usage()
        found = device.identifiers() if isinstance(device, ReportsIdentity) else {}
    reasons = [*conflicts(region.identifiers, found, whose)]
    reasons += [f"{whose} reports no {name}" for name in region.identifiers if name not in found]
    if size_bytes != region.size_bytes:
        reasons.append(f"{whose} has {size_bytes} bytes, and its region {region.size_bytes}")
    reasons += [f"{whose} is in use: {claim}" for claim in usage.claims]
    if usage.is_boot_drive:
        reasons.append(f"{whose} is the boot drive of its server")
    return device, found, reasons
