"""The contract of every :class:`~rackloop.abilities.Breakable` with its callers.

The arm gives drivers of the same part, one fault of the part, and the truth of the equipment, asked by another way than
the driver. Each clause mends what it broke. On a real arm the part has to be one that may be broken at any moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

from rackloop.abilities import Breakable
from rackloop.contracts._clause import clauses, must_raise, past, soon
from rackloop.errors import BadInput, DeadlineExceeded, NotSupported

_numbers = count(1)


@dataclass(frozen=True)
class BreakableArm:
    """One part and one way to break it.

    ``make`` may be called several times and gives drivers of the same part; ``fault`` is of a kind it has;
    ``is_broken`` is whether the equipment shows the fault at this moment. It has ten seconds to show a change. A fault
    that ``stands_once`` is BadInput under a second key, as what it takes is taken already.
    """

    make: Callable[[], Breakable]
    fault: Mapping[str, Any]
    is_broken: Callable[[], bool]
    stands_once: bool = False


def is_broken_and_mended(arm: BreakableArm) -> None:
    """Once ``break_as`` has returned the part is broken and says so; once ``mend`` has, neither."""
    with _mended_after(arm) as (part, key):
        part.break_as(key, arm.fault, soon())
        shown = part.standing(soon())[key]
        assert {name: shown.get(name) for name in arm.fault} == dict(arm.fault), f"it says that {shown} stands"
        _shows(arm, broken=True)
        part.mend(key, soon())
        assert key not in part.standing(soon())
        _shows(arm, broken=False)


def may_be_told_twice(arm: BreakableArm) -> None:
    """To break under a key that stands, and to mend under one that does not, is no error and changes nothing."""
    with _mended_after(arm) as (part, key):
        part.mend(key, soon())
        for _ in range(2):
            part.break_as(key, arm.fault, soon())
            assert list(part.standing(soon())) == [key]
        _shows(arm, broken=True)
        for _ in range(2):
            part.mend(key, soon())
            assert part.standing(soon()) == {}
        _shows(arm, broken=False)


def mends_only_what_the_key_names(arm: BreakableArm) -> None:
    """A fault under one key is not mended by another."""
    with _mended_after(arm) as (part, key):
        part.break_as(key, arm.fault, soon())
        part.mend(f"{key}/other", soon())
        assert key in part.standing(soon())
        _shows(arm, broken=True)


def stays_broken_while_another_key_stands(arm: BreakableArm) -> None:
    """Of two keys that the same fault stands under one is mended: it stays broken until the other is too."""
    with _mended_after(arm) as (part, key):
        last = f"{key}/last"
        part.break_as(last, arm.fault, soon())
        if arm.stands_once:
            with must_raise(BadInput):
                part.break_as(key, arm.fault, soon())
        else:
            part.break_as(key, arm.fault, soon())
            assert set(part.standing(soon())) == {key, last}
        part.mend(key, soon())
        assert set(part.standing(soon())) == {last}, "what stands under another key went with what was mended"
        _shows(arm, broken=True)
        part.mend(last, soon())
        assert part.standing(soon()) == {}
        _shows(arm, broken=False)


def keeps_its_faults_in_the_equipment(arm: BreakableArm) -> None:
    """A second driver of the same part, as after the death of the first, sees what stands and mends it."""
    with _mended_after(arm) as (part, key):
        part.break_as(key, arm.fault, soon())
        other = arm.make()
        assert key in other.standing(soon())
        other.break_as(key, arm.fault, soon())
        other.mend(key, soon())
        assert part.standing(soon()) == {}
        _shows(arm, broken=False)


def can_be_broken_again(arm: BreakableArm) -> None:
    """A key that was mended may be used again, and so may the part."""
    with _mended_after(arm) as (part, key):
        for _ in range(2):
            part.break_as(key, arm.fault, soon())
            _shows(arm, broken=True)
            part.mend(key, soon())
            _shows(arm, broken=False)


def refuses_what_it_does_not_know(arm: BreakableArm) -> None:
    """Another kind is NotSupported, a parameter that its kind does not have is BadInput; nothing is broken then."""
    with _mended_after(arm) as (part, key):
        assert arm.fault["kind"] in part.kinds
        with must_raise(NotSupported, "set_on_fire"):
            part.break_as(key, {"kind": "set_on_fire"}, soon())
        with must_raise(BadInput, "flavour"):
            part.break_as(key, {**arm.fault, "flavour": 1}, soon())
        with must_raise(BadInput):
            part.break_as("a key with spaces", arm.fault, soon())
        assert part.standing(soon()) == {}
        _shows(arm, broken=False)


def refuses_a_deadline_that_is_over(arm: BreakableArm) -> None:
    """A call that comes too late raises DeadlineExceeded; nothing is broken or mended by it."""
    with _mended_after(arm) as (part, key):
        with must_raise(DeadlineExceeded):
            part.break_as(key, arm.fault, past())
        assert part.standing(soon()) == {}
        part.break_as(key, arm.fault, soon())
        with must_raise(DeadlineExceeded):
            part.mend(key, past())
        with must_raise(DeadlineExceeded):
            part.standing(past())
        assert key in part.standing(soon())


CONTRACT = clauses(__name__)


@contextmanager
def _mended_after(arm: BreakableArm) -> Iterator[tuple[Breakable, str]]:
    """The part, whole, and a key for it; whatever stands there is mended in the end."""
    part = arm.make()
    assert part.standing(soon()) == {}, "it is broken already"
    _shows(arm, broken=False)
    try:
        yield part, f"contract/{next(_numbers)}"
    finally:
        for key in part.standing(soon()):
            part.mend(key, soon())


def _shows(arm: BreakableArm, *, broken: bool) -> None:
    shows = soon().poll(lambda: arm.is_broken() is broken, every_s=1e-3)
    state = "broken" if broken else "whole"
    assert shows, f"the driver says that the part is {state}, and the equipment does not show it"
