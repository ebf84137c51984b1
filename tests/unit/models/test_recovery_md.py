"""An md array's attributes in sysfs, and the array as a system under test."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from rackloop.abilities import Completed, Process
from rackloop.clock import Deadline, RealClock, VirtualClock
from rackloop.errors import BadInput, DeadlineExceeded, ProtocolError, ToolError
from rackloop_drivers.host import LocalExecutor
from rackloop_models.under_test import MdArray, MdMember, MdSystem, md_stripe, parse_md
from rackloop_oracles.recovery import DropsCaches, Health, Place, Placed, Repairs, SilentCorruption, SystemUnderTest
from tests.memory_blocks import MemoryBlocks

DATA = Path(__file__).parent / "data" / "md"


def printed(name: str) -> str:
    return (DATA / f"{name}.out").read_text(encoding="utf-8")


class Shell:
    """A machine that answers a look with one transcript after the other, the last again and again.

    It notes what else it is told; that fails where ``refuses`` says why.
    """

    def __init__(self, *outputs: str, refuses: str = "") -> None:
        self._outputs = list(outputs)
        self._refuses = refuses
        self.told: list[tuple[tuple[str, ...], str]] = []

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        if "sync_action" not in argv:
            self.told.append((tuple(argv), stdin))
            return Completed(tuple(argv), int(bool(self._refuses)), stdin, self._refuses)
        output = self._outputs.pop(0) if len(self._outputs) > 1 else self._outputs[0]
        # grep says 2 where a level has not all attributes.
        return Completed(tuple(argv), 2, output, "")

    def start(self, argv: Sequence[str]) -> Process:
        raise NotImplementedError

    def find(self, program: str) -> str | None:
        return program

    def put_text(self, name: str, text: str) -> str:
        raise NotImplementedError

    def close(self) -> None:
        pass


# An array that can be written and has a spare is idle for an instant only: too short for grep, seen by a loop.
WAITING = printed("read_only").replace("readonly", "clean")


STATES = [
    ("resyncing", Health.REBUILDING, "raid6, clean, 0 of 6 drives missing, resync"),
    ("clean", Health.HEALTHY, "raid6, clean, 0 of 6 drives missing, idle"),
    ("checking", Health.HEALTHY, "raid6, clean, 0 of 6 drives missing, check"),
    ("checked", Health.HEALTHY, "raid6, clean, 0 of 6 drives missing, idle"),
    ("two_missing", Health.DEGRADED, "raid6, active, 2 of 6 drives missing, idle"),
    ("recovering", Health.REBUILDING, "raid6, clean, 2 of 6 drives missing, recover"),
    ("frozen", Health.DEGRADED, "raid6, clean, 2 of 6 drives missing, frozen"),
    ("three_missing", Health.LOST, "raid6, broken, 3 of 6 drives missing, idle"),
    ("read_only", Health.DEGRADED, "raid6, readonly, 1 of 6 drives missing, idle"),
    ("mirror", Health.DEGRADED, "raid1, clean, 1 of 3 drives missing, frozen"),
    ("mirror_broken", Health.DEGRADED, "raid1, broken, 2 of 3 drives missing, frozen"),
    ("striped", Health.HEALTHY, "raid0, clean, 0 of 2 drives missing, idle"),
    ("broken", Health.LOST, "raid0, broken, 0 of 2 drives missing, idle"),
    ("reshaping", Health.REBUILDING, "raid5, clean, 0 of 4 drives missing, reshape"),
    ("delayed", Health.REBUILDING, "raid5, clean, 1 of 3 drives missing, recover"),
    ("inactive", Health.LOST, "no level, inactive, 0 of 0 drives missing, idle"),
]


@pytest.mark.parametrize(("name", "health", "detail"), STATES)
def test_the_kernels_words_become_a_state(name: str, health: Health, detail: str) -> None:
    state = parse_md(printed(name)).recovery_state()
    assert (state.health, state.detail) == (health, detail)


def test_every_transcript_is_looked_at() -> None:
    assert sorted(path.stem for path in DATA.glob("*.out")) == sorted(name for name, _, _ in STATES)


def test_progress_and_mismatches_are_read() -> None:
    assert parse_md(printed("recovering")).progress == pytest.approx(2952 / 47104)
    assert parse_md(printed("delayed")).progress is None
    assert parse_md(printed("checked")).mismatch_sectors == 128
    assert [parse_md(printed(name)).m for name in ("clean", "reshaping", "striped", "mirror")] == [2, 1, 0, 2]


def test_drives_are_read() -> None:
    members = {member.name: member for member in parse_md(printed("recovering")).members}
    assert list(members) == ["vdc", "vdd", "vde", "vdf", "vdg"]
    assert members["vdg"] == MdMember("vdg", frozenset({"spare"}), 0, 1 << 20)
    assert members["vdg"].is_spare
    assert not members["vdc"].is_spare
    (failed, *_) = parse_md(printed("two_missing")).members
    assert failed == MdMember("vda", frozenset({"faulty"}), None, 1 << 20)


def test_a_journal_of_writes_is_a_member_without_data() -> None:
    """As slot_show and state_show of the kernel's drivers/md/md.c have it."""
    journal = "dev-vdg/state:in_sync,journal\ndev-vdg/slot:journal\ndev-vdg/offset:2048\n"
    status = parse_md(printed("two_missing") + journal)
    assert status.members[-1] == MdMember("vdg", frozenset({"in_sync", "journal"}), None, 1 << 20)
    assert not status.members[-1].is_spare


