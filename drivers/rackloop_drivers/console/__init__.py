"""Serial consoles by ser2net and by a serial line of this machine, and these lines simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_drivers.console._driver import Ser2netConsole as Ser2netConsole
    from rackloop_drivers.console._driver import TtyConsole as TtyConsole
    from rackloop_drivers.console._peer import Ser2netPeer as Ser2netPeer
    from rackloop_drivers.console._peer import TtyPeer as TtyPeer
    from rackloop_drivers.console._registered import Ser2netConsoleDriver as Ser2netConsoleDriver
    from rackloop_drivers.console._registered import TtyConsoleDriver as TtyConsoleDriver

__getattr__ = lazy_getattr(__name__)
