"""The control socket of rackd, the simulated rack: for callers that wait, and for parts of a rack on an event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.rackd._control import RackdControl as RackdControl
    from rackloop_drivers.rackd._control import RackdRefused as RackdRefused
    from rackloop_drivers.rackd._control import RecordedIo as RecordedIo
    from rackloop_drivers.rackd._control import RecordedRequest as RecordedRequest
    from rackloop_drivers.rackd._control import TruthStream as TruthStream
    from rackloop_drivers.rackd._link import RackdLink as RackdLink

__getattr__ = lazy_getattr(__name__)
