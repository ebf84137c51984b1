"""Orderly interruption of commands by signals."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Thread
from typing import Any

# Ctrl-C, `kill`, and a terminal that was closed.
_SIGNALS: tuple[signal.Signals, ...] = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """The state of a command's interruption by signals; made by :func:`interruptible`.

    The first raises KeyboardInterrupt at once; within :meth:`postponed`, the next :meth:`check` does. A second gives
    up what is postponed for. ``is_asked`` says whether there was one.
    """

    def __init__(self) -> None:
        self.is_asked = False
        self._postponed: list[Callable[[], None]] = []

    @contextmanager
    def postponed(self, give_up: Callable[[], None]) -> Iterator[None]:
        """Let the block finish first; ``give_up``, called in a thread of its own, makes it fail soon."""
        self._postponed.append(give_up)
        try:
            yield
        finally:
            self._postponed.pop()

    def check(self) -> None:
        """Raise KeyboardInterrupt where the command is to end."""
        if self.is_asked:
            raise KeyboardInterrupt

    def on_signal(self, _number: int, _frame: object) -> None:
        """Handle a signal."""
        was_asked, self.is_asked = self.is_asked, True
        if not self._postponed:
            raise KeyboardInterrupt
        if was_asked:
            Thread(target=self._postponed[-1], daemon=True).start()
            return
        # What prints may be what was interrupted, so not through it.
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, b"rackloop: tidying up; again to give that up\n")


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Have SIGINT, SIGTERM and SIGHUP end the block as Ctrl-C does; those that are ignored stay so.

    For the main thread, as signals are.
    """
    interruption = Interruption()
    with _handling(interruption.on_signal, _SIGNALS):
        yield interruption


def default_signals() -> AbstractContextManager[None]:
    """Within :func:`interruptible`, have SIGTERM and SIGHUP do what they do to a process that has no handler.

    libfuse installs its handlers only over the default ones; its binding replaces Python's SIGINT handler.
    """
    return _handling(signal.SIG_DFL, (signal.SIGTERM, signal.SIGHUP))


@contextmanager
def _handling(handler: Any, numbers: Collection[signal.Signals]) -> Iterator[None]:
    """Have ``handler`` in force for these signals, but for those that are ignored."""
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        for number, standing in before.items():
            if standing is not signal.SIG_IGN:
                signal.signal(number, handler)
        yield
    finally:
        for number, standing in before.items():
            signal.signal(number, standing)
