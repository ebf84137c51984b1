"""Faults of a mock rack apart from its drives: servers, networks, controllers, the switch's lines.

labd keeps it (:mod:`~rackloop_labs.mock_faults.ledger`, :mod:`~rackloop_labs.mock_faults.parts`), so that it stands
after the process that broke it has died; :mod:`~rackloop_labs.mock_faults.breakables` asks for it.
"""
