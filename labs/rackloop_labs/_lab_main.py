"""The start and the end of a process that is a lab while it is up, whatever the lab is made of."""

from __future__ import annotations

import argparse
import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from rackloop.errors import EXIT_BAD_INPUT, EXIT_LAB_FAILED, BadInput, RackloopError
from rackloop.lab import Lab, LabState, load_lab
from rackloop_labs._complaints import complain_briefly
from rackloop_labs._lock_holder import say_holder

Live = Callable[[Lab, LabState, argparse.Namespace], Coroutine[Any, Any, None]]


def run_lab(live: Live, prog: str, description: str) -> None:
    """Have ``live`` run the lab named on the command line, under the lab's lock.

    What goes wrong is said on standard error.
    """
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument("lab", type=Path, help="the lab description")
    parser.add_argument("--state", type=Path, required=True, help="the lab's state directory")
    parser.add_argument("--seed", type=int, required=True, help="seed of everything random in what is simulated")
    parser.add_argument("--ready-fd", type=int, required=True, help="written to once the lab is up")
    parser.add_argument("--leash-fd", type=int, help="the lab ends when the other end of this pipe is closed")
    options = parser.parse_args()
    complain_briefly(sys.stderr)
    state = LabState(options.state)
    lock = state.take()
    if lock is None:
        sys.exit("labd: another process is this lab")
    # One that was killed left its own, and who sees that the lab is held would take these for this lab's.
    state.endpoints_file.unlink(missing_ok=True)
    say_holder(lock)
    try:
        asyncio.run(live(load_lab(options.lab), state, options))
    except (RackloopError, OSError) as error:
        sys.stderr.write(f"labd: {error}\n")
        sys.exit(EXIT_BAD_INPUT if isinstance(error, BadInput) else EXIT_LAB_FAILED)
    # What the rack was is thousands of objects: to search them for cycles would take longer than to end all of it.
    gc.freeze()


def told_to_end(options: argparse.Namespace) -> asyncio.Event:
    """The event that the lab is told to end, by a signal or by the leash."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    # As under nohup. What this process ignores, commands of its servers would; what it handles, they do not inherit.
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            loop.add_signal_handler(number, lambda: None)
    if options.leash_fd is not None:
        loop.add_reader(options.leash_fd, told.set)
    return told
