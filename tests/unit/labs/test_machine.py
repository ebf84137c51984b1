"""A machine's QEMU that does not answer: the wait for it ends, and what it says later is of no other question."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from rackloop.errors import LabError
from rackloop_labs.virtual_rack.machine import Machine, MachineFiles, machine_arguments
from rackloop_labs.virtual_rack.prerequisites import QEMU
from rackloop_labs.virtual_rack.recipe import GuestRecipe

# Says what it should have said to "stop" only when it is asked something else. Questions come without ends of lines,
# and two at once where it was late.
_SLOW = """\
import json, re, socket, sys
qmp = socket.socket(fileno=int(re.search(r"id=qmp,fd=(\\d+)", " ".join(sys.argv))[1]))
def say(said, **asked):
    qmp.sendall(json.dumps(said | {key: asked[key] for key in ("id",) if key in asked}).encode() + b"\\n")
say({"QMP": {"version": {"qemu": {"major": 7, "minor": 2, "micro": 0}, "package": ""}, "capabilities": []}})
text, held = "", None
while True:
    try:
        asked, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        if not (more := qmp.recv(4096)):
            break
        text += more.decode()
        continue
    text = text[end:].lstrip()
    if asked["execute"] == "stop":
        held = asked
        continue
    if held:
        say({"return": {"status": "stop"}}, **held)
        held = None
    say({"return": {"status": asked["execute"]}}, **asked)
"""
# More than an answer takes, and little to wait for one that does not come.
_SOON_S = 0.05


def with_slow(tmp_path: Path, test: Callable[[Machine], Coroutine[Any, Any, None]]) -> None:
    """Run ``test`` with a machine whose QEMU is slow to say that it has stopped."""
    program = tmp_path / QEMU
    program.write_text(f"#!{sys.executable}\n{_SLOW}")
    program.chmod(0o755)

    async def run() -> None:
        files = MachineFiles(tmp_path, tmp_path / "console")
        machine = await Machine.start("srv1", machine_arguments(GuestRecipe(), files, is_resumed=True), files)
        try:
            await test(machine)
        finally:
            await machine.end()

    asyncio.run(run())


@pytest.fixture(autouse=True)
def _path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """QEMU is what the test says."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")


def test_a_question_that_is_not_answered_is_an_error_of_the_lab(tmp_path: Path) -> None:
    async def test(machine: Machine) -> None:
        with pytest.raises(LabError, match=r"^QEMU of srv1 did not stop within 0\.05 s; does a drive of it hang\?$"):
            await machine.ask("stop", within_s=_SOON_S)

    with_slow(tmp_path, test)


def test_a_late_answer_is_of_no_other_question(tmp_path: Path) -> None:
    async def test(machine: Machine) -> None:
        with pytest.raises(LabError):
            await machine.ask("stop", within_s=_SOON_S)
        assert (await machine.ask("query-status"))["status"] == "query-status"

    with_slow(tmp_path, test)
