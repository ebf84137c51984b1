"""Chance with a seed: the only module that may import ``random``."""

from __future__ import annotations

import hashlib
import random
import secrets

Stream = random.Random


def choose_seed() -> int:
    """A fresh seed, small enough to type back on a command line."""
    return secrets.randbelow(2**32)


def stream(seed: int, *names: str) -> Stream:
    """An independent random stream for ``names`` under ``seed``; the same arguments give the same stream.

    Streams are named so that adding one test, worker or fault does not change what the others draw.
    """
    digest = hashlib.sha256("/".join((str(seed), *names)).encode()).digest()
    return random.Random(int.from_bytes(digest[:16], "big"))  # noqa: S311 - replayable on purpose
