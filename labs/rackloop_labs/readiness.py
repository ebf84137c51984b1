"""Obstacles to a run from this machine, known from the description: files, secrets, the controller."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel

from rackloop.errors import BadInput, Problem
from rackloop.lab import EnvironmentSecret, FileSecret, Lab, LabKind, VaultSecret
from rackloop.lab.yaml import KeyPath, compose_file
from rackloop_labs.virtual_rack import not_virtual

_VAULT_PASSWORD_FILE = "ANSIBLE_VAULT_PASSWORD_FILE"  # noqa: S105 - Ansible's own variable, it names a file


def unready(lab: Lab) -> list[Problem]:
    """The obstacles on this machine, each at its place in the description; none for a mock lab.

    Of a virtual lab, what is described that no virtual rack can have yet.
    """
    if lab.kind is LabKind.MOCK:
        return []
    document = compose_file(lab.source)
    if lab.kind is LabKind.VIRTUAL:
        return sorted(document.problem(path, message) for path, message in not_virtual(lab))
    found = [*_missing((), lab), *_controllers(lab)]
    return sorted(document.problem(path, f"on this machine: {message}") for path, message in found)


def _missing(path: KeyPath, value: object) -> Iterator[tuple[KeyPath, str]]:
    """The files and secrets that ``value``, which stands at ``path``, names and that are not there."""
    match value:
        case BaseModel():
            fields = type(value).model_fields
            for name in value.model_fields_set:
                yield from _missing((*path, fields[name].alias or name), getattr(value, name))
        case Mapping():
            for key, item in value.items():
                yield from _missing((*path, str(key)), item)
        case Path() if problem := _unreadable(value):
            yield path, problem
        case EnvironmentSecret() | FileSecret():
            try:
                value.reveal()
            except BadInput as error:
                yield path, str(error)
        case VaultSecret(vault, _):
            if problem := _unreadable(vault):
                yield path, problem
            elif not os.environ.get(_VAULT_PASSWORD_FILE):
                yield path, f"{_VAULT_PASSWORD_FILE} is not set; let it name the file with the vault's password"


def _unreadable(path: Path) -> str | None:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return f"there is no file {path}; make it, or correct the name"
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}; check its name, and the owner and mode of its folder"
    if not path.is_file() or not os.access(path, os.R_OK):
        return f"{path} cannot be read; check that it is a file, its owner and its mode"
    return None


def _controllers(lab: Lab) -> Iterator[tuple[KeyPath, str]]:
    """A store that is a file of this machine is for a rack that this machine alone works on."""
    here = socket.gethostname()
    named = [name.partition(".")[0] for name in lab.controllers]
    if lab.store == "sqlite" and named != [here.partition(".")[0]]:
        found = f"names {', '.join(lab.controllers)}" if lab.controllers else "is missing"
        how = f"write [{here}] where the rack is worked on from here alone, or name a store that its machines share"
        yield ("controllers",), f"{found}, and this machine is {here}: {how}"
