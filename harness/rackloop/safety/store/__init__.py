"""The store of a lab: the undo journal, the leases, the fencing tokens and the requests to the destructive guard.

SQLite in the lab's state directory unless the description names a ``postgresql://`` URL, which several machines share.
"""

from rackloop.safety.store._engine import boot_id as boot_id
from rackloop.safety.store._open import open_lab_store as open_lab_store
from rackloop.safety.store._open import open_store as open_store
from rackloop.safety.store._store import SCHEMA as SCHEMA
from rackloop.safety.store._store import Store as Store
from rackloop.safety.store._store import StoreDamaged as StoreDamaged
from rackloop.safety.store._store import Transaction as Transaction
