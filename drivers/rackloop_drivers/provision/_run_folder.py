"""The folder of one run of a playbook on this machine, and the end of the processes that use it."""

from __future__ import annotations

import os
import select
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from rackloop.errors import LabError

_END_S = 5.0
_MOST_LOOKS = 10
_OnError: TypeAlias = Callable[[Callable[..., Any], str, Any], object]


@contextmanager
def run_folder(remove: Callable[[Path, bool, _OnError], object] = shutil.rmtree) -> Iterator[Path]:
    """A private folder. At its end what has it on its command line is ended, and it is removed, by ``remove``.

    What stays of it is named in a note of the error that ends the block, and raised as LabError where none does.
    """
    folder = Path(tempfile.mkdtemp(prefix="rackloop-provision-"))
    try:
        yield folder
    except BaseException as error:
        if problem := _clear(folder, remove):
            error.add_note(problem)
        raise
    if problem := _clear(folder, remove):
        raise LabError(problem)


def end_leftovers(folder: Path) -> None:
    """End what has ``folder`` on its command line: connections that ssh keeps open, and workers of a killed Ansible.

    Each of those leads a session of its own, so that the end of Ansible did not end them.
    """
    mark = os.fsencode(folder)
    for _ in range(_MOST_LOOKS):
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        # One that was ended may have begun another after this look.
        if not [pid for pid in pids if _is_ended(pid, mark)]:
            return


def _is_ended(pid: int, mark: bytes) -> bool:
    """End a process that has ``mark`` on its command line; whether it was such a one, and has ended."""
    # It may have ended by now.
    with suppress(OSError):
        # Opened before the command line is read: the number may soon be another process's.
        pidfd = os.pidfd_open(pid)
        try:
            if mark in Path(f"/proc/{pid}/cmdline").read_bytes():
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                return bool(select.select([pidfd], [], [], _END_S)[0])
        finally:
            os.close(pidfd)
    return False


def _clear(folder: Path, remove: Callable[[Path, bool, _OnError], object]) -> str | None:
    """Remove the folder, as much of it as can be; what stays."""
    end_leftovers(folder)
    failures: list[str] = []
    remove(folder, False, lambda _act, path, raised: failures.append(f"{path}: {raised[1]}"))
    if not failures:
        return None
    return f"{folder} cannot be removed, and may have what the playbook printed; remove it by hand: {failures[0]}"
