"""The device names that the tools accept."""

from __future__ import annotations

from rackloop_labs.mock_hosts._disk_links import disk_links
from rackloop_labs.mock_hosts._view import HostView

_LINKS = "/dev/disk/"


def device_node(view: HostView, path: str) -> str:
    """The node that ``path`` leads to: a link under ``/dev/disk`` is followed, anything else stays as it is."""
    link = disk_links(view).get(path.removeprefix(_LINKS)) if path.startswith(_LINKS) else None
    return f"/dev/{link.target.rpartition('/')[2]}" if link else path
