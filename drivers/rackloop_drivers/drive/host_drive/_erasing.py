"""The common parts of drives' own erasures, whichever the protocol: tools, states, progress."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from rackloop.abilities import Completed, Executor, SanitizeMethod
from rackloop.clock import Deadline
from rackloop.errors import LabError, ToolError
from rackloop_drivers.host_tools import name_of

Progress = Callable[[float | None, str], None]
"""Told how far an erasure is: the fraction that is done, None where the drive does not say, and a few words."""

_PACKAGES = {
    "hdparm": "hdparm",
    "nvme": "nvme-cli",
    "sg_opcodes": "sg3-utils",
    "sg_requests": "sg3-utils",
    "sg_sanitize": "sg3-utils",
    "sg_turs": "sg3-utils",
    "sg_write_long": "sg3-utils",
}
_NOT_FOUND = 127


class ErasureState(StrEnum):
    """The state of a drive's own erasure: none ``under way``, or one that is, or one that ``failed``.

    ``locked`` is a drive with the password of an erasure that did not come to its end.
    """

    OVER = "over"
    UNDER_WAY = "under way"
    FAILED = "failed"
    LOCKED = "locked"


@dataclass(frozen=True)
class ErasureSeen:
    """An erasure as the drive tells of it now; ``fraction`` is how much is done, where it says so."""

    state: ErasureState
    fraction: float | None = None

    @property
    def said(self) -> str:
        """The progress in words."""
        return "the drive does not say how far it is" if self.fraction is None else f"{self.fraction:.0%} done"


def require_not_failed(seen: ErasureSeen, where: str) -> None:
    """Raise LabError where the drive reports a failed sanitize; ``where`` is the drive, for the message."""
    if seen.state is ErasureState.FAILED:
        raise LabError(
            f"{where}: the drive failed to sanitize itself, and refuses reads and writes until that succeeds: sanitize "
            "it again, or replace it"
        )


class Erasure(Protocol):
    """The ways of one drive, by its protocol, to erase itself.

    ``require`` returns where the drive can begin now, and changes nothing. ``begin`` returns once the drive has begun,
    or has ended where it does so in one command; ``progress`` is told of that one while it lasts. ``end`` takes away
    what an erasure that was cut short left behind, and raises LabError where it cannot.
    """

    def methods(self, deadline: Deadline) -> tuple[SanitizeMethod, ...]: ...
    def require(self, method: SanitizeMethod, deadline: Deadline) -> None: ...
    def begin(self, method: SanitizeMethod, deadline: Deadline, progress: Progress) -> None: ...
    def seen(self, deadline: Deadline) -> ErasureSeen: ...
    def end(self, deadline: Deadline) -> None: ...


class Tools:
    """The tools of a server on one ``node`` there; ``where`` says it in messages."""

    def __init__(self, executor: Executor, node: str) -> None:
        self.executor = executor
        self.node = node
        self.where = f"{name_of(executor)}:{node}"

    def run(self, *argv: str, deadline: Deadline, accept: Collection[int] = (0,)) -> Completed:
        """Run a tool with the node as its last argument.

        Raises ToolError naming the package where it is missing, LabError with what it said where its status is none
        of ``accept``.
        """
        try:
            completed = self.executor.run([*argv, self.node], deadline)
        except ToolError as error:
            # A server says so itself, but not in which package.
            raise self._missing(argv[0]) if self.executor.find(argv[0]) is None else error from error
        self.check(completed, accept)
        return completed

    def check(self, completed: Completed, accept: Collection[int] = (0,)) -> None:
        """Raise as :meth:`run` does for a command that ended so."""
        program = completed.argv[0] if completed.argv else ""
        if completed.status == _NOT_FOUND and program in _PACKAGES:
            raise self._missing(program)
        if completed.status not in accept:
            lines = [line.strip() for line in (completed.stderr or completed.stdout).splitlines() if line.strip()]
            said = "; ".join(lines) or f"exit status {completed.status}"
            raise LabError(f"{self.where}: {' '.join(completed.argv[:-1])} failed: {said}")

    def _missing(self, program: str) -> ToolError:
        where = name_of(self.executor)
        return ToolError(f"{program} was not found on {where}: install its package {_PACKAGES[program]} there")
