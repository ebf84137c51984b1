"""The recovery oracle on md arrays of a real Linux, in QEMU: what the adapter believes of md, the kernel does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rackloop.clock import Deadline
from rackloop.errors import HostKeyMismatch
from rackloop.measurement import Verdict
from rackloop_drivers.host import SshHost
from rackloop_models.under_test import MdSystem, md_stripe
from rackloop_oracles.recovery import (
    Campaign,
    CampaignPlan,
    Cell,
    Damage,
    Eraser,
    Health,
    Mix,
    Phase,
    Place,
    RecoveryOracle,
    RecoveryResult,
)
from tests.deadlines import CLOCK
from tests.linux_guest.machine import LinuxGuest, require_guest, running_guest
from tests.linux_guest.md_erasers import DriveEraser, ImageEraser, thawed_system
from tests.linux_guest.md_guest import MODULES, PROGRAMS, MdGuest
from tests.sshd_process import make_key

pytestmark = pytest.mark.nightly

IMAGE_BYTES = 6 << 20
SIZE_BYTES = 24 * 4 * 16384
UNIT_SECTORS = 16384 // 512
SEED = 7


@pytest.fixture(scope="module")
def drives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("drives")
    images = {f"vd{letter}": folder / f"vd{letter}" for letter in "abcdefgh"}
    for image in images.values():
        with image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
    return images


@pytest.fixture(scope="module")
def guest(drives: dict[str, Path]) -> Iterator[LinuxGuest]:
    packages = require_guest()
    with running_guest(packages, list(drives.values()), CLOCK, modules=MODULES, programs=PROGRAMS) as guest:
        yield guest


@pytest.fixture(scope="module")
def md(guest: LinuxGuest, drives: dict[str, Path]) -> Iterator[MdGuest]:
    with SshHost(guest.access, CLOCK) as host:
        yield MdGuest(host, guest.nbd, drives, CLOCK)


class WrongParity(DriveEraser):
    """Has drives fail as it is told, and the first parity of the first stripe hit hold other bytes."""

    def __init__(self, md: MdGuest) -> None:
        super().__init__(md)
        self._md = md
        self._images = ImageEraser(md.drives)

    def erase(self, places: Sequence[Place]) -> None:
        status = self._md.array.status()
        stripes = (md_stripe(status, address) for address in range(SIZE_BYTES // 4096))
        stripe = next(stripe for stripe in stripes if stripe and places[0] in stripe.units)
        self._images.corrupt([stripe.units[stripe.data_units]])
        super().erase(places)

    def mend(self) -> None:
        self._images.mend()
        super().mend()


def judge(md: MdGuest, eraser: Eraser, plan: CampaignPlan) -> RecoveryResult:
    system = thawed_system(md, CLOCK, size_bytes=SIZE_BYTES)
    with RecoveryOracle(system, Deadline.after(CLOCK, 600), seed=SEED) as oracle:
        return Campaign(oracle, eraser, plan).run()


def cell(result: RecoveryResult, damage: Damage, mix: Mix, phase: Phase) -> Cell:
    """What came of this kind of damage, whatever its size."""
    total = Cell()
    for row, column, one in result.matrix:
        if (row.damage, column.units, column.phase) == (damage, mix, phase):
            total.add(one)
    return total


def test_every_two_drives_of_a_raid6_may_fail_and_a_third_is_loud(md: MdGuest) -> None:
    with md.made(6, drives=6, spares=2):
        result = judge(md, DriveEraser(md), CampaignPlan(SEED, beyond=2, corruptions=0))
    assert (result.verdict, result.reasons) == (Verdict.PASS, ())
    assert result.is_exhaustive
    # Nothing else is left out: neither a pattern nor a return from three drives lost.
    assert sorted(result.not_covered) == [
        "loss of power: it is not cut",
        "shortened stripes: there are none here",
        "silent corruption: not asked for",
    ]
    erased, beyond = result.matrix.total([Damage.ERASED]), result.matrix.total([Damage.BEYOND])
    assert erased.degraded_right > 0
    assert (erased.loud, erased.wrong, beyond.wrong) == (0, 0, 0)
    assert cell(result, Damage.ERASED, Mix.MIXED, Phase.DURING).tried > 0
    assert beyond.loud > 0


def test_every_two_drives_of_a_raid1_may_fail(md: MdGuest) -> None:
    with md.made(1, drives=3, spares=2):
        result = judge(md, DriveEraser(md), CampaignPlan(SEED, beyond=0, corruptions=0))
        # The kernel never lets go of the last copy: it says EBUSY, and broken, and gives the data.
        whole = [member.name for member in md.array.status().members if "in_sync" in member.states]
        md.freeze()
        md.fail(whole[:2])
        md.tell(f"mdadm /dev/md0 --fail /dev/{whole[2]}", may_fail=True)
        state = md.array.recovery_state()
        assert len(md.read(0, SIZE_BYTES)) == SIZE_BYTES
    assert (result.verdict, result.reasons) == (Verdict.PASS, ())
    assert result.is_exhaustive
    assert state.health is Health.DEGRADED
    assert state.detail == "raid1, broken, 2 of 3 drives missing, frozen"


@pytest.mark.parametrize(("level", "count"), [(5, 3), (6, 6)])
def test_silent_corruption_is_wrong_where_the_layout_says_and_not_covered(md: MdGuest, level: int, count: int) -> None:
    with md.made(level, drives=count):
        plan = CampaignPlan(SEED, erasures=0, beyond=0, corruptions=12, together=4)
        result = judge(md, ImageEraser(md.drives), plan)
    k = count - (level - 4)
    assert result.verdict is Verdict.PASS
    assert "silent corruption: it gave wrong bytes, and what it promises is: not covered" in result.not_covered
    for mix in (Mix.DATA, Mix.PARITY, Mix.MIXED):
        before = cell(result, Damage.CORRUPTED, mix, Phase.BEFORE)
        if before.tried:
            # Of each stripe a unit of data, or none.
            assert before.wrong == (0 if mix is Mix.PARITY else before.tried // k), mix
    assert cell(result, Damage.CORRUPTED, Mix.DATA, Phase.BEFORE).wrong > 0
    assert cell(result, Damage.CORRUPTED, Mix.PARITY, Phase.BEFORE).tried > 0


def test_a_check_counts_what_disagrees(md: MdGuest) -> None:
    with md.made(6, drives=6):
        system = thawed_system(md, CLOCK, size_bytes=SIZE_BYTES)
        system.put(0, bytes(SIZE_BYTES))
        system.flush()
        stripe = system.places(0)
        assert stripe is not None
        eraser = ImageEraser(md.drives)
        eraser.corrupt([stripe.units[1]])
        found = checked(md, system)
        eraser.mend()
        assert (found, checked(md, system)) == (UNIT_SECTORS, 0)


def checked(md: MdGuest, system: MdSystem) -> int:
    """The sectors that a check finds to disagree, on the drives and not in memory."""
    system.forget()
    md.array.start("check")
    return md.array.wait_idle(Deadline.after(CLOCK, 60)).mismatch_sectors


def test_parity_that_is_wrong_when_it_is_needed_fails(md: MdGuest) -> None:
    with md.made(6, drives=6):
        plan = CampaignPlan(SEED, erasures=1, beyond=0, corruptions=0, writes=False)
        result = judge(md, WrongParity(md), plan)
    assert result.verdict is Verdict.FAIL
    # The four blocks of the unit that was computed from it, and no others.
    assert cell(result, Damage.ERASED, Mix.DATA, Phase.BEFORE).wrong == UNIT_SECTORS // 8
    assert "erased, before repair), sector 0: expected generation" in result.reasons[0]
    assert "found damaged content" in result.reasons[0]


def test_a_machine_with_another_host_key_is_not_talked_to(guest: LinuxGuest, tmp_path: Path) -> None:
    make_key(tmp_path / "other")
    public = " ".join((tmp_path / "other.pub").read_text().split()[:2])
    (tmp_path / "known_hosts").write_text(f"{guest.access.host_key_name} {public}\n")
    with (
        SshHost(replace(guest.access, known_hosts=tmp_path / "known_hosts"), CLOCK) as host,
        pytest.raises(HostKeyMismatch),
    ):
        host.run(("true",), Deadline.after(CLOCK, 30))
