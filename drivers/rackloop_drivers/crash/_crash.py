"""A fault: a server whose kernel was told to panic.

Sources: Linux ``Documentation/admin-guide/sysrq.rst`` (``c``) and
``Documentation/ABI/testing/sysfs-kernel-kexec-kdump`` (``kexec_crash_loaded``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum, auto
from threading import Lock
from typing import Any, Protocol, TypeAlias

from rackloop.abilities import Host, PowerPort
from rackloop.clock import Deadline
from rackloop.errors import (
    BadInput,
    DeadlineExceeded,
    FaultRefused,
    HostKeyMismatch,
    HostKeyUnknown,
    LabError,
    LoginRefused,
    NotSupported,
    RackloopError,
)
from rackloop_drivers.boxes import DiagnosticInterrupt
from rackloop_drivers.crash._panic_settings import PanicSettings
from rackloop_drivers.host_tools import HostFaults, require_key, with_watchdogs

# A server that answers at all does within this; one that is taken for crashed loses its power.
_ANSWER_S = 15.0
# As labs have it that say nothing of their servers.
_BOOT_S = 600.0
_EVERY_S = 0.05
# Who says so runs.
_REFUSALS = (HostKeyMismatch, HostKeyUnknown, LoginRefused)
_UNKNOWN = {"kind": "crash"}
_RESTART = "restart"
_UNTOLD = "untold"
# A reboot gives the kernel's settings their values back, and empties this folder.
_NOTES = "/run/rackloop-panics"
# What would start it anew by itself is looked for, and what waits to be written goes to the disks, before it panics.
_LOOK = """
[ -z "$1" ] || [ -w "$1" ] || { echo "$1 cannot be written; it takes root, and a kernel with magic SysRq" >&2; exit 4; }
if [ "$(cat /sys/kernel/kexec_crash_loaded 2>/dev/null)" = 1 ]; then
    echo "kdump would start another kernel; unload it first, as by 'kdump-config unload' or 'kexec -p -u'" >&2
    exit 4
fi
watchdogs=$(active_watchdogs)
[ -z "$watchdogs" ] || { echo "$watchdogs" >&2; exit 4; }
sync
"""

RESTARTED = PanicSettings.kinds | {_RESTART, _UNTOLD}
"""The kinds of fault that are over once a server has the power back that was cut for them."""


class RestartNote(Protocol):
    """A note of what the power of a server is about to be told, or that its kernel was not told to panic yet.

    It is taken back where that is no longer so. One of its power is closed, in one step with the panics before it, once
    the server has it back.
    """

    def take_back(self) -> None: ...
    def close(self) -> None: ...


NoteRestart: TypeAlias = Callable[[str, Mapping[str, str]], RestartNote]
"""Writes a note durably, as a fault under a key.

