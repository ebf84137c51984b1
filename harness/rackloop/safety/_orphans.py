"""Orphans: commands that runs left behind on servers, found by the label in their environment.

Every command that Rackloop has a server do has ``RACKLOOP_COMMAND=LAB/LEASE/CONNECTION`` in its environment, and so has
whatever it starts. A watchdog on the server ends them when it does not hear of the harness any more; this is for what
it could not end, because it was killed itself or the server was frozen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from rackloop.errors import RackloopError
from rackloop.lab import Part
from rackloop.names import printable
from rackloop.record import ActLog
from rackloop.record.acts import EndOrphan

if TYPE_CHECKING:
    from rackloop.abilities import Host
    from rackloop.clock import Deadline

END_LABELLED = r"""
end_labelled() {
  tries=100
  while [ "$tries" -gt 0 ]; do
    found=$(grep -lF -e "RACKLOOP_COMMAND=$1" /proc/[0-9]*/environ 2>/dev/null)
    [ -n "$found" ] || return 0
    for at in $found; do
      at=${at#/proc/}
      kill -9 "-${at%/environ}" 2>/dev/null
      kill -9 "${at%/environ}" 2>/dev/null
    done
    tries=$((tries - 1))
    [ "$tries" -ge 95 ] || sleep 0.1
  done
  return 1
}
"""
"""A shell function that kills what carries a label, or one that begins so, and all of its process group.

It looks again until nothing is left, which is status 0, for ten seconds at most. The environment of a process that has
ended is empty. A group is killed in one go, or a fork would escape.
"""

END_ALL = f'{END_LABELLED}end_labelled "$1"'
"""A script that ends what carries the label it is given, or one that begins so."""

# The lease that asks, whose name is in its own label, has no orphans; to show a process takes five others.
_LIST = r"""
found=$(grep -lF -e "RACKLOOP_COMMAND=$1/" /proc/[0-9]*/environ 2>/dev/null)
[ -z "$found" ] || found=$(grep -LF -e "RACKLOOP_COMMAND=${RACKLOOP_COMMAND%/*}/" $found 2>/dev/null)
for at in $found; do
  pid=${at#/proc/} pid=${pid%/environ}
  [ "$pid" != "$$" ] || continue
  label=$(tr '\0' '\n' 2>/dev/null <"$at" | sed -n 's/^RACKLOOP_COMMAND=//p')
  printf '%s %s %s\n' "$pid" "$label" "$(tr '\0\n' '  ' 2>/dev/null <"/proc/$pid/cmdline")"
done
set -- "${TMPDIR:-/tmp}"/rackloop-gone-*
[ ! -e "$1" ] || find "$@" -maxdepth 0 -type d -mmin +60 -exec rmdir {} + 2>/dev/null
exit 0
"""
_SHOWN_CHARACTERS = 100


@dataclass(frozen=True)
class Orphan:
    """A process on a server whose run is over. ``lease`` is the one that it ran under, ``label`` all of its label."""

    server: str
    pid: int
    label: str
    command: str

    @property
    def lease(self) -> str:
        """The id of the lease that it ran under."""
        return printable(self.label.split("/")[1])

    def __str__(self) -> str:
        return f"process {self.pid} of server {self.server} ({self.command}), left by lease {self.lease}, which is over"


def end_orphans(
    lab: str,
    hosts: Collection[Host],
    held: Callable[[], Collection[str]],
    deadline: Deadline,
    log: ActLog | None = None,
) -> tuple[tuple[Orphan, ...], list[str]]:
    """End what runs on ``hosts`` for leases of ``lab`` that are over; what that was, and what does not end.

    ``held`` gives the ids of the leases that are held, asked after the servers were looked at: a run that begins
    meanwhile is not taken for one that is over; nor is the lease that ``hosts`` work for. With ``log`` each end is
    announced there before it is made. A server that cannot be asked is passed over: what is to be done there needs an
    answer of it anyway.
    """
    with ThreadPoolExecutor(len(hosts) or 1) as asking:
        found = [one for some in asking.map(partial(_labelled, lab, deadline), hosts) for one in some]
        if not found:
            return (), []
        living = frozenset(held())
        orphans = tuple(orphan for orphan in found if orphan.lease not in living)
        by_label = {(orphan.server, orphan.label): orphan for orphan in orphans}
        by_name = {host.name: host for host in hosts}
        acts = log or ActLog()
        problems = asking.map(lambda orphan: _end(by_name[orphan.server], orphan, deadline, acts), by_label.values())
        return orphans, [problem for problem in problems if problem is not None]


def _labelled(lab: str, deadline: Deadline, host: Host) -> list[Orphan]:
    """The processes on the server that run for leases of the lab."""
    try:
        listed = host.run(("sh", "-c", _LIST, "list", lab), deadline).stdout
    except RackloopError:
        return []
    found = []
    for line in listed.splitlines():
        pid, label, command = [*line.split(" ", 2), "", ""][:3]
        # One that ended just now has no label any more.
        if pid.isdigit() and label.count("/") == 2:
            shown = printable(command.strip()[:_SHOWN_CHARACTERS])
            found.append(Orphan(host.name, int(pid), label, shown or "?"))
    return found


def _end(host: Host, orphan: Orphan, deadline: Deadline, log: ActLog) -> str | None:
    """End it, and all else that carries its label; what is wrong where that fails."""
    act = log.announce(EndOrphan(orphan.lease, orphan.command), str(Part.server(host.name)))
    problem = None
    try:
        if host.run(("sh", "-c", END_ALL, "end", orphan.label), deadline).status:
            problem = f"{orphan} does not end: it is stuck in the kernel, so look for hung I/O in dmesg"
    except RackloopError as error:
        problem = f"{orphan} could not be ended: {error}"
    log.done(act, error=problem)
    return problem
