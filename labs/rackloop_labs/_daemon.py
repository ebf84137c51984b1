"""Start, lookup and end of the process that is a lab while it is up."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass

from rackloop.clock import Deadline
from rackloop.errors import EXIT_BAD_INPUT, BadInput, DeadlineExceeded, LabError
from rackloop.lab import Lab, LabState
from rackloop_labs._lock_holder import holder_of

_POLL_S = 2e-3


@dataclass
class Leash:
    """Ties a lab to this process: the lab ends when the leash is let go, however this process ends."""

    fd: int

    def let_go(self) -> None:
        """Tell the lab to end."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def start(
    lab: Lab, state: LabState, seed: int, deadline: Deadline, *, leashed: bool, module: str = "rackloop_labs.labd"
) -> Leash | None:
    """Start ``module`` as the process of ``lab`` and return once everything in it answers.

    With ``leashed`` the lab lives no longer than the returned leash. Raises LabError with what labd said when it
    ends instead, BadInput where that is about the description, DeadlineExceeded when it takes too long.
    """
    ready_read, ready_write = os.pipe()
    leash_read, leash_write = os.pipe() if leashed else (-1, -1)
    arguments = [sys.executable, "-m", module, str(lab.source)]
    arguments += ["--state", str(state.directory), "--seed", str(seed), "--ready-fd", str(ready_write)]
    passed = [ready_write]
    if leashed:
        arguments += ["--leash-fd", str(leash_read)]
        passed.append(leash_read)
    try:
        try:
            with state.log.open("wb") as log:
                process = subprocess.Popen(
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=passed,
                    # Kernels share the processor out among sessions, and one that works little may wait for seconds for
                    # another (see rackloop_labs.virtual_rack.precedence): a run and its own lab are of one session.
                    start_new_session=not leashed,
                    process_group=0 if leashed else None,
                )
        except OSError as error:
            raise LabError(f"lab {lab.name} cannot be started: {error.strerror}; look at {state.directory}") from error
        finally:
            for fd in passed:
                os.close(fd)
        try:
            _wait_until_ready(process, ready_read, lab, state, deadline)
        except KeyboardInterrupt:
            # Nobody waits for it any more; what it has started ends with it.
            process.kill()
            process.wait()
            raise
    except BaseException:
        if leashed:
            os.close(leash_write)
        raise
    finally:
        os.close(ready_read)
    return Leash(leash_write) if leashed else None


def _wait_until_ready(
    process: subprocess.Popen[bytes], ready: int, lab: Lab, state: LabState, deadline: Deadline
) -> None:
    readable, _, _ = select.select([ready], [], [], deadline.remaining_s())
    if readable and os.read(ready, 16):
        # The lab outlives this process, so nobody here will ever wait for it: that is what a daemon is.
        process.returncode = 0
        return
    if readable:
        failed = BadInput if process.wait() == EXIT_BAD_INPUT else LabError
        raise failed(f"lab {lab.name} did not come up: {state.last_words().removeprefix('labd: ')}")
    process.kill()
    process.wait()
    raise DeadlineExceeded(f"lab {lab.name} is not up in time; see {state.log}")


def stop(state: LabState, deadline: Deadline) -> bool:
    """End the lab whose state this is, up or coming up, and return once it is gone; False where it was not up.

    Raises DeadlineExceeded when it does not end, having killed it.
    """
    if not state.is_held():
        return False
    if (pid := _known_holder(state, deadline)) is not None:
        _signal(pid, signal.SIGTERM)
    _wait_until_gone(pid, state, deadline)
    return True


def wait_until_gone(state: LabState, deadline: Deadline) -> None:
    """Return once the process that holds the lab is gone; past the deadline kill it and raise DeadlineExceeded."""
    _wait_until_gone(_known_holder(state, deadline), state, deadline)


def _known_holder(state: LabState, deadline: Deadline) -> int | None:
    """The process that holds the lab, which says so within microseconds of taking it; None where none does."""
    deadline.poll(lambda: holder_of(state) is not None or not state.is_held(), every_s=_POLL_S)
    return holder_of(state)


def _wait_until_gone(pid: int | None, state: LabState, deadline: Deadline) -> None:
    # Another that brings the lab up meanwhile is none of this caller's.
    if deadline.poll(lambda: not state.is_held() or holder_of(state) not in {None, pid}, every_s=_POLL_S):
        return
    if pid is None:
        raise DeadlineExceeded(f"lab {state.directory.name} is up by a process that is not known; see {state.log}")
    _signal(pid, signal.SIGKILL)
    raise DeadlineExceeded(f"lab {state.directory.name} did not end in time and was killed; see {state.log}")


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
