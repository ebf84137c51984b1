"""Faults that commands on a server make, noted there under the key of the run that made them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, Protocol, TypeAlias
from urllib.parse import quote, unquote

from rackloop.abilities import Host
from rackloop.clock import Deadline
from rackloop.errors import BadInput, DeadlineExceeded, LabError, NotConnected, NotSupported, RackloopError, ToolError
from rackloop_drivers.failed_command import failure_of

_PACKAGES = {
    "losetup": "util-linux",
    "mdadm": "mdadm",
    "nft": "nftables",
    "setpci": "pciutils",
    "sg_ses": "sg3-utils",
    "smp_phy_control": "smp-utils",
}
# What is switched off stays off when its server reboots, so what is known of it must stay too.
_FOLDER = "/var/lib/rackloop/faults"
_KEY = re.compile(r"[A-Za-z0-9_./:-]{1,128}")
# It is on the disk before anything is broken: a server that loses its power then must still know.
# Only then those go that it takes the place of: of a fault that may stand one note is there at any moment.
_WRITE = """
mkdir -p "$1" && cat >"$1/.$2.new" && sync "$1/.$2.new" && mv "$1/.$2.new" "$1/$2" && sync "$1" "${1%/*}" || exit
[ $# -gt 2 ] || exit 0
folder=$1
shift 2
cd "$folder" && rm -f -- "$@" && sync "$folder"
"""
# A line for each: the name of its file, and what it says on one line, however it was cut short.
_READ = """
cd "$1" 2>/dev/null || exit 0
for note in *.json; do
  [ -e "$note" ] && printf '%s ' "$note" && tr '\\n' ' ' <"$note"
  echo
done
"""
_NOTED = """
cd "$1" 2>/dev/null || exit 0
for note in */*.json; do [ -e "$note" ] && echo "${note%/*}"; done
exit 0
"""
# A session and a command take this even on a quick server while others use it.
_LEAST_ANSWER_S = 5.0

_ByKey: TypeAlias = dict[str, dict[str, Any]]


class Breaking(Protocol):
    """The ways to break one thing that a server has. A note is plain JSON: the ``fault``, and what ending it needs.

    ``prepare`` looks, refuses where this must not be broken, changes nothing and returns the note. ``start`` and
    ``end`` return once the server sees it so; ``end`` does nothing where it is so already.
    """

    @property
    def kinds(self) -> frozenset[str]: ...
    def prepare(self, fault: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]: ...
    def start(self, note: Mapping[str, Any], deadline: Deadline) -> None: ...
    def stands(self, note: Mapping[str, Any], deadline: Deadline) -> bool: ...
    def end(self, note: Mapping[str, Any], deadline: Deadline) -> None: ...


class _Note(dict[str, Any]):
    """A note that was read from ``file`` on a server; what an older version did not note is a LabError to ask for."""

    def __init__(self, note: Mapping[str, Any], file: str) -> None:
        super().__init__(note)
        self._file = file

    def __missing__(self, name: str) -> Any:
        raise LabError(
            f"the note {self._file} has no {name}, as one that another version wrote; look at what it says, "
            "mend that by hand, and remove it"
        )


class HostFaults:
    """A :class:`~rackloop.abilities.Breakable` on a server. ``resource`` is its name in the lab, ``breaking`` its ways.

    The server keeps a note of each fault below ``/var/lib/rackloop/faults``, written before anything is broken and
    removed after it is mended, so that anybody can end what a harness that died has left. A fault stands while its note
    is there and the equipment says so. A note that cannot be read stands for a fault of the kind ``unreadable``: an
    operator has to look, and neither ``break_as`` nor ``mend`` of its key does anything but raise LabError. A note of
    what no longer stands is replaced by that of the next fault like it. Faults of one kind are one, those of the kinds
    ``add_up`` where they are alike in all. Needs root on the server. The notes of what a reboot mends may be in another
    ``folder``, which a reboot empties; no register knows of those.
    """

    def __init__(
        self, host: Host, resource: str, breaking: Breaking, *, add_up: Collection[str] = (), folder: str = _FOLDER
    ) -> None:
        self._host = host
        self._breaking = breaking
        self._resource = resource
        self._add_up = add_up
        self._folder = f"{folder}/{quote(resource, safe='')}"

    @property
    def kinds(self) -> frozenset[str]:
        """The ways in which it can be broken."""
        return self._breaking.kinds

    def break_as(self, key: str, fault: Mapping[str, Any], deadline: Deadline) -> None:
        """Break it, having made a note; nothing where ``key`` stands.

        Raises NotSupported for another kind, and where this thing cannot be broken so; BadInput for a key or a
        parameter that makes no sense; GuardRefused for a drive that is in use; ToolError where a tool is missing
        on the server; LabError where the server did not do it, or did a part of what it refused then.
        """
        if fault.get("kind") not in self.kinds:
            ways = ", ".join(sorted(self.kinds))
            raise NotSupported(f"{self._resource} cannot be broken as {fault.get('kind')!r}, only as {ways}")
        require_key(key)
        if deadline.is_over():
            raise DeadlineExceeded(f"{self._host.name}: there was no time left to break anything")
        notes, _ = self._notes(deadline, of=key)
        if key in notes and self._breaking.stands(notes[key], deadline):
            return
        alike = {other: note for other, note in notes.items() if self._are_one(note["fault"], fault)}
        standing = {other: note for other, note in alike.items() if self._breaking.stands(note, deadline)}
        # What is broken so already can no longer be looked at, and need not be.
        known = next(iter(standing.values()), None)
        note = dict(known) if known is not None else self._breaking.prepare(fault, deadline)
        note |= {"key": key, "fault": dict(fault)}
        # From now on they would seem to stand, and keep this fault from being ended.
        over = [_file_name(other) for other in alike if other not in standing and other != key]
        self._sh(_WRITE, self._folder, _file_name(key), *over, deadline=deadline, stdin=json.dumps(note))
        if known is None:
            self._start(note, deadline)

    def mend(self, key: str, deadline: Deadline) -> None:
        """End the fault of ``key``; nothing where it does not stand, and nothing yet while one like it does."""
        self.mend_noted(key, deadline)

    def mend_noted(self, key: str, deadline: Deadline, *, ask_by: Deadline | None = None) -> bool:
        """As :meth:`mend`; whether the server had a note of it, which it is given until ``ask_by`` to say."""
        notes, _ = self._notes(ask_by or deadline, of=key)
        note = notes.pop(key, None)
        if note is None:
            return False
        if not any(self._are_one(other["fault"], note["fault"]) for other in notes.values()):
            self._breaking.end(note, deadline)
        self._forget(key, deadline)
        return True

    def standing(self, deadline: Deadline) -> dict[str, Mapping[str, Any]]:
        """The faults that a note tells of and the server confirms, by key, and those whose note cannot be read.

        One of which it cannot be told whether it stands, as its drive is gone or its note lacks what is needed, is
        ``unreadable`` too. Each such says ``why``. Raises NotConnected, DeadlineExceeded and other LabErrors where the
        server cannot be asked at all.
        """
        notes, unreadable = self._notes(deadline)
        confirmed: dict[str, Mapping[str, Any]] = {}
        for key, note in notes.items():
            try:
                if self._breaking.stands(note, deadline):
                    confirmed[key] = note["fault"]
            except (NotConnected, DeadlineExceeded):
                raise
            except RackloopError as error:
                unreadable[key] = _unreadable(f"{self._folder}/{_file_name(key)}", str(error))
        return confirmed | unreadable

    def _start(self, note: Mapping[str, Any], deadline: Deadline) -> None:
        """Break it as noted. The note goes where that is refused and the part is whole."""
        try:
            self._breaking.start(note, deadline)
        except (BadInput, NotSupported) as refusal:
            # Others take a refusal for an act that was not made, and would not undo a part of it.
            try:
                is_broken = self._breaking.stands(note, deadline)
            except RackloopError as error:
                raise LabError(f"{refusal}; and it cannot be told whether anything was broken: {error}") from refusal
            if is_broken:
                raise LabError(f"{refusal}; and it is broken all the same") from refusal
            self._forget(note["key"], deadline)
            raise

    def _forget(self, key: str, deadline: Deadline) -> None:
        self._sh('rm -f "$1"', f"{self._folder}/{_file_name(key)}", deadline=deadline)

    def _are_one(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        """Whether the thing is broken once, for both, until neither stands."""
        return dict(one) == dict(other) if one["kind"] in self._add_up else bool(one["kind"] == other["kind"])

    def _notes(self, deadline: Deadline, of: str | None = None) -> tuple[_ByKey, _ByKey]:
        """The notes, and the faults for those that cannot be read. Raises LabError where that of ``of`` is one."""
        notes: _ByKey = {}
        unreadable: _ByKey = {}
        for line in filter(None, self._sh(_READ, self._folder, deadline=deadline).splitlines()):
            name, _, text = line.partition(" ")
            key, file = unquote(name.removesuffix(".json")), f"{self._folder}/{name}"
            try:
                note = json.loads(text)
                # What is not there is found now, not when it is needed.
                fault = {**note["fault"], "kind": note["fault"]["kind"]}
                notes[key] = _Note({**note, "fault": fault}, f"{self._host.name}:{file}")
            except (ValueError, KeyError, TypeError) as error:
                why = f"the note {file} cannot be read: {text[:80]!r}"
                unreadable[key] = _unreadable(file, why)
                if key == of:
                    raise LabError(
                        f"{self._host.name}: {why}; look at what it says, mend that by hand, and remove it"
                    ) from error
        return notes, unreadable

    def _sh(self, script: str, *arguments: str, deadline: Deadline, stdin: str = "") -> str:
        completed = self._host.run(["sh", "-c", script, "note", *arguments], deadline, stdin=stdin)
        if completed.status:
            said = failure_of(completed)
            raise LabError(f"{self._host.name}: the note of a fault in {self._folder} failed: {said}")
        return completed.stdout


class HostRegister:
    """A :class:`~rackloop.abilities.FaultRegister` of those of ``parts``, by name, that are on the server ``host``.

    A server that does not answer within ``answer_s``, or 5 s where that is less, as one that boots, is waited for until
    the deadline.
    """

    def __init__(self, host: Host, parts: Mapping[str, HostFaults], *, answer_s: float = _LEAST_ANSWER_S) -> None:
        self._host = host
        self._parts = dict(parts)
        self._answer_s = max(answer_s, _LEAST_ANSWER_S)

    @property
    def parts(self) -> frozenset[str]:
        """The names of the parts."""
        return frozenset(self._parts)

    def standing(self, deadline: Deadline) -> dict[str, dict[str, Mapping[str, Any]]]:
        """The faults that the notes on the server tell of and its equipment confirms, by part and key.

        Raises NotConnected where the server does not answer, as one that hangs, and DeadlineExceeded where a drive
        of it does not.
        """
        found = {name: self._parts[name].standing(deadline) for name in self._noted(deadline) if name in self._parts}
        return {name: faults for name, faults in found.items() if faults}

    def _noted(self, deadline: Deadline) -> list[str]:
        """The parts that the server has notes of."""
        argv = ["sh", "-c", _NOTED, "noted", _FOLDER]
        try:
            listed = self._host.run(argv, deadline.sooner(self._answer_s))
        except LabError:
            try:
                self._host.reconnect(deadline)
                listed = self._host.run(argv, deadline)
            except DeadlineExceeded as error:
                raise NotConnected(str(error)) from error
        if listed.status:
            said = failure_of(listed)
            raise LabError(f"{self._host.name}: the notes of its faults in {_FOLDER} cannot be listed: {said}")
        return [unquote(name) for name in dict.fromkeys(listed.stdout.splitlines())]


def require_tool(host: Host, program: str) -> None:
    """Return where the server has ``program``. Raises ToolError naming the package it is in where not."""
    if host.find(program) is None:
        raise missing_tool(host, program)


def require_key(key: str) -> None:
    """Raise BadInput where no fault can stand under ``key``."""
    if _KEY.fullmatch(key) is None:
        raise BadInput(f"{key!r} is no key of a fault: 1 to 128 letters, digits and _ . / : -")


def missing_tool(host: Host, program: str) -> ToolError:
    """The error that names the package to install on a server."""
    return ToolError(f"{program} was not found on {host.name}: install its package {_PACKAGES[program]} there")


def _unreadable(file: str, why: str) -> dict[str, Any]:
    """The fault that stands where a note, in ``file``, does not say whether one does."""
    return {"kind": "unreadable", "note": file, "why": why}


def _file_name(key: str) -> str:
    return f"{quote(key, safe='')}.json"
