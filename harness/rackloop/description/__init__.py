"""The two files users write, read once, with a line and a column for everything that is wrong with them.

:mod:`rackloop.lab` and :mod:`rackloop.plan` are the doors for those who want a lab or a plan; this one is for those
who read another file the same way.
"""

from rackloop.description._document import Document, compose, compose_file

__all__ = ["Document", "compose", "compose_file"]
