"""The watchdogs of a server, which reset it once its programs run no more.

Sources: Linux ``Documentation/ABI/testing/sysfs-class-watchdog`` (``state``) and
``Documentation/watchdog/watchdog-api.rst``.
"""

from __future__ import annotations

from importlib.resources import files


def with_watchdogs(script: str) -> str:
    """A shell script that has the function ``active_watchdogs``, which prints why one would reset its server."""
    own = files("rackloop_drivers.host_tools").joinpath("watchdogs.sh").read_text(encoding="utf-8")
    return f"{own}\n{script}"
