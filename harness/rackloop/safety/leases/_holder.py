"""The holder of a lease: a person, or a process whose end ends the lease."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rackloop.names import printable
from rackloop.safety.store import boot_id


@dataclass(frozen=True)
class Process:
    """A process no other can be mistaken for: its number in its namespace, when it began, and in which boot."""

    pid: int
    started: int
    namespace: str
    boot_id: str

    @classmethod
    def this(cls) -> Process:
        """The process of the caller."""
        pid = os.getpid()
        try:
            started = _started(pid)
        except OSError:
            started = None
        return cls(pid, started or 0, _namespace(), boot_id())

    def is_living(self, *, private: bool) -> bool | None:
        """Whether it lives; None where it cannot be looked at from here, as with another user's where they are hidden.

        ``private`` says that it cannot be of another machine: then one of an earlier boot has ended.
        """
        if self.boot_id != boot_id():
            return False if private else None
        if self.namespace != _namespace():
            return None
        try:
            return _started(self.pid) == self.started
        except OSError:
            # A /proc mounted with hidepid shows nothing of the processes of others, who live all the same.
            return None if _exists(self.pid) else False


@dataclass(frozen=True)
class Holder:
    """The user and the machine, and the process where the lease is bound to one."""

    user: str
    host: str
    process: Process | None = None

    @classmethod
    def here(cls, *, bound: bool = True) -> Holder:
        """The user of this process, as a holder ``bound`` to the process or to the person."""
        return cls(user_name(os.getuid()), socket.gethostname(), Process.this() if bound else None)

    def as_json(self) -> str:
        """For the store."""
        process = self.process and vars(self.process)
        return json.dumps({"user": self.user, "host": self.host, "process": process})

    @classmethod
    def of_json(cls, text: str) -> Holder:
        """The holder that :meth:`as_json` wrote."""
        value = json.loads(text)
        return cls(printable(value["user"]), printable(value["host"]), value["process"] and Process(**value["process"]))

    def __str__(self) -> str:
        who = f"{self.user}@{self.host}"
        return f"{who} (process {self.process.pid})" if self.process else who


def user_name(number: int) -> str:
    """The name of a user of this machine; the number where it has none."""
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _started(pid: int) -> int | None:
    """The process's start in clock ticks since the boot; None for a zombie. Raises OSError where /proc has none."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    # The name, in parentheses, may hold anything; the state is the first field after it (proc_pid_stat(5)).
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else int(fields[19])


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


@cache
def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""
