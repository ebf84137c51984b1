"""The nearer end of the connection to the process that simulates the switch."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from rackloop.errors import LabError
from rackloop.lab import LabState

_SERIAL_LINE = "switch.tty"
_MEMORY = "switch.json"

_ANSWER_S = 50.0


class SwitchLink:
    """The running process. Make it by :meth:`start`; it ends when this process does."""

    def __init__(self, process: asyncio.subprocess.Process, state: LabState, wanted: dict[str, Any]) -> None:
        self.process = process
        self._state = state
        self._wanted = wanted
        self._turn = asyncio.Lock()

    @classmethod
    async def start(cls, state: LabState, *, port: int, baud: int, is_paced: bool) -> SwitchLink:
        """Start the process, which waits for :meth:`open`. Raises LabError where it cannot be started.

        It will listen on TCP ``port``, 0 for any, and on a serial line of ``baud``, no faster where ``is_paced``.
        """
        _clear(state)
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "rackloop_drivers.fabric.flexfabric.peer.process",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise LabError(f"the switch's process cannot be started: {error.strerror}; see {state.log}") from error
        memory, tty = str(state.directory / _MEMORY), str(state.directory / _SERIAL_LINE)
        return cls(process, state, {"memory": memory, "tty": tty, "port": port, "baud": baud, "paced": is_paced})

    async def open(self, rackd: Path) -> dict[str, str]:
        """Open the switch's lines now that rackd answers at its socket; where they are, as ``tty`` and ``tcp``."""
        return await self._ask({"rackd": str(rackd), **self._wanted})

    async def mishear(self, key: str, rule: dict[str, Any]) -> None:
        """Have it misbehave by ``rule``, the fields of :class:`~rackloop_drivers.fabric.flexfabric.Rule`."""
        await self._ask({"key": key, "rule": rule})

    async def hear(self, key: str) -> None:
        """Have it behave again as far as the rule under ``key`` goes."""
        await self._ask({"key": key, "rule": None})

    async def stop(self) -> None:
        """End the process and return once it has, and nothing is left of it."""
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
        _clear(self._state)

    async def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        """Give an order, and wait for its answer. Raises LabError where none comes."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None and stdout is not None  # noqa: S101, PT018 - asked for in start
        async with self._turn:
            stdin.write(json.dumps(order).encode() + b"\n")
            try:
                line = await asyncio.wait_for(stdout.readline(), _ANSWER_S)
            except TimeoutError as error:
                raise LabError(f"the simulated switch did not answer; see {self._state.log}") from error
        if not line:
            raise LabError(f"the simulated switch has ended: {self._state.last_words().removeprefix('switch: ')}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _clear(state: LabState) -> None:
    for name in (_MEMORY, _SERIAL_LINE):
        (state.directory / name).unlink(missing_ok=True)
