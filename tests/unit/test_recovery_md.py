"""An md array's attributes in sysfs, and the array as a system under test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from rackloop.abilities import Completed, Process
from rackloop.blocks import MemoryBlocks
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import BadInput, DeadlineExceeded, ProtocolError, ToolError
from rackloop.recovery import Health, MdArray, MdSystem, Repairs, SilentCorruption, SystemUnderTest, parse_md

DATA = Path(__file__).parent / "data" / "md"


def printed(name: str) -> str:
    return (DATA / f"{name}.out").read_text(encoding="utf-8")


class Shell:
    """A machine that answers ``grep`` with one transcript after the other, the last again and again."""

    def __init__(self, *outputs: str, tee_status: int = 0) -> None:
        self._outputs = list(outputs)
        self._tee_status = tee_status
        self.told: list[tuple[tuple[str, ...], str]] = []

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        if argv[0] == "tee":
            self.told.append((tuple(argv), stdin))
            return Completed(tuple(argv), self._tee_status, stdin, "tee: Permission denied" if self._tee_status else "")
        output = self._outputs.pop(0) if len(self._outputs) > 1 else self._outputs[0]
        return Completed(tuple(argv), 0 if output else 2, output, "")

    def start(self, argv: Sequence[str]) -> Process:
        raise NotImplementedError

    def find(self, program: str) -> str | None:
        return program

    def put_text(self, name: str, text: str) -> str:
        raise NotImplementedError

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("name", "health", "detail"),
    [
        ("clean", Health.HEALTHY, "raid6, clean, 0 of 6 drives missing, idle"),
        ("checked", Health.HEALTHY, "raid6, clean, 0 of 6 drives missing, idle"),
        ("two_missing", Health.DEGRADED, "raid6, active, 2 of 6 drives missing, idle"),
        ("recovering", Health.REBUILDING, "raid6, active, 1 of 6 drives missing, recover"),
        ("delayed", Health.REBUILDING, "raid6, clean, 1 of 6 drives missing, recover"),
        ("three_missing", Health.LOST, "raid6, clean, 3 of 6 drives missing, idle"),
        ("broken", Health.LOST, "raid0, broken, 0 of 2 drives missing, idle"),
        ("striped", Health.HEALTHY, "raid0, clean, 0 of 2 drives missing, idle"),
        ("reshaping", Health.REBUILDING, "raid5, active, 0 of 4 drives missing, reshape"),
        ("mirror", Health.DEGRADED, "raid1, active-idle, 1 of 3 drives missing, frozen"),
    ],
)
def test_the_kernels_words_become_a_state(name: str, health: Health, detail: str) -> None:
    state = parse_md(printed(name)).recovery_state()
    assert (state.health, state.detail) == (health, detail)


def test_progress_and_mismatches_are_read() -> None:
    assert parse_md(printed("recovering")).progress == pytest.approx(0.250244, abs=1e-6)
    assert parse_md(printed("delayed")).progress is None
    assert parse_md(printed("checked")).mismatch_sectors == 128
    assert [parse_md(printed(name)).m for name in ("clean", "reshaping", "striped", "mirror")] == [2, 1, 0, 2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense\n", "no line PATH:VALUE"),
        ("/sys/block/md0/md/array_state:clean\n", "no attribute level"),
        (printed("clean").replace("raid_disks:6", "raid_disks:six"), "raid_disks is 'six'"),
        (printed("recovering").replace("524288 / 2095104", "half"), "sync_completed is 'half'"),
    ],
)
def test_what_is_not_understood_is_said(text: str, said: str) -> None:
    with pytest.raises(ProtocolError, match=said):
        parse_md(text)


def test_an_array_is_a_system_under_test() -> None:
    clock = VirtualClock()
    shell = Shell(printed("clean"), printed("recovering"), printed("recovering"), printed("clean"))
    system = MdSystem(MemoryBlocks(1 << 20), MdArray(shell, "md0", clock), clock, rebuild_s=60, size_bytes=1 << 19)
    assert isinstance(system, Repairs)
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
    with pytest.raises(DeadlineExceeded, match=r"md0 still does recover \(25%\)"):
        system.repair(lambda: None)


def test_a_check_is_asked_for_in_sysfs() -> None:
    shell = Shell(printed("clean"))
    MdArray(shell, "md0", VirtualClock()).start("check")
    assert shell.told == [(("tee", "/sys/block/md0/md/sync_action"), "check\n")]
    with pytest.raises(ToolError, match="takes root"):
        MdArray(Shell(printed("clean"), tee_status=1), "md0", VirtualClock()).start("repair")
    with pytest.raises(BadInput, match="not to 'explode'"):
        MdArray(shell, "md0", VirtualClock()).start("explode")


def test_an_array_that_is_not_there_is_said() -> None:
    with pytest.raises(ToolError, match="is md7 an md array"):
        MdArray(Shell(""), "md7", VirtualClock()).status()
    with pytest.raises(BadInput, match="no name of an md array"):
        MdArray(Shell(""), "../sda", VirtualClock())
