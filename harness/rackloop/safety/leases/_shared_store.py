"""The one store that all holders of a physical rack must share: of two stores, each would grant the same rack."""

from __future__ import annotations

import os
import secrets
import socket
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from rackloop.errors import BadInput, LabError
from rackloop.safety.leases._holder import user_name
from rackloop.safety.leases._leases import Leases
from rackloop.safety.store import Store

if TYPE_CHECKING:
    from rackloop.lab import Lab

# It outlives the machine's restarts, as a person's lease does; all users may write there, and remove only their own.
_SHARED = Path("/var/tmp")  # noqa: S108 - a file that another user made is read, not trusted with anything
_LONGEST_PATH = 4096


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
    claim = _SHARED / f"rackloop-store-of-{lab.name}"
    try:
        first, owner = _first(claim, mine)
    except (OSError, ValueError) as error:
        raise LabError(
            f"cannot tell which store lab {lab.name} has on this machine: {error}; look at {claim}, and have its "
            "owner, or root, delete what is no file of Rackloop's"
        ) from error
    if first != mine:
        raise BadInput(
            f"lab {lab.name} has its leases on this machine in {first}, as {claim} of user {owner} says, and this is "
            f"{mine}: set RACKLOOP_STATE_HOME to one directory for all who work on it, or name a postgresql:// store "
            f"in its description. Where the first is not used any more, that user, or root, may delete {claim}"
        )


def _first(claim: Path, mine: str) -> tuple[str, str]:
    """The store that was the first to be asked for a lease of the lab on this machine, maybe ``mine``, and whose it is.

    Raises ValueError where what has the name is nothing that Rackloop made: everybody may make files there.
    """
    # A name that no other user can have made before, so that nothing is written through another's link.
    own = claim.with_name(f"{claim.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "wb") as file:
        file.write(os.fsencode(mine))
    try:
        # A link is there with its text or not at all, also for a process that asks at the same moment.
        os.link(own, claim)
    except FileExistsError:
        return _claimed(claim)
    finally:
        own.unlink()
    return mine, user_name(os.getuid())


def _claimed(claim: Path) -> tuple[str, str]:
    # One that is no plain file is not waited for, and one that is a link leads to what its maker cannot read himself.
    with os.fdopen(os.open(claim, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is no file")
        first = os.fsdecode(file.read(_LONGEST_PATH))
    if not first.startswith("/") or not first.isprintable():
        raise ValueError("it names no file")
    return first, user_name(status.st_uid)


def _short(name: str) -> str:
    return name.partition(".")[0].lower()
