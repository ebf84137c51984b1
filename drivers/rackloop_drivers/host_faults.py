"""What is broken on a server by commands there, and remembered there under the key of who did it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import quote

from rackloop.abilities import Host
from rackloop.clock import Deadline
from rackloop.errors import BadInput, DeadlineExceeded, LabError, NotSupported, ToolError

__all__ = ["Breaking", "HostFaults", "missing_tool", "require_tool"]

_PACKAGES = {
    "setpci": "pciutils",
    "sg_ses": "sg3-utils",
    "smp_phy_control": "smp-utils",
}
# What is switched off stays off when its server reboots, so what is known of it must stay too.
_FOLDER = "/var/lib/rackloop/faults"
_KEY = re.compile(r"[A-Za-z0-9_./:-]{1,128}")
_WRITE = 'mkdir -p "$1" && cat > "$1/.new" && mv "$1/.new" "$1/$2"'
_READ = 'cd "$1" 2>/dev/null || exit 0; for note in *.json; do [ -e "$note" ] && cat "$note" && echo; done; exit 0'


class Breaking(Protocol):
    """The ways to break one thing that a server has. A note is plain JSON: the ``fault``, and what ending it needs.

    ``prepare`` looks, refuses where this must not be broken, changes nothing and returns the note. ``start`` and
    ``end`` return once the server sees it so; ``end`` does nothing where it is so already.
    """

    @property
    def kinds(self) -> frozenset[str]: ...  # noqa: D102
    def prepare(self, fault: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]: ...  # noqa: D102
    def start(self, note: Mapping[str, Any], deadline: Deadline) -> None: ...  # noqa: D102
    def stands(self, note: Mapping[str, Any], deadline: Deadline) -> bool: ...  # noqa: D102
    def end(self, note: Mapping[str, Any], deadline: Deadline) -> None: ...  # noqa: D102


class HostFaults:
    """A :class:`~rackloop.abilities.Breakable` on a server. ``resource`` is its name in the lab, ``breaking`` its ways.

    The server keeps a note of each fault below ``/var/lib/rackloop/faults``, written before anything is broken and
    removed after it is mended, so that anybody can end what a harness that died has left. A fault stands while its
    note is there and the equipment says so. Needs root on the server.
    """

    def __init__(self, host: Host, resource: str, breaking: Breaking) -> None:
        self._host = host
        self._breaking = breaking
        self._resource = resource
        self._folder = f"{_FOLDER}/{quote(resource, safe='')}"

    @property
    def kinds(self) -> frozenset[str]:
        """The ways in which it can be broken."""
        return self._breaking.kinds

    def break_as(self, key: str, fault: Mapping[str, Any], deadline: Deadline) -> None:
        """Break it, having made a note; nothing where ``key`` stands.

        Raises NotSupported for another kind, and where this thing cannot be broken so; BadInput for a key or a
        parameter that makes no sense; GuardRefused for a drive that somebody uses; ToolError where a tool is missing
        on the server; LabError where the server did not do it.
        """
        if fault.get("kind") not in self.kinds:
            ways = ", ".join(sorted(self.kinds))
            raise NotSupported(f"{self._resource} cannot be broken as {fault.get('kind')!r}, only as {ways}")
        if _KEY.fullmatch(key) is None:
            raise BadInput(f"{key!r} is no key of a fault: 1 to 128 letters, digits and _ . / : -")
        if deadline.is_over():
            raise DeadlineExceeded(f"{self._host.name}: there was no time left to break anything")
        notes = self._notes(deadline)
        if key in notes and self._breaking.stands(notes[key], deadline):
            return
        alike = (note for note in notes.values() if note["fault"]["kind"] == fault["kind"])
        # What is broken so already can no longer be looked at, and need not be.
        known = next((note for note in alike if self._breaking.stands(note, deadline)), None)
        note = dict(known) if known is not None else self._breaking.prepare(fault, deadline)
        note |= {"key": key, "fault": dict(fault)}
        self._sh(_WRITE, self._folder, _file_name(key), deadline=deadline, stdin=json.dumps(note))
        if known is None:
            self._breaking.start(note, deadline)

    def mend(self, key: str, deadline: Deadline) -> None:
        """End the fault of ``key``; nothing where it does not stand, and nothing yet while another of its kind does."""
        notes = self._notes(deadline)
        note = notes.pop(key, None)
        if note is None:
            return
        if all(other["fault"]["kind"] != note["fault"]["kind"] for other in notes.values()):
            self._breaking.end(note, deadline)
        self._sh('rm -f "$1"', f"{self._folder}/{_file_name(key)}", deadline=deadline)

    def standing(self, deadline: Deadline) -> dict[str, Mapping[str, Any]]:
        """The faults that a note tells of and the server confirms, by key."""
        notes = self._notes(deadline)
        return {key: note["fault"] for key, note in notes.items() if self._breaking.stands(note, deadline)}

    def _notes(self, deadline: Deadline) -> dict[str, dict[str, Any]]:
        notes = {}
        for line in self._sh(_READ, self._folder, deadline=deadline).splitlines():
            try:
                note = json.loads(line)
                notes[str(note["key"])] = note
            except (ValueError, KeyError, TypeError) as error:
                raise LabError(
                    f"{self._host.name}: a note in {self._folder} cannot be read: {line[:80]!r}; look at what it says, "
                    "mend that by hand, and remove it"
                ) from error
        return notes

    def _sh(self, script: str, *arguments: str, deadline: Deadline, stdin: str = "") -> str:
        completed = self._host.run(["sh", "-c", script, "note", *arguments], deadline, stdin=stdin)
        if completed.status:
            said = completed.stderr.strip() or f"exit status {completed.status}"
            raise LabError(f"{self._host.name}: the note of a fault in {self._folder} failed: {said}")
        return completed.stdout


def require_tool(host: Host, program: str) -> None:
    """Return where the server has ``program``. Raises ToolError naming the package it is in where not."""
    if host.find(program) is None:
        raise missing_tool(host, program)


def missing_tool(host: Host, program: str) -> ToolError:
    """The error that names the package to install on a server."""
    return ToolError(f"{program} was not found on {host.name}: install its package {_PACKAGES[program]} there")


def _file_name(key: str) -> str:
    return f"{quote(key, safe='')}.json"
