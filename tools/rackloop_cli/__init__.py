"""The `rackloop` command."""

import sys
from types import TracebackType


def _without_traceback(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Say in a word that Ctrl-C ended the program while it was still being loaded."""
    if issubclass(kind, KeyboardInterrupt):
        sys.stderr.write("rackloop: interrupted\n")
    else:
        sys.__excepthook__(kind, error, traceback)


sys.excepthook = _without_traceback
