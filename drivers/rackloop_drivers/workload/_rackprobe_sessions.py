"""Sessions with a running rackprobe: remap and swap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rackloop.abilities import Executor
from rackloop.clock import Clock, Deadline
from rackloop.errors import BadInput, DeadlineExceeded, ProtocolError
from rackloop_drivers.workload._rackprobe_results import (
    Event,
    Expected,
    GaveUp,
    SwapRead,
    SwapResult,
    VerifiedRead,
    build,
)
from rackloop_drivers.workload._rackprobe_session import ProbeSession


@dataclass(frozen=True)
class ProbeTarget:
    """A target of a remap session: ``target`` is what ``BlockDevice.probe_target`` gives, ``lba`` the sector read.

    On a real kernel, ``devname`` (``nvme0n1``) or ``devpath`` (part of its place under /sys, such as a PCI address)
    say which block device's uevents belong to it. Where ``file_system`` is its type, ``ext4``, that of a drive which
    answered is mounted for its first file, and unmounted, before the arm ends;
    :meth:`RackProbe.make_mountable` makes one.
    """

    name: str
    target: str
    lba: int = 0
    devname: str | None = None
    devpath: str | None = None
    file_system: str | None = None


class RemapSession(ProbeSession):
    """Waits for drives on many targets at once. Made by :meth:`RackProbe.remap_session`.

    ``uevents`` are the kernel's events of the named devices so far, as ``(t_ns, action, devname)``.
    """

    def __init__(
        self,
        executor: Executor,
        clock: Clock,
        argv: Sequence[str],
        targets: Sequence[ProbeTarget],
        deadline: Deadline,
        *,
        poll_us: int,
        spin: bool,
    ) -> None:
        super().__init__(executor, clock, argv)
        self._next_id = 1
        self._outcomes: dict[int, tuple[type[VerifiedRead | GaveUp], Event]] = {}
        self._armed: set[int] = set()
        self.uevents: list[tuple[int, str, str]] = []
        try:
            self._say({"targets": [asdict(target) for target in targets], "poll_us": poll_us, "spin": spin})
            self._ready(deadline)
        except BaseException:
            self._process.kill()
            raise

    def arm(self, target: str, expected: Expected, deadline: Deadline, *, timeout_s: float = 60.0) -> int:
        """Wait, from now on, for ``expected`` on the target of that name; returns when the reads begin, with an id.

        After ``timeout_s`` the probe gives up. Raises BadInput for a target that is unknown or armed already.
        """
        arm_id = self.order(target, expected, timeout_s=timeout_s)
        self.wait_armed(arm_id, deadline)
        return arm_id

    def order(self, target: str, expected: Expected, *, timeout_s: float = 60.0) -> int:
        """Order what :meth:`arm` does and return its id at once; :meth:`wait_armed` returns when the reads begin."""
        arm_id = self._next_id
        self._next_id += 1
        timeout_ms = round(timeout_s * 1000)
        expect = expected.as_json()
        if not self._is_related():
            self._ask_clock()
        self._say({"op": "arm", "id": arm_id, "target": target, "expect": expect, "timeout_ms": timeout_ms})
        return arm_id

    def wait_armed(self, arm_id: int, deadline: Deadline) -> None:
        """Return when the reads of an arm that was ordered have begun. Raises BadInput as :meth:`arm` does."""
        while arm_id not in self._armed:
            self._take(deadline)

    def wait(self, arm_id: int, deadline: Deadline) -> VerifiedRead | GaveUp:
        """The end of an arm. Raises DeadlineExceeded when nothing has yet, ClockUnknown as :class:`HostClock` does."""
        while arm_id not in self._outcomes:
            if arm_id not in self._armed:
                raise BadInput(f"there is no arm {arm_id} to wait for: it was never made, or was waited for before")
            self._take(deadline)
        return self._taken(arm_id, deadline)

    def wait_any(self, deadline: Deadline) -> tuple[int, VerifiedRead | GaveUp]:
        """The id of an arm of which something has become, and what. Raises DeadlineExceeded when of none has."""
        while not self._outcomes:
            if not self._armed:
                raise BadInput("there is no arm to wait for")
            self._take(deadline)
        arm_id = next(iter(self._outcomes))
        return arm_id, self._taken(arm_id, deadline)

    def _taken(self, arm_id: int, deadline: Deadline) -> VerifiedRead | GaveUp:
        self._relate_again(deadline)
        self._armed.remove(arm_id)
        return self._related(*self._outcomes.pop(arm_id))

    def wait_verified(self, arm_id: int, deadline: Deadline) -> VerifiedRead:
        """The read that brought the expected drive back. Raises DeadlineExceeded when the probe gave up."""
        outcome = self.wait(arm_id, deadline)
        if isinstance(outcome, GaveUp):
            counts = ", ".join(f"{count} {verdict}" for verdict, count in outcome.verdicts.items() if count)
            raise DeadlineExceeded(f"{outcome.reason} ({outcome.reads} reads: {counts or 'none came back'})")
        return outcome

    def _take(self, deadline: Deadline) -> None:
        event = self._next_event(deadline)
        match event.get("event"):
            case "armed":
                self._armed.add(event["id"])
            case "verified":
                self._outcomes[event["id"]] = VerifiedRead, event
            case "gave_up":
                self._outcomes[event["id"]] = GaveUp, event
            case "uevent":
                self.uevents.append((event["t_ns"], event["action"], event["devname"]))
            case _:
                raise ProtocolError(f"rackprobe said {event}, which was not asked for")


class SwapSession(ProbeSession):
    """Reads a block, waits until the next drive is there, reads the next. Made by :meth:`RackProbe.swap_session`.

    Its stamps are the host's own: one may be subtracted from another, and from nothing else.
    """

    def __init__(self, executor: Executor, clock: Clock, argv: Sequence[str], deadline: Deadline) -> None:
        super().__init__(executor, clock, argv)
        try:
            self._expect_event("ready", deadline)
        except BaseException:
            self._process.kill()
            raise

    def read(self, deadline: Deadline) -> SwapRead:
        """The block read that is under way, once it has completed. Raises BadInput where the probe refused it."""
        return build(SwapRead, self._expect_event("read_done", deadline))

    def proceed(
        self,
        expected: Expected | None = None,
        *,
        lba: int | None = None,
        block_bytes: int | None = None,
        pause_s: float | None = None,
    ) -> None:
        """Start the next read; ``expected`` says what it should bring back where that has changed.

        It reads the block that begins at sector ``lba`` of the target, within the session's range; without one, that
        of its turn. ``block_bytes`` is how long that read is, where it is shorter than the session's. A block outside
        the range makes :meth:`read` raise BadInput.

        It may be told while a read is under way, and begins after it. With ``pause_s``, of 10 s at most, it begins
        that long after the end of the read before, timed by the probe, and ``due_ns`` says when it should have.
        """
        expect = None if expected is None else expected.as_json()
        pause_ns = None if pause_s is None else round(pause_s * 1e9)
        self._say({"op": "next", "expect": expect, "lba": lba, "block": block_bytes, "pause_ns": pause_ns})

    def result(self, deadline: Deadline) -> SwapResult:
        """All reads together, ending the session where reads are left."""
        self._quit()
        while (event := self._next_event(deadline)).get("event") == "read_done":
            pass
        return build(SwapResult, event)
