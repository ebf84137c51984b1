"""A pytest session that says only what the user of a run needs, and that as every command does."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import pytest


class QuietSession:
    """A plugin that has pytest's terminal reporter write nowhere.

    What only pytest can say, the traceback of a test that broke and what it printed, goes to ``say``.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._nowhere: TextIO | None = None
        self._told: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Replace the reporter, for those who ask for its writer too."""
        reporter = config.pluginmanager.getplugin("terminalreporter")
        if reporter is None or config.getoption("usepdb", False):
            return
        self._nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open for the session
        config.pluginmanager.unregister(reporter)
        config.pluginmanager.register(type(reporter)(config, self._nowhere), "terminalreporter")

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Say what runs where, and the seed that replays it, should the run not come to its end."""
        plan = session.config.pluginmanager.getplugin("rackloop-plan")
        if plan is not None and not plan.dry_run:
            self._say(plan.pytest_report_header())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Show the traceback of what broke, with what the test printed."""
        if not (report.failed and getattr(report, "is_crash", False)):
            return
        self._say(f"{report.nodeid}:")
        self._say(report.longreprtext)
        if report.capstdout:
            self._say(f"it printed:\n{report.capstdout.rstrip()}")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object | None) -> None:
        """Say why a worker came to an early end, once for all that end so."""
        lines = [line.strip() for line in str(error or "").splitlines() if line.strip()]
        if lines and lines[-1] not in self._told:
            self._told.add(lines[-1])
            self._say(f"rackloop: worker {node.gateway.id} ended: {lines[-1]}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self, excrepr: object) -> None:
        """Show the traceback of an error within pytest, or within a hook."""
        sys.stderr.write(f"{excrepr}\n")

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Say why the session was ended, where that was not Ctrl-C."""
        if isinstance(excinfo.value, pytest.exit.Exception):
            sys.stderr.write(f"rackloop: {excinfo.value.msg}\n")

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Close what the reporter wrote to."""
        if self._nowhere is not None:
            self._nowhere.close()
