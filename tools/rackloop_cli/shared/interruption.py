"""Orderly interruption of commands by signals."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Event, Thread, main_thread
from types import FrameType
from typing import Any, NoReturn

# Ctrl-C, `kill`, and a terminal that was closed.
_SIGNALS: tuple[signal.Signals, ...] = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_IMPORTING = "<frozen importlib"
_LOOKS_EVERY_S = 0.01


class _Heard:
    """The memory of a Ctrl-C that this command has answered."""

    is_so = False


_heard = _Heard()


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
        say_in_handler("tidying up; again to give that up")


def say_in_handler(text: str) -> None:
    """Say ``text`` on standard error from a handler of a signal: what prints may be what was interrupted."""
    # The same Ctrl-C may have ended who reads it.
    with suppress(OSError):
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"rackloop: {text}\n".encode())


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Have SIGINT, SIGTERM and SIGHUP end the block as Ctrl-C does; those that are ignored stay so.

    For the main thread, as signals are.
    """
    interruption = Interruption()
    with _handling(interruption.on_signal, _SIGNALS):
        yield interruption


@contextmanager
def interruptible_run(answer: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Have Ctrl-C and SIGTERM end a run: the rack is healed and the report written. ``answer`` says so at once.

    Each raises KeyboardInterrupt; only the first is answered. Within an import the first waits for its end: a module in
    C that was left half way, such as one of numpy, cannot be imported again, and the report needs it. One that was
    answered before ends the run too, should it have been swallowed, as what is raised in a destructor is.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not _heard.is_so:
            _heard.is_so = True
            answer()
            if _is_importing(frame):
                Thread(target=_repeat_once_imported, args=(number,), daemon=True).start()
                return
        raise KeyboardInterrupt

    with _handling(interrupt, (signal.SIGINT, signal.SIGTERM)):
        require_uninterrupted()
        yield


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(_IMPORTING):
            return True
        frame = frame.f_back
    return False


def _repeat_once_imported(number: int) -> None:
    """Send the signal once more when the main thread imports nothing."""
    never = Event()
    while _is_importing(sys._current_frames().get(main_thread().ident or 0)):  # noqa: SLF001 - documented, in sys
        never.wait(_LOOKS_EVERY_S)
    os.kill(os.getpid(), number)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Have Ctrl-C and SIGTERM wait for the end of the block, for something short that may not be left half way.

    A process that is being started when one is raised goes on, and nothing knows of it.
    """
    heard: list[int] = []

    def remember(number: int, _frame: object) -> None:
        heard.append(number)

    with _handling(remember, (signal.SIGINT, signal.SIGTERM)):
        yield
    if heard:
        signal.raise_signal(heard[0])


@contextmanager
def answering_interrupt() -> Iterator[None]:
    """Have Ctrl-C say that it was heard before it ends the block; what comes after the first says nothing more."""

    def interrupt(_number: int, _frame: object) -> NoReturn:
        if not _heard.is_so:
            _heard.is_so = True
            say_in_handler("interrupted")
        raise KeyboardInterrupt

    _heard.is_so = False
    with _handling(interrupt, (signal.SIGINT,)):
        yield


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Have SIGTERM and SIGHUP end the block as Ctrl-C does, which is answered as it was; those ignored stay so."""

    def end(_number: int, _frame: object) -> NoReturn:
        raise KeyboardInterrupt

    answer = signal.getsignal(signal.SIGINT)
    with _handling(answer if callable(answer) else end, (signal.SIGTERM, signal.SIGHUP)):
        yield


def require_uninterrupted() -> None:
    """Raise KeyboardInterrupt where Ctrl-C was answered before, and what it raised was swallowed."""
    if _heard.is_so:
        raise KeyboardInterrupt


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
