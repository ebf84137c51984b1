"""Guests of a virtual rack give way to other sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import pytest

from rackloop_labs.virtual_rack.precedence import give_way


@pytest.fixture
def session() -> Iterator[int]:
    """The process of a session of its own."""
    with Popen(["sleep", "60"], start_new_session=True) as sleeping:
        yield sleeping.pid
        sleeping.kill()


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="this kernel does not group work by sessions")
def test_a_session_gives_way_and_this_one_does_not(session: int) -> None:
    own = Path("/proc/self/autogroup").read_text()
    asyncio.run(give_way(session))
    assert Path(f"/proc/{session}/autogroup").read_text().endswith("nice 10\n")
    assert Path("/proc/self/autogroup").read_text() == own


def test_a_process_that_has_ended_gives_no_way(session: int) -> None:
    asyncio.run(give_way(2**22 + session))
