"""Ansible's inventory of a rack: its servers in groups, and their SSH access. Values in, values out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, Self

from rackloop.drive_identifiers import UNIQUE_IDENTIFIERS
from rackloop.errors import BadInput
from rackloop.lab import Lab, Secret

SERVERS = "servers"
_ENDS_A_QUOTE = re.compile('["\x00-\x1f\x7f-\x9f]')
_PASSWORD_VARIABLE = "RACKLOOP_PASSWORD_{}"  # noqa: S105 - the name of a variable


class SshReach(Protocol):
    """Access to a server by SSH: its address and its login; ``jump`` is the way there, if it is not direct."""

    @property
    def name(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def user(self) -> str: ...
    @property
    def known_hosts(self) -> Path: ...
    @property
    def key_file(self) -> Path | None: ...
    @property
    def passphrase(self) -> Secret | None: ...
    @property
    def password(self) -> Secret | None: ...
    @property
    def use_agent(self) -> bool: ...
    @property
    def jump(self) -> Self | None: ...


def inventory(
    lab: Lab, reaches: Mapping[str, SshReach], environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The inventory of the servers in ``reaches``, in the structure that Ansible reads from YAML or JSON.

    All are in the group ``servers``, in one named by the kind of lab (``mock``) and in one by how the server takes a
    drive (``stack_comreset``); ``rackloop_scratch`` says by which names drives may be erased, and
    ``rackloop_environment`` is the ``environment`` that plays run commands on servers with. A password is the name of
    an environment variable (:func:`passwords`), never itself.
    """
    groups: dict[str, dict[str, Any]] = {SERVERS: {}, str(lab.kind): {}}
    for name, reach in reaches.items():
        stack = lab.servers[name].stack
        for group in (SERVERS, str(lab.kind), f"stack_{stack}"):
            groups.setdefault(group, {})[name] = {}
        groups[SERVERS][name] = _variables(name, reach)
    children = {group: {"hosts": hosts} for group, hosts in groups.items()}
    variables = {
        "rackloop_scratch": [_text(one) for one in _scratch(lab)],
        "rackloop_environment": {name: _text(value) for name, value in (environment or {}).items()},
    }
    return {"all": {"children": children, "vars": variables}}


def _scratch(lab: Lab) -> list[str]:
    """The endings of the names under ``/dev/disk/by-id`` of the drives that may be erased: serials, WWNs and such."""
    unique = {
        value
        for drive in lab.drives.values()
        if drive.scratch
        for kind, value in (("serial", drive.serial.replace(" ", "_")), *drive.identifiers.items())
        if kind in UNIQUE_IDENTIFIERS
    }
    return sorted(unique)


def _text(value: str) -> dict[str, str]:
    """A value that Ansible takes as it is: others are templates to it, which may run commands on this machine."""
    return {"__ansible_unsafe": value}


def _variables(name: str, reach: SshReach) -> dict[str, Any]:
    variables: dict[str, Any] = {"ansible_user": _text(reach.user), "ansible_become": reach.user != "root"}
    if reach.password is not None:
        looked_up = f"{{{{ lookup('ansible.builtin.env', '{_password_variable(name)}') }}}}"
        variables |= {"ansible_password": looked_up, "ansible_become_password": looked_up}
    return variables


def passwords(reaches: Mapping[str, SshReach]) -> dict[str, str]:
    """The environment that gives Ansible each server's password, read now from where it is kept."""
    return {
        _password_variable(name): reach.password.reveal()
        for name, reach in reaches.items()
        if reach.password is not None
    }


def _password_variable(name: str) -> str:
    # Names of servers may hold '-', those of variables not: its bytes do.
    return _PASSWORD_VARIABLE.format(name.encode().hex())


def ssh_config(reaches: Mapping[str, SshReach], sockets: Path) -> str:
    """A configuration of OpenSSH by which ``ssh NAME`` reaches each server, its host key checked.

    Connections stay for a minute, each by a socket in ``sockets``. Raises BadInput for a private key with a
    passphrase, and for a jump host with a password: Ansible's ssh can be given neither.
    """
    return "".join(
        _section(alias, reach, sockets) for name, server in reaches.items() for alias, reach in _way(name, server)
    )


def _way(name: str, reach: SshReach) -> Iterator[tuple[str, SshReach]]:
    """A server and the hosts on the way to it, each with its name in the configuration."""
    yield name, reach
    if reach.jump is not None:
        if reach.jump.password is not None:
            raise BadInput(f"the jump host {reach.jump.name} has a password, which Ansible cannot be given; use a key")
        yield from _way(_jump_name(name), reach.jump)


def _jump_name(name: str) -> str:
    return f"{name}.jump"


def _section(alias: str, reach: SshReach, sockets: Path) -> str:
    if reach.passphrase is not None:
        raise BadInput(
            f"{reach.name}: the key {reach.key_file} has a passphrase, which Ansible cannot be given; "
            "put the key into an agent (ssh-add) and leave key_file away"
        )
    settings: dict[str, object] = {
        "HostName": _literal(reach.host),
        "Port": reach.port,
        "User": reach.user,
        "UserKnownHostsFile": _quoted(reach.known_hosts),
        "GlobalKnownHostsFile": "none",
        "StrictHostKeyChecking": "yes",
        # The lab's file is the lab's: nothing is added to it.
        "UpdateHostKeys": "no",
        "ControlMaster": "auto",
        "ControlPersist": "60",
        "ControlPath": _quoted(sockets / f"{alias}.ssh"),
    }
    if reach.key_file is not None:
        settings |= {"IdentityFile": _quoted(reach.key_file), "IdentitiesOnly": "yes"}
    if reach.key_file is not None or not reach.use_agent:
        settings["IdentityAgent"] = "none"
    if reach.jump is not None:
        settings["ProxyJump"] = _jump_name(alias)
    return f"Host {alias}\n" + "".join(f"  {key} {value}\n" for key, value in settings.items())


def _quoted(path: Path) -> str:
    # What follows a quote or a line's end would be a setting, such as a command that ssh runs.
    if _ENDS_A_QUOTE.search(str(path)):
        raise BadInput(f"ssh cannot be given the path {str(path)!r}: move the file to one without control characters")
    return f'"{_literal(str(path))}"'


def _literal(text: str) -> str:
    # ssh(1) expands % in hosts, where it begins the zone of an IPv6 address, and in paths.
    return text.replace("%", "%%")
