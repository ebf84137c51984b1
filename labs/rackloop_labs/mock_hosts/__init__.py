"""The servers of a mock rack: sandboxes that answer as a server with these drives would.

labd brings them up by :mod:`rackloop_labs.mock_hosts.hosts`. Nothing is imported here: the emulated tools need no SSH.
"""

__all__: list[str] = []
