"""Node.js and Allure: where they are, and a start of them that waits for its task while results are still made."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rackloop.errors import ToolError
from rackloop.lab import environment_for_programs

# Where ./rackloop installs what it needs.
_CHECKOUT = Path(__file__).resolve().parents[2] / ".rackloop"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
# Allure loads its modules, which is most of what it does, before it looks at its configuration. This one waits for it.
_CONFIG = 'import { text } from "node:stream/consumers";\nexport default JSON.parse(await text(process.stdin));\n'


class ReportToolMissing(ToolError):
    """Node.js or Allure is not there. Nothing but the HTML needs them."""


def how_to_install(checkout: Path) -> str:
    """A sentence's end that says how Node.js and Allure get there: by ``./rackloop`` where there is one."""
    again = "start `./rackloop` again, which installs the report"
    if not (checkout / "rackloop").is_file():
        again = "have it install the report: `npm install --global allure@3`"
    return f"install Node.js 20 or newer with npm and {again}"


def find_node() -> Path:
    """Node.js: ``$RACKLOOP_NODE``, else ``node`` on PATH, else the one of the checkout. Raises ToolError."""
    chosen = os.environ.get("RACKLOOP_NODE")
    if chosen:
        if found := shutil.which(chosen):
            return Path(found)
        raise ToolError(f"no Node.js for the HTML report: RACKLOOP_NODE={chosen} is not a program; unset it or mend it")
    if found := shutil.which("node") or shutil.which(_CHECKOUT / "bin" / "node"):
        return Path(found)
    raise ReportToolMissing(
        f"no Node.js for the HTML report: `node` is not on PATH; {how_to_install(_CHECKOUT.parent)}"
    )


def find_allure() -> Path:
    """Allure 3's entry script: ``$RACKLOOP_ALLURE``, else the checkout's own, else what ``allure`` on PATH is.

    Raises ToolError saying where it was looked for and what to do.
    """
    chosen = os.environ.get("RACKLOOP_ALLURE")
    if chosen:
        if Path(chosen).is_file():
            return Path(chosen).resolve()
        raise ToolError(f"no Allure 3 for the HTML report: RACKLOOP_ALLURE={chosen} is not a file; unset it or mend it")
    own = _CHECKOUT / "allure" / "node_modules" / "allure" / "cli.js"
    if own.is_file():
        return own
    on_path = shutil.which("allure")
    # Allure 2 is a Java program of the same name; ours is a script of the npm package.
    if on_path and Path(on_path).resolve().suffix == ".js":
        return Path(on_path).resolve()
    raise ReportToolMissing(
        f"no Allure 3 for the HTML report, neither at {own} nor on PATH; {how_to_install(_CHECKOUT.parent)}, "
        "then report again"
    )


class AllureStart:
    """Allure, started at once for the results in a directory that need not be there yet; ends with its context.

    Whatever is wrong with the tools is raised by :meth:`generate`: all else can be written before.
    """

    def __init__(self, results: Path, node: Path | None = None) -> None:
        self._results = results
        self._node = node
        self._process: subprocess.Popen[str] | None = None
        self._problem: ToolError | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="rackloop-allure-")

    def __enter__(self) -> Self:
        try:
            self._process = self._started()
        except ToolError as error:
            self._problem = error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        self._folder.cleanup()

    def generate(self, config: Mapping[str, Any], limit_s: float) -> bool:
        """Have the report made as ``config`` says; False where that did not end in time, and can be tried again.

        Raises ToolError where Node.js or Allure is missing or fails.
        """
        if self._problem is not None:
            raise self._problem
        process = self._process = self._process or self._started()
        try:
            said, errors = process.communicate(json.dumps(config), timeout=limit_s)
        except subprocess.TimeoutExpired:
            return False
        finally:
            self._end()
        if process.returncode or not Path(config["output"], "index.html").is_file():
            raise ToolError(_failure(process.returncode, errors or said))
        return True

    def _started(self) -> subprocess.Popen[str]:
        node = self._node or find_node()
        config = Path(self._folder.name, "allurerc.mjs")
        config.write_text(_CONFIG)
        # The results are named relative to their parent: Allure reads the argument as a pattern.
        command = [str(node), str(find_allure()), "generate", "--config", str(config), self._results.name]
        pipe = subprocess.PIPE
        try:
            return subprocess.Popen(
                command,
                cwd=self._results.parent,
                env=environment_for_programs(),
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                text=True,
            )
        except OSError as error:
            raise ToolError(f"cannot start {node}: {error.strerror}; install Node.js 20 or newer") from error

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with process:
                process.kill()


def _failure(status: int, said: str) -> str:
    """One sentence for a failure of Allure, of an exception of Node.js and its stack."""
    if "ENOSPC" in said:
        return "there is no space left for the HTML report; free some, then make it with `rackloop report`"
    lines = [line.strip() for line in _COLOURS.sub("", said).splitlines()]
    told = [line for line in lines if line and not line.startswith("at ")]
    return f"Allure failed with status {status}: {'; '.join(told)[-600:] or 'it said nothing'}; check its install"
