"""The servers of a mock rack: sandboxes that answer as servers with these drives.

labd brings them up by :mod:`rackloop_labs.mock_hosts.hosts`. Nothing is loaded here: the emulated tools need no SSH.
"""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_labs.mock_hosts._console import AT_NMI as AT_NMI
    from rackloop_labs.mock_hosts._host import MockHost as MockHost
    from rackloop_labs.mock_hosts._line_server import LineServer as LineServer
    from rackloop_labs.mock_hosts._line_server import Reply as Reply
    from rackloop_labs.mock_hosts._pci_address import pci_address as pci_address
    from rackloop_labs.mock_hosts._truth_events import EVENTS as EVENTS

__getattr__ = lazy_getattr(__name__)
