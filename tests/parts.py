"""Sets of parts by their names."""

from __future__ import annotations

from collections.abc import Iterable

from rackloop.lab import WHOLE_RACK, Part, PartKind, Parts


def parts(
    *,
    servers: Iterable[str] = (),
    server_ports: Iterable[tuple[str, str]] = (),
    drives: Iterable[str] = (),
    ports: Iterable[int] = (),
    outlets: Iterable[str] = (),
    whole: bool = False,
) -> Parts:
    """The set of these parts; ``ports`` are those of the switch."""
    return Parts(
        (
            *map(Part.server, servers),
            *(Part.port(*place) for place in server_ports),
            *map(Part.drive, drives),
            *map(Part.switch_port, ports),
            *(Part(PartKind.OUTLET, name) for name in outlets),
            *([WHOLE_RACK] if whole else []),
        )
    )
