"""That all who lease a physical rack ask one store: two stores would each grant it, and neither would know."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from rackloop.errors import BadInput, LabError
from rackloop.leases._leases import Leases
from rackloop.store import Store

if TYPE_CHECKING:
    from rackloop.lab import Lab

# It outlives the machine's restarts, as a person's lease does; all users may write there, and remove only their own.
_EVERYBODYS = Path("/var/tmp")  # noqa: S108 - a name that somebody else made is read, not trusted with anything


def leases_of(lab: Lab, store: Store) -> Leases:
    """The leases of ``lab``, to ask for one.

    Raises BadInput where the lab is physical and its store a file that others who control the rack would not see: the
    description does not name this machine, and no other, under ``controllers``, or another user's file was the first.
    """
    if lab.kind == "physical" and store.is_private:
        _require_this_machine(lab)
        _require_first(lab, store)
    return Leases(store, lab.name)


def _require_this_machine(lab: Lab) -> None:
    here = socket.gethostname()
    if len(lab.controllers) == 1 and _short(lab.controllers[0]) == _short(here):
        return
    found = ", ".join(lab.controllers) or "none"
    raise BadInput(
        f"lab {lab.name} is physical and keeps its leases in a file of this machine, {here}, which no other sees: say "
        f"`controllers: [{here}]` in its description where it is worked on from here alone (found: {found}), or name "
        "the store that its machines share, such as store: postgresql://rackloop@db.lab.example/rackloop"
    )


def _require_first(lab: Lab, store: Store) -> None:
    mine = os.path.realpath(store.name)
    claim = _EVERYBODYS / f"rackloop-store-of-{lab.name}"
    try:
        first = _first(claim, mine)
    except OSError as error:
        raise LabError(f"cannot tell which store lab {lab.name} has on this machine: {error}") from error
    if first != mine:
        raise BadInput(
            f"lab {lab.name} has its leases on this machine in {first}, and this is {mine}: set RACKLOOP_STATE_HOME to "
            "one directory for all who work on it, or name a postgresql:// store in its description. Where the first "
            f"is not used any more, delete {claim}"
        )


def _first(claim: Path, mine: str) -> str:
    """The store that was the first to be asked for a lease of the lab on this machine, which ``mine`` may be now."""
    own = claim.with_name(f"{claim.name}.{os.getpid()}")
    own.unlink(missing_ok=True)
    own.write_text(mine, encoding="utf-8")
    try:
        # A link is there with its text or not at all, whoever else asks at the same moment.
        os.link(own, claim)
    except FileExistsError:
        return claim.read_text(encoding="utf-8")
    finally:
        own.unlink()
    return mine


def _short(name: str) -> str:
    return name.partition(".")[0].lower()
