"""A fault: a server whose kernel was told to panic.

Sources: Linux ``Documentation/admin-guide/sysrq.rst`` (``c``), ``sysctl/kernel.rst`` (``panic``, ``unknown_nmi_panic``,
``panic_on_unrecovered_nmi``, ``panic_on_io_nmi``) and ``Documentation/ABI/testing/sysfs-kernel-kexec-kdump``
(``kexec_crash_loaded``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from threading import Lock
from typing import Any

from rackloop.abilities import Host, PowerPort
from rackloop.clock import Deadline
from rackloop.errors import BadInput, DeadlineExceeded, LabError, NotSupported
from rackloop_drivers.boxes import DiagnosticInterrupt

_KEY = re.compile(r"[A-Za-z0-9_./:-]{1,128}")
# A server that answers at all does within this; one that is taken for crashed loses its power.
_ANSWER_S = 15.0
_EVERY_S = 0.05
# What would start it anew by itself is looked for, and what waits to be written goes to the disks, before it panics.
_PREPARE = """
[ -z "$1" ] || [ -w "$1" ] || { echo "$1 cannot be written; it takes root, and a kernel with magic SysRq" >&2; exit 4; }
if [ "$(cat /sys/kernel/kexec_crash_loaded 2>/dev/null)" = 1 ]; then
    echo "kdump would start another kernel; unload it first, as by 'kdump-config unload' or 'kexec -p -u'" >&2
    exit 4
fi
if [ "$(cat /proc/sys/kernel/panic)" != 0 ]; then
    echo 0 >/proc/sys/kernel/panic || { echo "kernel.panic would have it reboot, and cannot be set to 0" >&2; exit 4; }
fi
sync
"""
# An NMI that nothing explains, as a controller's, is a line in the kernel's log where these are 0. What they were.
_AT_NMI = """
for name in unknown_nmi_panic panic_on_unrecovered_nmi panic_on_io_nmi; do
    [ -e "/proc/sys/kernel/$name" ] || continue
    echo "$name $(cat "/proc/sys/kernel/$name")"
    echo 1 >"/proc/sys/kernel/$name" || { echo "kernel.$name cannot be set to 1; it takes root" >&2; exit 4; }
