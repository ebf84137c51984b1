"""The Redfish resources of a simulated controller and PDU (DMTF DSP0266, DSP0268)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from rackloop_drivers.boxes import EventKind, LoggedEvent

Resource = dict[str, object]

ROOT = "/redfish/v1/"
SESSIONS = "/redfish/v1/SessionService/Sessions"
SYSTEM = "/redfish/v1/Systems/1"
MANAGER = "/redfish/v1/Managers/1"
CHASSIS = "/redfish/v1/Chassis/1"
EVENT_LOG = f"{SYSTEM}/LogServices/SEL"
PDU = "/redfish/v1/PowerEquipment/RackPDUs/1"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
CLEAR_LOG = f"{EVENT_LOG}/Actions/LogService.ClearLog"
RESET_TYPES = (
    "On",
    "ForceOn",
    "ForceOff",
    "GracefulShutdown",
    "ForceRestart",
    "GracefulRestart",
    "PowerCycle",
    "Nmi",
)
ENTRIES_A_PAGE = 50

# The sensor's type and what it says, in the words of the LogEntry schema, and how bad it is.
_EVENTS = {
    EventKind.POWER_ON: ("System ACPI PowerState", "The server was powered on.", "OK"),
    EventKind.POWER_OFF: ("PowerUnit", "The server was powered off.", "OK"),
    EventKind.AC_LOST: ("PowerUnit", "AC power was lost.", "Critical"),
    EventKind.SHUTDOWN: ("OS Stop/Shutdown", "The operating system was asked to shut down.", "OK"),
    EventKind.INTERRUPT: ("Critical Interrupt", "A diagnostic interrupt (NMI) was pulsed.", "Warning"),
    EventKind.LOG_CLEARED: ("Event Logging Disabled", "The log was cleared.", "OK"),
}


def link(path: str) -> Resource:
    """A reference to another resource."""
    return {"@odata.id": path}


def resource(path: str, kind: str, name: str, **fields: object) -> Resource:
    """A resource at ``path`` of the schema ``kind``, such as ``Outlet.v1_4_1.Outlet``."""
    return {
        "@odata.id": path,
        "@odata.type": f"#{kind}",
        "Id": path.rstrip("/").rpartition("/")[2],
        "Name": name,
    } | fields


def collection(path: str, kind: str, name: str, members: Sequence[Mapping[str, object]]) -> Resource:
    """A collection of links, or of whole resources; ``kind`` is what its members are."""
    return {
        "@odata.id": path,
        "@odata.type": f"#{kind}Collection.{kind}Collection",
        "Name": name,
        "Members": list(members),
        "Members@odata.count": len(members),
    }


def service_root(uuid: str, **links: object) -> Resource:
    """The root, which everybody may read: where the rest is."""
    return {
        "@odata.id": ROOT,
        "@odata.type": "#ServiceRoot.v1_15_0.ServiceRoot",
        "Id": "RootService",
        "Name": "Root Service",
        "RedfishVersion": "1.15.0",
        "UUID": uuid,
        "SessionService": link("/redfish/v1/SessionService"),
        "AccountService": link("/redfish/v1/AccountService"),
        "Links": {"Sessions": link(SESSIONS)},
    } | links


@dataclass(frozen=True)
class Boot:
    """From where the server is to boot, as the Boot property of a ComputerSystem has it."""

    target: str = "None"
    enabled: str = "Disabled"
    mode: str = "UEFI"

    _ALLOWED: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "BootSourceOverrideTarget": ("None", "Pxe", "Hdd", "Cd", "Usb", "BiosSetup", "UefiTarget", "UefiHttp"),
        "BootSourceOverrideEnabled": ("Disabled", "Once", "Continuous"),
        "BootSourceOverrideMode": ("UEFI", "Legacy"),
    }

    def shown(self) -> Resource:
        """The property."""
        values = dict(zip(self._ALLOWED, (self.target, self.enabled, self.mode), strict=True))
        allowed = {f"{name}@Redfish.AllowableValues": list(values) for name, values in self._ALLOWED.items()}
        return {**values, **allowed}

    def changed(self, asked: Mapping[str, object]) -> Boot:
        """With what a client asked for. Raises ValueError for what it has not, or a value that cannot be."""
        values = dict(zip(self._ALLOWED, (self.target, self.enabled, self.mode), strict=True))
        for name, value in asked.items():
            allowed = self._ALLOWED.get(name, ())
            if value not in allowed:
                raise ValueError(
                    f"{value} is no {name} that can be had; the values are {', '.join(allowed) or 'none'}."
                )
            values[name] = str(value)
        return Boot(*values.values())


def serial_console(ssh_port: int | None) -> Resource:
    """The place of a system's console: SSH at a port, or, without one, nowhere."""
    by_ssh: Resource = {"ServiceEnabled": ssh_port is not None, "SharedWithManagerCLI": False}
    if ssh_port is not None:
        by_ssh["Port"] = ssh_port
    off: Resource = {"ServiceEnabled": False}
    return {"MaxConcurrentSessions": 1, "SSH": by_ssh, "IPMI": off, "Telnet": off}