@pytest.mark.parametrize(
    ("text", "is_at_rest"),
    [
        (printed("clean"), True),
        (printed("two_missing"), True),
        (printed("mirror"), True),
        (printed("mirror_broken"), True),
        (printed("three_missing"), True),
        (printed("read_only"), True),
        (printed("read_only").replace("readonly", "read-auto"), True),
        (printed("recovering"), False),
        (printed("checking"), False),
        (printed("frozen"), False),
        (WAITING, False),
    ],
)
def test_an_array_with_a_spare_that_is_needed_is_not_at_rest(text: str, *, is_at_rest: bool) -> None:
    assert parse_md(text).is_at_rest is is_at_rest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense\n", "no line PATH:VALUE"),
        ("array_state:clean\n", "no attribute level"),
        (printed("clean").replace("raid_disks:6", "raid_disks:six"), "raid_disks is 'six'"),
        (printed("recovering").replace("2952 / 47104", "half"), "sync_completed is 'half'"),
    ],
)
def test_what_is_not_understood_is_said(text: str, said: str) -> None:
    with pytest.raises(ProtocolError, match=said):
        parse_md(text)


def test_an_array_is_a_system_under_test() -> None:
    clock = VirtualClock()
    shell = Shell(printed("clean"), printed("recovering"), WAITING, printed("clean"))
    system = MdSystem(MemoryBlocks(1 << 20), MdArray(shell, "md0", clock), clock, rebuild_s=60, size_bytes=1 << 19)
    assert isinstance(system, Repairs)
    assert isinstance(system, Placed)
    assert isinstance(system, DropsCaches)
    under_test: SystemUnderTest = system
    description = under_test.describe()
    assert (description.name, description.blocks, description.k, description.m) == ("md0", 128, 4, 2)
    assert description.silent_corruption is SilentCorruption.NOT_COVERED
    pauses: list[int] = []
    system.repair(lambda: pauses.append(clock.now_ns()))
    assert pauses == [0, 500_000_000]
    assert system.recovery_state().health is Health.HEALTHY


def test_a_rebuild_that_does_not_end_is_given_up() -> None:
    clock = VirtualClock()
    system = MdSystem(MemoryBlocks(1 << 20), MdArray(Shell(printed("recovering")), "md0", clock), clock, rebuild_s=5)
    with pytest.raises(DeadlineExceeded, match=r"md0 still does recover \(6%\), 2 drives missing"):
        system.repair(lambda: None)


