"""Fencing tokens: a number that only grows, given to each controller of a lab before it takes the switch's lock.

A controller that was thought dead and comes back holds a lower number than its successor, and the switch refuses it
(Kleppmann, How to do distributed locking, 2016).
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from rackloop.errors import LabError

_BUSY_S = 10.0


def next_token(store: Path, lab: str) -> int:
    """A token higher than every one given for ``lab`` before, on disk in the lab's store when this returns.

    Any number of processes may ask at once. Raises LabError where the store cannot be written.
    """
    try:
        with closing(sqlite3.connect(store, timeout=_BUSY_S, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("CREATE TABLE IF NOT EXISTS fencing (lab TEXT PRIMARY KEY, token INTEGER NOT NULL)")
            (token,) = db.execute(
                "INSERT INTO fencing VALUES (?, 1) ON CONFLICT (lab) DO UPDATE SET token = token + 1 RETURNING token",
                (lab,),
            ).fetchone()
    except sqlite3.Error as error:
        raise LabError(
            f"lab store {store}: {error}; without a fencing token nothing may be done to lab {lab}"
        ) from error
    return int(token)