It raises LabError where it cannot be noted: neither the power nor the kernel is told anything then.
"""


class _Seen(Enum):
    """The states of a server: one that is ``AWAY`` has no power, or was told to start anew and may still boot.

    One that is ``OWED`` its power lost it to the mending of a panic, which went no further.
    """

    ANSWERING = auto()
    CRASHED = auto()
    OWED = auto()
    AWAY = auto()


class HostCrash:
    """A :class:`~rackloop.abilities.Breakable` of a server: it panics as ``crash`` by the magic SysRq key ``c``.

    As ``nmi`` it panics at an NMI that its controller pulses, by ``interrupt``, where there is one.

    It keeps its power, and its drives their links, until ``power`` is cut and given back to end the fault; it boots
    then by itself, and is not waited for. A crashed server keeps no note: who made it is known to this object, and to
    another that is told by ``recall``; to all else it is ``#crashed``, while it has power and does not answer. The
    fault stands until the power is back: to mend it once more goes on where a mending failed. ``note`` tells another
    object, by its ``recall``, of a mending that was killed between off and on. Without one that goes no further, for
    an operator who switched a server off may have a hand in it. It is closed once the power is back, so that no other
    object cuts that of a server which boots. It also tells of a server that was lost before it was told to panic, whose
    power no object cuts for that.

    A server that ``kernel.panic`` would have reboot is told to stay; one with kdump, and one that a hardware watchdog
    would reset, is refused with LabError. It keeps a note of each setting of its kernel that is changed: one that does
    not panic is given them back, and until then the fault stands. One that refuses the login, as it was installed anew,
    is not crashed: LoginRefused, and its power is left as it is. Needs root there. ``resource`` is its name in the
    lab, and ``trigger`` where its kernel takes SysRq keys; one that does not answer within ``answer_s`` does not at
    all. One that was told to start is not taken for crashed until it answered, or ``boot_s`` are over.
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
        boot_s: float = _BOOT_S,
        note: NoteRestart | None = None,
    ) -> None:
        self._host = host
        self._resource = resource
        self._power = power
        self._interrupt = interrupt
        self._trigger = trigger
        self._answer_s = answer_s
        self._boot_s = boot_s
        self.settings = HostFaults(host, resource, PanicSettings(host), folder=_NOTES)
        self._note = note
        self._noted: RestartNote | None = None
        self._boots_until: Deadline | None = None
        self._was_told_on = False
        self._keys: dict[str, Mapping[str, Any]] = {}
        self._owed: dict[str, Mapping[str, Any]] = {}
        self._untold: dict[str, RestartNote | None] = {}
        self._lock = Lock()

    @property
    def kinds(self) -> frozenset[str]:
        """The ways in which it can be broken."""
        return frozenset({"crash"} if self._interrupt is None else {"crash", "nmi"})

    def break_as(self, key: str, fault: Mapping[str, Any], deadline: Deadline) -> None:
        """Have it panic; it answers no more when this returns. Nothing where it is known to have panicked already.

        Raises NotSupported for another kind, BadInput for a key or a parameter that makes no sense, FaultRefused where
        it does not answer for another reason, LabError where the server refuses or did not panic.
        """
        if fault.get("kind") not in self.kinds:
            ways = ", ".join(sorted(self.kinds))
            raise NotSupported(f"{self._resource} cannot be broken as {fault.get('kind')!r}, only as {ways}")
        if surplus := sorted(fault.keys() - {"kind"}):
            raise BadInput(f"{fault['kind']} of {self._host.name} takes no {', '.join(surplus)}")
        require_key(key)
        self._require_time(deadline)
        with self._lock:
            why = "it does not answer: it may boot, be cut off or have no power; wait for it, look at its console"
            try:
                seen = self._seen(deadline)
            except LoginRefused as error:
                seen, why = _Seen.AWAY, str(error)
            if seen is _Seen.ANSWERING:
                try:
                    self._panic(key, fault, deadline)
                except (BadInput, NotSupported):
                    # It is refused, and leaves nothing to undo.
                    self._forget_untold(key)
                    raise
            elif not self._keys:
                # Nothing was done: any other error would be undone, and cut the power of one that boots.
                raise FaultRefused(f"{fault['kind']} of {self._host.name}", [why])
            self._keys[key] = dict(fault)

    def mend(self, key: str, deadline: Deadline) -> None:
        """Cut its power and give it back, where it is crashed and under no other key.

        One without power is given it where its mending cut it, here or by the note under ``key`` that was recalled. The
        kernel of one that answers is given the settings back that it had before ``key``.
        """
        self._require_time(deadline)
        with self._lock:
            seen = self._seen(deadline)
            if seen is _Seen.ANSWERING:
                self._mend_settings(key, deadline)
            elif seen is _Seen.OWED and key in self._owed:
                self._give_power(deadline)
            elif seen is _Seen.CRASHED and self._owed.get(key, _UNKNOWN)["kind"] == _RESTART:
                # It has its power; what else is to be done is the panic's, where one is known.
                del self._owed[key]
            elif seen is _Seen.CRASHED and self._keys.keys() <= {key}:
                self._keep_note("off")
                self._owed[key] = self._keys.pop(key, _UNKNOWN)
                self._power.turn_off(deadline)
                self._give_power(deadline)
            elif seen is _Seen.CRASHED:
                self._keys.pop(key, None)

    def recall(self, faults: Mapping[str, Mapping[str, Any]]) -> None:
        """Learn of those among ``faults``, by key, by which the kernel may have panicked, and of notes of a mending."""
        restarts = {key: fault for key, fault in faults.items() if fault.get("kind") == _RESTART}
        panics = {key: fault for key, fault in faults.items() if fault.get("kind") in PanicSettings.kinds}
        untold = {str(fault.get("panic")) for fault in faults.values() if fault.get("kind") == _UNTOLD}
        with self._lock:
            self._untold |= dict.fromkeys(untold - self._untold.keys())
            self._keys |= {key: fault for key, fault in panics.items() if key not in self._untold}
            self._owed |= restarts
            self._was_told_on |= any(fault.get("power") == "on" for fault in restarts.values())

    def knows(self, key: str) -> bool:
        """Whether ``key`` is that of a panic, as far as this object knows."""
        with self._lock:
            return key in self._keys or key in self._owed

    def give_settings_back(self, key: str, deadline: Deadline) -> None:
        """Give the kernel of a server that answers the settings back that it had before ``key``."""
        with self._lock:
            self._mend_settings(key, deadline)

    def can_be_asked(self, deadline: Deadline) -> bool:
        """Whether it answers, and can be asked for its other faults; none of them stands in one that cannot.

        That is one that is known to have panicked, one that was started anew, and one without power. Any other that has
        power and does not answer, as it may boot, is waited for in half of the time; LabError is raised after that.
        """
        self._require_time(deadline)
        with self._lock:
            seen = self._seen(deadline)
            if seen is not _Seen.CRASHED or self._keys:
                return seen is _Seen.ANSWERING
            try:
                self._host.reconnect(deadline.sooner(deadline.remaining_s() / 2))
            except LabError as error:
                raise LabError(
                    f"{self._host.name} has power and does not answer, and its faults were left as they are: {error}; "
                    "look at its network and its console, start it anew if it has stopped, and heal again"
                ) from error
            return True

    def standing(self, deadline: Deadline) -> dict[str, Mapping[str, Any]]:
        """The crash that stands, by its keys, and of one that answers what its kernel is still set for."""
        crashed = self.crashed(deadline)
        return crashed or (self.settings.standing(deadline) if self.answers(deadline) else {})

    def crashed(self, deadline: Deadline) -> dict[str, Mapping[str, Any]]:
        """The crash that stands, by its keys; nothing where the server answers, or has no power and is owed none."""
        self._require_time(deadline)
        with self._lock:
            seen = self._seen(deadline)
            if seen is _Seen.OWED:
                return dict(self._owed)
            known = self._keys or self._owed or {"#crashed": _UNKNOWN}
            return dict(known) if seen is _Seen.CRASHED else {}

    def _give_power(self, deadline: Deadline) -> None:
        self._keep_note("on")
        # Before it is told: a controller that shares the server's NIC loses its link at power-on, and its answer.
        self._boots_until = Deadline.after(deadline.clock, self._boot_s)
        self._power.turn_on(deadline)
        self._has_power()

    def _has_power(self) -> None:
        """Owe it nothing any more: from now on its power is cut by others alone."""
        self._owed.clear()
        if self._noted is not None:
            self._noted.close()
            self._noted = None

    def _keep_note(self, power: str) -> None:
        """Note what the power is about to be told, in place of what it was told before."""
        if self._note is not None:
            fault = {"kind": _RESTART, "power": power}
            before, self._noted = self._noted, self._note(f"{_RESTART}/{power}", fault)
            if before is not None:
                before.take_back()

    def _mend_settings(self, key: str, deadline: Deadline) -> None:
        self.settings.mend(key, deadline)
        self._forget_untold(key)

    def _forget_untold(self, key: str) -> None:
        """Take back that the kernel was not told to panic under ``key``: it is about to be, or that was undone."""
        if (note := self._untold.get(key)) is not None:
            note.take_back()
        self._untold.pop(key, None)

    def _panic(self, key: str, fault: Mapping[str, Any], deadline: Deadline) -> None:
        interrupt = self._interrupt if fault["kind"] == "nmi" else None
        # Its fault is in the journal, and one that is lost before it was told has not panicked, whoever undoes it.
        self._untold[key] = None
        if self._note is not None:
            self._untold[key] = self._note(f"{_UNTOLD}/{key}", {"kind": _UNTOLD, "panic": key})
        if interrupt is not None:
            interrupt.require_possible(deadline)
        looked = self._host.run(
            ["sh", "-c", with_watchdogs(_LOOK), "look", "" if interrupt else self._trigger], deadline
        )
        if looked.status:
            raise LabError(f"{self._host.name}: {looked.stderr.strip() or f'exit status {looked.status}'}")
        try:
            self.settings.break_as(key, fault, deadline)
            self._forget_untold(key)
            self._have_panic(interrupt, deadline)
        except RackloopError as error:
            self._give_settings_back(key, error, deadline)
            raise

    def _have_panic(self, interrupt: DiagnosticInterrupt | None, deadline: Deadline) -> None:
        if interrupt is not None:
            interrupt.interrupt(deadline)
        else:
            # Its end is never heard of.
            with suppress(LabError):
                argv = ["sh", "-c", 'echo c >"$1"', "crash", self._trigger]
                self._host.run(argv, deadline.sooner(self._answer_s))

        def is_silent() -> bool:
            # Whatever is left of the deadline: too little time to answer in is no crash.
            return not self.answers(Deadline.after(deadline.clock, 2 * self._answer_s))

        if not deadline.poll(is_silent, every_s=_EVERY_S):
            raise DeadlineExceeded(f"{self._host.name} was told to panic, and still answers; look at its console")

    def _give_settings_back(self, key: str, why: RackloopError, deadline: Deadline) -> None:
        """Give a kernel that did not panic its settings back, whatever is left of the deadline.

        Where that fails it is an error that leaves the fault to be undone, whatever ``why`` is.
        """
        try:
            self.settings.mend(key, Deadline.after(deadline.clock, self._answer_s))
        except RackloopError as error:
            raise LabError(f"{why}; {self._host.name} may still be set to panic: {error}") from why

    def _seen(self, deadline: Deadline) -> _Seen:
        """The state of the server, by its answer and its power. Known panics are over where it is no crash.

        Raises LoginRefused where it runs, and does not let this account in.
        """
        if self._was_told_on:
            # By another process, nobody knows when.
            self._boots_until, self._was_told_on = Deadline.after(deadline.clock, self._boot_s), False
        may_boot = self._boots_until is not None and not self._boots_until.is_over()
        silence = self._silence(deadline)
        if silence is None:
            self._boots_until, seen = None, _Seen.ANSWERING
            self._has_power()
        elif may_boot and not self._owed:
            seen = _Seen.AWAY
        elif self._power.is_on(deadline):
            if isinstance(silence, _REFUSALS) and not may_boot:
                raise LoginRefused(
                    f"{self._host.name} runs and refuses the login, and its power was left as it is: {silence}"
                ) from silence
            seen = _Seen.AWAY if may_boot else _Seen.CRASHED
            if may_boot:
                # It was told so, and did it, though the answer was lost.
                self._has_power()
        else:
            seen = _Seen.OWED if self._owed else _Seen.AWAY
        if seen is not _Seen.CRASHED:
            self._keys.clear()
        return seen

    def answers(self, deadline: Deadline) -> bool:
        """Whether a command runs there, by a connection of now where the last one is lost."""
        return self._silence(deadline) is None

    def _silence(self, deadline: Deadline) -> LabError | None:
        """The error that a command there ended with; None where one runs."""
        try:
            ran = self._host.run(["true"], deadline.sooner(self._answer_s))
        except LabError:
            # A connection whose other end is out of reach has taken all of that time.
            within = deadline.sooner(self._answer_s)
            try:
                self._host.reconnect(within)
                ran = self._host.run(["true"], within)
            except LabError as error:
                return error
        return LabError(f"{self._host.name}: true ended with status {ran.status}") if ran.status else None

    def _require_time(self, deadline: Deadline) -> None:
        if deadline.is_over():
            raise DeadlineExceeded(f"{self._host.name}: there was no time left to ask whether it is crashed")
