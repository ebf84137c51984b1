"""The storage tools of a mock server: each prints the server's snapshot as the real program would."""

from rackloop_labs.mock_hosts.tools._tools import TOOLS, Tool

__all__ = ["TOOLS", "Tool"]
