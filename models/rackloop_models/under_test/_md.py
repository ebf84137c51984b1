"""Status and control of a Linux md array (software RAID) through sysfs.

Source: the kernel's ``Documentation/admin-guide/md.rst`` and ``drivers/md``, held against a running kernel by the
project's own tests. It is read by commands, here or on a host.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rackloop.abilities import Executor
from rackloop.clock import Clock, Deadline
from rackloop.errors import BadInput, DeadlineExceeded, ProtocolError, ToolError
from rackloop_oracles.recovery import Health, RecoveryState

_POLL_S = 0.5
_NAME = re.compile(r"md[\w.-]+")
# grep reads them in this order. An array that has just become whole counts no drive as missing before it is idle, so
# what is read after an ``idle`` is not older than it.
_ATTRIBUTES = (
    *("sync_action", "sync_completed", "dev-*/state", "dev-*/slot", "dev-*/offset", "degraded", "array_state"),
    *("mismatch_cnt", "level", "raid_disks", "chunk_size", "layout"),
)
_NO_ARRAY = frozenset({"clear", "inactive"})
# These never give up their last copy: what they call broken is still read.
_KEEPS_THE_LAST = frozenset({"raid1", "raid10"})
# In these the kernel rebuilds nothing, whatever spare there is.
_UNTOUCHED = frozenset({"broken", "read-auto", "readonly"})
_REBUILDING = frozenset({"recover", "reshape", "repair", "resync"})
# Of drives that have no data: a spare or one that failed, and one that writes go to first.
_NO_SLOT = frozenset({"journal", "none"})
_AT_REST = frozenset({"frozen", "idle"})
_PARITY = {"raid0": 0, "linear": 0, "raid4": 1, "raid5": 1, "raid6": 2}
_SECTOR_BYTES = 512
_COMMAND_S = 10.0

# -s: a level without redundancy has not all of them.
_LOOK = 'cd "$1" 2>/dev/null && shift && exec grep -Hs "" $*'
# The fewest stripes that the kernel keeps are 17, those used last. Those added then are used before them, so that it
# is the old ones that go when it is shrunk again.
_DROP = """
PATH=$PATH:/usr/sbin:/sbin
blockdev --flushbufs "/dev/$2" && cd "$1" || exit
[ -e stripe_cache_size ] || exit 0
size=$(cat stripe_cache_size) || exit
for stripes in 17 $((size + 64)) 17 "$size"; do echo "$stripes" >stripe_cache_size || exit; done
"""


@dataclass(frozen=True)
class MdMember:
    """A drive of an array, by its kernel name. ``states`` are the kernel's: ``in_sync``, ``spare``, ``faulty``, ...

    ``slot`` is its number among the drives that have data, None where it has none: it failed, waits to be needed, or is
    the journal of writes. The array's data begins at ``offset_bytes``.
    """

    name: str
    states: frozenset[str]
    slot: int | None
    offset_bytes: int

    @property
    def is_spare(self) -> bool:
        """Whether it is being rebuilt, or can be."""
        return "spare" in self.states and "faulty" not in self.states


@dataclass(frozen=True)
class MdStatus:
    """An array's attributes. ``degraded`` is how many drives short it is, None where the level has no redundancy.

    ``progress`` goes from 0 to 1 while something is synchronised. ``mismatch_sectors`` (of 512 bytes) is what the
    last check, repair, resync or recovery found to disagree. ``layout`` is the kernel's number of the order in which
    data and parity lie, None while the array is reshaped.
    """

    array_state: str
    level: str
    raid_disks: int
    degraded: int | None
    sync_action: str
    progress: float | None
    mismatch_sectors: int
    members: tuple[MdMember, ...] = ()
    chunk_bytes: int = 0
    layout: int | None = None

    @property
    def m(self) -> int | None:
        """The number of drives that may fail; None for a level whose answer depends on which."""
        return self.raid_disks - 1 if self.level == "raid1" else _PARITY.get(self.level)

    @property
    def is_lost(self) -> bool:
        """Whether data cannot be read any more."""
        if self.array_state == "broken" and self.level not in _KEEPS_THE_LAST:
            return True
        return self.array_state in _NO_ARRAY or (self.m is not None and (self.degraded or 0) > self.m)

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is synchronised, nor about to be: between two actions the kernel is idle for a moment.

        ``mdadm`` freezes the array for as long as it adds a drive.
        """
        can_rebuild = self.array_state not in _UNTOUCHED and not self.is_lost
        is_due = can_rebuild and bool(self.degraded) and any(member.is_spare for member in self.members)
        return self.sync_action in _AT_REST and not is_due

    def recovery_state(self) -> RecoveryState:
        """The same in the oracle's words."""
        missing = self.degraded or 0
        short = f"{missing} of {self.raid_disks} drives missing"
        detail = f"{self.level or 'no level'}, {self.array_state}, {short}, {self.sync_action}"
        if self.is_lost:
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
        values[path] = value.strip()
    # One that is not running has neither a level nor a number of drives.
    needed = {"array_state"} if values.get("array_state") in _NO_ARRAY else {"array_state", "level", "raid_disks"}
    if lacking := sorted(needed - values.keys()):
        raise ProtocolError(f"md: there is no attribute {lacking[0]} among {sorted(values)}; is it an md array?")
    # While an array is reshaped both numbers stand there: the old one in brackets.
    is_reshaped = any("(" in values.get(name, "") for name in ("raid_disks", "chunk_size", "layout"))
    return MdStatus(
        array_state=values["array_state"],
        level=values.get("level", ""),
        raid_disks=_number(values, "raid_disks", 0),
        degraded=_number(values, "degraded", 0) if "degraded" in values else None,
        sync_action=values.get("sync_action", "idle"),
        progress=_progress(values.get("sync_completed", "none")),
        mismatch_sectors=_number(values, "mismatch_cnt", 0),
        members=tuple(_members(values)),
        chunk_bytes=_number(values, "chunk_size", 0),
        layout=None if is_reshaped or "layout" not in values else _number(values, "layout", 0),
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
        """The status by the kernel now. Raises ToolError where there is no such array, ProtocolError."""
        done = self._executor.run(("sh", "-c", _LOOK, "md", self._folder, *_ATTRIBUTES), self._soon())
        if not done.stdout:
            raise ToolError(f"{self._folder} has no attributes: is {self.name} an md array there, and assembled?")
        return parse_md(done.stdout)

    def recovery_state(self) -> RecoveryState:
        """The same in the oracle's words."""
        return self.status().recovery_state()

    def start(self, action: str) -> None:
        """Write ``check``, ``repair``, ``idle`` or ``frozen`` to ``sync_action``, which takes root. Raises ToolError.

        A check compares what is in the kernel's memory, where it still is there: see :meth:`drop_caches`. Frozen, it
        rebuilds nothing until it is told to be idle.
        """
        if action not in {"check", "frozen", "idle", "repair"}:
            raise BadInput(f"an md array can be told to check, to repair, to be idle or frozen, not to {action!r}")
        done = self._executor.run(("tee", f"{self._folder}/sync_action"), self._soon(), stdin=f"{action}\n")
        if done.status:
            raise ToolError(
                f"{self.name} cannot be told to {action}: {done.stderr.strip()}; it takes root, a level with "
                "redundancy, and that nothing else is synchronised"
            )

    def rebuild(self, *, most_kib_per_s: int) -> None:
        """Have rebuilt what can be, at this speed at most; what froze it is over. Takes root. Raises ToolError."""
        limit = f"{self._folder}/sync_speed_max"
        done = self._executor.run(("tee", limit), self._soon(), stdin=f"{most_kib_per_s}\n")
        if done.status:
            raise ToolError(f"{self.name} rebuilds at no other speed: {done.stderr.strip()}; it takes root")
        self.start("idle")

    def drop_caches(self) -> None:
        """Have the kernel write out and forget what it holds of the array, so that reads come from the drives.

        That is the page cache of the block device and, of levels with parity, the stripes in memory, from which a
        degraded array answers. Takes root, and ``blockdev`` of util-linux or busybox. Raises ToolError.
        """
        done = self._executor.run(("sh", "-c", _DROP, "md", self._folder, self.name), self._soon())
        if done.status:
            raise ToolError(
                f"what the kernel holds of {self.name} cannot be dropped: {done.stderr.strip()}; it takes root"
            )

    def wait_idle(self, deadline: Deadline, pause: Callable[[], None] = lambda: None) -> MdStatus:
        """Wait until nothing is synchronised any more, nor about to be, with a pause at each look.

        An array with a drive missing and a spare is about to be rebuilt. Raises DeadlineExceeded.
        """

        def look() -> MdStatus:
            status = self.status()
            if not status.is_at_rest:
                pause()
            return status

        status = deadline.poll(look, lambda status: status.is_at_rest, every_s=_POLL_S)
        if not status.is_at_rest:
            done = f"{status.sync_action} ({status.progress or 0:.0%})"
            raise DeadlineExceeded(f"{self.name} still does {done}, {status.degraded or 0} drives missing")
        return status

    def _soon(self) -> Deadline:
        return Deadline.after(self._clock, _COMMAND_S)


def _members(values: Mapping[str, str]) -> Iterator[MdMember]:
    for path, value in values.items():
        name, _, attribute = path.removeprefix("dev-").partition("/")
        if attribute == "state":
            slot, offset = f"dev-{name}/slot", f"dev-{name}/offset"
            yield MdMember(
                name,
                frozenset(value.split(",")),
                None if values.get(slot, "none") in _NO_SLOT else _number(values, slot, 0),
                _number(values, offset, 0) * _SECTOR_BYTES,
            )


def _number(values: Mapping[str, str], name: str, default: int) -> int:
    text = values.get(name)
    if text is None:
        return default
    found = re.match(r"-?\d+", text)
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
