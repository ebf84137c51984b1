"""Faults: parts of a rack broken on purpose, by guards that mend what they broke.

A :class:`FaultSpec` says what is to be broken, :data:`KINDS` what can be, and :class:`Faults` breaks it: after asking
whether it may, with the inverse in the undo journal, and with its phases in the event stream.
"""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop.faults._catalogue import KINDS as KINDS
    from rackloop.faults._catalogue import commanded_s as commanded_s
    from rackloop.faults._effect import first_trouble as first_trouble
    from rackloop.faults._guard import FaultCutShort as FaultCutShort
    from rackloop.faults._guard import Faults as Faults
    from rackloop.faults._guard import Injection as Injection
    from rackloop.faults._guard import kind_of_fault as kind_of_fault
    from rackloop.faults._kind import FaultKind as FaultKind
    from rackloop.faults._kind import FaultSpec as FaultSpec
    from rackloop.faults._kind import RequiredPart as RequiredPart
    from rackloop.faults._mechanisms import phy_of as phy_of

__getattr__ = lazy_getattr(__name__)
