"""Errors of the operating system as messages and exit codes."""

from __future__ import annotations

import errno
import os

from rackloop.errors import BadInput, LabError, RackloopError
from rackloop.names import quoted

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# Errors of a path that the user gave, and not of the machine.
_WRONG_PATH = frozenset(
    {
        *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST),
        *(errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTEMPTY, errno.EXDEV),
    }
)


def as_refusal(error: OSError) -> RackloopError | None:
    """The error to report: BadInput for a path that cannot be used, LabError for a full disk.

    None for errors that a user cannot cause by an argument, which need their traceback.
    """
    where = None if error.filename is None else quoted(os.fsdecode(error.filename))
    said = error.strerror or str(error)
    if error.errno in _NO_SPACE:
        return LabError(f"cannot write{f' {where}' if where else ''}: {said}; free some space")
    if error.errno in _WRONG_PATH and where is not None:
        return BadInput(f"cannot use {where}: {said}; check the path and its permissions")
    return None
