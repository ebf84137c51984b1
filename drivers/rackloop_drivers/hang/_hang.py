"""A fault: a server all of whose programs are held, but those by which the harness reaches it.

Sources: Linux ``Documentation/admin-guide/cgroup-v2.rst`` (``cgroup.freeze``, ``cgroup.events``, ``cgroup.procs``);
systemd's ``pam_systemd.c`` and ``login-util.c`` (``logind_running``).
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from rackloop.abilities import Host
from rackloop.clock import Deadline
from rackloop.errors import BadInput, FaultRefused, LabError, NotSupported
from rackloop_drivers.failed_command import failure_of
from rackloop_drivers.host_tools import with_watchdogs

_LONGEST_S = 3600
"""The time after which a held server resumes by its own timer."""

_NO_FREEZER, _UNSAFE = 5, 6


class HostHang:
    """:class:`~rackloop_drivers.host_tools.Breaking` of a server: its one kind is ``hang``.

    Every program there is held, the first one included, by the freezer of its control group, and goes on where it was
    when the fault ends; the kernel goes on. What is spared is the SSH server and the session of the harness, so that it
    is mended the way it was made, and a timer of its own, which ends it after ``longest_s`` whatever becomes of the
    harness; a reboot ends it too. A server that a watchdog would reset, or whose SSH server is started for each
    connection, is refused with FaultRefused. Needs root and control groups of version 2 there, else NotSupported;
    ``root`` is where they are mounted. ``seats`` is the folder without which PAM takes no systemd-logind to run, so
    that no login waits for it.
    """

    kinds = frozenset({"hang"})

    def __init__(
        self,
        host: Host,
        longest_s: float = _LONGEST_S,
        *,
        root: str = "/sys/fs/cgroup",
        seats: str = "/run/systemd/seats",
    ) -> None:
        self._host = host
        self._longest_s = longest_s
        self._places = (root, seats)

    def prepare(self, fault: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        if surplus := sorted(fault.keys() - {"kind"}):
            raise BadInput(f"{fault['kind']} of {self._host.name} takes no {', '.join(surplus)}")
        self._run("look", deadline=deadline)
        return {}

    def start(self, note: Mapping[str, Any], deadline: Deadline) -> None:  # noqa: ARG002 - there is one at most
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        self._run("begin", f"{self._longest_s:.3f}", deadline=deadline)

    def stands(self, note: Mapping[str, Any], deadline: Deadline) -> bool:  # noqa: ARG002
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        return self._run("stands", deadline=deadline).strip() == "yes"

    def end(self, note: Mapping[str, Any], deadline: Deadline) -> None:  # noqa: ARG002
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        self._run("end", deadline=deadline)

    def _run(self, what: str, *arguments: str, deadline: Deadline) -> str:
        script = files("rackloop_drivers.hang").joinpath("hang.sh").read_text(encoding="utf-8")
        argv = ["sh", "-c", with_watchdogs(script), "hang", *self._places, what, *arguments]
        completed = self._host.run(argv, deadline)
        said = failure_of(completed)
        if completed.status == _NO_FREEZER:
            raise NotSupported(f"the programs of {self._host.name} cannot be held: {said}")
        if completed.status == _UNSAFE:
            raise FaultRefused(f"hang of {self._host.name}", said.splitlines())
        if completed.status:
            raise LabError(f"{self._host.name}: holding its programs: {said}; it takes root on the server")
        return completed.stdout
