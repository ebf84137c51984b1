"""Reads and writes through an NBD export from within the harness, by libnbd (https://libguestfs.org/libnbd.3.html).

For systems under test that the harness plays itself. Load is fio's to make, and timing rackprobe's to measure.
"""

from rackloop_drivers.block.nbd_session._session import FailFastNbdSession as FailFastNbdSession
from rackloop_drivers.block.nbd_session._session import NbdSession as NbdSession
