"""Identified sectors: nothing is written before every drive that a test needs may be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, cast

import pytest

from rackloop.clock import RealClock
from rackloop.errors import GuardRefused
from rackloop.lab import load_lab
from rackloop_fixtures import Labels

if TYPE_CHECKING:
    from rackloop.abilities import WritableDrive
    from rackloop.safety import Guard
    from rackloop_labs import Bench


@dataclass
class Permission:
    """A permission that counts how often it is open."""

    drive: str
    opened: list[str]

    def __enter__(self) -> Self:
        self.opened.append(self.drive)
        return self

    def __exit__(self, *_: object) -> None:
        self.opened.remove(self.drive)


@dataclass
class Refusing:
    """A guard that refuses d02."""

    opened: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def writable(self, drive: str, *_: object) -> WritableDrive:
        self.asked.append(drive)
        if drive == "d02":
            raise GuardRefused(drive, ["it is not leased"])
        return cast("WritableDrive", Permission(drive, self.opened))


class Untouched:
    """A bench on whose servers nothing may run."""

    lab = load_lab("mock")
    clock = RealClock()

    def drive(self, *_: str) -> None:
        return None

    device = drive

    def host(self, server: str) -> Any:
        pytest.fail(f"something is written from {server}")


def test_nothing_is_written_where_one_of_several_drives_may_not_be() -> None:
    guard = Refusing()
    labels = Labels(cast("Bench", Untouched()), cast("Guard", guard), 1)
    with pytest.raises(GuardRefused, match="d02"):
        labels.ensure_all({"d01": ("srv1", "p0"), "d02": ("srv1", "p1")})
    assert (guard.asked, guard.opened) == (["d01", "d02"], [])
