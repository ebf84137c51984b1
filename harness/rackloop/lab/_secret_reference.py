"""The field of a description that says where a secret is kept."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import ValidationInfo

from rackloop.lab._secret import EnvironmentSecret, FileSecret, Secret, VaultSecret
from rackloop.lab.yaml import Scalar, path_of, text_of, wrong
from rackloop.names import guess, kind_of

_SECRET_KEYS = ("env", "file", "vault")
_SECRET_HOW = "keep it elsewhere and write {env: NAME}, {file: PATH} or {vault: {file: PATH, key: NAME}}"  # noqa: S105 - advice


def _only(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


_TEXT_SCHEMA = {"type": "string"}
_PATH_SCHEMA = {"type": "string", "minLength": 1}
_SECRET_SCHEMA = {
    "oneOf": [
        _only(env=_TEXT_SCHEMA),
        _only(file=_PATH_SCHEMA),
        _only(vault=_only(file=_PATH_SCHEMA, key=_TEXT_SCHEMA)),
    ]
}


def _secret(value: object, info: ValidationInfo) -> Secret:
    if isinstance(value, str):  # never quote it: messages end up in logs
        raise wrong(f"a secret must not stand in this file; {_SECRET_HOW}")
    if not isinstance(value, dict) or len(value) != 1:
        raise wrong(f"expected where the secret is kept, found {kind_of(value)}; {_SECRET_HOW}")
    [(key, where)] = value.items()
    match key:
        case "env":
            name = text_of(where, "the name of an environment variable")
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                raise wrong("expected the name of an environment variable after env, such as RACK_BMC_PASSWORD")
            return EnvironmentSecret(name)
        case "file":
            return FileSecret(path_of(where, info))
        case "vault":
            if not isinstance(where, dict) or set(where) != {"file", "key"}:
                raise wrong("expected {file: PATH, key: NAME} after vault, both keys and no other")
            return VaultSecret(path_of(where["file"], info), text_of(where["key"], "the name of a key in the vault"))
        case _:
            raise wrong(f"unknown key {kind_of(key)}; {guess(key, _SECRET_KEYS)}; {_SECRET_HOW}")


SecretReference = Annotated[Secret, Scalar(_secret, _SECRET_SCHEMA)]
