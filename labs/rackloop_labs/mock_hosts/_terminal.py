"""A pseudo-terminal of a mock server, which its programs see in their own ``/dev/pts``."""

from __future__ import annotations

import fcntl
import os
import struct
import termios

from rackloop_labs.mock_hosts._sandbox import Sandbox

# <asm-generic/ioctls.h>; the standard library does not know these.
_TIOCGPTN = 0x80045430
_TIOCSPTLCK = 0x40045431
_TIOCGPTPEER = 0x5441
_FLAGS = os.O_RDWR | os.O_NOCTTY


class Terminal:
    """The master side of a new pseudo-terminal in the running server that ``sandbox`` is."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.master = os.open(sandbox.path("/dev/pts/ptmx"), _FLAGS | os.O_CLOEXEC)
        fcntl.ioctl(self.master, _TIOCSPTLCK, struct.pack("i", 0))

    @property
    def name(self) -> str:
        """Its path in the server."""
        (number,) = struct.unpack("I", fcntl.ioctl(self.master, _TIOCGPTN, bytes(4)))
        return f"/dev/pts/{number}"

    def open_slave(self) -> int:
        """A descriptor of the side that programs use."""
        return fcntl.ioctl(self.master, _TIOCGPTPEER, _FLAGS | os.O_CLOEXEC)

    def resize(self, columns: int, rows: int, pixels_wide: int, pixels_high: int) -> None:
        """Set the window's size; who runs there hears of it (SIGWINCH)."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, pixels_wide, pixels_high))

    def close(self) -> None:
        """Hang up."""
        os.close(self.master)
