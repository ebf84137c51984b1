"""The storage tools of a mock server: each renders what the server has now as the real program would print it."""

from rackloop_labs.mock_hosts.tools._tools import TOOLS, Tool

__all__ = ["TOOLS", "Tool"]
