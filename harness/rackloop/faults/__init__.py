"""Faults: parts of a rack broken on purpose, by guards that mend what they broke.

A :class:`FaultSpec` says what is to be broken, :data:`KINDS` what can be, and :class:`Faults` breaks it: after asking
whether it may, with the inverse in the undo journal, and with its phases in the event stream.
"""

from rackloop.faults._catalogue import KINDS, commanded_s
from rackloop.faults._effect import ReadInterval, first_trouble
from rackloop.faults._guard import EffectWatch, FaultCutShort, Faults, Injection, kind_of_fault
from rackloop.faults._kind import FaultKind, RequiredPart
from rackloop.faults._mechanisms import phy_of
from rackloop.faults._spec import FaultSpec

__all__ = [
    "KINDS",
    "EffectWatch",
    "FaultCutShort",
    "FaultKind",
    "FaultSpec",
    "Faults",
    "Injection",
    "ReadInterval",
    "RequiredPart",
    "commanded_s",
    "first_trouble",
    "kind_of_fault",
    "phy_of",
]
