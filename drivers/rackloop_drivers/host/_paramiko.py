"""paramiko without the libraries that it loads to run commands of OpenSSH's configuration files."""

from __future__ import annotations

import sys
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paramiko import Channel

DAMAGED = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""The errors of reading a key of whose bytes some are wrong, beside its own: it takes numbers as they come."""

_UNUSED = "invoke"
_LOADING = Lock()


def load_paramiko() -> None:
    """Import paramiko without what runs such commands: it is not used here, and takes half of the import's time.

    A None among the loaded modules is how Python is told that there is no such module (the import statement's
    reference, 5.3.1), which paramiko is content with. Later imports of the module get it.
    """
    with _LOADING:
        if "paramiko" in sys.modules:
            return
        is_wanted = _UNUSED in sys.modules
        if not is_wanted:
            sys.modules[_UNUSED] = None  # type: ignore[assignment]
        try:
            import paramiko  # noqa: F401
        finally:
            if not is_wanted:
                del sys.modules[_UNUSED]


def hang_up(channel: Channel) -> None:
    """Close a channel, also one whose connection is lost: paramiko raises EOFError there."""
    with suppress(OSError, EOFError):
        channel.close()
