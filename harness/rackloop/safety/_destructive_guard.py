"""The destructive guard: nothing is written to a drive that is not beyond doubt the one the description means.

Writers take a :class:`WritableDrive`, and only :meth:`Guard.writable` makes one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from rackloop.abilities import BlockDevice, BlockUsage, Claim, Drive, DriveIdentity, WritableDrive
from rackloop.abilities.storage import _MINT
from rackloop.drive_identifiers import conflicts, normal_text, unique_of
from rackloop.errors import BadInput, GuardRefused, LabError, RackloopError, UnfitDrive
from rackloop.lab import mismatches
from rackloop.record.acts import AskGuard

if TYPE_CHECKING:
    from rackloop.abilities.inventory import SeenDrive
    from rackloop.clock import Deadline
    from rackloop.lab import Drive as DescribedDrive
    from rackloop.lab import Lab
    from rackloop.record import ActLog

NOT_SCRATCH = "the description does not mark it scratch: true; its content may be worth keeping"


@runtime_checkable
class Located(Protocol):
    """A Drive or a BlockDevice that says on which path it is, both in the same words.

    Such as ``srv1.p0`` or ``srv1:/dev/nvme0n1``.
    """

    @property
    def location(self) -> str: ...


@runtime_checkable
class ReportsIdentity(Located, Protocol):
    """A BlockDevice that reports the identity of the drive behind it.

    ``identifiers`` has ``serial`` among its keys and is empty where the transport carries none; ``drive_bytes`` is
    None where the path has a size of its own, whatever drive is behind it. ``bound_to`` is the same device as that
    drive alone is reached by, so that a write never goes to another one that takes its place; it is the device itself
    where its claim, or nothing, keeps it to one drive.
    """

    def drive_bytes(self) -> int | None: ...
    def identifiers(self) -> Mapping[str, str]: ...
    def bound_to(self, identity: DriveIdentity) -> BlockDevice: ...


@runtime_checkable
class SingleSurvey(Protocol):
    """A BlockDevice that gives identity, size and use of its drive by one query."""

    def seen(self, deadline: Deadline) -> SeenDrive: ...


class Leased(Protocol):
    """The lease that a drive is to be written under, as the guard asks it."""

    def refusals(self, drive_id: str, through: str) -> Sequence[str]:
        """The reasons, asked of the store, not to write the drive: the lease is over, the drive is out of service.

        ``through`` is the server port that leads there, ``srv1.p0``, or the server where its port cannot be told.
        Raises GuardRefused where the drive is not in the lease: that is the fault of the test, not of the lab.
        """
        ...

    def record_attempt(self, drive_id: str, reasons: Sequence[str]) -> None:
        """Keep, on disk, that the drive was to be written; ``reasons`` are those against it, none where it may be.

        Raises LabError where it cannot be kept, or where it may be no more because the lease ended meanwhile.
        """
        ...


@dataclass(frozen=True)
class Evidence:
    """The findings at the end of the path that would be written through."""

    identity: DriveIdentity
    drive_location: str
    device_location: str
    path_bytes: int
    drive_bytes: int | None
    path_identifiers: Mapping[str, str]
    usage: BlockUsage


class Guard:
    """Mints writable drives of ``lab`` under ``lease``; without one it refuses every drive.

    ``seen`` are the identities of all drives found on the bench, each drive once. Every attempt is kept with the lease,
    however it ends and before it is granted, and with ``log`` announced in the event stream and closed with its
    outcome.
    """

    def __init__(
        self, lab: Lab, lease: Leased | None, *, seen: Sequence[DriveIdentity] = (), log: ActLog | None = None
    ) -> None:
        self._lab = lab
        self._lease = lease
        self._seen = tuple(seen)
        self._log = log

    def writable(self, drive_id: str, drive: Drive, device: BlockDevice, deadline: Deadline) -> WritableDrive:
        """The permission to overwrite ``drive_id`` through ``device``; ``drive`` identifies what is there now.

        Both must say on which path they are (:class:`Located`, :class:`ReportsIdentity`). The device is claimed, and
        looked at before and after. Raises GuardRefused with every reason against it, LabError where the drive cannot
        be asked.
        """
        act = self._log.announce(AskGuard(drive_id, place_of(device))) if self._log else 0
        try:
            minted = self._mint(drive_id, drive, device, deadline)
        except RackloopError as error:
            if self._log:
                self._log.done(act, error=str(error))
            raise
        if self._log:
            self._log.done(act, result={"serial": minted.serial})
        return minted

    def _mint(self, drive_id: str, drive: Drive, device: BlockDevice, deadline: Deadline) -> WritableDrive:
        with ExitStack() as held:
            try:
                bound, claim, identity, reasons = self._examine(drive_id, drive, device, deadline, held)
            except RackloopError as error:
                if self._lease is not None:
                    # A store that cannot keep the attempt grants nothing either; what ended it is what is told.
                    with suppress(LabError):
                        against = error.reasons if isinstance(error, GuardRefused) else (str(error),)
                        self._lease.record_attempt(drive_id, against)
                raise
            if self._lease is not None:
                self._lease.record_attempt(drive_id, reasons)
            if reasons:
                is_writable = drive_id in self._lab.drives and self._lab.drives[drive_id].scratch
                raise (UnfitDrive if is_writable else GuardRefused)(drive_id, reasons)
            held.pop_all()
            return WritableDrive(_MINT, drive_id, normal_text(identity.serial), identity.size_bytes, bound, claim)

    def _examine(
        self, drive_id: str, drive: Drive, device: BlockDevice, deadline: Deadline, held: ExitStack
    ) -> tuple[BlockDevice, Claim | None, DriveIdentity, list[str]]:
        """The device bound to the drive, its claim, which ``held`` gives back, who it is, every reason against it."""
        before, bound = _look(drive_id, drive, device, deadline)
        reasons = self._refusals(drive_id, before)
        claim: Claim | None = None
        try:
            claim = bound.claim_exclusive()
        except LabError as error:
            reasons.append(str(error))
        if claim is not None:
            held.callback(claim.close)
        after, _ = _look(drive_id, drive, device, deadline)
        if after.identity != before.identity:
            reasons.append("another drive was there the second time it was looked at; is another controller remapping?")
        return bound, claim, after.identity, list(dict.fromkeys([*reasons, *self._refusals(drive_id, after)]))

    def _refusals(self, drive_id: str, found: Evidence) -> list[str]:
        through = _server_port(self._lab, drive_id, found.device_location)
        return [*refusals(self._lab, drive_id, found, self._seen), *lease_refusals(self._lease, drive_id, through)]


def require_may_disturb(lab: Lab, lease: object | None) -> None:
    """Raise BadInput for a physical lab without a lease: nothing else keeps two people off one rack."""
    if lab.kind == "physical" and lease is None:
        raise BadInput(
            f"lab {lab.name} is physical: nothing is written and nothing is broken there without a lease; "
            f"take one with `rackloop lab lease {lab.name}`, or let `rackloop run` take it"
        )


def lease_refusals(lease: Leased | None, drive_id: str, through: str) -> list[str]:
    """The reasons not to write the drive under ``lease`` by way of ``through``; empty where there are none."""
    if lease is None:
        return ["it is not leased; lease the rack, or the server that has it"]
    return [*lease.refusals(drive_id, through)]


def refusals(lab: Lab, drive_id: str, found: Evidence, seen: Sequence[DriveIdentity] = ()) -> list[str]:
    """Every reason not to overwrite what was found as ``drive_id``, under any lease; empty where there is none."""
    reasons: list[str] = []
    described = lab.drives.get(drive_id)
    if described is None:
        known = ", ".join(sorted(lab.drives))
        reasons.append(f"the description of {lab.name} has no drive of that name; it has {known}")
    else:
        if not described.scratch:
            reasons.append(NOT_SCRATCH)
        reasons += _identity_reasons(described, found)
        reasons += _size_reasons(described.size, found)
        reasons += _shared_in_description(lab, drive_id, found.identity)
    reasons += _shared_on_bench(found.identity, seen)
    if found.drive_location != found.device_location:
        reasons.append(f"it was identified at {found.drive_location}, but I/O would go to {found.device_location}")
    reasons += (f"it is in use: {claim}" for claim in found.usage.claims)
    if found.usage.is_boot_drive:
        reasons.append("it is the boot drive")
    return reasons


def _server_port(lab: Lab, drive_id: str, location: str) -> str:
    """The server port that a path leads through; a path of a node, ``srv1:/dev/sda``, tells the server alone."""
    server, is_node, _ = location.partition(":")
    described_at = lab.places.get(drive_id, ("", ""))
    return ".".join(described_at) if is_node and described_at[0] == server else server


def place_of(device: BlockDevice) -> str:
    """The place of a device: its path in words, or what opens it, whichever drive it is bound to."""
    return device.location if isinstance(device, Located) else device.probe_target()


def _look(drive_id: str, drive: Drive, device: BlockDevice, deadline: Deadline) -> tuple[Evidence, BlockDevice]:
    """The findings on the path, and the device that reaches the drive that was found and no other."""
    if not isinstance(drive, Located) or not isinstance(device, ReportsIdentity):
        silent = device if isinstance(drive, Located) else drive
        raise GuardRefused(drive_id, [f"{type(silent).__name__} does not say on which path it is"])
    if isinstance(device, SingleSurvey):
        # Each further question could be answered by another drive.
        seen = device.seen(deadline)
        identity, usage = seen.identity, seen.usage
        sizes: tuple[int, int | None] = (identity.size_bytes, identity.size_bytes)
        identifiers: Mapping[str, str] = {"serial": identity.serial, **identity.identifiers}
    else:
        identity = drive.identify(deadline)
        sizes = (device.size_bytes, device.drive_bytes())
        identifiers, usage = device.identifiers(), device.usage()
    return Evidence(identity, drive.location, device.location, *sizes, identifiers, usage), device.bound_to(identity)


def _identity_reasons(described: DescribedDrive, found: Evidence) -> Iterator[str]:
    yield from mismatches(described, found.identity)
    expected = {"serial": described.serial, **described.identifiers}
    yield from conflicts(expected, found.path_identifiers, f"{found.device_location} itself")


def _size_reasons(described_bytes: int, found: Evidence) -> Iterator[str]:
    for who, size in (("the drive", found.identity.size_bytes), (f"{found.device_location} itself", found.drive_bytes)):
        if size is not None and size != described_bytes:
            yield f"the size is described as {described_bytes} bytes, {who} has {size}"
    if found.path_bytes < described_bytes:
        yield f"only {found.path_bytes} of its {described_bytes} bytes can be reached at {found.device_location}"


def _shared_in_description(lab: Lab, drive_id: str, identity: DriveIdentity) -> Iterator[str]:
    described = lab.drives[drive_id]
    mine = unique_of(described.serial, described.identifiers) | unique_of(identity.serial, identity.identifiers)
    others = {name: other for name, other in lab.drives.items() if name != drive_id}
    for other_id, other in others.items():
        for name, value in sorted(mine & unique_of(other.serial, other.identifiers)):
            yield f"drive {other_id} is described with the same {name} {value}"
        for name in ("by_path", "slot"):
            value = getattr(described, name)
            if value is not None and _place(described, name) == _place(other, name):
                yield f"drive {other_id} is described with the same {name} {value}"


def _place(described: DescribedDrive, name: str) -> tuple[object, ...]:
    """A slot is one of its expander's, a by-path name one of its server's: two may have the same."""
    return (described.expander, described.attached and described.attached[0], getattr(described, name))


def _shared_on_bench(identity: DriveIdentity, seen: Sequence[DriveIdentity]) -> Iterator[str]:
    mine = unique_of(identity.serial, identity.identifiers)
    sharing = [other for other in seen if mine & unique_of(other.serial, other.identifiers)]
    if len(sharing) > 1:
        yield f"{len(sharing)} drives on the bench share its serial or an identifier"
    for other in sharing:
        its = unique_of(other.serial, other.identifiers)
        # Its path and slot are not compared: the switch may have moved it since it was seen.
        if its != mine or replace(other, identifiers={}) != replace(identity, identifiers={}):
            shared = ", ".join(f"{name} {value}" for name, value in sorted(mine & its))
            yield f"another drive on the bench, {other.model} {other.serial}, has the same {shared}"
