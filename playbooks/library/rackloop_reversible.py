"""Ansible module: apply a role's settings to a host, keep the previous state, and restore it."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule  # type: ignore[import-untyped]
from ansible.module_utils.parsing.convert_bool import boolean  # type: ignore[import-untyped]
from ansible.module_utils.rackloop_kinds import KINDS, Gone, Refused, run

DOCUMENTATION = r"""
module: rackloop_reversible
short_description: Change a host so that the change can be taken back
description:
  - Makes files, values of the kernel, network links, kernel modules and units what a role wants.
  - What was there before is written to a record before each change.
  - O(state=restored) puts back what the record of the role says, in reverse order, and forgets it.
  - O(state=followed) notes that what had to follow the changes was done.
  - None changes anything when there is nothing to do.
options:
  role:
    description: Whose record it is.
    type: str
    required: true
  state:
    description: Whether to make the changes, take back every change of the role, or note that they were followed.
    type: str
    choices: [present, restored, followed]
    default: present
  is_followed:
    description:
      - Whether something has to follow the changes, such as a handler.
      - Until O(state=followed) each is returned by every task with this option, also where a play failed before.
    type: bool
    default: false
  record_dir:
    description: Where the records are.
    type: path
    default: /var/lib/rackloop/kept
  files:
    description: Files with their content; missing folders are made.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: The file.
        type: path
        required: true
      content:
        description: All of its text.
        type: str
        required: true
      mode:
        description: Its permissions, in octal.
        type: str
        default: '0644'
  values:
    description: Files below /proc or /sys and the value of each; one that this kernel does not have is an error.
    type: dict
    default: {}
  mtus:
    description: Network links and their MTU.
    type: dict
    default: {}
  offloads:
    description: Features as ethtool(8) names them, each true or false, for every link of O(offload_links).
    type: dict
    default: {}
  offload_links:
    description: The links that O(offloads) are for.
    type: list
    elements: str
    default: []
  interrupt_links:
    description: Links whose interrupts go to O(interrupt_cpus), one after another.
    type: list
    elements: str
    default: []
  interrupt_cpus:
    description: The CPUs.
    type: list
    elements: int
    default: []
  modules:
    description: Kernel modules to load.
    type: list
    elements: str
    default: []
  units:
    description: Units of systemd, enabled and running or neither.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The unit.
        type: str
        required: true
      runs:
        description: Whether it is enabled and running; one that does not run need not exist.
        type: bool
        default: true
author: [Rackloop]
"""

EXAMPLES = r"""
- name: Have sessions fail over after 5 seconds
  rackloop_reversible:
    role: iscsi_initiator
    files:
      - path: /etc/iscsi/iscsid.conf
        content: "node.session.timeo.replacement_timeout = 5\n"

- name: Take the role back
  rackloop_reversible:
    role: iscsi_initiator
    state: restored
"""

RETURN = r"""
changes:
  description: What was changed, a line each; with O(is_followed) also what nothing has followed yet.
  returned: always
  type: list
  elements: str
"""

# The kind of an entry for a change that something is yet to follow.
_CHANGE = "change"


def _entries(path: Path) -> list[dict[str, Any]]:
    """The entries of a record. Raises Refused where it is none, as after a change by hand."""
    try:
        read: Any = json.loads(path.read_text())
    except ValueError as error:
        raise Refused(f"{path} is no record of what was there before ({error}); put it right or away") from None
    entries: list[Any] = read if isinstance(read, list) else [read]
    for entry in entries:
        if not isinstance(entry, dict) or not {"kind", "name", "before"} <= entry.keys():
            raise Refused(f"{path} is no record of what was there before: {entry!r}; put it right or away")
        if entry["kind"] not in (*KINDS, _CHANGE):
            raise Refused(f"{path} is no record that this version reads: {entry['kind']!r} is no kind it knows")
    return entries


class Record:
    """The state before a role changed it, in the order of the changes; on disk before each of them.

    Where something has to follow the changes, they are in it too until that was done.
    """

    def __init__(self, folder: str, role: str, *, is_followed: bool = False) -> None:
        self.path = Path(folder, f"{role}.json")
        self.entries = _entries(self.path) if self.path.exists() else []
        self.is_followed = is_followed

    def keep(self, kind: str, name: str, before: Any) -> None:
        """Remember the state from before the first change."""
        if not any((entry["kind"], entry["name"]) == (kind, name) for entry in self.entries):
            self.entries.append({"kind": kind, "name": name, "before": before})
            self.write()

    def announce(self, change: str) -> None:
        """Remember a change that something has to follow, before it is made."""
        if self.is_followed:
            self.keep(_CHANGE, change, None)

    def unfollowed(self) -> list[str]:
        """The changes that nothing has followed yet."""
        return [entry["name"] for entry in self.entries if entry["kind"] == _CHANGE]

    def follow(self) -> None:
        """Forget these changes: what had to follow them was done."""
        if self.unfollowed():
            self.entries = [entry for entry in self.entries if entry["kind"] != _CHANGE]
            self.write()

    def write(self) -> None:
        """Bring the file up to date; without entries there is none, nor the folders that were for it alone."""
        if not self.entries:
            self.path.unlink()
            for folder in (self.path.parent, self.path.parent.parent):
                if folder.name in {"kept", "rackloop"} and not any(folder.iterdir()):
                    folder.rmdir()
            return
        self.path.parent.mkdir(0o700, parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(self.entries, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.path)


def wanted(params: dict[str, Any], kinds: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Everything the parameters ask for, as kind, name and state, in the order it is to be made."""
    for file in params["files"]:
        # Slices of parents came with Python 3.10; servers of Debian 11 and RHEL 9 have 3.9.
        for folder in reversed(list(Path(file["path"]).parents)[:-1]):
            yield "folder", str(folder), True
        content = base64.b64encode(file["content"].encode()).decode()
        owner = [os.geteuid(), os.getegid()]
        yield "file", file["path"], {"content": content, "mode": int(file["mode"], 8), "owner": owner}
    for name in params["modules"]:
        yield "module", name, True
    for path, value in params["values"].items():
        yield "value", path, " ".join(str(value).split())
    for link, mtu in params["mtus"].items():
        yield "mtu", link, int(mtu)
    for link in params["offload_links"]:
        for feature, is_on in params["offloads"].items():
            yield "offload", f"{link} {feature}", _boolean(feature, is_on)
    cpus = params["interrupt_cpus"]
    for link in params["interrupt_links"] if cpus else ():
        for number, name in enumerate(kinds["interrupt"].names(link)):
            yield "interrupt", name, str(cpus[number % len(cpus)])
    for unit in params["units"]:
        yield "unit", unit["name"], {"enabled": unit["runs"], "active": unit["runs"]}