done
"""
_AS_BEFORE = """
while read -r name value; do echo "$value" >"/proc/sys/kernel/$name"; done
"""


class HostCrash:
    """A :class:`~rackloop.abilities.Breakable` of a server: it panics as ``crash`` by the magic SysRq key ``c``.

    As ``nmi`` it panics at an NMI that its controller pulses, by ``interrupt``, where there is one.

    It keeps its power, and its drives their links, until ``power`` is cut and given back to end the fault; it boots
    then by itself, and is not waited for. A crashed server keeps no note: who made it is known to this object alone, to
    others it is ``#crashed``, while it has power and does not answer. A server that ``kernel.panic`` would have reboot
    is told to stay; one with kdump is refused with LabError. Needs root there. ``resource`` is its name in the lab, and
    ``trigger`` where its kernel takes SysRq keys; one that does not answer within ``answer_s`` does not at all.
    """

    def __init__(
        self,
        host: Host,
        resource: str,
        power: PowerPort,
        interrupt: DiagnosticInterrupt | None = None,
        *,
        trigger: str = "/proc/sysrq-trigger",
        answer_s: float = _ANSWER_S,
    ) -> None:
        self._host = host
        self._resource = resource
        self._power = power
        self._interrupt = interrupt
        self._trigger = trigger
        self._answer_s = answer_s
        self._boots = False
        self._keys: dict[str, Mapping[str, Any]] = {}
        self._lock = Lock()

    @property
    def kinds(self) -> frozenset[str]:
        """The ways in which it can be broken."""
        return frozenset({"crash"} if self._interrupt is None else {"crash", "nmi"})

    def break_as(self, key: str, fault: Mapping[str, Any], deadline: Deadline) -> None:
        """Have it panic; it answers no more when this returns. Nothing where it is crashed already.

        Raises NotSupported for another kind, BadInput for a key or a parameter that makes no sense, LabError where the
        server refuses or did not panic.
        """
        if fault.get("kind") not in self.kinds:
            ways = ", ".join(sorted(self.kinds))
            raise NotSupported(f"{self._resource} cannot be broken as {fault.get('kind')!r}, only as {ways}")
        if surplus := sorted(fault.keys() - {"kind"}):
            raise BadInput(f"{fault['kind']} of {self._host.name} takes no {', '.join(surplus)}")
        if _KEY.fullmatch(key) is None:
            raise BadInput(f"{key!r} is no key of a fault: 1 to 128 letters, digits and _ . / : -")
        self._require_time(deadline)
        with self._lock:
            if not self._is_crashed(deadline):
                self._keys.clear()
                if self._boots:
                    raise LabError(f"{self._host.name} has been started anew and does not answer yet; wait for it")
                self._panic(deadline, by_nmi=fault["kind"] == "nmi")
            self._keys[key] = dict(fault)

    def mend(self, key: str, deadline: Deadline) -> None:
        """Cut its power and give it back, where it is crashed and under no other key."""
        self._require_time(deadline)
        with self._lock:
            if not self._is_crashed(deadline):
                self._keys.clear()
                return
            if self._keys and self._keys.pop(key, None) is None:
                return
            if not self._keys:
                self._power.turn_off(deadline)
                self._power.turn_on(deadline)
                self._boots = True

    def standing(self, deadline: Deadline) -> dict[str, Mapping[str, Any]]:
        """The crash that stands, by its keys; nothing where the server answers or has no power."""
        self._require_time(deadline)
        with self._lock:
            if not self._is_crashed(deadline):
                self._keys.clear()
                return {}
            return dict(self._keys) or {"#crashed": {"kind": "crash"}}

    def _panic(self, deadline: Deadline, *, by_nmi: bool) -> None:
        self._told(_PREPARE, "" if by_nmi else self._trigger, deadline=deadline)
        before = self._told(_AT_NMI, deadline=deadline) if by_nmi else ""
        if self._interrupt is not None and by_nmi:
            if not before:
                raise NotSupported(f"the kernel of {self._host.name} has no setting by which it panics at an NMI")
            self._interrupt.interrupt(deadline)
        else:
            # Its end is never heard of.
            with suppress(LabError):
                argv = ["sh", "-c", 'echo c >"$1"', "crash", self._trigger]
                self._host.run(argv, deadline.sooner(self._answer_s))

        def is_silent() -> bool:
            # Whatever is left of the deadline: too little time to answer in is no crash.
            return not self.answers(Deadline.after(deadline.clock, self._answer_s))

        if not deadline.poll(is_silent, every_s=_EVERY_S):
            self._told(_AS_BEFORE, deadline=Deadline.after(deadline.clock, self._answer_s), stdin=before)
            raise DeadlineExceeded(f"{self._host.name} was told to panic, and still answers; look at its console")

    def _told(self, script: str, *arguments: str, deadline: Deadline, stdin: str = "") -> str:
        done = self._host.run(["sh", "-c", script, "prepare", *arguments], deadline, stdin=stdin)
        if done.status:
            said = done.stderr.strip() or f"exit status {done.status}"
            raise LabError(f"{self._host.name}: {said}")
        return done.stdout

    def _is_crashed(self, deadline: Deadline) -> bool:
        """Whether it has power and does not answer, though it was not given a new start that may still go on."""
        if self.answers(deadline):
            self._boots = False
            return False
        return not self._boots and self._power.is_on(deadline)

    def answers(self, deadline: Deadline) -> bool:
        """Whether a command runs there, by a connection of now where the last one is lost."""
        within = deadline.sooner(self._answer_s)
        try:
            return self._host.run(["true"], within).status == 0
        except LabError:
            try:
                self._host.reconnect(within)
                return self._host.run(["true"], within).status == 0
            except LabError:
                return False

    def _require_time(self, deadline: Deadline) -> None:
        if deadline.is_over():
            raise DeadlineExceeded(f"{self._host.name}: there was no time left to ask whether it is crashed")
