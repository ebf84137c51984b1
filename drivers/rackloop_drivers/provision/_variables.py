"""Variables of the shipped playbooks: their names and their kinds, as the roles specify them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from rackloop.data import data_path
from rackloop.errors import BadInput
from rackloop.names import guess

_SPECIFIED = "roles/*/meta/argument_specs.yml"
# Ansible's own, such as ansible_become_flags.
_OF_ANSIBLE = "ansible_"
_KINDS = {"list": (list, "[one, two]"), "dict": (dict, "{name: value}")}


def require_variables(playbook: Path, variables: Mapping[str, Any]) -> None:
    """Raise BadInput where a shipped playbook has no such variable, or takes a list or a mapping for it.

    Ansible passes over a name that it does not know, and takes a text for a list, of which roles then take the letters.
    """
    folder = playbook.resolve().parent
    if not variables or folder != data_path("playbooks").resolve():
        return
    known: dict[str, str] = {}
    for path in sorted(folder.glob(_SPECIFIED)):
        for spec in yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"].values():
            known |= {name: option["type"] for name, option in spec["options"].items()}
    for name, value in variables.items():
        if name.startswith(_OF_ANSIBLE):
            continue
        if name not in known:
            raise BadInput(f"no role of {playbook.name} has a variable {name!r}; {guess(name, known)}")
        kind, example = _KINDS.get(known[name], (object, ""))
        is_expression = isinstance(value, str) and "{{" in value
        if not isinstance(value, kind) and not is_expression:
            raise BadInput(f"{name} is {value!r}: expected a {known[name]}; write {name}={example}")
