"""labd's end of the connection to the process that simulates the switch."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from rackloop.errors import LabError
from rackloop.lab import Lab, LabState
from rackloop_labs._rackd_config import CONTROL_SOCKET

SERIAL_LINE = "switch.tty"
SWITCH_MEMORY = "switch.json"

_ANSWER_S = 50.0


class SwitchLink:
    """The running process. Make it by :meth:`start`; it ends when this process does."""

    def __init__(self, process: asyncio.subprocess.Process, state: LabState) -> None:
        self.process = process
        self._state = state
        self._turn = asyncio.Lock()

    @classmethod
    async def start(cls, state: LabState) -> SwitchLink:
        """Start the process, which waits for :meth:`open`. Raises LabError where it cannot be started."""
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "rackloop_labs.switch_process",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise LabError(f"the switch's process cannot be started: {error.strerror}; see {state.log}") from error
        return cls(process, state)

    async def open(self, lab: Lab) -> dict[str, str]:
        """Open the switch's lines now that rackd answers; where they are, as ``tty`` and ``tcp``."""
        control, folder = lab.fabric.control, self._state.directory
        return await self._ask(
            {
                "rackd": str(folder / CONTROL_SOCKET),
                "memory": str(folder / SWITCH_MEMORY),
                "port": 0 if control.tcp in {None, "auto"} else int(control.tcp.rpartition(":")[2]),
                "tty": str(folder / SERIAL_LINE),
                "baud": control.baud,
                "paced": lab.fabric.pace,
            }
        )

    async def mishear(self, key: str, rule: dict[str, Any]) -> None:
        """Have it misbehave by ``rule``, the fields of :class:`~rackloop_drivers.fabric.flexfabric.Rule`."""
        await self._ask({"key": key, "rule": rule})

    async def hear(self, key: str) -> None:
        """Have it behave again as far as the rule under ``key`` goes."""
        await self._ask({"key": key, "rule": None})

    async def stop(self) -> None:
        """End the process and return once it has."""
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

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
