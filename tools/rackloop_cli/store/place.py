"""Which store a verb of `rackloop store` is about."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """A drive of a lab, and whether its store may be taken from an owner that may be alive."""

    lab: str
    drive: str
    take_over: bool = False
