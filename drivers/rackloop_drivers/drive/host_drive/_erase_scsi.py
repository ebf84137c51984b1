"""SCSI drives that erase themselves: SANITIZE, where REPORT SUPPORTED OPERATION CODES has it.

Sources: SCSI Block Commands (SBC-4) SANITIZE, SCSI Primary Commands (SPC-5) REPORT SUPPORTED OPERATION CODES, progress
indication; sg_sanitize(8), sg_requests(8), sg_turs(8) of sg3_utils 1.46.
"""

from __future__ import annotations

import re

from rackloop.abilities import SanitizeMethod
from rackloop.clock import Deadline
from rackloop_drivers.drive.host_drive._erasing import ErasureSeen, ErasureState, Progress, Tools, require_not_failed

# The service action of SANITIZE, and the options of sg_sanitize.
_METHODS = {
    SanitizeMethod.BLOCK_ERASE: ("2", ("--block",)),
    SanitizeMethod.CRYPTO_ERASE: ("3", ("--crypto",)),
    SanitizeMethod.OVERWRITE: ("1", ("--overwrite", "--zero")),
}
_SUPPORTED = re.compile(r"Command (?:is )?supported")
_PROGRESS = re.compile(r"Progress indication: (\d+)\.(\d+)% done")
# Exit statuses of sg3_utils: not ready, medium or hardware error, illegal request, invalid opcode.
_NOT_READY = 2
_MEDIUM_HARD = 3
_ILLEGAL_REQUEST = 5
_INVALID_OPCODE = 9
_UNIT_ATTENTION = 6
_ANSWERS = frozenset({0, _NOT_READY, _MEDIUM_HARD, _UNIT_ATTENTION})


class ScsiErasure:
    """:class:`~rackloop_drivers.drive.host_drive._erasing.Erasure` of a SCSI drive."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def methods(self, deadline: Deadline) -> tuple[SanitizeMethod, ...]:
        """The service actions of SANITIZE that the drive reports; none where it does not report its commands."""
        return tuple(method for method in _METHODS if self._has(method, deadline))

    def require(self, method: SanitizeMethod, deadline: Deadline) -> None:
        """Nothing keeps it from beginning."""

    def begin(self, method: SanitizeMethod, deadline: Deadline, progress: Progress) -> None:  # noqa: ARG002 - it polls
        """Sanitize without waiting for it."""
        self._tools.run("sg_sanitize", *_METHODS[method][1], "--early", "--quick", deadline=deadline)

    def seen(self, deadline: Deadline) -> ErasureSeen:
        """The progress indication; without one, whether the drive is ready."""
        told = self._tools.run("sg_requests", "--progress", deadline=deadline, accept=_ANSWERS)
        if found := _PROGRESS.search(told.stdout):
            return ErasureSeen(ErasureState.UNDER_WAY, int(found[1]) / 100 + int(found[2]) / 10_000)
        ready = self._tools.run("sg_turs", deadline=deadline, accept=_ANSWERS).status
        # A unit attention is told once, in the place of what the drive does.
        if ready in {_NOT_READY, _UNIT_ATTENTION}:
            return ErasureSeen(ErasureState.UNDER_WAY)
        return ErasureSeen(ErasureState.FAILED if ready == _MEDIUM_HARD else ErasureState.OVER)

    def end(self, deadline: Deadline) -> None:
        """Raise LabError where the drive reports a failed sanitize; nothing else is left behind."""
        require_not_failed(self.seen(deadline), self._tools.where)

    def _has(self, method: SanitizeMethod, deadline: Deadline) -> bool:
        return reported_command(self._tools, f"0x48,{_METHODS[method][0]}", deadline) is not None


def reported_command(tools: Tools, opcode: str, deadline: Deadline) -> str | None:
    """The drive's report of the command ``opcode``, as sg_opcodes prints it; None where it reports none."""
    asked = ("sg_opcodes", "--no-inquiry", f"--opcode={opcode}")
    said = tools.run(*asked, deadline=deadline, accept=(0, _ILLEGAL_REQUEST, _INVALID_OPCODE))
    return said.stdout if said.status == 0 and _SUPPORTED.search(said.stdout) else None
