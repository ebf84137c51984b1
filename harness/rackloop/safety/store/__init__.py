"""The store of a lab: the undo journal, the leases, the fencing tokens and the requests to the destructive guard.

SQLite in the lab's state directory unless the description names a ``postgresql://`` URL, which several machines share.
"""

from rackloop.safety.store._engine import boot_id
from rackloop.safety.store._open import open_lab_store, open_store
from rackloop.safety.store._store import SCHEMA, Store, StoreDamaged, Transaction

__all__ = ["SCHEMA", "Store", "StoreDamaged", "Transaction", "boot_id", "open_lab_store", "open_store"]