def _boolean(name: str, said: Any) -> bool:
    """A value as Ansible takes one to be true or false: of a plan's file, ``off`` comes as text."""
    try:
        return bool(boolean(said))
    except TypeError:
        raise Refused(f"{name} is {said!r}; write true or false") from None


def make(params: dict[str, Any], record: Record, *, only_say: bool, kinds: Mapping[str, Any] = KINDS) -> list[str]:
    """Make what is wanted; returns what was changed."""
    changes = []
    for kind, name, state in wanted(params, kinds):
        now = kinds[kind].now(name)
        is_absent_anyway = kind == "unit" and now is None and not state["active"]
        is_fixed = kind == "offload" and now is None
        if now == state or is_absent_anyway or is_fixed:
            continue
        changes.append(f"{kind} {name}")
        if not only_say:
            record.announce(changes[-1])
            record.keep(kind, name, now)
            kinds[kind].put(name, state)
    return changes


def restore(record: Record, *, only_say: bool, kinds: Mapping[str, Any] = KINDS) -> list[str]:
    """Put back what the record says, the last change first; returns what was changed.

    What is gone since then is passed over: it would be in the way of all that was changed before it.
    """
    changes = []
    for entry in reversed([entry for entry in record.entries if entry["kind"] != _CHANGE]):
        kind, name, before = entry["kind"], entry["name"], entry["before"]
        with suppress(Gone):
            if not _is_of_any_device(kind, name) and kinds[kind].now(name) != before:
                if not only_say:
                    record.announce(f"{kind} {name}")
                    kinds[kind].put(name, before)
                changes.append(f"{kind} {name}")
        if not only_say:
            record.entries.remove(entry)
            record.write()
    if not only_say and any(change.startswith("unit ") for change in changes):
        run("systemctl", "daemon-reload")
    return changes


def _is_of_any_device(kind: str, name: str) -> bool:
    """Whether an entry is one of earlier versions, by a number that may be another device's interrupt by now."""
    return kind == "value" and name.startswith("/proc/irq/")


def answer(params: dict[str, Any], record: Record, *, only_say: bool) -> list[str]:
    """Bring about the state that is asked for; returns what was changed, now or with nothing to follow it yet."""
    earlier = record.unfollowed() if record.is_followed else []
    if params["state"] == "followed":
        if not only_say:
            record.follow()
        return []
    is_back = params["state"] == "restored"
    now = restore(record, only_say=only_say) if is_back else make(params, record, only_say=only_say)
    return list(dict.fromkeys(earlier + now))


def main() -> None:
    """Answer one task of a playbook."""
    file = {
        "path": {"type": "path", "required": True},
        "content": {"type": "str", "required": True},
        "mode": {"type": "str", "default": "0644"},
    }
    unit = {"name": {"type": "str", "required": True}, "runs": {"type": "bool", "default": True}}
    module = AnsibleModule(
        argument_spec={
            "role": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["present", "restored", "followed"], "default": "present"},
            "is_followed": {"type": "bool", "default": False},
            "record_dir": {"type": "path", "default": "/var/lib/rackloop/kept"},
            "files": {"type": "list", "elements": "dict", "default": [], "options": file},
            "values": {"type": "dict", "default": {}},
            "mtus": {"type": "dict", "default": {}},
            "offloads": {"type": "dict", "default": {}},
            "offload_links": {"type": "list", "elements": "str", "default": []},
            "interrupt_links": {"type": "list", "elements": "str", "default": []},
            "interrupt_cpus": {"type": "list", "elements": "int", "default": []},
            "modules": {"type": "list", "elements": "str", "default": []},
            "units": {"type": "list", "elements": "dict", "default": [], "options": unit},
        },
        supports_check_mode=True,
    )
    try:
        record = Record(module.params["record_dir"], module.params["role"], is_followed=module.params["is_followed"])
        changes = answer(module.params, record, only_say=module.check_mode)
    except (Refused, OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(changes), changes=changes)


if __name__ == "__main__":
    main()
