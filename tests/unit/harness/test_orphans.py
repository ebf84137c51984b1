"""What is shown of commands that runs left on servers: their words are not the harness's own."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

from rich.console import Console

from rackloop.clock import Deadline, VirtualClock
from rackloop.lab import load_lab
from rackloop.safety import HealReport
from rackloop.safety._orphans import end_orphans
from rackloop_cli.heal import _print

_STEERS = "\x1b[2J\x1b]0;gone\x07"


class Server:
    """A server on which one command is left, which steers a terminal by its name and by the lease it is of."""

    name = "srv1"

    def run(self, argv: tuple[str, ...], _deadline: Deadline) -> Any:
        listed = f"7 mock/{_STEERS}/1.1 fio {_STEERS}\n" if "list" in argv else ""
        return SimpleNamespace(stdout=listed, status=1)


def test_a_command_that_was_left_steers_no_terminal() -> None:
    server: Any = Server()
    ended, problems = end_orphans("mock", [server], list, Deadline.after(VirtualClock(), 5))
    for said in (*map(str, ended), *problems):
        assert said.isprintable()
        assert r"fio \x1b[2J" in said
    assert len(ended) == len(problems) == 1


def test_what_heal_could_not_mend_steers_no_terminal() -> None:
    shown = io.StringIO()
    report = HealReport((), (), (), (f"server srv1: {_STEERS}",), 1.0)
    _print(load_lab("mock"), report, Console(file=shown, force_terminal=False))
    assert r"not healed: server srv1: \x1b[2J" in shown.getvalue()
    assert "\x1b" not in shown.getvalue()
