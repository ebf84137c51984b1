"""The output of one tool on one drive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rackloop.abilities import DriveIdentity
from rackloop.drive_identifiers import normal_identifier


@dataclass(frozen=True)
class Reading:
    """A drive's identity, its counters as :mod:`rackloop.inspection.health` names them, and the tool's findings."""

    identity: DriveIdentity
    counters: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[str, ...] = ()


def reported(**identifiers: str | None) -> dict[str, str]:
    """The identifiers that are reported, each in its one spelling; raises ValueError where one cannot be one."""
    normal = {name: normal_identifier(name, value) for name, value in identifiers.items() if value}
    return {name: value for name, value in normal.items() if value}
