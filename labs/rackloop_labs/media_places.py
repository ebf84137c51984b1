"""The drives that can be told to make sectors unreadable, and where those are that are attached for good."""

from __future__ import annotations

from rackloop.lab import Lab, LabKind
from rackloop_labs.port_paths import port_path


def can_have(lab: Lab, drive: str) -> bool:
    """Whether a drive of a physical rack could be told so, as far as the description knows; it alone knows the rest."""
    if lab.kind is not LabKind.PHYSICAL:
        return False
    if not lab.has_switch:
        return bool(fixed_places(lab, drive))
    is_found = lab.drives[drive].wwn is not None or lab.drives[drive].expander is None
    has_paths = any(server.paths for server in lab.servers.values())
    return lab.wired_port(drive) is not None and is_found and has_paths


def fixed_places(lab: Lab, drive: str) -> list[tuple[str, str]]:
    """The server that a drive is fixed to, and its path there; none where the description does not say."""
    described = lab.drives[drive]
    if described.expander is not None:
        attached = lab.expanders[described.expander].attached
        return [(attached[0], by_wwn)] if attached is not None and (by_wwn := name_by_wwn(lab, drive)) else []
    if described.attached is None:
        return []
    server, port = described.attached
    path = port_path(lab, server, port)
    return [(server, path)] if path else []


def name_by_wwn(lab: Lab, drive: str) -> str | None:
    """The name of a drive on whichever server it is; None where it has no WWN by its description."""
    wwn = lab.drives[drive].wwn
    return None if wwn is None else f"/dev/disk/by-id/wwn-0x{wwn}"
