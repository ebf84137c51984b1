"""The storage tools of a mock server: each prints the server's snapshot as the real program would."""

from rackloop_labs.mock_hosts.tools._tools import TOOLS as TOOLS
from rackloop_labs.mock_hosts.tools._tools import Tool as Tool
