"""The settings of a kernel that decide whether it panics at an NMI, and whether it reboots then.

Source: Linux ``Documentation/admin-guide/sysctl/kernel.rst`` (``panic``, ``unknown_nmi_panic``,
``panic_on_unrecovered_nmi``, ``panic_on_io_nmi``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackloop.abilities import Host
from rackloop.clock import Deadline
from rackloop.errors import LabError, NotSupported

# It stays as it is once it has panicked, whose power is cut then.
_STAYS = {"panic": "0"}
# An NMI that nothing explains, as a controller's, is a line in the kernel's log where these are 0.
_AT_NMI = dict.fromkeys(("unknown_nmi_panic", "panic_on_unrecovered_nmi", "panic_on_io_nmi"), "1")
_BOOT = "cat /proc/sys/kernel/random/boot_id"
_READ = """
for name; do
    [ ! -e "/proc/sys/kernel/$name" ] || echo "$name $(cat "/proc/sys/kernel/$name")"
done
"""
_SET = """
# What was read in another boot is no longer so, and need not be given back.
[ "$(cat /proc/sys/kernel/random/boot_id)" = "$1" ] || exit 0
shift
for setting; do
    name=${setting%%=*} value=${setting#*=}
    [ "$(cat "/proc/sys/kernel/$name")" = "$value" ] || echo "$value" >"/proc/sys/kernel/$name" ||
        { echo "kernel.$name cannot be set to $value; it takes root" >&2; exit 4; }
done
"""


class PanicSettings:
    """:class:`~rackloop_drivers.host_tools.Breaking` of a server whose kernel is set to panic, and to stay so.

    A ``crash`` needs only that it stays, an ``nmi`` that it panics at one as well. The note has what the settings were
    and in which boot: a reboot gives them their values back.
    """

    kinds = frozenset({"crash", "nmi"})

    def __init__(self, host: Host) -> None:
        self._host = host

    def prepare(self, fault: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        boot, by_nmi = self._run(_BOOT, deadline=deadline).strip(), fault["kind"] == "nmi"
        wanted = _STAYS | _AT_NMI if by_nmi else _STAYS
        was = dict(line.split() for line in self._run(_READ, *wanted, deadline=deadline).splitlines())
        if by_nmi and _AT_NMI.keys().isdisjoint(was):
            raise NotSupported(f"the kernel of {self._host.name} has no setting by which it panics at an NMI")
        return {"boot": boot, "was": was, "set": {name: wanted[name] for name in was}}

    def start(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        self._set(note["boot"], note["set"], deadline)

    def stands(self, note: Mapping[str, Any], deadline: Deadline) -> bool:
        """Whether the kernel is still that of the note, whichever of its settings were reached."""
        return bool(self._run(_BOOT, deadline=deadline).strip() == note["boot"])

    def end(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        """See :class:`~rackloop_drivers.host_tools.Breaking`."""
        self._set(note["boot"], note["was"], deadline)

    def _set(self, boot: str, settings: Mapping[str, str], deadline: Deadline) -> None:
        self._run(_SET, boot, *(f"{name}={value}" for name, value in settings.items()), deadline=deadline)

    def _run(self, script: str, *arguments: str, deadline: Deadline) -> str:
        done = self._host.run(["sh", "-c", script, "settings", *arguments], deadline)
        if done.status:
            raise LabError(f"{self._host.name}: {done.stderr.strip() or f'exit status {done.status}'}")
        return done.stdout
