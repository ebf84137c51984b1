"""What tests of several packages need."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def state_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state directory of the test's own. Below its folder, which a user's name is in, sockets may have no room."""
    with tempfile.TemporaryDirectory(prefix="rl-", dir="/tmp") as home:
        monkeypatch.setenv("RACKLOOP_STATE_HOME", home)
        yield Path(home)
