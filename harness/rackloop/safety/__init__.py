"""Safety of a rack and its data: the destructive guard, heal, and ending the commands that a dead run left."""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop.safety._destructive_guard import NOT_SCRATCH, Guard, Leased, Located, TellsItsDrive, place_of
    from rackloop.safety._heal import HealReport, heal
    from rackloop.safety._orphans import END_ALL, END_LABELLED, end_orphans

__all__ = [
    "END_ALL",
    "END_LABELLED",
    "NOT_SCRATCH",
    "Guard",
    "HealReport",
    "Leased",
    "Located",
    "TellsItsDrive",
    "end_orphans",
    "heal",
    "place_of",
]

__getattr__ = lazy_getattr(__name__)
