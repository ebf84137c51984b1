"""known_hosts: the keys that servers must have, in OpenSSH's format (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rackloop.errors import BadInput, HostKeyMismatch, HostKeyUnknown
from rackloop_drivers.host._paramiko import DAMAGED
from rackloop_drivers.host._plain_file import require_plain_file

if TYPE_CHECKING:
    from paramiko import PKey
    from paramiko.hostkeys import HostKeyEntry

    from rackloop_drivers.host._access import SshAccess

_REVOKED = "@revoked"
_HASHED = "|1|"
# A key of type ssh-rsa signs in one of these ways; signing with SHA-1 is no longer one of them.
_RSA_SIGNATURES = ("rsa-sha2-512", "rsa-sha2-256")


@dataclass(frozen=True)
class _Line:
    number: int
    marker: str
    entry: HostKeyEntry

    def names(self, host: str) -> bool:
        """Whether it is about ``host``; by a pattern it can take trust away, and give none."""
        host = host.lower()
        if any(name.startswith("!") and _fits(name[1:], host) for name in self.entry.hostnames):
            return False
        is_one = _fits if self.marker == _REVOKED else _is_name
        return any(is_one(name, host) for name in self.entry.hostnames)


class KnownHosts:
    """The lines of a known_hosts file: names in the clear or hashed, ``[host]:port``, and ``@revoked`` keys.

    Certificate authorities are ignored, and so are patterns with ``*`` or ``?``, but those of ``@revoked`` keys.
    """

    def __init__(self, path: Path) -> None:
        """Read ``path``. Raises BadInput where it cannot be read, or a line is no key."""
        self._path = path
        try:
            require_plain_file("known_hosts file", path)
            texts = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(
                f"the known_hosts file {path} cannot be read: {error}; make it with ssh-keyscan, and compare the keys "
                "with those on the servers' consoles"
            ) from None
        self._lines = [line for number, text in enumerate(texts, 1) if (line := self._parse(number, text))]

    def algorithms(self, host: str) -> list[str]:
        """The signatures that the keys known for a host make, which are to be asked for first."""
        types = [line.entry.key.get_name() for line in self._of(host) if not line.marker]
        return [name for known in types for name in (_RSA_SIGNATURES if known == "ssh-rsa" else (known,))]

    def check(self, access: SshAccess, found: PKey) -> None:
        """Raise HostKeyUnknown or HostKeyMismatch unless ``found`` is a key that the server is known by."""
        host = access.host_key_name
        lines = self._of(host)
        revoked = next((line for line in lines if line.marker == _REVOKED and line.entry.key == found), None)
        if revoked:
            raise HostKeyMismatch(
                f"{access}: ITS HOST KEY IS REVOKED: {self._path}:{revoked.number} says that {_fingerprint(found)} is "
                "no longer to be trusted; give the server a new key and add that"
            )
        known = [line for line in lines if not line.marker]
        if any(line.entry.key == found for line in known):
            return
        line = f"{host} {found.get_name()} {found.get_base64()}"
        if not known:
            raise HostKeyUnknown(
                f"{access}: its host key {_fingerprint(found)} is not in {self._path}; compare the fingerprint with "
                "'ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub' on the server's console, then add the line:\n" + line,
                line,
            )
        expected = "\n".join(f"  expected {_fingerprint(one.entry.key)} ({self._path}:{one.number})" for one in known)
        raise HostKeyMismatch(
            f"{access}: THE HOST KEY HAS CHANGED: another machine answers there, or the server was installed anew\n"
            f"{expected}\n  found    {_fingerprint(found)}\n"
            f"Find out which on the server's console; only then replace the line by:\n{line}"
        )

    def _of(self, host: str) -> list[_Line]:
        return [line for line in self._lines if line.names(host)]

    def _parse(self, number: int, text: str) -> _Line | None:
        from paramiko import SSHException
        from paramiko.hostkeys import HostKeyEntry, HostKeys, InvalidHostKey

        text = text.strip()
        if not text or text.startswith("#"):
            return None
        # Any number of spaces and tabs parts the fields, of which paramiko takes one.
        fields = text.split()
        marker = fields.pop(0) if text.startswith("@") else ""
        try:
            entry = HostKeyEntry.from_line(" ".join(fields), number)
            for name in entry.hostnames if entry else ():
                if name.startswith(_HASHED):
                    HostKeys.hash_host("", name)
        except (InvalidHostKey, SSHException, *DAMAGED) as error:
            raise BadInput(f"{self._path}:{number}: is no host key: {error}; delete the line or make it anew") from None
        # A type of key that is not known here cannot be what the server and we agree on.
        return _Line(number, marker, entry) if entry else None


def _is_name(name: str, host: str) -> bool:
    """Whether a name, in the clear or hashed, is that of ``host``, which is in lower case."""
    from paramiko.hostkeys import HostKeys

    return name.lower() == host or (name.startswith(_HASHED) and HostKeys.hash_host(host, name) == name)


def _fits(pattern: str, host: str) -> bool:
    """As :func:`_is_name`, also by a pattern with ``*`` and ``?``."""
    parts = {"*": ".*", "?": "."}
    expression = "".join(parts.get(letter, re.escape(letter)) for letter in pattern.lower())
    return _is_name(pattern, host) or re.fullmatch(expression, host) is not None


def _fingerprint(key: PKey) -> str:
    return f"{key.fingerprint} ({key.algorithm_name})"
