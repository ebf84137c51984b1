"""The destructive guard against random worlds: bytes reach a drive where every condition holds, and no other, ever.

Each world has drives in memory that keep every byte written to them. A writer tries what it can: with the guard's
permission, with one given back, with one it made itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop.abilities import BlockUsage, DriveIdentity, WritableDrive
from rackloop.clock import VirtualClock
from rackloop.errors import BadInput, GuardRefused, LabError
from rackloop.lab import Lab, LabKind, parts_of
from rackloop.safety import Leased
from rackloop.safety import _destructive_guard as guard
from rackloop.safety.leases import HEARTBEAT_S, HeldLease, Holder, Leases
from rackloop.safety.store import open_store
from rackloop.seed import Stream, stream
from tests.unit.harness.guard_case import Case, FarDrive, SimDevice
from tests.unit.harness.sim_rack import described, identity_of


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return described(tmp_path_factory.mktemp("lab"))


@dataclass(frozen=True)
class World:
    """Everything the guard may meet, drawn at random: what is described and what is there."""

    kind: LabKind
    drive_id: str
    scratch: bool
    described_wwn: str | None
    described_slot: str | None
    other_serial: str
    model: str
    serial: str
    wwn: str | None
    slot: str | None
    size: int
    path_bytes: int
    node_bytes: int | None
    node_wwn: str | None
    device_at: str
    claims: tuple[str, ...]
    is_boot: bool
    holder: str
    clone_wwn: str | None
    later_serial: str | None
    lease: str


# What is right comes first; the rest is what a bench, a description or a holder can have wrong.
VALUES: dict[str, tuple[object, ...]] = {
    "kind": (LabKind.MOCK, LabKind.VIRTUAL, LabKind.PHYSICAL),
    "drive_id": ("d01", "d99", ""),
    "scratch": (True, False),
    "described_wwn": ("5000c500a0000001", None, "5000c500a0000002"),
    "described_slot": (None, "4"),
    "other_serial": ("RL000004", "RL000001"),
    "model": ("RL SATA SSD", "RL  SATA SSD ", "OTHER"),
    "serial": ("RL000001", " RL000001 ", "RL000002", "", "rl000001"),
    "wwn": ("5000c500a0000001", "0x5000C500A0000001", None, "5000c500a0000002", "0" * 16, "junk"),
    "slot": (None, "4", "04", "5"),
    "size": (8 << 30, 4 << 30),
    "path_bytes": (8 << 30, 16 << 30, 4 << 30),
    "node_bytes": (None, 8 << 30, 4 << 30),
    "node_wwn": (None, "naa.5000c500a0000001", "naa.5000c500a0000002"),
    "device_at": ("srv1.p0", "srv1.p1"),
    "claims": ((), ("sda is held by md array md0",)),
    "is_boot": (False, True),
    "holder": ("", "zpool"),
    "clone_wwn": (None, "5000C500A0000001", "5000c500a0000077"),
    "later_serial": (None, "RL000002"),
    "lease": ("whole", "server", "other", "none", "stolen", "over", "stolen between the looks"),
}
_WRONG = 0.1
MARK = b"rackloop was here"


def mostly(good: object, *bad: object) -> st.SearchStrategy[object]:
    """The good value most of the time, so that whole worlds without a fault come up too."""
    return st.sampled_from([good] * 12 + list(bad))


WORLDS = st.builds(World, **{name: mostly(*values) for name, values in VALUES.items()})


def digits(wwn: str | None) -> str | None:
    """A WWN as the reference below compares it; None for what is none, or zeroes."""
    text = (wwn or "").lower().replace("naa.", "").replace("0x", "")
    return text if len(text) == 16 and set(text) <= set("0123456789abcdef") and text != "0" * 16 else None


def may_be_written(world: World) -> bool:
    """The conditions of the guard, written down a second time, as one conjunction."""
    wwn = digits(world.wwn)
    identified = (
        " ".join(world.model.split()) == "RL SATA SSD"
        and world.serial.strip() == "RL000001"
        and world.later_serial in {None, world.serial}
        and world.wwn != "junk"
        and (world.described_wwn is None or wwn == world.described_wwn)
        and (world.described_slot is None or (world.slot or "x").lstrip("0") == world.described_slot)
        and (world.node_wwn is None or world.described_wwn in {None, digits(world.node_wwn)})
        and world.device_at == "srv1.p0"
    )
    alone = world.other_serial != "RL000001" and (
        digits(world.clone_wwn) is None or digits(world.clone_wwn) not in {wwn, world.described_wwn}
    )
    unused = not world.claims and not world.is_boot and not world.holder
    fits = world.size == 8 << 30 and world.path_bytes >= 8 << 30 and world.node_bytes in {None, 8 << 30}
    allowed = world.drive_id == "d01" and world.scratch and world.lease in {"whole", "server"}
    return identified and alone and unused and fits and allowed


class Leasing:
    """A store, and the lease that a world says its writer has: really granted, stolen, or over."""

    def __init__(self, lab: Lab) -> None:
        self.clock = VirtualClock()
        self.store = open_store(":memory:", self.clock)
        self.leases = Leases(self.store, lab.name)
        self.kind, self.held = "", cast("HeldLease | None", None)
        self.whole, self.mine, self.others = parts_of(lab), parts_of(lab, ["srv1"]), parts_of(lab, ["srv2"])

    def lease_of(self, world: World, case: Case) -> Leased | None:
        if world.lease == "none":
            return None
        if world.lease == self.kind and self.held is not None:
            return self.held
        for lease in self.leases.held():
            self.leases.release(lease)
        part = {"whole": self.whole, "other": self.others}.get(world.lease, self.mine)
        ticket = self.leases.request(part, Holder("ann", "here"))
        assert ticket.lease is not None
        if world.lease == "stolen":
            self.steal()
        elif world.lease == "over":
            self.clock.advance(HEARTBEAT_S + 1)
        elif world.lease == "stolen between the looks":
            case.device.when_claimed = self.steal
        held = HeldLease(self.leases, ticket.lease)
        # One that nothing happens to serves the next world too.
        self.kind, self.held = (world.lease, held) if world.lease in {"whole", "server", "other"} else ("", None)
        return held

    def steal(self) -> None:
        """Somebody else takes the rack."""
        self.leases.steal(self.leases.request(self.whole, Holder("eve", "elsewhere")), "an outage")


@pytest.fixture(scope="module")
def leasing(lab: Lab) -> Iterator[Leasing]:
    made = Leasing(lab)
    yield made
    made.store.close()


class Bench:
    """The drives of a world, at the ends of its paths: what is found there first, and what is there afterwards."""

    def __init__(self, case: Case, world: World) -> None:
        self._case = case
        self.meant = FarDrive(case.identity)
        self.later = None if world.later_serial is None else FarDrive(replace(case.identity, serial=world.later_serial))
        self.beside = FarDrive(identity_of(case.lab, "d02"))

    def at(self, location: str) -> FarDrive:
        if location != self._case.drive.location:
            return self.beside
        is_swapped = self.later is not None and len(self._case.drive.identities) == 1
        return self.later if is_swapped and self.later else self.meant

    def written(self) -> dict[str, list[tuple[int, bytes]]]:
        """What reached each drive that anything reached."""
        drives = {"the first at the path": self.meant, "the next at the path": self.later, "beside": self.beside}
        return {name: drive.written for name, drive in drives.items() if drive is not None and drive.written}


def write(permit: WritableDrive) -> None:
    """What every writer does: it takes the device from the permission, and writes."""
    device = permit.device
    assert isinstance(device, SimDevice)
    device.write(4096, MARK)


def write_without_permission(case: Case, device: SimDevice) -> None:
    """A permission that somebody makes is none."""
    with pytest.raises(BadInput):
        write(WritableDrive(object(), case.drive_id, case.identity.serial, device.size_bytes, device, None))
    with pytest.raises(BadInput):
        write(object.__new__(WritableDrive))


def attempt(world: World, lab: Lab, leasing: Leasing) -> dict[str, list[tuple[int, bytes]]]:
    """What reached a drive in this world; every attempt under a lease is on record, with its reasons."""
    case = Case.sound(lab)
    case.lab = case.lab.model_copy(update={"kind": world.kind})
    case.describe("d01", scratch=world.scratch, wwn=world.described_wwn, slot=world.described_slot)
    case.describe("d04", serial=world.other_serial)
    identifiers = {"wwn": world.wwn, "slot": world.slot}
    case.reports(model=world.model, serial=world.serial, size_bytes=world.size, identifiers=identifiers)
    case.seen = [case.identity]
    if world.clone_wwn is not None:
        case.seen.append(DriveIdentity("CLONE", "C1", "1", "sata", 1, {"wwn": world.clone_wwn}))
    if world.later_serial is not None:
        case.drive.identities.append(replace(case.identity, serial=world.later_serial))
    reported = {} if world.node_wwn is None else {"wwn": world.node_wwn}
    used = BlockUsage(world.claims, world.is_boot)
    case.device = SimDevice(world.path_bytes, world.device_at, world.node_bytes, reported, used, world.holder)
    bench = Bench(case, world)
    case.device.far_end = bench.at
    case.drive_id = world.drive_id
    case.lease = leasing.lease_of(world, case)
    write_without_permission(case, case.device)
    try:
        with case.mint() as permit:
            write(permit)
        reasons: tuple[str, ...] = ()
        with pytest.raises(LabError, match="given back"):
            write(permit)
    except GuardRefused as refused:
        reasons = refused.reasons
        assert reasons
    if case.lease is not None:
        [last] = leasing.leases.attempts(1)
        assert (last.drive, last.reasons) == (world.drive_id, reasons)
    assert not any(claim.is_held for claim in case.device.claims)
    return bench.written()


def expected(world: World) -> dict[str, list[tuple[int, bytes]]]:
    return {"the first at the path": [(4096, MARK)]} if may_be_written(world) else {}


@given(world=WORLDS)
def test_nothing_is_written_unless_every_condition_holds(lab: Lab, leasing: Leasing, world: World) -> None:
    assert attempt(world, lab, leasing) == expected(world)


def adversarial(chance: Stream) -> World:
    """A world in which anything may be wrong, drawn from the lists the strategies above draw from."""
    drawn: dict[str, object] = {}
    for name, (good, *bad) in VALUES.items():
        drawn[name] = chance.choice(bad) if bad and chance.random() < _WRONG else good
    return World(**drawn)  # type: ignore[arg-type]


def test_in_ten_thousand_adversarial_worlds_not_one_byte_reaches_a_drive_that_must_not_be_written(
    lab: Lab, leasing: Leasing
) -> None:
    chance = stream(5, "adversarial worlds")
    written = 0
    for _ in range(10_000):
        world = adversarial(chance)
        reached = attempt(world, lab, leasing)
        assert reached == expected(world), world
        written += bool(reached)
    # Neither does it refuse all: what is sound is written.
    assert written > 500


@pytest.mark.parametrize(
    ("check", "nothing"),
    [
        ("lease_refusals", lambda _lease, _drive, _through: []),
        ("mismatches", lambda _described, _reported: iter(())),
        ("conflicts", lambda _expected, _reported, _who: iter(())),
        ("_shared_on_bench", lambda _identity, _seen: iter(())),
        ("_shared_in_description", lambda _lab, _drive, _identity: iter(())),
        ("_size_reasons", lambda _described, _found: iter(())),
    ],
)
def test_without_a_check_a_drive_would_be_written_that_must_not_be(
    check: str, nothing: object, lab: Lab, leasing: Leasing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, check, nothing)
    chance = stream(5, "adversarial worlds")
    worlds = (adversarial(chance) for _ in range(10_000))
    assert any(attempt(world, lab, leasing) != expected(world) for world in worlds)
