"""An interrupt of the main thread while it begins threads."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


class Interrupted(BaseException):
    """A time that is up, or Ctrl-C."""


@contextmanager
def interrupted_beginning(prefix: str) -> Iterator[None]:
    """Interrupt the block as soon as there is a thread whose name begins so: mostly while others are yet to begin."""

    def interrupt(_number: int, _frame: object) -> NoReturn:
        raise Interrupted

    def interrupt_the_first() -> None:
        while not any(thread.name.startswith(prefix) for thread in threading.enumerate()):
            pass
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    interrupting = threading.Thread(target=interrupt_the_first)
    interrupting.start()
    try:
        yield
    finally:
        interrupting.join()
        signal.signal(signal.SIGUSR1, before)
