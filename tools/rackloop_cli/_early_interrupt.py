"""Ctrl-C while the program is still being loaded: importing this module has it end with a word, not a traceback."""

import sys
from types import TracebackType


def without_traceback(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Say in a word that Ctrl-C ended the program; any other error is shown as Python shows it."""
    if issubclass(kind, KeyboardInterrupt):
        sys.stderr.write("rackloop: interrupted\n")
    else:
        sys.__excepthook__(kind, error, traceback)


sys.excepthook = without_traceback
