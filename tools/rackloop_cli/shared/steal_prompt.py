"""The prompt before a lease is stolen from its holder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from rackloop.errors import BadInput
from rackloop.lab import Parts
from rackloop.safety.leases import Leases, LeaseTerms, RackLeased


@contextmanager
def offering(*options: str) -> Iterator[None]:
    """Add the verb's options, such as ``take it over (--steal)``, to the message of a RackLeased from the block."""
    try:
        yield
    except RackLeased as error:
        raise error.offering(*options) from None


def stealing(leases: Leases, wanted: Parts, terms: LeaseTerms, *, yes: bool) -> LeaseTerms:
    """``terms`` with the leases in the way, and the reason that is kept with each that ends, once the user agrees.

    Asked on the terminal, unless ``yes``. Raises BadInput where the answer is no, or there is no terminal.
    """
    holding = [lease for lease in leases.held() if lease.id != terms.within and lease.parts.overlaps(wanted)]
    if not holding:
        return terms
    for lease in holding:
        print(f"blocked by: {lease}", file=sys.stderr)
    if not yes:
        if not sys.stdin.isatty():
            raise BadInput("--steal ends the leases above and asks first; there is no terminal to ask on: add --yes")
        print(
            f"Take lab {leases.lab} from them? Their work on it ends where it stands. [y/N] ", end="", file=sys.stderr
        )
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            raise BadInput("nothing was taken; wait with --wait, or ask its holder")
    why = f"taken for {terms.purpose or 'a lease'}"
    return replace(terms, steal_why=why, steal_from=frozenset(lease.id for lease in holding))
