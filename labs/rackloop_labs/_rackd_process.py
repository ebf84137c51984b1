"""The rackd of a lab that is up, as a process of the one that is the lab."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rackloop.errors import EXIT_BAD_INPUT, BadInput, LabError
from rackloop.lab import LabState
from rackloop.native import find_binary

_READY_S = 50.0
_STOP_S = 2.0


async def start_rackd(document: Mapping[str, Any], state: LabState) -> asyncio.subprocess.Process:
    """Start rackd with this document; returns once everything in it answers. It ends with this process.

    Raises BadInput where it refuses the document, LabError where it does not come up.
    """
    config = state.directory / "rackd.json"
    config.write_text(json.dumps(document))
    rackd = await asyncio.create_subprocess_exec(
        find_binary("rackd"), "--config", config, "--exit-with-parent", stdout=asyncio.subprocess.PIPE
    )
    assert rackd.stdout is not None  # noqa: S101 - asked for above
    try:
        line = await asyncio.wait_for(rackd.stdout.readline(), _READY_S)
    except TimeoutError as error:
        await stop_process(rackd)
        raise LabError(f"rackd did not come up within {_READY_S:g} s; see {state.log}") from error
    if not line:
        status = await rackd.wait()
        if status == EXIT_BAD_INPUT:
            said = state.last_words().removeprefix("rackd: ").removeprefix(f"{config}: ")
            raise BadInput(f"the simulated rack refuses what the description and its drive profiles say: {said}")
        raise LabError(f"rackd ended with status {status}: {state.last_words().removeprefix('rackd: ')}")
    return rackd


async def stop_process(process: asyncio.subprocess.Process) -> None:
    """End a process, by force where it takes its time, and return once it has ended."""
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _STOP_S)
    except TimeoutError:
        process.kill()
        await process.wait()


def write_whole(path: Path, text: str) -> None:
    """Write a file of which readers see the old text or the new one, never half of it."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)
