"""The destructive guard against random worlds: it mints where every condition holds, and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop.abilities import BlockUsage, DriveIdentity
from rackloop.lab import Lab, LabKind
from tests.unit.guard_case import Case, SimDevice, is_open
from tests.unit.sim_rack import described


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


def mostly(good: object, *bad: object) -> st.SearchStrategy[object]:
    """The good value most of the time, so that whole worlds without a fault come up too."""
    return st.sampled_from([good] * 12 + list(bad))


WORLDS = st.builds(
    World,
    kind=mostly(LabKind.MOCK, LabKind.VIRTUAL, LabKind.PHYSICAL),
    drive_id=mostly("d01", "d99", ""),
    scratch=mostly(True, False),
    described_wwn=mostly("5000c500a0000001", None, "5000c500a0000002"),
    described_slot=mostly(None, "4"),
    other_serial=mostly("RL000004", "RL000001"),
    model=mostly("RL SATA SSD", "RL  SATA SSD ", "OTHER"),
    serial=mostly("RL000001", " RL000001 ", "RL000002", "", "rl000001"),
    wwn=mostly("5000c500a0000001", "0x5000C500A0000001", None, "5000c500a0000002", "0" * 16, "junk"),
    slot=mostly(None, "4", "04", "5"),
    size=mostly(8 << 30, 4 << 30),
    path_bytes=mostly(8 << 30, 16 << 30, 4 << 30),
    node_bytes=mostly(None, 8 << 30, 4 << 30),
    node_wwn=mostly(None, "naa.5000c500a0000001", "naa.5000c500a0000002"),
    device_at=mostly("srv1.p0", "srv1.p1"),
    claims=mostly((), ("sda is held by md array md0",)),
    is_boot=mostly(False, True),
    holder=mostly("", "zpool"),
    clone_wwn=mostly(None, "5000C500A0000001", "5000c500a0000077"),
    later_serial=mostly(None, "RL000002"),
)


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
    allowed = world.drive_id == "d01" and world.scratch
    return identified and alone and unused and fits and allowed


@given(world=WORLDS)
def test_nothing_is_minted_unless_every_condition_holds(lab: Lab, world: World) -> None:
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
    case.drive_id = world.drive_id
    if may_be_written(world):
        case.mint().close()
    else:
        assert case.reasons()
    assert not any(is_open(claim) for claim in case.device.claims)