def test_a_check_is_asked_for_in_sysfs() -> None:
    shell = Shell(printed("clean"))
    MdArray(shell, "md0", VirtualClock()).start("check")
    assert shell.told == [(("tee", "/sys/block/md0/md/sync_action"), "check\n")]
    busy = Shell(printed("clean"), refuses="tee: write error: Device or resource busy")
    with pytest.raises(ToolError, match="told to repair: tee: write error: Device or resource busy; it takes root, a"):
        MdArray(busy, "md0", VirtualClock()).start("repair")
    with pytest.raises(BadInput, match="not to 'explode'"):
        MdArray(shell, "md0", VirtualClock()).start("explode")


def test_a_repair_lets_a_frozen_array_rebuild_no_faster_than_it_may() -> None:
    clock = VirtualClock()
    shell = Shell(printed("clean"))
    array = MdArray(shell, "md0", clock)
    array.start("frozen")
    system = MdSystem(MemoryBlocks(1 << 20), array, clock, rebuild_s=5, rebuild_kib_per_s=4096)
    system.repair(lambda: None)
    folder = "/sys/block/md0/md"
    assert shell.told == [
        (("tee", f"{folder}/sync_action"), "frozen\n"),
        (("tee", f"{folder}/sync_speed_max"), "4096\n"),
        (("tee", f"{folder}/sync_action"), "idle\n"),
    ]
    refusing = MdArray(Shell(printed("clean"), refuses="tee: Permission denied"), "md0", clock)
    with pytest.raises(ToolError, match="md0 rebuilds at no other speed: tee: Permission denied; it takes root"):
        refusing.rebuild(most_kib_per_s=1)


def test_units_lie_on_the_drives_beneath_the_members() -> None:
    clock = VirtualClock()
    array = MdArray(Shell(printed("clean")), "md0", clock)
    blocks = MemoryBlocks(1 << 20)
    plain = MdSystem(blocks, array, clock, rebuild_s=5).places(0)
    assert plain is not None
    beneath = {unit.drive: (f"drive of {unit.drive}", 1 << 31) for unit in plain.units[1:]}
    mapped = MdSystem(blocks, array, clock, rebuild_s=5, drives=beneath).places(0)
    assert mapped is not None
    assert mapped.units[0] == plain.units[0]
    assert mapped.units[1:] == tuple(
        Place(f"drive of {unit.drive}", (1 << 31) + unit.offset, unit.length) for unit in plain.units[1:]
    )


def test_what_the_kernel_holds_in_memory_is_dropped_by_root() -> None:
    clock = VirtualClock()
    shell = Shell(printed("clean"))
    MdSystem(MemoryBlocks(1 << 20), MdArray(shell, "md0", clock), clock, rebuild_s=5).forget()
    ((argv, _),) = shell.told
    assert argv[-2:] == ("/sys/block/md0/md", "md0")
    refusing = MdArray(Shell(printed("clean"), refuses="blockdev: Permission denied"), "md0", clock)
    with pytest.raises(ToolError, match="cannot be dropped: blockdev: Permission denied; it takes root"):
        refusing.drop_caches()


