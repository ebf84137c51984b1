"""Power and event log of a server through its Redfish controller; power of an outlet through a Redfish PDU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from rackloop.abilities import SystemEvent
from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, LabError, NotSupported, ProtocolError
from rackloop_drivers.power.redfish._service import RedfishService

_ROOT = "/redfish/v1/"
_POLL_S = 0.1


class RedfishPowerPort:
    """The PowerPort of the one server a controller has (ComputerSystem.Reset). Off is hard: ForceOff."""

    def __init__(self, service: RedfishService) -> None:
        self._service = service

    def turn_on(self, deadline: Deadline) -> None:
        """Turn the server on; the controller says that it is on when this returns."""
        self._turn(deadline, on=True)

    def turn_off(self, deadline: Deadline) -> None:
        """Cut the server's power; the controller says that it is off when this returns."""
        self._turn(deadline, on=False)

    def is_on(self, deadline: Deadline) -> bool:
        """Whether the controller says On; a server that is on its way down still has power."""
        return _is_on(only_system(self._service, deadline))

    def _turn(self, deadline: Deadline, *, on: bool) -> None:
        system = only_system(self._service, deadline)
        action = _action(system, "#ComputerSystem.Reset")
        _switch(self._service, system, action, {"ResetType": "On" if on else "ForceOff"}, deadline, on=on)


class RedfishInterrupt:
    """The DiagnosticInterrupt of the one server a controller has (ComputerSystem.Reset with Nmi)."""

    def __init__(self, service: RedfishService) -> None:
        self._service = service

    def require_possible(self, deadline: Deadline) -> None:
        """Return where it can be pulsed. Raises NotSupported where the controller names its resets, and Nmi is none."""
        self._target(deadline)

    def interrupt(self, deadline: Deadline) -> None:
        """Pulse an NMI; raises as :meth:`require_possible` does."""
        self._service.post(self._target(deadline), {"ResetType": "Nmi"}, deadline)

    def _target(self, deadline: Deadline) -> str:
        """The address of the action."""
        system = only_system(self._service, deadline)
        where = f"{self._service.url}{_path(system)}"
        if not _is_on(system):
            raise LabError(f"{where} has no power, and takes no NMI; turn it on first")
        target = _action(system, "#ComputerSystem.Reset")
        known = system["Actions"]["#ComputerSystem.Reset"].get("ResetType@Redfish.AllowableValues")
        if isinstance(known, list) and "Nmi" not in known:
            raise NotSupported(f"{where} pulses no NMI: its resets are {', '.join(map(str, known))}")
        return target


class RedfishOutlet:
    """The PowerPort that is outlet ``number`` of a PDU with a Redfish service (Outlet.PowerControl).

    ``unit`` names the one of several behind the service, by the last part of its path. Raises NotSupported where it is
    not given and several have an outlet of this number.
    """

    def __init__(self, service: RedfishService, number: int, unit: str | None = None) -> None:
        self._service = service
        self._number = number
        self._unit = unit

    def turn_on(self, deadline: Deadline) -> None:
        """Close the outlet's relay; the PDU says that it is on when this returns."""
        self._turn(deadline, on=True)

    def turn_off(self, deadline: Deadline) -> None:
        """Open the outlet's relay; the PDU says that it is off when this returns."""
        self._turn(deadline, on=False)

    def is_on(self, deadline: Deadline) -> bool:
        """Whether the PDU says On."""
        return _is_on(self._outlet(deadline))

    def _turn(self, deadline: Deadline, *, on: bool) -> None:
        outlet = self._outlet(deadline)
        action = _action(outlet, "#Outlet.PowerControl")
        _switch(self._service, outlet, action, {"PowerState": "On" if on else "Off"}, deadline, on=on)

    def _outlet(self, deadline: Deadline) -> Mapping[str, Any]:
        service = self._service
        equipment = service.get(_linked(service.get(_ROOT, deadline), "PowerEquipment"), deadline)
        units = {_last(_path(unit)): unit for unit in _members(service, _linked(equipment, "RackPDUs"), deadline)}
        if self._unit is not None and self._unit not in units:
            raise LabError(f"{service.url}: there is no unit {self._unit} among {', '.join(units) or 'none at all'}")
        paths = [
            _path(outlet)
            for name, unit in units.items()
            if self._unit in {None, name}
            for outlet in _members(service, _linked(unit, "Outlets"), deadline, whole=False)
        ]
        meant = [path for path in paths if _last(path) == str(self._number)]
        if not meant:
            raise LabError(
                f"{service.url}: there is no outlet {self._number} among {', '.join(paths) or 'none at all'}"
            )
        if len(meant) > 1:
            raise NotSupported(
                f"{service.url} has several outlets {self._number}: {', '.join(meant)}; give the PDU its unit: in the "
                f"description of the lab, one of {', '.join(units)}"
            )
        return service.get(meant[0], deadline)


