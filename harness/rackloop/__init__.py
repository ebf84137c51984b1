"""Rackloop's core: what a rack is, what may be done to it, and how a run is judged.

The core knows no vendor, no pytest and no SSH; import from its modules by name.
"""
