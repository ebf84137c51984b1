"""The prompt before a lease is stolen from its holder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rackloop.errors import BadInput
from rackloop.lab import Parts
from rackloop.safety.leases import Leases, RackLeased


@contextmanager
def offering(*options: str) -> Iterator[None]:
    """Add the verb's options, such as ``take it over (--steal)``, to the message of a RackLeased from the block."""
    try:
        yield
    except RackLeased as error:
        raise error.offering(*options) from None


@dataclass(frozen=True)
class Agreed:
    """The user's consent: the ids of the ``leases`` that may end, and ``why``; None where none is to end."""

    why: str | None = None
    leases: frozenset[str] = frozenset()


def agree_to_steal(leases: Leases, wanted: Parts, purpose: str, *, yes: bool, within: str | None = None) -> Agreed:
    """The leases in the way, and the reason that is kept with each that ends, once the user has said yes.

    Asked on the terminal, unless ``yes``. Raises BadInput where the answer is no, or there is no terminal.
    """
    holding = [lease for lease in leases.held() if lease.id != within and lease.parts.overlaps(wanted)]
    if not holding:
        return Agreed()
    for lease in holding:
        print(f"in the way: {lease}", file=sys.stderr)
    if not yes:
        if not sys.stdin.isatty():
            raise BadInput("--steal ends the leases above and asks first; there is no terminal to ask on: add --yes")
        print(
            f"Take lab {leases.lab} from them? Their work on it ends where it stands. [y/N] ", end="", file=sys.stderr
        )
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            raise BadInput("nothing was taken; wait with --wait, or ask its holder")
    return Agreed(f"taken for {purpose}", frozenset(lease.id for lease in holding))
