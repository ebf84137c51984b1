"""ATA drives that erase themselves: the Sanitize feature set, or Security Erase where they have none.

Sources: ATA/ATAPI Command Set (ACS-4), Sanitize Device and Security feature sets; hdparm(8) 9.65.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass

from rackloop.abilities import SanitizeMethod
from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, LabError, NotSupported, UnknownFormat
from rackloop_drivers.drive.host_drive._erasing import ErasureSeen, ErasureState, Progress, Tools, require_not_failed

PASSWORD = "rackloop"  # noqa: S105 - set for an erasure, which takes it away; known, so that anybody can
"""The user password that a Security Erase is done with."""

_COMMANDS = {
    SanitizeMethod.BLOCK_ERASE: ("BLOCK_ERASE_EXT", ("--sanitize-block-erase",)),
    SanitizeMethod.CRYPTO_ERASE: ("CRYPTO_SCRAMBLE_EXT", ("--sanitize-crypto-scramble",)),
    SanitizeMethod.OVERWRITE: (
        "OVERWRITE_EXT",
        ("--sanitize-overwrite-passes", "1", "--sanitize-overwrite", "hex:00000000"),
    ),
}
_FEATURE = re.compile(r"\t   \*\t(\w+) command")
_SECURITY = re.compile(r"^Security: *\n((?:\t.*\n)*)", re.MULTILINE)
_TIME = re.compile(r"(\d+)min for SECURITY ERASE UNIT")
_PROGRESS = re.compile(r"Progress: 0x([0-9a-f]+)")
_STATE = re.compile(r"State:\s+SD(\d)")
_WHOLE = 0x10000
_LOOK_S = 1.0
_ANSWER_S = 30.0
_IN_FAILURE = "Drive in SD3"
_SUCCEEDED = "Last Sanitize Operation Completed Without Error"


@dataclass(frozen=True)
class AtaErasing:
    """An ATA drive's part in erasing itself, as ``hdparm -I`` tells it. ``security`` has the flags that are set.

    Those are among ``supported``, ``enabled``, ``locked`` and ``frozen``; ``minutes`` is how long it takes by its own
    account.
    """

    sanitizes: tuple[SanitizeMethod, ...]
    security: frozenset[str]
    minutes: int | None
    is_flash: bool

    @property
    def methods(self) -> tuple[SanitizeMethod, ...]:
        """The methods, of the Sanitize feature set where the drive has it."""
        if self.sanitizes or "supported" not in self.security:
            return self.sanitizes
        return (SanitizeMethod.BLOCK_ERASE if self.is_flash else SanitizeMethod.OVERWRITE,)


def parse_hdparm(raw: str, where: str) -> AtaErasing:
    """The drive that ``hdparm -I`` printed. Raises UnknownFormat where that is none."""
    if "ATA device" not in raw:
        raise UnknownFormat(
            f"{where}: hdparm -I printed no ATA device; known here: hdparm 9.65", tool="hdparm", raw=raw
        )
    features = set(_FEATURE.findall(raw))
    has_set = "\t   *\tSANITIZE feature set" in raw
    security = _SECURITY.search(raw)
    lines = security[1].splitlines() if security else []
    flags = {line.strip() for line in lines if line.startswith("\t\t")}
    estimate = _TIME.search(raw)
    return AtaErasing(
        sanitizes=tuple(method for method, (name, _) in _COMMANDS.items() if has_set and name in features),
        security=frozenset(flags & {"supported", "enabled", "locked", "frozen"}),
        minutes=int(estimate[1]) if estimate else None,
        is_flash="Nominal Media Rotation Rate: Solid State Device" in raw,
    )


class AtaErasure:
    """:class:`~rackloop_drivers.drive.host_drive._erasing.Erasure` of an ATA drive."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._has_sanitized = False

    def methods(self, deadline: Deadline) -> tuple[SanitizeMethod, ...]:
        """The methods that ``hdparm -I`` tells of."""
        return self._look(deadline).methods

    def require(self, method: SanitizeMethod, deadline: Deadline) -> None:
        """Return where the drive sanitizes itself, or takes a password now. Raises LabError where it does not."""
        drive = self._look(deadline)
        if method not in drive.sanitizes:
            self._require_open(drive)

    def begin(self, method: SanitizeMethod, deadline: Deadline, progress: Progress) -> None:
        """Sanitize without waiting for it; a Security Erase is waited for.

        Raises LabError where the drive is frozen, or has a password already.
        """
        drive = self._look(deadline)
        if method in drive.sanitizes:
            _, options = _COMMANDS[method]
            self._tools.run("hdparm", "--yes-i-know-what-i-am-doing", *options, deadline=deadline)
            self._has_sanitized = True
            return
        self._require_open(drive)
        self._security("--security-set-pass", deadline)
        self._erase(drive, deadline, progress)
        # A drive that is done has no password any more.
        if "enabled" in self._look(deadline).security:
            self._security("--security-disable", deadline)

    def seen(self, deadline: Deadline) -> ErasureSeen:
        """The sanitize status; without that feature set, whether a password is left.

        Raises LabError where the drive took the command of :meth:`begin`, and neither is at it nor completed it.
        """
        drive = self._look(deadline)
        if "enabled" in drive.security or "locked" in drive.security:
            return ErasureSeen(ErasureState.LOCKED)
        if not drive.sanitizes:
            return ErasureSeen(ErasureState.OVER)
        completed = self._tools.executor.run(["hdparm", "--sanitize-status", self._tools.node], deadline)
        if _IN_FAILURE in completed.stderr:
            return ErasureSeen(ErasureState.FAILED)
        self._tools.check(completed)
        state = _STATE.search(completed.stdout)
        if state is None:
            raise UnknownFormat(
                f"{self._tools.where}: hdparm --sanitize-status printed no state; known here: hdparm 9.65",
                tool="hdparm",
                raw=completed.stdout,
            )
        if state[1] != "2":
            if self._has_sanitized and _SUCCEEDED not in completed.stdout:
                raise LabError(
                    f"{self._tools.where}: the drive took the sanitize command, and says that none completed without "
                    "error"
                )
            return ErasureSeen(ErasureState.OVER)
        done = _PROGRESS.search(completed.stdout)
        return ErasureSeen(ErasureState.UNDER_WAY, (int(done[1], 16) + 1) / _WHOLE if done else None)

    def end(self, deadline: Deadline) -> None:
        """Take the password away that an interrupted Security Erase left; raises LabError after a failure."""
        seen = self.seen(deadline)
        require_not_failed(seen, self._tools.where)
        if seen.state is ErasureState.LOCKED:
            # It unlocks the drive first.
            self._security("--security-disable", deadline)
            if self.seen(deadline).state is ErasureState.LOCKED:
                raise LabError(
                    f"{self._tools.where}: the drive keeps a password that is not {PASSWORD!r}; take it away with "
                    f"`hdparm --security-disable PASSWORD {self._tools.node}`"
                )

    def _look(self, deadline: Deadline) -> AtaErasing:
        return parse_hdparm(self._tools.run("hdparm", "-I", deadline=deadline).stdout, self._tools.where)

    def _require_open(self, drive: AtaErasing) -> None:
        """Return where the drive takes a password. Raises LabError where it takes none now."""
        if "supported" not in drive.security:
            raise NotSupported(f"{self._tools.where}: the drive can neither sanitize nor erase itself")
        if "frozen" in drive.security:
            raise LabError(
                f"{self._tools.where}: the drive's security is frozen, as most firmware of servers does at boot: "
                "switch the drive off and on, or pull it and plug it in again, while the server runs"
            )
        if "enabled" in drive.security:
            raise LabError(
                f"{self._tools.where}: the drive has a password already; take it away with `hdparm --security-disable "
                f"PASSWORD {self._tools.node}`. That of an interrupted erasure is {PASSWORD!r}"
            )

    def _erase(self, drive: AtaErasing, deadline: Deadline, progress: Progress) -> None:
        """Have the drive erase itself in one command, however long that takes."""
        argv = ["hdparm", "--user-master", "u", "--security-erase", PASSWORD, self._tools.node]
        began_s = deadline.remaining_s()
        running = self._tools.executor.start(argv)
        try:
            while True:
                try:
                    ended = running.wait(deadline.sooner(_LOOK_S))
                    break
                except DeadlineExceeded:
                    if deadline.is_over():
                        raise
                    progress(*_by_estimate(began_s - deadline.remaining_s(), drive.minutes))
            self._tools.check(ended)
        except LabError as error:
            # The kernel waits for the drive, which no signal ends.
            with suppress(LabError):
                running.kill()
            # The drive may go on by itself, and answers nothing else until it is done.
            why = f"{error}. Its password is {PASSWORD!r} until the erasure is over: `rackloop heal` takes it away"
            raise type(error)(why) from error

    def _security(self, what: str, deadline: Deadline) -> None:
        self._tools.run("hdparm", "--user-master", "u", what, PASSWORD, deadline=deadline.sooner(_ANSWER_S))


def _by_estimate(took_s: float, minutes: int | None) -> tuple[float | None, str]:
    if not minutes:
        return None, f"erases itself for {took_s:.0f} s, and does not say how far it is"
    return min(took_s / (minutes * 60), 0.99), f"of the {minutes} min that the drive takes by its own account"
