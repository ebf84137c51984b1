"""Secrets by reference: a description names where a password is kept, never the password."""

from __future__ import annotations

import os
import subprocess
import sys
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rackloop.errors import BadInput, ToolError

_VAULT_PASSWORD_FILE = "ANSIBLE_VAULT_PASSWORD_FILE"  # noqa: S105 - Ansible's own variable, it names a file
_VAULT_S = 30.0
# The variables of the secrets that this process has read of in descriptions.
_named: set[str] = set()


class Secret(Protocol):
    """A password, community or key kept elsewhere. Its ``repr`` shows where, never what."""

    @abstractmethod
    def reveal(self) -> str:
        """The secret itself, read now. Raises BadInput where it is not there, ToolError without Ansible."""
        ...


@dataclass(frozen=True)
class EnvironmentSecret(Secret):
    """``{env: NAME}``: an environment variable of the harness."""

    name: str

    def __post_init__(self) -> None:
        """Keep the variable from programs that are started by :func:`environment_for_programs`."""
        _named.add(self.name)

    def reveal(self) -> str:
        """The variable's value."""
        if not (value := os.environ.get(self.name)):
            raise BadInput(f"the environment variable {self.name} is not set, and is to hold a secret; export it")
        return value


def environment_for_programs() -> dict[str, str]:
    """This process's environment for a program that is not Rackloop's: without variables that descriptions name."""
    return {name: value for name, value in os.environ.items() if name not in _named}


@dataclass(frozen=True)
class FileSecret(Secret):
    """``{file: PATH}``: a file that holds nothing else; a newline at its end does not count."""

    path: Path

    def reveal(self) -> str:
        """The file's text."""
        try:
            if self.path.is_fifo():
                raise BadInput(f"the secret file {self.path} is a pipe, which may never say it; give it as a file")
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"the secret {self.path} cannot be read: {error}; check its name, owner and mode") from None
        if not (value := text.removesuffix("\n").removesuffix("\r")):
            raise BadInput(f"the secret file {self.path} is empty; write the secret into it")
        return value


@dataclass(frozen=True)
class VaultSecret(Secret):
    """``{vault: {file: PATH, key: NAME}}``: a key of a mapping in a file that ``ansible-vault`` encrypted.

    The vault's password comes from the file that the environment variable ANSIBLE_VAULT_PASSWORD_FILE names, as it
    does for Ansible itself.
    """

    path: Path
    key: str

    def reveal(self) -> str:
        """The text at the key, exactly as written in the vault."""
        from rackloop.lab.yaml import compose

        if not (password_file := os.environ.get(_VAULT_PASSWORD_FILE)):
            raise BadInput(f"{_VAULT_PASSWORD_FILE} is not set; let it name the file with the password of {self.path}")
        viewed = _ansible_vault("view", "--vault-password-file", password_file, str(self.path))
        if viewed.returncode:
            said = viewed.stderr.strip().rpartition("\n")[2] or "it said nothing"
            raise BadInput(f"{self.path} cannot be opened with the password in {password_file}: {said}")
        value = compose(viewed.stdout, str(self.path)).value
        found = value.get(self.key) if isinstance(value, dict) else None
        if not isinstance(found, str) or not found:
            raise BadInput(
                f"the vault {self.path} holds no text under the key {self.key!r}; add it with ansible-vault edit"
            )
        return found


def _ansible_vault(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Ansible's own tool, installed beside this Python; what it decrypts goes through a pipe and no file."""
    program = Path(sys.executable).with_name("ansible-vault")
    try:
        return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=_VAULT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"ansible-vault cannot be run: {error}; install ansible-core beside Rackloop") from None