def system(server: str, uuid: str, boot: Boot, console: Resource, *, is_on: bool) -> Resource:
    """The server."""
    reset = {"target": RESET, "ResetType@Redfish.AllowableValues": list(RESET_TYPES)}
    return resource(
        SYSTEM,
        "ComputerSystem.v1_20_0.ComputerSystem",
        server,
        SystemType="Physical",
        Manufacturer="Rackloop",
        Model="simulated server",
        HostName=server,
        UUID=uuid,
        PowerState="On" if is_on else "Off",
        Status={"State": "Enabled" if is_on else "Disabled", "Health": "OK"},
        Boot=boot.shown(),
        SerialConsole=console,
        LogServices=link(f"{SYSTEM}/LogServices"),
        Links={"Chassis": [link(CHASSIS)], "ManagedBy": [link(MANAGER)]},
        Actions={"#ComputerSystem.Reset": reset},
    )


def chassis(server: str, *, is_on: bool) -> Resource:
    """The box the server is in."""
    return resource(
        CHASSIS,
        "Chassis.v1_23_0.Chassis",
        f"Chassis of {server}",
        ChassisType="RackMount",
        PowerState="On" if is_on else "Off",
        Status={"State": "Enabled", "Health": "OK"},
        Links={"ComputerSystems": [link(SYSTEM)], "ManagedBy": [link(MANAGER)]},
    )


def manager(server: str, uuid: str, now: datetime) -> Resource:
    """The controller itself."""
    return resource(
        MANAGER,
        "Manager.v1_19_0.Manager",
        f"Controller of {server}",
        ManagerType="BMC",
        FirmwareVersion="1.0",
        UUID=uuid,
        DateTime=timestamp(now),
        DateTimeLocalOffset="+00:00",
        Status={"State": "Enabled", "Health": "OK"},
        Links={"ManagerForServers": [link(SYSTEM)], "ManagerForChassis": [link(CHASSIS)]},
    )


def event_log(now: datetime) -> Resource:
    """The log service."""
    return resource(
        EVENT_LOG,
        "LogService.v1_5_0.LogService",
        "System Event Log",
        LogEntryType="SEL",
        OverWritePolicy="WrapsWhenFull",
        ServiceEnabled=True,
        DateTime=timestamp(now),
        DateTimeLocalOffset="+00:00",
        Entries=link(f"{EVENT_LOG}/Entries"),
        Actions={"#LogService.ClearLog": {"target": CLEAR_LOG}},
    )


def log_entry(event: LoggedEvent) -> Resource:
    """One entry of the log."""
    sensor, message, severity = _EVENTS[event.kind]
    return resource(
        f"{EVENT_LOG}/Entries/{event.number}",
        "LogEntry.v1_15_0.LogEntry",
        f"Log entry {event.number}",
        EntryType="SEL",
        EntryCode="Assert",
        Severity=severity,
        SensorType=sensor,
        Message=message,
        Created=timestamp(event.at),
    )


def log_entries(events: Sequence[LoggedEvent], skip: int) -> Resource:
    """A page of the log; ``Members@odata.nextLink`` leads to the next."""
    path = f"{EVENT_LOG}/Entries"
    page = events[skip : skip + ENTRIES_A_PAGE]
    answer = collection(path, "LogEntry", "Log entries", [log_entry(event) for event in page])
    answer["Members@odata.count"] = len(events)
    if skip + len(page) < len(events):
        answer["Members@odata.nextLink"] = f"{path}?$skip={skip + len(page)}"
    return answer


def outlet(number: int, *, is_on: bool) -> Resource:
    """One outlet of the PDU."""
    path = f"{PDU}/Outlets/{number}"
    control = {
        "target": f"{path}/Actions/Outlet.PowerControl",
        "PowerState@Redfish.AllowableValues": ["On", "Off", "PowerCycle"],
    }
    return resource(
        path,
        "Outlet.v1_4_1.Outlet",
        f"Outlet {number}",
        PowerState="On" if is_on else "Off",
        PowerControlLocked=False,
        Status={"State": "Enabled", "Health": "OK"},
        Actions={"#Outlet.PowerControl": control},
    )


def error(key: str, message: str) -> Resource:
    """An error as every client expects it; ``key`` is of the Base message registry."""
    code = f"Base.1.16.{key}"
    info = {"@odata.type": "#Message.v1_1_2.Message", "MessageId": code, "Message": message, "Severity": "Critical"}
    return {"error": {"code": code, "message": message, "@Message.ExtendedInfo": [info]}}


def timestamp(moment: datetime) -> str:
    """A moment as Redfish writes it."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
