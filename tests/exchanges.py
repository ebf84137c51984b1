"""Rounds of writes between which and their checks drives are exchanged, judged at the drives: what reached which."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rackloop.seed import Stream, stream
from tests.nbd_wire import NbdWire

BLOCK = 4096
NEVER = "never"


@dataclass(frozen=True)
class Round:
    """A write of a block at ``at``, meant for one drive, which at some ``moment`` is exchanged for the ``other``."""

    number: int
    meant: str
    other: str
    moment: str

    @property
    def at(self) -> int:
        return self.number % 1000 * BLOCK

    @property
    def stamp(self) -> bytes:
        return f"{self.number:016}".encode() * (BLOCK // 16)


@dataclass
class Exchanges:
    """What became of the rounds so far: how many were ``written``, and which went ``wrong``. ``nbd`` is rackd's."""

    nbd: Path
    written: int = 0
    wrong: list[str] = field(default_factory=list)

    def holds(self, drive: str, at: int) -> bytes:
        """What the drive itself has there, read beside the fabric."""
        with NbdWire(self.nbd, f"drive.{drive}") as wire:
            error, data = wire.read(at, BLOCK)
        assert error == 0
        return data

    def judge(self, one: Round, *, is_done: bool, may_be_done: Collection[bool]) -> None:
        """Note a round: what is done is on the drive that was meant, nothing is on the other, and it may be so."""
        said = f"round {one.number}, exchanged {one.moment}"
        if self.holds(one.other, one.at) == one.stamp:
            self.wrong.append(f"{said}: meant for {one.meant}, written to {one.other}")
        has_it = self.holds(one.meant, one.at) == one.stamp
        if has_it != is_done or is_done not in may_be_done:
            self.wrong.append(f"{said}: done is {is_done}, on {one.meant} it is {has_it}")
        self.written += is_done


class Exchanged(Protocol):
    """A rack on which drives are exchanged."""

    def round(self, number: int, chance: Stream) -> None:
        """A permission, a write under it, and at some moment of that, or never, an exchange."""
        ...


def play(rack: Exchanged, rounds: int) -> None:
    """Play so many rounds on a rack, the same each time."""
    chance = stream(12, "exchanged drives")
    for number in range(1, rounds + 1):
        rack.round(number, chance)
