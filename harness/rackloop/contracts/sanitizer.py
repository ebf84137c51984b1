"""The contract of every :class:`~rackloop.abilities.Sanitizer` with its callers. What the drive holds is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rackloop.abilities import SanitizeMethod, Sanitizer, WritableDrive
from rackloop.clock import Deadline
from rackloop.contracts._clause import clauses, must_raise, past, soon
from rackloop.errors import DeadlineExceeded, GuardRefused, LabError, NotSupported

_SECTOR_BYTES = 512
_PATTERN = bytes(range(256)) * (_SECTOR_BYTES // 256)


@dataclass(frozen=True)
class SanitizerArm:
    """A sanitizer to try, and what it takes to see what it did.

    ``make`` gives drivers of the same drive. ``permission`` is the guard's to overwrite that drive, and ``foreign``
    the one to overwrite another; the clauses close them. ``write`` stores bytes at the drive's beginning, and
    ``read`` answers as many bytes from there.
    """

    make: Callable[[], Sanitizer]
    permission: Callable[[], WritableDrive]
    foreign: Callable[[], WritableDrive]
    write: Callable[[bytes], None]
    read: Callable[[int], bytes]


def offers_methods_that_stay(arm: SanitizerArm) -> None:
    """At least one method, none twice, and the same at every call."""
    methods = arm.make().methods(soon())
    assert methods, "the drive offers no method"
    assert len(set(methods)) == len(methods), f"a method is offered twice: {methods}"
    assert arm.make().methods(soon()) == methods


def erases_by_every_method_it_offers(arm: SanitizerArm) -> None:
    """Once ``sanitize`` has returned, what was written cannot be read, and the drive can be written again."""
    sanitizer = arm.make()
    for method in sanitizer.methods(soon()):
        arm.write(_PATTERN)
        with arm.permission() as drive:
            sanitizer.sanitize(drive, method, soon())
        assert arm.read(len(_PATTERN)) != _PATTERN, f"{method} erased nothing"
    arm.write(_PATTERN)
    assert arm.read(len(_PATTERN)) == _PATTERN


def refuses_a_method_it_does_not_offer(arm: SanitizerArm) -> None:
    """Such a method raises NotSupported and erases nothing."""
    sanitizer = arm.make()
    missing = [method for method in SanitizeMethod if method not in sanitizer.methods(soon())]
    if not missing:
        raise NotSupported("the drive offers every method there is")
    for method in missing:
        arm.write(_PATTERN)
        with arm.permission() as drive, must_raise(NotSupported, method):
            sanitizer.sanitize(drive, method, soon())
        assert arm.read(len(_PATTERN)) == _PATTERN, f"{method} erased the drive"


def refuses_the_permission_to_write_another_drive(arm: SanitizerArm) -> None:
    """It raises GuardRefused and erases nothing."""
    arm.write(_PATTERN)
    with arm.foreign() as drive, must_raise(GuardRefused):
        _sanitize(arm, drive, soon())
    assert arm.read(len(_PATTERN)) == _PATTERN, "the drive was erased with another's permission"


def refuses_a_permission_that_was_given_back(arm: SanitizerArm) -> None:
    """It raises LabError and erases nothing."""
    arm.write(_PATTERN)
    drive = arm.permission()
    drive.close()
    with must_raise(LabError):
        _sanitize(arm, drive, soon())
    assert arm.read(len(_PATTERN)) == _PATTERN, "the drive was erased without a permission"


def refuses_a_deadline_that_is_over(arm: SanitizerArm) -> None:
    """A call that comes too late raises DeadlineExceeded and erases nothing."""
    late = past()
    arm.write(_PATTERN)
    with arm.permission() as drive, must_raise(DeadlineExceeded):
        _sanitize(arm, drive, late)
    with must_raise(DeadlineExceeded):
        arm.make().methods(late)
    assert arm.read(len(_PATTERN)) == _PATTERN, "a sanitize whose deadline was over erased the drive"


CONTRACT = clauses(__name__)


def _sanitize(arm: SanitizerArm, drive: WritableDrive, deadline: Deadline) -> None:
    sanitizer = arm.make()
    sanitizer.sanitize(drive, sanitizer.methods(soon())[0], deadline)
