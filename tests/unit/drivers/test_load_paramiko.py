"""paramiko is had without what nobody here wants of it, and without taking that away from anybody else."""

from __future__ import annotations

import subprocess
import sys

LOADED = """
import sys
{before}
from rackloop_drivers.host._paramiko import load_paramiko
load_paramiko()
load_paramiko()
import paramiko
print(paramiko.Transport.__name__, "invoke" in sys.modules)
import invoke
print(invoke.__name__)
"""

OPENED = """
import sys
from pathlib import Path
from rackloop.clock import Deadline, RealClock
from rackloop.errors import RackloopError
from rackloop_drivers.host import SshAccess, open_shell
try:
    open_shell(SshAccess("srv1", "127.0.0.1", Path("/dev/null"), 1, "operator"), Deadline.after(RealClock(), 60))
except RackloopError as error:
    print(type(error).__name__, "paramiko" in sys.modules, "invoke" in sys.modules)
"""


def said(before: str = "") -> list[str]:
    """What a fresh interpreter says."""
    return printed(LOADED.format(before=before))


def printed(script: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_what_is_not_wanted_is_not_loaded_and_can_be_loaded_afterwards() -> None:
    assert said() == ["Transport False", "invoke"]


def test_who_has_loaded_it_before_keeps_it() -> None:
    assert said("import invoke") == ["Transport True", "invoke"]


def test_a_shell_that_is_the_first_connection_does_not_load_it_either() -> None:
    assert printed(OPENED) == ["NotConnected True False"]
