"""What keeps a machine from having guests, told apart from what is wrong with Rackloop."""

from __future__ import annotations

import re
from collections.abc import Mapping
from os import environ

import pytest

from tests.e2e.command_line import Ended

REQUIRED = "RACKLOOP_GUESTS_REQUIRED"
"""Set on a machine that has to have guests, as `.ci/run` does: what it lacks is a failure there."""

_BAD_INPUT = 2
_PREREQUISITES = re.compile(
    r"a virtual rack needs .+, not found here"
    r"|\d+ guests? of \d+ MiB need \d+ MiB of memory, and \d+ MiB are free"
    r"|needs \d+ MiB in .+, and \d+ MiB are free"
    r"|made in a name space of its own, refused here"
)
_NO_NETWORK = "Debian's packages cannot be downloaded"


def went_well(ended: Ended, environment: Mapping[str, str] = environ) -> None:
    """Assert that a command did what it should; the tests are skipped where this machine lacks what guests take."""
    lacks = (ended.status == _BAD_INPUT and _PREREQUISITES.search(ended.err)) or _NO_NETWORK in ended.err
    if lacks and not environment.get(REQUIRED):
        pytest.skip(f"no guests on this machine: {ended.err.splitlines()[-1].removeprefix('rackloop: ')}")
    assert ended.status == 0, ended