class RedfishEventLog:
    """The SystemEventLog that a controller keeps of its server: the log service whose entries are of type SEL."""

    def __init__(self, service: RedfishService) -> None:
        self._service = service

    def events(self, deadline: Deadline) -> list[SystemEvent]:
        """Every entry, oldest first."""
        entries = _members(self._service, _linked(self._log(deadline), "Entries"), deadline)
        return sorted((_event(entry) for entry in entries), key=lambda event: event.number)

    def now(self, deadline: Deadline) -> datetime:
        """The log's own clock, or else the controller's."""
        log = self._log(deadline)
        if "DateTime" not in log:
            managers = _linked(self._service.get(_ROOT, deadline), "Managers")
            log = next(iter(_members(self._service, managers, deadline)), {})
        if (now := _moment(log.get("DateTime"))) is None:
            raise NotSupported(f"{self._service.url}: the controller does not say what time it has")
        return now

    def _log(self, deadline: Deadline) -> Mapping[str, Any]:
        """Some controllers keep it with the system, some with themselves."""
        root = self._service.get(_ROOT, deadline)
        for owners in ("Systems", "Managers"):
            if owners not in root:
                continue
            for owner in _members(self._service, _linked(root, owners), deadline):
                if "LogServices" not in owner:
                    continue
                for log in _members(self._service, _linked(owner, "LogServices"), deadline):
                    if log.get("LogEntryType") == "SEL" or str(log.get("Id", "")).upper() == "SEL":
                        return log
        raise NotSupported(f"{self._service.url}: the controller keeps no system event log")


def _switch(
    service: RedfishService,
    resource: Mapping[str, Any],
    action: str,
    body: Mapping[str, object],
    deadline: Deadline,
    *,
    on: bool,
) -> None:
    """Switch what is not so already, and wait until it reads back; an act that a controller took may be slow."""
    wanted = "On" if on else "Off"
    # One that comes up by itself, as after its feed came back, refuses to be turned on. One on its way down is cut off.
    if resource.get("PowerState") not in ({"On", "PoweringOn"} if on else {"Off"}):
        service.post(action, body, deadline)
    path = _path(resource)
    if not deadline.poll(lambda: service.get(path, deadline).get("PowerState") == wanted, every_s=_POLL_S):
        raise DeadlineExceeded(f"{service.url}{path} was told to be {wanted} and is not; look at the box")


def only_system(service: RedfishService, deadline: Deadline) -> Mapping[str, Any]:
    """The one system that a controller has. Raises NotSupported where it has several."""
    path = _linked(service.get(_ROOT, deadline), "Systems")
    systems = _members(service, path, deadline, whole=False)
    if len(systems) != 1:
        raise NotSupported(f"{service.url} controls {len(systems)} systems; give each server a controller of its own")
    return service.get(_path(systems[0]), deadline)


def _members(service: RedfishService, path: str, deadline: Deadline, *, whole: bool = True) -> list[Mapping[str, Any]]:
    """The members of a collection over all its pages; those that are only links are read, if ``whole``."""
    members: list[Mapping[str, Any]] = []
    for page in _pages(service, path, deadline):
        listed = page.get("Members")
        if not isinstance(listed, list):
            raise ProtocolError(f"{service.url}{path} is no collection: it has no Members")
        if others := [item for item in listed if not isinstance(item, dict)]:
            raise ProtocolError(f"{service.url}{path} has members that are no resources: {str(others)[:80]}")
        members += (service.get(_path(item), deadline) if whole and len(item) == 1 else item for item in listed)
    return members


def _pages(service: RedfishService, path: str, deadline: Deadline) -> Iterator[Mapping[str, Any]]:
    following: object = path
    while isinstance(following, str):
        page = service.get(following, deadline)
        yield page
        following = page.get("Members@odata.nextLink")


def _linked(resource: Mapping[str, Any], name: str) -> str:
    if name not in resource:
        raise NotSupported(f"the service has no {name} at {resource.get('@odata.id')}; is this the right address?")
    return _path(resource[name])


def _path(link: object) -> str:
    match link:
        case {"@odata.id": str(path)}:
            return path
    raise ProtocolError(f"expected a link to a resource, found {str(link)[:80]}")


def _last(path: str) -> str:
    """The last part of a path, which names a member of a collection."""
    return path.rstrip("/").rpartition("/")[2]


def _action(resource: Mapping[str, Any], name: str) -> str:
    match resource:
        case {"Actions": {**actions}}:
            match actions.get(name):
                case {"target": str(target)}:
                    return target
    raise NotSupported(f"{resource.get('@odata.id')} has no action {name}")


def _is_on(resource: Mapping[str, Any]) -> bool:
    match resource.get("PowerState"):
        case "On" | "PoweringOff":
            return True
        case "Off" | "PoweringOn":
            return False
        case other:
            raise ProtocolError(f"{resource.get('@odata.id')} has the power state {other}; expected On or Off")


def _event(entry: Mapping[str, Any]) -> SystemEvent:
    number = str(entry.get("Id", ""))
    if not number.isdecimal():
        raise ProtocolError(f"the log entry {number!r} has no number; entries cannot be put in order")
    sensor = entry.get("SensorType") or entry.get("OriginOfCondition") or ""
    return SystemEvent(
        number=int(number),
        at=_moment(entry.get("Created")),
        sensor=sensor if isinstance(sensor, str) else _path(sensor),
        text=str(entry.get("Message", "")),
        severity=str(entry.get("Severity", "")),
    )


def _moment(text: object) -> datetime | None:
    """A moment with its offset; None for one that is missing, malformed or without (1970 is a clock never set)."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None and moment.year > 1970 else None
