"""What runs left on servers: commands, whose words are not the harness's own, and folders of watchdogs."""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from rackloop.abilities import Completed
from rackloop.clock import Deadline, RealClock, VirtualClock
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


@dataclass
class ShellServer:
    """A server whose shell is this machine's, and whose temporary folder is ``folder``."""

    folder: Path
    name: str = "srv1"

    def run(self, argv: Sequence[str], deadline: Deadline) -> Completed:
        environment = {**os.environ, "TMPDIR": str(self.folder), "RACKLOOP_COMMAND": "none such/lease/connection"}
        within_s = deadline.remaining_s()
        done = subprocess.run(argv, check=False, env=environment, capture_output=True, text=True, timeout=within_s)
        return Completed(tuple(argv), done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("left", [(), ("rackloop-gone-new",), ("rackloop-gone-old", "rackloop-gone-new", "other-old")])
def test_what_watchdogs_left_an_hour_ago_is_removed(left: tuple[str, ...], tmp_path: Path) -> None:
    for name in left:
        (tmp_path / name).mkdir()
        if name.endswith("-old"):
            os.utime(tmp_path / name, (0, 0))
    host: Any = ShellServer(tmp_path)
    assert end_orphans("none such", [host], list, Deadline.after(RealClock(), 60)) == ((), [])
    assert {path.name for path in tmp_path.iterdir()} == {*left} - {"rackloop-gone-old"}
