"""The driver: what :class:`~rackloop.abilities.Executor` asks, as commands of this machine that reach a host."""

from __future__ import annotations

from collections.abc import Sequence

from rackloop.abilities import Completed, Process
from rackloop.clock import Clock, Deadline
from rackloop.errors import ToolError
from rackloop_drivers.host import LocalExecutor
from skeletons.executor._codec import command, search

_SEARCH_S = 20.0


class ExampleExecutor:
    """Runs commands where ``reach`` leads, a command's first words; see :class:`~rackloop.abilities.Executor`.

    Files are made on this machine: right where the far end sees the same file system, else to be replaced.
    """

    def __init__(self, reach: Sequence[str], clock: Clock) -> None:
        self._reach = tuple(reach)
        self._clock = clock
        self._here = LocalExecutor(clock)

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        """Run a command to its end; raises ToolError when the host has no such program."""
        self._must_have(argv[0], deadline)
        return self._here.run(command(self._reach, argv), deadline, stdin=stdin)

    def start(self, argv: Sequence[str]) -> Process:
        """Start a command and return while it runs; raises ToolError when the host has no such program."""
        self._must_have(argv[0], Deadline.after(self._clock, _SEARCH_S))
        return self._here.start(command(self._reach, argv))

    def find(self, program: str) -> str | None:
        """The path of ``program`` at the far end, or None."""
        return self._find(program, Deadline.after(self._clock, _SEARCH_S))

    def put_text(self, name: str, text: str) -> str:
        """Make a file and return its path."""
        return self._here.put_text(name, text)

    def close(self) -> None:
        """End every command and remove the files."""
        self._here.close()

    def _find(self, program: str, deadline: Deadline) -> str | None:
        found = self._here.run(search(self._reach, program), deadline)
        return found.stdout.strip() or None if found.status == 0 else None

    def _must_have(self, program: str, deadline: Deadline) -> None:
        if self._find(program, deadline) is None:
            raise ToolError(f"{program} is not installed on the host that {' '.join(self._reach)} reaches")
