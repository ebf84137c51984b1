"""A claim on a drive of a server: rackprobe keeps it open there while it is written, and checks its identity."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any

from rackloop.abilities import Process
from rackloop.clock import Clock, Deadline
from rackloop.errors import GuardRefused, LabError, ProtocolError, ToolError, UnfitDrive
from rackloop_drivers.block.host_path._identity_options import identity_options
from rackloop_drivers.block.host_path._streaming_host import StreamingHost
from rackloop_drivers.host_tools import deliver_program

if TYPE_CHECKING:
    from rackloop.abilities import DriveIdentity, Executor

_END_S = 5.0


class Holder:
    """A ``rackprobe hold`` where ``executor`` runs commands: a :class:`~rackloop.abilities.Claim` of one drive there.

    It holds ``node`` (O_EXCL) from when it is made until it is closed, or the connection ends. ``name`` is the name
    under ``/dev/disk/by-id`` that leads to the drive as long as it is there, and to no other. Raises LabError with
    every reason where the drive is not ``identity``, is in use or has no such name; ToolError where rackprobe
    cannot run there. To take the drive, and to compare it, may take ``within_s``.
    """

    def __init__(
        self, executor: Executor, clock: Clock, node: str, identity: DriveIdentity, *, within_s: float
    ) -> None:
        deadline = Deadline.after(clock, within_s)
        self._clock = clock
        self._within_s = within_s
        self._node = node
        self._asking = Lock()
        self._checks = 0
        program = deliver_program(executor, "rackprobe", deadline)
        # Not one of the commands that a connection has room for: drives are held by the dozen, and for long.
        start = executor.start_aside if isinstance(executor, StreamingHost) else executor.start
        self._process: Process = start([program, "hold", *identity_options(identity), "--", node])
        try:
            held = self._answer("held", deadline)
            self.name = str(held["name"])
        except BaseException:
            self._process.kill()
            raise

    def require(self, drive_id: str, descriptor: int | None = None) -> None:
        """See :class:`~rackloop.abilities.Claim`: the holder compares anew, on its open descriptor."""
        if descriptor is not None:
            raise GuardRefused(drive_id, [f"{self._node} is at a server: no descriptor of this machine leads there"])
        with self._asking:
            self._checks += 1
            try:
                self._process.write_line(json.dumps({"op": "check", "id": self._checks}))
            except ToolError as error:
                raise LabError(f"the process that held {self._node} is gone; ask the guard again") from error
            deadline = Deadline.after(self._clock, self._within_s)
            checked = self._answer("checked", deadline)
            while checked.get("id") != self._checks:
                # The answer to an earlier check, which came too late for it.
                checked = self._answer("checked", deadline)
            reasons = checked["reasons"]
        if reasons:
            raise UnfitDrive(drive_id, [str(reason) for reason in reasons])

    def close(self) -> None:
        """Let others claim the drive; closing twice does nothing."""
        with contextlib.suppress(LabError):
            self._process.wait(Deadline.after(self._clock, _END_S))
        # Of one that has ended it gives back the connection.
        self._process.kill()

    def _answer(self, event: str, deadline: Deadline) -> Mapping[str, Any]:
        line = self._process.read_line(deadline)
        if line is None:
            ended = self._process.wait(deadline)
            said = ended.stderr.strip().removeprefix("rackprobe: ") or f"it ended with status {ended.status}"
            raise LabError(f"{self._node} cannot be held: {said}")
        try:
            answer = json.loads(line)
            if answer["event"] == event:
                return dict(answer)
        except (KeyError, TypeError, ValueError):
            pass
        raise ProtocolError(f"rackprobe hold should have said {event!r}, but said {line!r}")
