"""Playbooks: where they are, and which parts of one a plan may choose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from rackloop.data import data_path
from rackloop.errors import BadInput
from rackloop.lab.yaml import find_description

_ALWAYS = "always"
_TAGGED = ("pre_tasks", "roles", "tasks", "post_tasks")


def find_playbook(path_or_name: str | Path) -> Path:
    """The file of a playbook: a path, or a bare name such as ``site`` for ``playbooks/site.yml`` here, then shipped.

    Raises BadInput where there is no such file.
    """
    return find_description(path_or_name, "playbook", (Path("playbooks"), data_path("playbooks"))).absolute()


def roles_of(playbook: Path) -> tuple[str, ...]:
    """The tags by which parts of a playbook are chosen, in its order; each role of those shipped has its own.

    What is tagged ``always`` runs anyway and is not among them. Raises BadInput where the file is no playbook.
    """
    try:
        # Everything is text, and tags of Ansible's own such as !vault are passed over.
        plays = yaml.load(playbook.read_text(encoding="utf-8"), yaml.CBaseLoader)  # noqa: S506 - it makes text alone
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadInput(f"the playbook {playbook} cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(plays, list):
        raise BadInput(f"{playbook} is no playbook: expected a list of plays")
    return tuple(dict.fromkeys(tag for play in plays for tag in _tags_of(play) if tag != _ALWAYS))


def _tags_of(play: Any) -> Iterator[str]:
    if not isinstance(play, dict):
        return
    for part in (play, *(part for key in _TAGGED for part in play.get(key) or ())):
        tags = part.get("tags", []) if isinstance(part, dict) else []
        listed = tags.split(",") if isinstance(tags, str) else tags
        yield from (tag.strip() for tag in listed if isinstance(tag, str) and tag.strip())
