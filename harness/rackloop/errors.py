"""The errors that reach a caller of Rackloop; ``docs/reference/errors.md`` draws the whole tree of them.

A message says what was expected, what was found, and what to do. ``OSError``, ``SerialException`` and
``subprocess`` errors are mapped to this tree at the seam where I/O enters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

EXIT_PASS = 0
EXIT_PRODUCT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_LAB_FAILED = 3
EXIT_INTERRUPTED = 130

MOST_SHOWN = 50
"""The number of problems of a file that are shown."""


class RackloopError(Exception):
    """Anything Rackloop raises on purpose. ``exit_code`` is what a command ends with when it is not handled."""

    exit_code = EXIT_LAB_FAILED


class BadInput(RackloopError):
    """The user gave something wrong: a file, an option, a name. Nothing has been done."""

    exit_code = EXIT_BAD_INPUT


@dataclass(frozen=True, order=True)
class Problem:
    """One thing wrong with a file: where it stands (1-based line and column) and what to do about it."""

    file: str
    line: int
    column: int
    path: str
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}"
        return f"{where}: {self.path}: {self.message}" if self.path else f"{where}: {self.message}"


def problem_lines(problems: Sequence[Problem]) -> list[str]:
    """A line for each problem of a file, up to :data:`MOST_SHOWN`, and one that says how many more there are."""
    more = len(problems) - MOST_SHOWN
    return [*map(str, problems[:MOST_SHOWN]), *([f"and {more} more problems: mend these first"] if more > 0 else [])]


class DescriptionError(BadInput):
    """A lab description or a plan is wrong. ``problems`` holds every problem found, in file order."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(problem_lines(self.problems)))


class GuardRefused(BadInput):
    """The destructive guard refused a write. ``reasons`` holds every reason, not the first."""

    def __init__(self, drive: str, reasons: Sequence[str]) -> None:
        self.drive = drive
        self.reasons = tuple(reasons)
        super().__init__(f"drive {drive} may not be written: " + "; ".join(self.reasons))


class UnfitDrive(GuardRefused):
    """The drive that is there, or another's use of it, spoke against a write that could be asked for."""


class FaultRefused(BadInput):
    """The guard of faults refused to break something. ``reasons`` holds every reason, not the first."""

    def __init__(self, fault: str, reasons: Sequence[str]) -> None:
        self.fault = fault
        self.reasons = tuple(reasons)
        super().__init__(f"{fault} may not be made: " + "; ".join(self.reasons))


class LabError(RackloopError):
    """The bench failed: equipment, cabling, a peer. The product under test is not to blame."""


class NotConnected(LabError):
    """Nothing answers where something should. ``children`` names each failed part when several were tried."""

    def __init__(self, message: str, children: Mapping[str, Exception] | None = None) -> None:
        self.children = dict(children or {})
        super().__init__(message + "".join(f"\n  {name}: {error}" for name, error in self.children.items()))


class NameUnknown(NotConnected):
    """The name of an endpoint does not resolve to an address: a spelling mistake, or a name service that lacks it."""


class DeadlineExceeded(LabError):
    """The other side did not answer before the caller's deadline."""


class LoginRefused(LabError):
    """The other side does not let this account in: a wrong user, password or key, or an account that is locked."""


class HostKeyUnknown(LabError):
    """An SSH server's host key is not in known_hosts. ``line`` is the line to add once the key is compared."""

    def __init__(self, message: str, line: str) -> None:
        self.line = line
        super().__init__(message)


class HostKeyMismatch(LabError):
    """An SSH server's host key is not the known one, or is revoked: it may be another machine."""


class ProtocolError(LabError):
    """The other side answered with bytes that are not in its protocol."""


class UnknownFormat(ProtocolError):
    """A tool printed a format of a version that is not known here. ``raw`` is all it printed, for reports."""

    def __init__(self, message: str, *, tool: str, raw: str) -> None:
        self.tool = tool
        self.raw = raw
        super().__init__(message)


class FabricError(LabError):
    """The switch refused a command. ``code`` is its SCPI error number, 0 where it gave none."""

    def __init__(self, message: str, code: int = 0) -> None:
        self.code = code
        super().__init__(message)


class LockedOut(FabricError):
    """The control lock is held by a higher fencing token (-203)."""


class HigherToken(LockedOut):
    """The switch has granted a higher fencing token than the one shown: ``highest``; ``holder`` has its lock, or 0.

    Where the store of the lab never gave that number, another store did, or one that this one replaced. ``seen`` is the
    message without its advice.
    """

    def __init__(self, seen: str, advice: str, code: int, *, highest: int, holder: int) -> None:
        self.seen = seen
        self.highest = highest
        self.holder = holder
        super().__init__(f"{seen}{advice}", code)


class StaleGeneration(FabricError):
    """The live map is no longer the one the change was made for (-221)."""


class ProductFailed(RackloopError):
    """The product under test did wrong: a drive never came back, a read brought the wrong bytes."""

    exit_code = EXIT_PRODUCT_FAILED


def late_error(what: str, took_s: float, within_s: float, late_s: float) -> RackloopError:
    """The error for ``what`` came after ``took_s``, or had not come by then, and may take ``within_s``.

    It is the product's where that is so less ``late_s`` too, the most that this machine may have added.
    """
    late = f"{what}; that was after {took_s:.2f} s, and it may take {within_s:g} s"
    if took_s - late_s > within_s:
        return ProductFailed(late)
    return RackloopError(f"{late}; this machine may have added {late_s:.2f} s to that: run it on a quieter machine")


class ToolError(RackloopError):
    """A program the harness runs (fio, rackd, rackprobe, allure) is missing, too old, or failed."""


class NotSupported(RackloopError):
    """The box, or this kind of lab, cannot do what was asked. ``str(error)`` is why a test is blocked or skipped."""
