"""The check that a mock lab which is up has the given description, not only its name."""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path
from typing import Any

from rackloop.errors import BadInput
from rackloop.lab import Lab, LabKind, LabState


def description_digest(lab: Lab) -> str:
    """A digest of the text of a description; empty where it cannot be read any more."""
    try:
        return hashlib.sha256(lab.source.read_bytes()).hexdigest()
    except OSError:
        return ""


def endpoints_of(lab: Lab, state: LabState) -> dict[str, Any] | None:
    """The endpoints of a mock or virtual lab; None of a physical one, whose description has them.

    A simulated lab may be up under the name of a physical one. Raises LabError where a lab of this machine is not up.
    """
    return None if lab.kind is LabKind.PHYSICAL else state.endpoints()


def require_described(lab: Lab, state: LabState, *, to_end: bool = False) -> None:
    """Raise BadInput where a lab of this name is up, and was brought up from another description.

    One that is only ``to_end`` may have been changed since, or be gone.
    """
    if not state.is_held() or not state.endpoints_file.exists():
        return
    endpoints = state.endpoints()
    source = Path(endpoints["source"])
    if endpoints["description"] == description_digest(lab) or (to_end and not source.exists()):
        return
    down = f"`rackloop lab down {shlex.quote(str(source))}`"
    if lab.source.exists() and source.exists() and lab.source.samefile(source):
        if to_end:
            return
        raise BadInput(
            f"lab {lab.name} is up as {source} described it before that file was changed: take it down and bring it up "
            f"again ({down})"
        )
    raise BadInput(
        f"a lab named {lab.name} is up from another description, {source}: use that one, take it down first "
        f"({down}), or give {lab.source} a name of its own"
    )
