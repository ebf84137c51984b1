"""Mending what stands broken, and reading back that it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rackloop.abilities import Breakable
from rackloop.clock import Deadline
from rackloop.errors import LabError, RackloopError
from rackloop.lab import Part, PartKind
from rackloop.record.acts import MendPart
from rackloop.safety.undo._journal import Entry

# While one of these is broken, a box cannot be told to mend anything else.
_WAYS_IN = frozenset({PartKind.CONTROL, PartKind.BMC, PartKind.NETWORK})


def is_way_in(resource: str) -> bool:
    """Whether a breakable part is how something else is reached: the switch's control link, a BMC, a network."""
    return Part.of_resource(resource).kind in _WAYS_IN


def mend_all(
    entries: Sequence[Entry],
    breakable: Mapping[str, Breakable],
    deadline: Deadline,
    left: dict[int, str],
    check: Callable[[], None],
) -> None:
    """Mend what the inverses of ``entries``, newest first, mend; those that could not be are put into ``left``.

    ``check`` is called before each part is touched, and what it raises goes on.
    """
    by_resource: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.inverses(MendPart):
            by_resource.setdefault(entry.resource, []).append(entry)
    for resource, its_entries in by_resource.items():
        check()
        try:
            _mend(resource, its_entries, breakable, deadline, left)
        except RackloopError as error:
            left.update((entry.id, f"{resource}: {error}") for entry in its_entries)


def _mend(
    resource: str,
    entries: Sequence[Entry],
    breakable: Mapping[str, Breakable],
    deadline: Deadline,
    left: dict[int, str],
) -> None:
    part = breakable.get(resource)
    if part is None:
        raise LabError("the lab has no such part that could be mended any more; mend it by hand")
    for entry in entries:
        for act in entry.inverses(MendPart):
            part.mend(act.key, deadline)
    standing = part.standing(deadline)
    for entry in entries:
        if kept := [act.key for act in entry.inverses(MendPart) if act.key in standing]:
            fault = standing[kept[0]].get("kind", "fault")
            left[entry.id] = f"{resource}: its {fault} was told to end and did not; look at it"
