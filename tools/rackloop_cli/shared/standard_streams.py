"""The standard streams of the command, which may be closed or lack characters."""

from __future__ import annotations

import codecs
import io
import os
import sys
from contextlib import suppress

_ANY_TEXT = "rackloop.any-text"


class _StandardError(io.TextIOWrapper):
    """A standard error whose reader may be gone, or whose disk full: that ends no work and changes no status."""

    def write(self, text: str, /) -> int:
        with suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


def prepare_streams() -> None:
    """Have all three streams there, a standard output that takes every text, and a standard error that never fails.

    One that is closed reads and writes nothing; else the next file that is opened would take its number, and would be
    written to or closed in its stead. A file name that is not UTF-8 is printed as the bytes it is; a character that
    the encoding of the terminal lacks becomes a question mark, and half a surrogate pair what Python writes for it.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            _put_null_at(number)
            # As long as Python.
            null = open(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
            setattr(sys, name, null)
    error = sys.stderr
    if isinstance(error, io.TextIOWrapper) and error is sys.__stderr__:
        sys.stderr = _StandardError(error.buffer, error.encoding, error.errors, line_buffering=True)
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper) and out.errors in {"strict", "surrogateescape"}:
        codecs.register_error(_ANY_TEXT, _any_text)
        out.reconfigure(errors=_ANY_TEXT if out.encoding.lower() == "utf-8" else "replace")


def _any_text(error: UnicodeError) -> tuple[str | bytes, int]:
    """Write what stands for bytes as those, and other halves of surrogate pairs as Python writes them."""
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.backslashreplace_errors(error)


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
