"""Attempts to write a drive, for the tests of the destructive guard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pytest

from rackloop.abilities import BlockUsage, Claim, DriveIdentity, WritableDrive
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import GuardRefused, LabError
from rackloop.lab import Lab
from rackloop.safety import Guard, Leased
from tests.leased import EverythingLeased
from tests.unit.harness.sim_rack import identity_of

DEADLINE = Deadline.after(VirtualClock(), 5)


@dataclass
class SimDrive:
    """A Drive that answers with ``identities`` in turn, the last one for ever."""

    identities: list[DriveIdentity]
    location: str = "srv1.p0"

    def identify(self, deadline: Deadline) -> DriveIdentity:
        return self.identities.pop(0) if len(self.identities) > 1 else self.identities[0]

    def health(self, deadline: Deadline) -> dict[str, int]:
        return {}


@dataclass
class FarDrive:
    """What is at the far end of a path: it keeps every byte that reaches it."""

    identity: DriveIdentity
    written: list[tuple[int, bytes]] = field(default_factory=list)


@dataclass
class SimClaim:
    """A claim that holds until it is closed, unless ``exchanged`` says which drive took the place."""

    exchanged: str = ""
    is_held: bool = True

    def require(self, drive_id: str, descriptor: int | None = None) -> None:
        if self.exchanged:
            raise GuardRefused(drive_id, [f"its serial is {self.exchanged}"])

    def close(self) -> None:
        self.is_held = False


@dataclass
class SimDevice:
    """A BlockDevice that can be claimed once. Whatever is written to it reaches the drive ``far_end`` says is there."""

    size_bytes: int
    location: str = "srv1.p0"
    behind_bytes: int | None = None
    reported: Mapping[str, str] = field(default_factory=dict)
    used: BlockUsage = field(default_factory=BlockUsage)
    holder: str = ""
    claimable: bool = True
    claims: list[SimClaim] = field(default_factory=list)
    when_claimed: Callable[[], None] = lambda: None
    far_end: Callable[[str], FarDrive] | None = None

    def drive_bytes(self) -> int | None:
        return self.behind_bytes

    def write(self, offset: int, data: bytes) -> None:
        assert self.far_end is not None
        self.far_end(self.location).written.append((offset, data))

    def fio_options(self) -> dict[str, str]:
        return {"ioengine": "null"}

    def probe_target(self) -> str:
        return self.location

    def identifiers(self) -> Mapping[str, str]:
        return self.reported

    def usage(self) -> BlockUsage:
        return self.used

    def bound_to(self, identity: DriveIdentity) -> SimDevice:
        return self

    def claim_exclusive(self) -> Claim | None:
        if not self.claimable:
            return None
        if self.holder:
            raise LabError(f"cannot be claimed: {self.holder} holds it")
        self.when_claimed()
        self.claims.append(SimClaim())
        return self.claims[-1]


@dataclass
class Case:
    """An attempt to write d01 of a lab in which everything is as it should be, before a test makes it otherwise."""

    lab: Lab
    drive_id: str
    drive: SimDrive
    device: SimDevice
    seen: list[DriveIdentity]
    lease: Leased | None = field(default_factory=EverythingLeased)

    @classmethod
    def sound(cls, lab: Lab, drive_id: str = "d01") -> Case:
        identity = identity_of(lab, drive_id)
        seen = [identity_of(lab, other) for other in lab.drives]
        return cls(lab, drive_id, SimDrive([identity]), SimDevice(identity.size_bytes), seen)

    @property
    def identity(self) -> DriveIdentity:
        return self.drive.identities[0]

    def reports(self, identifiers: Mapping[str, str | None] | None = None, **changes: object) -> Case:
        merged: dict[str, str | None] = {**self.identity.identifiers, **(identifiers or {})}
        reported = {name: value for name, value in merged.items() if value is not None}
        self.drive.identities = [replace(self.identity, identifiers=reported, **changes)]  # type: ignore[arg-type]
        return self

    def describe(self, drive_id: str, **changes: object) -> Case:
        drives = {**self.lab.drives, drive_id: self.lab.drives[drive_id].model_copy(update=changes)}
        self.lab = self.lab.model_copy(update={"drives": drives})
        return self

    def mint(self) -> WritableDrive:
        return Guard(self.lab, self.lease, seen=self.seen).writable(self.drive_id, self.drive, self.device, DEADLINE)

    def reasons(self) -> tuple[str, ...]:
        with pytest.raises(GuardRefused) as raised:
            self.mint()
        assert raised.value.exit_code == 2
        return raised.value.reasons
