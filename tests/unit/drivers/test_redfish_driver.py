"""Redfish services differ: where the log is, whether entries are whole, what a state is called."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from rackloop.abilities import SystemEvent
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import DeadlineExceeded, LabError, NotSupported, ProtocolError
from rackloop_drivers.power.redfish import RedfishEventLog, RedfishOutlet, RedfishPowerPort, RedfishService
from tests.deadlines import soon

V1 = "/redfish/v1"


class Resources:
    """A service that has these resources; what is posted is kept, and changes nothing."""

    url = "https://bmc"

    def __init__(self, resources: Mapping[str, Mapping[str, Any]]) -> None:
        self.resources = {f"{V1}/{path}": resource for path, resource in resources.items()}
        self.posted: list[tuple[str, Mapping[str, object]]] = []

    def get(self, path: str, _deadline: Deadline) -> Mapping[str, Any]:
        return {"@odata.id": path, **self.resources[path]}

    def post(self, path: str, body: Mapping[str, object], _deadline: Deadline) -> None:
        self.posted.append((path, body))


def link(path: str) -> dict[str, str]:
    return {"@odata.id": f"{V1}/{path}"}


def members(*paths: str) -> dict[str, Any]:
    return {"Members": [link(path) for path in paths]}


def system(**fields: Any) -> Resources:
    whole = {"Actions": {"#ComputerSystem.Reset": {"target": "/reset"}}, **fields}
    return Resources({"": {"Systems": link("Systems")}, "Systems": members("Systems/A"), "Systems/A": whole})


def power(resources: Resources) -> RedfishPowerPort:
    return RedfishPowerPort(cast(RedfishService, resources))


LOG_OF_A_MANAGER: dict[str, dict[str, Any]] = {
    "": {"Systems": link("Systems"), "Managers": link("Managers")},
    "Systems": members("Systems/A"),
    "Systems/A": {"PowerState": "On", "LogServices": link("Systems/A/LogServices")},
    "Systems/A/LogServices": members("Systems/A/LogServices/Post"),
    "Systems/A/LogServices/Post": {"Id": "PostCodes", "LogEntryType": "OEM"},
    "Managers": members("Managers/B"),
    "Managers/B": {"LogServices": link("Managers/B/LogServices"), "DateTime": "2026-11-21T05:00:00+01:00"},
    "Managers/B/LogServices": members("Managers/B/LogServices/Sel"),
    "Managers/B/LogServices/Sel": {"Id": "Sel", "Entries": link("Entries")},
    "Entries": {"Members": [link("Entries/12")], "Members@odata.nextLink": f"{V1}/Entries?$skip=1"},
    "Entries?$skip=1": {
        "Members": [{"@odata.id": f"{V1}/Entries/3", "Id": "3", "Message": "Fan 1 failed.", "Severity": "Warning"}]
    },
    "Entries/12": {"Id": "12", "Message": "On.", "SensorType": "Power Unit", "Created": "2026-11-21T04:00:00Z"},
}


def test_a_log_that_the_manager_keeps_in_pages_newest_first_as_links() -> None:
    log = RedfishEventLog(cast(RedfishService, Resources(LOG_OF_A_MANAGER)))
    assert log.events(soon(5, VirtualClock())) == [
        SystemEvent(3, None, "", "Fan 1 failed.", "Warning"),
        SystemEvent(12, datetime(2026, 11, 21, 4, tzinfo=UTC), "Power Unit", "On."),
    ]
    assert log.now(soon(5, VirtualClock())) == datetime(2026, 11, 21, 4, tzinfo=UTC)


@pytest.mark.parametrize("created", ["1970-01-01T00:00:05Z", "2026-11-21T04:00:00", "yesterday", None])
def test_a_time_nobody_can_know_is_none(created: str | None) -> None:
    entry = LOG_OF_A_MANAGER["Entries/12"] | {"Created": created}
    log = RedfishEventLog(cast(RedfishService, Resources(LOG_OF_A_MANAGER | {"Entries/12": entry})))
    assert log.events(soon(5, VirtualClock()))[1].at is None


def test_an_entry_without_a_number_is_an_error() -> None:
    entry = LOG_OF_A_MANAGER["Entries/12"] | {"Id": "newest"}
    log = RedfishEventLog(cast(RedfishService, Resources(LOG_OF_A_MANAGER | {"Entries/12": entry})))
    with pytest.raises(ProtocolError, match="'newest' has no number"):
        log.events(soon(5, VirtualClock()))


@pytest.mark.parametrize(
    ("state", "is_on"), [("On", True), ("PoweringOff", True), ("Off", False), ("PoweringOn", False)]
)
def test_what_is_on_its_way_is_not_there_yet(state: str, is_on: bool) -> None:
    assert power(system(PowerState=state)).is_on(soon(5, VirtualClock())) is is_on


def test_a_state_that_is_none_is_an_error() -> None:
    with pytest.raises(ProtocolError, match="has the power state Dozing; expected On or Off"):
        power(system(PowerState="Dozing")).is_on(soon(5, VirtualClock()))


def test_what_is_told_and_does_not_become_so_is_waited_for() -> None:
    resources = system(PowerState="On")
    with pytest.raises(DeadlineExceeded, match="Systems/A was told to be Off and is not"):
        power(resources).turn_off(soon(5, VirtualClock()))
    assert resources.posted == [("/reset", {"ResetType": "ForceOff"})]


def test_what_is_so_already_is_not_told_again() -> None:
    resources = system(PowerState="On")
    power(resources).turn_on(soon(5, VirtualClock()))
    assert resources.posted == []


class ComingUp(Resources):
    """A server that comes up by itself, and refuses to be turned on meanwhile."""

    def __init__(self) -> None:
        super().__init__({})
        self.resources = system().resources
        self.reads = 0

    def get(self, path: str, deadline: Deadline) -> Mapping[str, Any]:
        found = super().get(path, deadline)
        if "Actions" not in found:
            return found
        self.reads += 1
        return {**found, "PowerState": "PoweringOn" if self.reads < 3 else "On"}

    def post(self, path: str, _body: Mapping[str, object], _deadline: Deadline) -> None:
        raise LabError(f"{path} answered 400: InvalidOperationForSystemState")


def test_a_server_that_comes_up_by_itself_is_waited_for() -> None:
    server = ComingUp()
    power(server).turn_on(soon(5, VirtualClock()))
    assert server.reads == 3


def test_a_server_on_its_way_down_is_cut_off() -> None:
    resources = system(PowerState="PoweringOff")
    with pytest.raises(DeadlineExceeded):
        power(resources).turn_off(soon(5, VirtualClock()))
    assert resources.posted == [("/reset", {"ResetType": "ForceOff"})]


def test_several_systems_behind_one_controller_are_not_guessed_among() -> None:
    blades = Resources({"": {"Systems": link("Systems")}, "Systems": members("Systems/A", "Systems/B")})
    with pytest.raises(NotSupported, match="controls 2 systems"):
        power(blades).turn_off(soon(5, VirtualClock()))


def test_a_system_that_cannot_be_reset_says_so() -> None:
    with pytest.raises(NotSupported, match=r"has no action #ComputerSystem\.Reset"):
        power(system(PowerState="On", Actions={})).turn_off(soon(5, VirtualClock()))


def chained() -> Resources:
    """A service with two units, each with an outlet 3; only the second has an outlet 4. All are off."""
    units = {"1": ("3",), "2": ("3", "4")}
    resources: dict[str, Any] = {
        "": {"PowerEquipment": link("PowerEquipment")},
        "PowerEquipment": {"RackPDUs": link("RackPDUs")},
        "RackPDUs": members(*(f"RackPDUs/{unit}" for unit in units)),
    }
    for unit, numbers in units.items():
        resources[f"RackPDUs/{unit}"] = {"Outlets": link(f"RackPDUs/{unit}/Outlets")}
        resources[f"RackPDUs/{unit}/Outlets"] = members(*(f"RackPDUs/{unit}/Outlets/{number}" for number in numbers))
        for number in numbers:
            control = {"#Outlet.PowerControl": {"target": f"/{unit}/{number}"}}
            resources[f"RackPDUs/{unit}/Outlets/{number}"] = {"PowerState": "Off", "Actions": control}
    return Resources(resources)


def outlet(resources: Resources, number: int, unit: str | None = None) -> RedfishOutlet:
    return RedfishOutlet(cast(RedfishService, resources), number, unit)


def test_an_outlet_that_two_units_have_is_not_guessed() -> None:
    resources = chained()
    several = r"has several outlets 3: .*/1/Outlets/3, .*/2/Outlets/3; .* one of 1, 2"
    for act in (outlet(resources, 3).turn_on, outlet(resources, 3).turn_off, outlet(resources, 3).is_on):
        with pytest.raises(NotSupported, match=several):
            act(soon(5, VirtualClock()))
    assert resources.posted == []


@pytest.mark.parametrize(("number", "unit", "target"), [(3, "1", "/1/3"), (3, "2", "/2/3"), (4, None, "/2/4")])
def test_the_outlet_of_the_named_unit_is_switched_or_the_only_one_of_its_number(
    number: int, unit: str | None, target: str
) -> None:
    resources = chained()
    with pytest.raises(DeadlineExceeded, match=f"RackPDUs{target[:2]}/Outlets{target[2:]} was told to be On"):
        outlet(resources, number, unit).turn_on(soon(5, VirtualClock()))
    assert resources.posted == [(target, {"PowerState": "On"})]


def test_a_unit_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(LabError, match="there is no unit 3 among 1, 2"):
        outlet(chained(), 3, "3").is_on(soon(5, VirtualClock()))
