"""Listeners to the job files and reports of fio, word for word."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Is given the name of a run of fio, the ending of a file (``fio``: its job file, ``json``: its report), and the text.
FioListener = Callable[[str, str, str], None]

_listeners: list[FioListener] = []


@contextmanager
def recording_fio(listener: FioListener) -> Iterator[None]:
    """Pass to ``listener`` the job file and the final report of each run of fio in this process during the block.

    It is called from the threads that start fio and wait for it, of any test or service.
    """
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def tell(name: str, ending: str, text: str) -> None:
    """Notify the subscribers."""
    for listener in tuple(_listeners):
        listener(name, ending, text)