class Here(LocalExecutor):
    """This machine, with the programs of ``folder`` before its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(RealClock())
        self._path = f"{folder}:{os.environ['PATH']}"

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        return super().run(("env", f"PATH={self._path}", *argv), deadline, stdin=stdin)


def test_attributes_are_read_by_grep(tmp_path: Path) -> None:
    for line in printed("recovering").splitlines():
        path, _, value = line.partition(":")
        file = tmp_path / "md0" / "md" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
    with Here(tmp_path) as here:
        assert MdArray(here, "md0", RealClock(), root=str(tmp_path)).status() == parse_md(printed("recovering"))
        with pytest.raises(ToolError, match="is md1 an md array"):
            MdArray(here, "md1", RealClock(), root=str(tmp_path)).status()


def test_caches_are_dropped_by_blockdev_and_the_size_of_the_stripe_cache(tmp_path: Path) -> None:
    folder = tmp_path / "md0" / "md"
    folder.mkdir(parents=True)
    (folder / "stripe_cache_size").write_text("256\n")
    (tmp_path / "blockdev").write_text(f'#!/bin/sh\necho "$*" >{tmp_path}/flushed\n')
    (tmp_path / "blockdev").chmod(0o755)
    with Here(tmp_path) as here:
        array = MdArray(here, "md0", RealClock(), root=str(tmp_path))
        array.drop_caches()
        assert (tmp_path / "flushed").read_text() == "--flushbufs /dev/md0\n"
        assert (folder / "stripe_cache_size").read_text() == "256\n"
        (folder / "stripe_cache_size").unlink()
        array.drop_caches()
        (tmp_path / "blockdev").write_text("#!/bin/sh\necho no such device >&2\nexit 1\n")
        with pytest.raises(ToolError, match="what the kernel holds of md0 cannot be dropped: no such device"):
            array.drop_caches()


def units(name: str, address: int) -> list[tuple[str, int]]:
    stripe = md_stripe(parse_md(printed(name)), address)
    assert stripe is not None
    return [(unit.drive, unit.offset) for unit in stripe.units]


def test_stripes_of_a_raid6_turn_by_a_drive() -> None:
    stripe = md_stripe(parse_md(printed("clean")), 17)
    assert stripe is not None
    assert (stripe.name, stripe.addresses, stripe.data_units, stripe.m) == ("1", range(16, 32), 4, 2)
    assert stripe.units[0] == Place("vda", (1 << 20) + 16384, 16384)
    # The data of stripe 0 begins behind Q, which is on the first drive; P is on the last.
    assert [drive for drive, _ in units("clean", 0)] == ["vdb", "vdc", "vdd", "vde", "vdf", "vda"]
    assert [drive for drive, _ in units("clean", 16)] == ["vda", "vdb", "vdc", "vdd", "vde", "vdf"]
    assert units("clean", 96) == [(drive, offset + 6 * 16384) for drive, offset in units("clean", 0)]
    # The first two slots have no drive.
    assert units("two_missing", 0)[0] == ("slot1", 0)


def test_stripes_of_other_levels() -> None:
    assert [drive for drive, _ in units("delayed", 0)] == ["vda1", "vdb1", "vdd1"]
    assert [drive for drive, _ in units("delayed", 8)] == ["vdd1", "vda1", "vdb1"]
    mirror = md_stripe(parse_md(printed("mirror").replace("vda/slot:none", "vda/slot:0")), 16)
    assert mirror is not None
    assert (mirror.addresses, mirror.data_units, mirror.m) == (range(16, 32), 1, 2)
    assert mirror.units == tuple(Place(f"vd{letter}", (1 << 20) + 65536, 65536) for letter in "abc")


@pytest.mark.parametrize(
    "text",
    [
        printed("striped"),
        printed("reshaping"),
        printed("inactive"),
        printed("clean").replace("layout:2", "layout:0"),
        printed("clean").replace("raid6", "raid10"),
    ],
)
def test_of_other_arrays_no_stripes_are_known(text: str) -> None:
    assert md_stripe(parse_md(text), 0) is None


def test_stripes_are_those_of_the_last_look() -> None:
    clock = VirtualClock()
    shell = Shell(printed("clean"), printed("recovering"))
    system = MdSystem(MemoryBlocks(1 << 20), MdArray(shell, "md0", clock), clock, rebuild_s=60)
    before = system.places(16)
    assert before is not None
    assert before.units[0].drive == "vda"
    system.forget()
    after = system.places(16)
    assert after is not None
    assert after.units[0].drive == "vdg"


def test_an_array_that_is_not_there_is_said() -> None:
    with pytest.raises(ToolError, match="is md7 an md array"):
        MdArray(Shell(""), "md7", VirtualClock()).status()
    with pytest.raises(BadInput, match="no name of an md array"):
        MdArray(Shell(""), "../sda", VirtualClock())
