"""A program with everything loaded that forks a process for each order, which may be killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class ForkServer:
    """The running program of a module: an order a line in, an answer a line out."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """The exit ``status`` of the process for this order, negative for a signal, and what it ``told``."""
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps(order), file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


@contextmanager
def fork_server(module: str) -> Iterator[ForkServer]:
    """Run ``python -m module``, whose main calls ``serve``, for the length of the block."""
    with subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # Tests run with safe paths: the folder that a program is started in is not looked through.
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    ) as process:
        yield ForkServer(process)
        assert process.stdin
        process.stdin.close()


def serve(work: Callable[[dict[str, Any], int], None]) -> None:
    """Do ``work`` in a forked process for each order on standard input, and answer what it writes to its descriptor."""
    for line in sys.stdin:
        order = json.loads(line)
        readable, writable = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(readable)
            work(order, writable)
            os._exit(0)
        os.close(writable)
        with os.fdopen(readable) as told:
            said = told.read()
        _, status = os.waitpid(child, 0)
        sys.stdout.write(json.dumps({"status": os.waitstatus_to_exitcode(status), "told": said}) + "\n")
        sys.stdout.flush()
