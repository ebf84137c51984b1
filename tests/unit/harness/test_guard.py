"""The destructive guard: nothing is written unless every condition holds, and every reason against it is said."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from rackloop.abilities import BlockUsage, Claim, Drive, DriveIdentity, WritableDrive, storage
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import BadInput, GuardRefused, LabError, UnfitDrive
from rackloop.lab import Lab
from rackloop.record import ActAnnounced, ActDone, ActLog, EventLog, read_events
from rackloop.safety import Guard
from rackloop.safety import _destructive_guard as guard_module
from tests.leased import EverythingLeased
from tests.unit.harness.guard_case import DEADLINE, Case, SimDevice, SimDrive
from tests.unit.harness.sim_rack import described, identity_of

CLOCK = VirtualClock()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return described(tmp_path_factory.mktemp("lab"))


@pytest.fixture
def case(lab: Lab) -> Case:
    return Case.sound(lab)


@pytest.mark.parametrize("drive_id", ["d01", "d02", "d04"])
def test_a_scratch_drive_that_is_beyond_doubt_is_writable(lab: Lab, drive_id: str) -> None:
    case = Case.sound(lab, drive_id)
    with case.mint() as writable:
        assert (writable.drive_id, writable.serial) == (drive_id, lab.drives[drive_id].serial)
        assert writable.device is case.device
        assert case.device.claims[0].is_held
        assert writable.is_claimed
    assert not case.device.claims[0].is_held
    assert not writable.is_claimed


def test_a_path_that_nobody_can_claim_is_writable_unclaimed(case: Case) -> None:
    case.device.claimable = False
    with case.mint() as writable:
        assert not writable.is_claimed


def test_identifiers_are_compared_whatever_their_spelling(case: Case) -> None:
    case.reports(model="RL  SATA SSD   ", serial=" RL000001", identifiers={"wwn": "0x5000C500A0000001"})
    case.seen = []
    case.mint().close()


@pytest.mark.parametrize("place", ["by_path", "slot"])
def test_a_drive_that_has_moved_since_it_was_seen_is_itself(case: Case, place: str) -> None:
    seen = [replace(case.identity, identifiers={**case.identity.identifiers, place: where}) for where in ("1", "2")]
    case.seen = seen[:1]
    case.reports(identifiers=seen[1].identifiers)
    case.mint().close()
    # Two at once are two drives, however alike.
    case.seen = seen
    assert any("2 drives on the bench share its serial" in reason for reason in case.reasons())


REASONS: dict[str, tuple[Callable[[Case], object], str]] = {
    "unknown drive": (
        lambda case: setattr(case, "drive_id", "d99"),
        "no drive of that name; it has d01, d02,",
    ),
    "not leased": (lambda case: setattr(case, "lease", None), "it is not leased; lease the rack"),
    "a lease that is over": (
        lambda case: setattr(case, "lease", EverythingLeased(reasons=["lease 1a2b is over: released"])),
        "lease 1a2b is over",
    ),
    "model": (lambda case: case.reports(model="OTHER SSD"), "the model is described as 'RL SATA SSD', the drive"),
    "serial": (lambda case: case.reports(serial="RL000009"), "described as 'RL000001', the drive reports 'RL000009'"),
    "no serial": (lambda case: case.reports(serial=""), "the drive reports ''"),
    "wwn": (
        lambda case: case.reports(identifiers={"wwn": "5000c500a0000009"}),
        "the wwn is described as 5000c500a0000001, the drive reports 5000c500a0000009",
    ),
    "wwn that is none": (lambda case: case.reports(identifiers={"wwn": "what"}), "the wwn cannot be compared"),
    "wwn of zeroes": (
        lambda case: case.reports(identifiers={"wwn": "0" * 16}),
        "the wwn is described as 5000c500a0000001, the drive reports 0000",
    ),
    "given and not reported": (
        lambda case: case.reports(identifiers={"wwn": None}),
        "the wwn is described as 5000c500a0000001, the drive reports none",
    ),
    "slot": (
        lambda case: case.describe("d01", slot="4").reports(identifiers={"slot": "5"}),
        "the slot is described as 4, the drive reports 5",
    ),
    "by-path": (
        lambda case: case.describe("d01", by_path="pci-1").reports(identifiers={"by_path": "pci-2"}),
        "the by_path is described as pci-1, the drive reports pci-2",
    ),
    "described by zeroes": (
        lambda case: case.describe("d01", wwn="0" * 16).reports(identifiers={"wwn": "0" * 16}),
        "the wwn is described as 0000000000000000, which is no identifier",
    ),
    "an unknown kind of identifier": (
        lambda case: case.reports(identifiers={"colour": "blue"}),
        "the colour cannot be compared",
    ),
    "not scratch": (lambda case: case.describe("d01", scratch=False), "does not mark it scratch: true"),
    "size": (lambda case: case.reports(size_bytes=8 << 30 | 512), f"described as {8 << 30} bytes, the drive has"),
    "size of the node": (lambda case: setattr(case.device, "behind_bytes", 4 << 30), "srv1.p0 itself has 4294967296"),
    "path too short": (lambda case: setattr(case.device, "size_bytes", 4096), "only 4096 of its"),
    "mounted": (
        lambda case: setattr(case.device, "used", BlockUsage(("sda1 is mounted at /srv",))),
        "it is in use: sda1 is mounted at /srv",
    ),
    "boot drive": (
        lambda case: setattr(case.device, "used", BlockUsage((), is_boot_drive=True)),
        "it is the boot drive",
    ),
    "claimed by another": (lambda case: setattr(case.device, "holder", "mdadm"), "mdadm holds it"),
    "another path": (
        lambda case: setattr(case.device, "location", "srv2.p0"),
        "it was identified at srv1.p0, but I/O would go to srv2.p0",
    ),
    "the path's own serial": (
        lambda case: setattr(case.device, "reported", {"serial": "RL000002"}),
        "the serial is described as RL000001, srv1.p0 itself reports RL000002",
    ),
    "the path's own wwn": (
        lambda case: setattr(case.device, "reported", {"wwn": "naa.5000c500a0000002"}),
        "srv1.p0 itself reports naa.5000c500a0000002",
    ),
    "changed between two looks": (
        lambda case: case.drive.identities.append(identity_of(case.lab, "d04")),
        "another drive was there the second time",
    ),
    "serial described twice": (
        lambda case: case.describe("d04", serial="RL000001"),
        "drive d04 is described with the same serial RL000001",
    ),
    "wwn described twice": (
        lambda case: case.describe("d04", wwn="5000c500a0000001"),
        "drive d04 is described with the same wwn 5000c500a0000001",
    ),
    "reports what is described of another": (
        lambda case: case.reports(identifiers={"eui64": "eui.0025385b71b00001"}),
        "drive d02 is described with the same eui64 0025385b71b00001",
    ),
    "slot described twice": (
        lambda case: case.describe("d01", slot="4").describe("d04", slot="4").reports({"slot": "4"}),
        "drive d04 is described with the same slot 4",
    ),
    "by-path described twice": (
        lambda case: case.describe("d01", by_path="p1").describe("d04", by_path="p1").reports({"by_path": "p1"}),
        "drive d04 is described with the same by_path p1",
    ),
    "seen twice": (lambda case: case.seen.append(case.identity), "2 drives on the bench share its serial"),
    "another drive with its wwn": (
        lambda case: case.seen.append(
            DriveIdentity("CLONE", "C1", "1", "sata", 8 << 30, {"wwn": "5000C500A0000001"}),
        ),
        "another drive on the bench, CLONE C1, has the same wwn 5000c500a0000001",
    ),
}


@pytest.mark.parametrize("reason", REASONS)
def test_each_reason_alone_is_enough_and_named(case: Case, reason: str) -> None:
    break_it, message = REASONS[reason]
    break_it(case)
    assert any(message in found for found in case.reasons()), case.reasons()
    assert not any(claim.is_held for claim in case.device.claims)


def test_every_reason_is_said_not_the_first(case: Case) -> None:
    broken = (
        "not leased",
        "model",
        "serial",
        "given and not reported",
        "not scratch",
        "size of the node",
        "path too short",
        "mounted",
        "claimed by another",
        "another path",
    )
    for reason in broken:
        REASONS[reason][0](case)
    case.device.used = BlockUsage(("sda1 is mounted at /srv", "sda2 is swap"), is_boot_drive=True)
    found = case.reasons()
    for part in ("leased", "model", "serial", "wwn", "scratch", "size", "only 4096", "/srv", "swap", "boot", "mdadm"):
        assert any(part in reason for reason in found), (part, found)
    assert len(found) == len(set(found))
    assert any("I/O would go to srv2.p0" in reason for reason in found)


@pytest.mark.parametrize("is_scratch", [True, False])
def test_a_drive_that_is_unfit_is_told_from_one_that_must_not_be_asked_for(case: Case, is_scratch: bool) -> None:
    """In a test the first is the lab's doing, the second the test's."""
    case.describe("d01", scratch=is_scratch).reports(serial="RL000009")
    with pytest.raises(GuardRefused) as refused:
        case.mint()
    assert isinstance(refused.value, UnfitDrive) == is_scratch


def test_a_drive_that_is_not_in_the_lease_must_not_be_asked_for(case: Case) -> None:
    reason = "it is not in lease 1a2b, which has srv2"

    class OfOthers(EverythingLeased):
        """A lease without the drive."""

        def refusals(self, drive_id: str, through: str) -> list[str]:
            raise GuardRefused(drive_id, [reason])

    case.lease = OfOthers()
    with pytest.raises(GuardRefused, match="1a2b") as refused:
        case.mint()
    assert not isinstance(refused.value, UnfitDrive)
    assert case.lease.attempts == [("d01", (reason,))]
    assert case.device.claims == []


def test_slots_of_two_expanders_may_have_one_number(case: Case) -> None:
    case.describe("d01", slot="4", expander="exp1")
    case.describe("d04", slot="4", expander="exp2")
    case.reports(identifiers={"slot": "4"})
    case.seen = []
    case.mint().close()


def test_a_drive_that_cannot_be_asked_is_a_broken_bench_not_a_refusal(case: Case) -> None:
    class Silent(SimDrive):
        def identify(self, deadline: Deadline) -> DriveIdentity:
            raise LabError("no drive is online there")

    with pytest.raises(LabError, match="no drive is online"):
        Guard(case.lab, case.lease).writable("d01", Silent([]), case.device, DEADLINE)


def test_a_path_that_does_not_say_where_it_leads_is_refused(case: Case) -> None:
    class Vague:
        size_bytes = 8 << 30
        fio_options = SimDevice.fio_options
        usage = staticmethod(BlockUsage)

        def probe_target(self) -> str:
            return "somewhere"

        def claim_exclusive(self) -> Claim | None:
            return None

    with pytest.raises(GuardRefused, match="Vague does not say on which path it is"):
        Guard(case.lab, case.lease).writable("d01", case.drive, Vague(), DEADLINE)


@pytest.fixture
def events(tmp_path: Path) -> Iterator[EventLog]:
    events = EventLog(tmp_path / "events.jsonl", CLOCK)
    yield events
    events.close()


def test_attempts_are_on_record_minted_or_not(case: Case, events: EventLog) -> None:
    guard = Guard(case.lab, case.lease, log=ActLog(events))
    guard.writable("d01", case.drive, case.device, DEADLINE).close()
    case.device.holder = "mdadm"
    with pytest.raises(GuardRefused):
        guard.writable("d01", case.drive, case.device, DEADLINE)
    recorded = [stamped.event for stamped in read_events(events.path)]
    attempt = {"drive": "d01", "path": "srv1.p0"}
    assert recorded[:3] == [
        ActAnnounced(1, None, "guard", attempt),
        ActDone(1, None, None, {"serial": "RL000001"}),
        ActAnnounced(2, None, "guard", attempt),
    ]
    refused = recorded[3]
    assert isinstance(refused, ActDone)
    assert refused.error is not None
    assert "mdadm holds it" in refused.error


class KeepsNothing(EverythingLeased):
    """A lease whose store has no room."""

    def record_attempt(self, drive_id: str, reasons: Sequence[str]) -> None:
        raise LabError("the disk is full")


@pytest.mark.parametrize("asked", ["the drive", "the path"])
def test_an_attempt_that_ends_while_the_drive_is_looked_at_is_kept_with_the_lease(case: Case, asked: str) -> None:
    class Silent(SimDrive):
        def identify(self, deadline: Deadline) -> DriveIdentity:
            raise LabError("no drive is online there")

    lease = EverythingLeased()
    drive = Silent([]) if asked == "the drive" else cast("Drive", object())
    reason = "no drive is online there" if asked == "the drive" else "object does not say on which path it is"
    for asked_of in (lease, KeepsNothing()):
        with pytest.raises((LabError, GuardRefused), match=reason):
            Guard(case.lab, asked_of).writable("d01", drive, case.device, DEADLINE)
    assert lease.attempts == [("d01", (reason,))]


@pytest.mark.parametrize(
    ("location", "through"),
    [
        ("srv1.p0", "srv1.p0"),
        ("srv2.p1.s3", "srv2.p1.s3"),
        ("srv1:/dev/sda", "srv1.p0"),
        ("srv2:/dev/sda", "srv2"),
    ],
)
def test_the_lease_is_asked_of_the_way_that_leads_to_the_drive(case: Case, location: str, through: str) -> None:
    asked: list[str] = []

    class Asked(EverythingLeased):
        def refusals(self, drive_id: str, through: str) -> list[str]:
            asked.append(through)
            return []

    case.lease = Asked()
    case.drive.location = case.device.location = location
    case.mint().close()
    assert set(asked) == {through}


def test_a_permission_given_back_is_gone(case: Case) -> None:
    writable = case.mint()
    writable.close()
    writable.close()
    with pytest.raises(LabError, match="given back"):
        _ = writable.device


FORGERIES: dict[str, Callable[[WritableDrive], object]] = {
    "made by hand": lambda real: WritableDrive(object(), "d03", "RL000003", 1 << 20, real.device, None),
    "without making": lambda _: object.__new__(WritableDrive).device,
    "copied": copy.copy,
    "copied deeply": copy.deepcopy,
    "pickled": pickle.dumps,
    "subclassed": lambda _: type("Forged", (WritableDrive,), {}),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_only_the_guard_makes_writable_drives(case: Case, forgery: str) -> None:
    with case.mint() as real, pytest.raises(BadInput, match="ask the guard"):
        FORGERIES[forgery](real)


def test_a_writable_drive_cannot_be_changed_into_another(case: Case) -> None:
    with case.mint() as writable:
        with pytest.raises(AttributeError):
            writable.drive_id = "d03"  # type: ignore[misc]
        with pytest.raises(AttributeError):
            writable.extra = 1  # type: ignore[attr-defined]


def test_the_guards_token_is_not_exported() -> None:
    for module in (storage, guard_module):
        assert not [name for name, value in vars(module).items() if value is storage._MINT and name[0] != "_"]
