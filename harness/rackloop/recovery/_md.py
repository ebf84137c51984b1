"""What Linux says of an md array (software RAID) in sysfs, and the array as a system under test.

Source: the kernel's ``Documentation/admin-guide/md.rst`` and ``drivers/md/md.c``. It is read by commands, here or on
a host.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rackloop.abilities import Executor
from rackloop.blocks import Blocks
from rackloop.clock import Clock, Deadline
from rackloop.errors import BadInput, DeadlineExceeded, ProtocolError, ToolError
from rackloop.recovery._block_system import BlockSystem
from rackloop.recovery._system import Health, RecoveryState, SilentCorruption

POLL_S = 0.5
_NAME = re.compile(r"md[\w.-]+")
_ATTRIBUTES = ("array_state", "degraded", "level", "mismatch_cnt", "raid_disks", "sync_action", "sync_completed")
_NO_ARRAY = frozenset({"broken", "clear", "inactive"})
_REBUILDING = frozenset({"recover", "reshape", "repair", "resync"})
_PARITY = {"raid0": 0, "linear": 0, "raid4": 1, "raid5": 1, "raid6": 2}
_COMMAND_S = 10.0


@dataclass(frozen=True)
class MdStatus:
    """An array's attributes. ``degraded`` is how many drives short it is, None where the level has no redundancy.

    ``progress`` goes from 0 to 1 while something is synchronised. ``mismatch_sectors`` (of 512 bytes) is what the
    last check or repair found to disagree.
    """

    array_state: str
    level: str
    raid_disks: int
    degraded: int | None
    sync_action: str
    progress: float | None
    mismatch_sectors: int

    @property
    def m(self) -> int | None:
        """How many drives may fail; None for a level whose answer depends on which."""
        return self.raid_disks - 1 if self.level == "raid1" else _PARITY.get(self.level)

    def recovery_state(self) -> RecoveryState:
        """The same in the oracle's words."""
        missing = self.degraded or 0
        detail = f"{self.level}, {self.array_state}, {missing} of {self.raid_disks} drives missing, {self.sync_action}"
        if self.array_state in _NO_ARRAY or (self.m is not None and missing > self.m):
            health = Health.LOST
        elif self.sync_action in _REBUILDING:
            health = Health.REBUILDING
        else:
            health = Health.DEGRADED if missing else Health.HEALTHY
        return RecoveryState(health, detail, self.progress)


def parse_md(text: str) -> MdStatus:
    """The status from ``path:value`` lines, as ``grep -H`` prints attributes. Raises ProtocolError."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        path, colon, value = line.partition(":")
        if not colon:
            raise ProtocolError(f"md: {line!r} is no line PATH:VALUE of grep -H")
        values[path.rpartition("/")[2]] = value.strip()
    for needed in ("array_state", "level", "raid_disks"):
        if needed not in values:
            raise ProtocolError(f"md: there is no attribute {needed} among {sorted(values)}; is it an md array?")
    return MdStatus(
        array_state=values["array_state"],
        level=values["level"],
        # While an array is reshaped both numbers stand there: the old one in brackets.
        raid_disks=_number(values, "raid_disks", 0),
        degraded=_number(values, "degraded", 0) if "degraded" in values else None,
        sync_action=values.get("sync_action", "idle"),
        progress=_progress(values.get("sync_completed", "none")),
        mismatch_sectors=_number(values, "mismatch_cnt", 0),
    )


class MdArray:
    """The array ``name`` (such as ``md0``) of the machine that ``executor`` runs commands on."""

    def __init__(self, executor: Executor, name: str, clock: Clock, *, root: str = "/sys/block") -> None:
        if not _NAME.fullmatch(name):
            raise BadInput(f"{name!r} is no name of an md array: give one such as md0, as in /proc/mdstat")
        self.name = name
        self._executor = executor
        self._clock = clock
        self._folder = f"{root}/{name}/md"

    def status(self) -> MdStatus:
        """What the kernel says now. Raises ToolError where there is no such array, ProtocolError."""
        paths = [f"{self._folder}/{attribute}" for attribute in _ATTRIBUTES]
        # -s: a level without redundancy has not all of them.
        done = self._executor.run(("grep", "-Hs", "", *paths), self._soon())
        if not done.stdout:
            raise ToolError(f"{self._folder} has no attributes: is {self.name} an md array there, and assembled?")
        return parse_md(done.stdout)

    def recovery_state(self) -> RecoveryState:
        """The same in the oracle's words."""
        return self.status().recovery_state()

    def start(self, action: str) -> None:
        """Write ``check``, ``repair`` or ``idle`` to ``sync_action``, which takes root. Raises ToolError."""
        if action not in {"check", "idle", "repair"}:
            raise BadInput(f"an md array can be told to check, to repair or to be idle, not to {action!r}")
        done = self._executor.run(("tee", f"{self._folder}/sync_action"), self._soon(), stdin=f"{action}\n")
        if done.status:
            raise ToolError(f"{self.name} cannot be told to {action}: {done.stderr.strip()}; it takes root")

    def wait_idle(self, deadline: Deadline, pause: Callable[[], None] = lambda: None) -> MdStatus:
        """Wait until nothing is synchronised any more, with a pause at each look. Raises DeadlineExceeded."""
        while (status := self.status()).sync_action not in {"idle", "frozen"}:
            pause()
            if deadline.is_over():
                raise DeadlineExceeded(f"{self.name} still does {status.sync_action} ({status.progress or 0:.0%})")
            self._clock.sleep_until_ns(min(self._clock.now_ns() + round(POLL_S * 1e9), deadline.at_ns))
        return status

    def _soon(self) -> Deadline:
        return Deadline.after(self._clock, _COMMAND_S)


class MdSystem(BlockSystem):
    """An md array as a system under test: its blocks, and its state from sysfs.

    The kernel rebuilds by itself once there is a spare; ``repair`` waits for that, ``rebuild_s`` at most. md compares
    nothing when it reads: silent corruption is not covered. A write that is not acknowledged may leave parts of both
    in one block. ``size_bytes`` takes less than all of the array.
    """

    def __init__(
        self, blocks: Blocks, array: MdArray, clock: Clock, *, rebuild_s: float, size_bytes: int | None = None
    ):
        status = array.status()
        m = status.m
        super().__init__(
            blocks,
            array.name,
            state=array,
            k=None if m is None else status.raid_disks - m,
            m=m,
            size_bytes=size_bytes,
            silent_corruption=SilentCorruption.NOT_COVERED,
        )
        self._array = array
        self._clock = clock
        self._rebuild_s = rebuild_s

    def repair(self, pause: Callable[[], None]) -> None:
        """Wait for the kernel. Raises DeadlineExceeded."""
        self._array.wait_idle(Deadline.after(self._clock, self._rebuild_s), pause)


def _number(values: Mapping[str, str], name: str, default: int) -> int:
    text = values.get(name)
    if text is None:
        return default
    found = re.match(r"\d+", text)
    if found is None:
        raise ProtocolError(f"md: {name} is {text!r}, which is no number")
    return int(found[0])


def _progress(text: str) -> float | None:
    """``N / M`` sectors; ``none`` and ``delayed`` are no progress."""
    found = re.fullmatch(r"(\d+) / (\d+)", text)
    if found is None:
        if text in {"none", "delayed"}:
            return None
        raise ProtocolError(f"md: sync_completed is {text!r}, expected 'none', 'delayed' or 'N / M'")
    done, total = int(found[1]), int(found[2])
    return done / total if total else None
