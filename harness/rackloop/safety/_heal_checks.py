"""The checks of heal beyond the journal: parts that stand broken, power, servers and drives that must answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from rackloop.abilities import Breakable, Drive, FaultRegister, Host, PowerPort
from rackloop.errors import LabError, NameUnknown, NotConnected, NotSupported, RackloopError
from rackloop.lab import Part, PartKind, Parts, mismatches, once_online
from rackloop.record.acts import MendPart

if TYPE_CHECKING:
    from rackloop.clock import Deadline
    from rackloop.lab import Lab
    from rackloop.safety.undo import Entry, Equipment

Broken = Mapping[str, Mapping[str, Mapping[str, Any]]]
Check = Callable[[], str | None]
"""A check of one part: what is wrong with it, None where nothing is."""


class Rack(Protocol):
    """The parts of a bench that are checked: servers by SSH, and the drive that a port sees now."""

    def host(self, server: str) -> Host: ...
    def drive(self, server: str, port: str) -> Drive: ...


def mend_unexplained(
    lab: Lab,
    standing: Sequence[Entry],
    breakable: Mapping[str, Breakable],
    registers: Sequence[FaultRegister],
    answer_by: Deadline,
    mend_by: Deadline,
    check: Callable[[], None],
) -> tuple[tuple[str, ...], list[str], frozenset[str]]:
    """Clear the faults that no entry of the journal explains.

    Returns those cleared, what is still wrong, and the servers that do not answer, which have their sentences.

    What stands is asked of ``registers``, all at once. Only a simulated rack is touched, each part after ``check``;
    what stands in another is named with what to do. Cables are left as they are in any: the cabling check names each by
    what the servers see. A part may take longer to be mended, ``mend_by``, than to be asked, ``answer_by``.
    """
    explained = {(entry.part, act.key) for entry in standing for act in entry.inverses(MendPart)}
    mended: list[str] = []
    problems: list[str] = []
    silent: set[str] = set()
    with ThreadPoolExecutor(len(registers) or 1) as asking:
        asked = [asking.submit(register.standing, answer_by) for register in registers]
    for register, answer in zip(registers, asked, strict=True):
        try:
            broken = answer.result()
        except NameUnknown:
            # The server itself is asked as well, and says so.
            continue
        except RackloopError as error:
            # A register of a server has drives too, which name none.
            servers = {Part.of_resource(name).server_name for name in register.parts} - {None}
            if isinstance(error, NotConnected) and len(servers) == 1 and (server := servers.pop()):
                silent.add(server)
                problems.append(_silent(lab, server, error))
            else:
                problems.append(f"the faults that stand cannot be read: {error}")
            continue
        for name, key, kind in _unexplained(broken, breakable, explained):
            if lab.kind != "mock":
                problems.append(f"{name} has the fault {kind}, which is not in the journal; clear it by hand")
                continue
            check()
            try:
                breakable[name].mend(key, mend_by)
                mended.append(f"{kind} of {name}")
            except RackloopError as error:
                problems.append(f"{name} has the fault {kind}, which cannot be cleared: {error}")
    return tuple(mended), problems, frozenset(silent)


def power_checks(equipment: Equipment, deadline: Deadline, *, but: Collection[Part] = ()) -> list[Check]:
    """A check of each power port but those of the parts in ``but``: that it is on."""
    ports = equipment.power.items()
    return [partial(_power_problem, name, port, deadline) for name, port in ports if Part.of_resource(name) not in but]


def fed_servers(lab: Lab, running: Collection[str]) -> Parts:
    """The servers ``running``, and the outlets that are on because these have their power through them."""
    known = [lab.servers[name] for name in running if name in lab.servers]
    fed = (Part.outlet(*server.outlet) for server in known if server.outlet is not None)
    return Parts((*map(Part.server, running), *fed))


def answer_checks(
    lab: Lab, rack: Rack | None, deadline: Deadline, *, but: Collection[str] = (), drives: bool = True
) -> list[Check]:
    """A check of each server but those in ``but``, and of each drive that the others have at the baseline.

    Each waits for an answer. Without a ``rack`` that could be asked there are none.
    """
    if rack is None:
        return []
    places = ((drive, *place) for drive, place in lab.places.items() if drives and place[0] not in but)
    return [
        *(partial(_server_problem, lab, rack, server, deadline) for server in lab.servers if server not in but),
        *(partial(_drive_problem, lab, rack, *place, deadline) for place in places),
    ]


def _unexplained(
    broken: Broken, breakable: Mapping[str, Breakable], explained: set[tuple[Part, str]]
) -> Iterator[tuple[str, str, str]]:
    for name, faults in broken.items():
        part = Part.of_resource(name)
        for key, fault in faults.items():
            if name in breakable and part.kind is not PartKind.CABLING and (part, key) not in explained:
                why = f" ({fault['why']})" if "why" in fault else ""
                yield name, key, f"{fault.get('kind')}{why}"


def _power_problem(name: str, port: PowerPort, deadline: Deadline) -> str | None:
    try:
        if not port.is_on(deadline):
            return f"power port {name} is off and no journal entry says why; turn it on if it should be"
    except RackloopError as error:
        return f"power port {name}: {error}"
    return None


def _server_problem(lab: Lab, rack: Rack, server: str, deadline: Deadline) -> str | None:
    try:
        rack.host(server).reconnect(deadline)
    except NotSupported:
        return None
    except NameUnknown as error:
        return f"server {server}: {error}"
    except LabError as error:
        return _silent(lab, server, error)
    except RackloopError as error:
        return f"server {server} cannot be asked: {error}"
    return None


def _silent(lab: Lab, server: str, error: LabError) -> str:
    return f"server {server} does not answer: {error}; start it anew with `rackloop power {lab.name} cycle {server}`"


def _drive_problem(lab: Lab, rack: Rack, name: str, server: str, port: str, deadline: Deadline) -> str | None:
    try:
        identity = once_online(rack.drive(server, port), deadline)
    except (NotSupported, NameUnknown):
        # A name that does not resolve is its server's, which says so.
        return None
    except LabError as error:
        return f"drive {name} does not answer at {server}.{port}: {error}; look at its cable and its power"
    except RackloopError as error:
        return f"drive {name} cannot be asked at {server}.{port}: {error}"
    differs = list(mismatches(lab.drives[name], identity))
    return f"at {server}.{port} is another drive than {name}: {'; '.join(differs)}" if differs else None
