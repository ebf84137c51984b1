"""The standard streams of the command, which may be closed or lack characters."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress


def prepare_streams() -> None:
    """Have all three streams there, and a standard output that takes every text.

    One that is closed reads and writes nothing; else the next file that is opened would take its number, and would be
    written to or closed in its stead. A file name that is not UTF-8 is printed as the bytes it is; a character that
    the encoding of the terminal lacks becomes a question mark.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            _put_null_at(number)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - as long as Python
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper) and out.errors in {"strict", "surrogateescape"}:
        out.reconfigure(errors="surrogateescape" if out.encoding.lower() == "utf-8" else "replace")


def _put_null_at(number: int) -> None:
    """Open the null device at this number, unless something else took it since Python began."""
    with suppress(OSError):
        os.fstat(number)
        return
    null = os.open(os.devnull, os.O_RDWR)
    if null == number:
        # Programs that are started get it too.
        os.set_inheritable(null, True)
        return
    os.dup2(null, number)
    os.close(null)
