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


def said(before: str = "") -> list[str]:
    """What a fresh interpreter says."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(before=before)], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_what_is_not_wanted_is_not_loaded_and_can_be_loaded_afterwards() -> None:
    assert said() == ["Transport False", "invoke"]


def test_who_has_loaded_it_before_keeps_it() -> None:
    assert said("import invoke") == ["Transport True", "invoke"]
