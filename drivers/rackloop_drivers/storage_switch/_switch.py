"""A storage switch that runs for as long as its tenants are served."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Self

from rackloop.abilities import Executor, WritableDrive
from rackloop.clock import Clock, Deadline
from rackloop.errors import BadInput, DeadlineExceeded, RackloopError, ToolError
from rackloop.native import find_binary
from rackloop_drivers.host_tools import deliver_program
from rackloop_drivers.storage_switch._configuration import SwitchedTenant, configuration, drives_of

_END_S = 3.0
_BAD_CONFIGURATION = 2
_numbers = count(1)


def require_admitted(
    scheduler: Mapping[str, Any], tenants: Sequence[SwitchedTenant], executor: Executor, deadline: Deadline
) -> None:
    """Have the program of this machine check a scheduler and its tenants; ``executor`` runs commands here.

    Raises BadInput with its own words for an unknown parameter, a value out of range, or objectives that cannot be met
    (``CANTMEETSLO``); ToolError where it cannot say, and DeadlineExceeded as the executor does.
    """
    drive = {"drive": {"kind": "memory", "bytes": 1 << 40}}
    full = configuration(drive, scheduler, tenants, control="control", nbd="nbd")
    path = executor.put_text("scheduling.json", json.dumps(full))
    ended = executor.run([str(find_binary("storageswitch")), "--check", "--config", path], deadline)
    said = ended.stderr.strip().removeprefix("storageswitch: ").removeprefix(f"{path}: ")
    if ended.status == _BAD_CONFIGURATION:
        raise BadInput(f"the storage switch refuses: {said}")
    if ended.status:
        raise ToolError(f"the storage switch did not check its configuration: {said}")


class StorageSwitch:
    """A storage switch in front of ``drives`` where ``executor`` runs commands, which answers once this is made.

    The program is brought to a server where it is not there yet. ``scheduler`` has the ``kind`` and the parameters of
    each drive's scheduler. Each tenant has an NBD export of its name at the Unix socket ``nbd``, of that machine. The
    switch ends when this is closed and with the connection to the server; one that is left by a process which was
    killed carries the label of its lease, by which ``rackloop heal`` ends it.

    Raises BadInput with the switch's own words for what it refuses, such as objectives that cannot be met
    (``CANTMEETSLO``); ToolError where it does not start, LabError and GuardRefused as the permit does, NotConnected and
    DeadlineExceeded as the executor does.
    """

    def __init__(
        self,
        executor: Executor,
        drives: Sequence[WritableDrive],
        scheduler: Mapping[str, Any],
        tenants: Sequence[SwitchedTenant],
        deadline: Deadline,
        *,
        clock: Clock,
    ) -> None:
        described, permission = drives_of(drives)
        program = deliver_program(executor, "storageswitch", deadline)
        name = f"switch-{next(_numbers)}"
        # The folder of what is put there is known once something is.
        folder = PurePosixPath(executor.put_text(f"{name}.json", "")).parent
        self.nbd = Path(folder / f"{name}.nbd")
        full = configuration(described, scheduler, tenants, control=str(folder / f"{name}.ctl"), nbd=str(self.nbd))
        path = executor.put_text(f"{name}.json", json.dumps(full, indent=1))
        self._clock = clock
        self._process = executor.start([program, "--config", path, "--exit-with-parent", *permission])
        try:
            self._await_ready(path, deadline)
        except BaseException:
            self.close()
            raise

    def require_running(self) -> None:
        """Raise ToolError with its last words where the switch has ended by itself."""
        with contextlib.suppress(DeadlineExceeded):
            # It prints one line and no more, so that whatever comes now is its end.
            self._process.read_line(Deadline.after(self._clock, 0.0))
            raise ToolError(f"the storage switch ended while its tenants were served: {self._last_words()[1]}")

    def close(self) -> None:
        """End it; closing twice does nothing. A server that does not answer leaves it to its watchdog there."""
        with contextlib.suppress(RackloopError):
            self._process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _await_ready(self, path: str, deadline: Deadline) -> None:
        line = self._process.read_line(deadline)
        if line is None:
            status, said = self._last_words()
            if status == _BAD_CONFIGURATION:
                raise BadInput(f"the storage switch refuses: {said.removeprefix(f'{path}: ')}")
            raise ToolError(f"the storage switch did not start: {said}")
        try:
            is_ready = json.loads(line)["event"] == "ready"
        except (ValueError, KeyError, TypeError):
            is_ready = False
        if not is_ready:
            raise ToolError(f"the storage switch printed {line[:80]!r}, not that it is ready: is it another program?")

    def _last_words(self) -> tuple[int, str]:
        ended = self._process.wait(Deadline.after(self._clock, _END_S))
        said = ended.stderr.strip().removeprefix("storageswitch: ")
        return ended.status, said or f"it ended with status {ended.status}"
