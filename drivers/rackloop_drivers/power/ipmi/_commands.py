"""The IPMI commands of a simulated controller, for clients that are logged in."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from rackloop_drivers.boxes import Account, Chassis, EventKind, LoggedEvent
from rackloop_drivers.power.ipmi._rmcp import SUITES, Message
from rackloop_drivers.power.ipmi._session import ADMINISTRATOR, OPERATOR, USER, Session
from rackloop_drivers.power.ipmi._sol import COMMANDS, FOR_OPERATORS, SerialOverLan

CHASSIS, APPLICATION, STORAGE = 0x00, 0x06, 0x0A
GET_AUTHENTICATION, GET_CIPHER_SUITES, SET_PRIVILEGE, CLOSE_SESSION = 0x38, 0x54, 0x3B, 0x3C

OK, ABOVE_LIMIT, INVALID_COMMAND, BAD_LENGTH = 0x00, 0x81, 0xC1, 0xC7
NOT_PRESENT, BAD_FIELD, NO_PRIVILEGE, NOT_IN_THIS_STATE = 0xCB, 0xCC, 0xD4, 0xD5

Result = tuple[int, bytes]

# Chassis Control, Clear SEL and what payloads need (IPMI 2.0, appendix G); a user may ask the rest of what is here.
_FOR_OPERATORS = {(CHASSIS, 0x02), (STORAGE, 0x47), *FOR_OPERATORS}

_FIRST_RECORD, _LAST_RECORD = 0x0000, 0xFFFF
_RESERVATION = 1
_FREE_BYTES = 0xFFFF
_SENSOR_SPECIFIC = 0x6F


@dataclass(frozen=True)
class _Sensor:
    """Something that makes events: its number, its type (table 42-3), and the part of the server it is of (43-13)."""

    number: int
    kind: int
    entity: int
    name: str

    def record(self, following: int) -> bytes:
        """Its SDR, of the type for sensors that only make events (43.3), behind the number of the next one."""
        whole = bytes([0x20, 0x00, self.number, self.entity, 0x01, self.kind, _SENSOR_SPECIFIC, 0x01, 0, 0, 0])
        whole += bytes([0xC0 | len(self.name)]) + self.name.encode("ascii")
        event_only = 0x03
        return struct.pack("<HHBBB", following, self.number, 0x51, event_only, len(whole)) + whole


_POWER = _Sensor(1, 0x09, 0x15, "Power")
_STATE = _Sensor(2, 0x22, 0x23, "ACPI State")
_SYSTEM = _Sensor(3, 0x20, 0x23, "OS Stop")
_INTERRUPT = _Sensor(4, 0x13, 0x07, "NMI")
_LOG = _Sensor(5, 0x10, 0x06, "Event Log")
_SENSORS = (_POWER, _STATE, _SYSTEM, _INTERRUPT, _LOG)

# What is noted of which sensor, as the offset among its type's events.
_EVENTS = {
    EventKind.POWER_OFF: (_POWER, 0x00),
    EventKind.AC_LOST: (_POWER, 0x04),
    EventKind.POWER_ON: (_STATE, 0x00),
    EventKind.SHUTDOWN: (_SYSTEM, 0x03),
    EventKind.INTERRUPT: (_INTERRUPT, 0x00),
    EventKind.LOG_CLEARED: (_LOG, 0x02),
}


def before_login(message: Message) -> Result | None:
    """The answer to a request before login: how to log in. None for everything else, which is not answered."""
    if message.net_function != APPLICATION:
        return None
    if message.command == GET_AUTHENTICATION:
        # Channel 1; RMCP+ only; user names, no anonymous ones; IPMI 2.0.
        return OK, bytes([0x01, 0x80, 0x04, 0x02, 0, 0, 0, 0])
    if message.command == GET_CIPHER_SUITES:
        records = b"".join(
            bytes([0xC0, suite.number, suite.authentication, 0x40 | suite.integrity, 0x80 | suite.confidentiality])
            for suite in SUITES
        )
        index = message.data[2] & 0x3F if len(message.data) > 2 else 0
        return OK, b"\x01" + records[16 * index : 16 * index + 16]
    return None


class Commands:
    """The commands of one controller."""

    def __init__(self, chassis: Chassis, account: Account, guid: uuid.UUID, sol: SerialOverLan) -> None:
        self._chassis = chassis
        self._sol = sol
        self._account = account
        self._guid = guid
        self._table: dict[tuple[int, int], Callable[[bytes], Awaitable[Result]]] = {
            (APPLICATION, 0x01): self._get_device_id,
            (APPLICATION, 0x37): self._get_guid,
            (CHASSIS, 0x01): self._get_chassis_status,
            (CHASSIS, 0x02): self._control_chassis,
            (STORAGE, 0x20): self._get_sensor_repository,
            (STORAGE, 0x22): self._reserve,
            (STORAGE, 0x23): self._get_sensor_record,
            (STORAGE, 0x40): self._get_log_info,
            (STORAGE, 0x42): self._reserve,
            (STORAGE, 0x43): self._get_log_entry,
            (STORAGE, 0x47): self._clear_log,
            (STORAGE, 0x48): self._get_log_time,
        }

    async def run(self, message: Message, session: Session) -> Result:
        """The completion code and data for a request in a session; what it may is what its privilege level allows."""
        asked = (message.net_function, message.command)
        command = self._table.get(asked)
        try:
            if asked == (APPLICATION, SET_PRIVILEGE):
                return self._set_privilege(message.data, session)
            if command is None and asked not in COMMANDS:
                return before_login(message) or (INVALID_COMMAND, b"")
            if asked in _FOR_OPERATORS and session.privilege < OPERATOR:
                return NO_PRIVILEGE, b""
            if command is None:
                return self._sol.run(asked, message.data, session)
            return await command(message.data)
        except (IndexError, struct.error):
            return BAD_LENGTH, b""

    async def _get_device_id(self, _data: bytes) -> Result:
        # Device 32, firmware 1.00, IPMI 2.0; it has an event log, and is a chassis device.
        return OK, bytes([0x20, 0x01, 0x01, 0x00, 0x02, 0x84, 0, 0, 0, 0, 0])

    async def _get_guid(self, _data: bytes) -> Result:
        return OK, self._guid.bytes_le

    def _set_privilege(self, data: bytes, session: Session) -> Result:
        limit = min(session.most_privilege, ADMINISTRATOR if self._account.may_act else USER)
        asked = data[0] or session.privilege
        if asked > limit:
            return ABOVE_LIMIT, b""
        session.privilege = asked
        return OK, bytes([asked])

    async def _get_chassis_status(self, _data: bytes) -> Result:
        # After AC returns the power is restored to what it was.
        return OK, bytes([0x20 | await self._chassis.is_on(), 0, 0])

    async def _control_chassis(self, data: bytes) -> Result:
        chassis, act = self._chassis, data[0] & 0x0F
        acts = {
            0: chassis.turn_off,
            1: chassis.turn_on,
            2: chassis.cycle,
            3: chassis.cycle,
            4: chassis.interrupt,
            5: chassis.shut_down,
        }
        if act not in acts:
            return BAD_FIELD, b""
        if act in {2, 3, 4} and not await chassis.is_on():
            return NOT_IN_THIS_STATE, b""
        await acts[act]()
        return OK, b""

    async def _get_sensor_repository(self, _data: bytes) -> Result:
        return OK, struct.pack("<BHHIIB", 0x51, len(_SENSORS), 0, 0, 0, 0x02)

    async def _get_sensor_record(self, data: bytes) -> Result:
        _, number, offset, count = struct.unpack("<HHBB", data)
        asked = {_FIRST_RECORD: 1, _LAST_RECORD: len(_SENSORS)}.get(number, number)
        if not 1 <= asked <= len(_SENSORS):
            return NOT_PRESENT, b""
        record = _SENSORS[asked - 1].record(asked + 1 if asked < len(_SENSORS) else _LAST_RECORD)
        return OK, record[:2] + _part(record[2:], offset, count)

    async def _get_log_info(self, _data: bytes) -> Result:
        events = self._chassis.events
        newest = _seconds(events[-1].at) if events else 0xFFFFFFFF
        return OK, struct.pack("<BHHIIB", 0x51, len(events), _FREE_BYTES, newest, 0xFFFFFFFF, 0x02)

    async def _reserve(self, _data: bytes) -> Result:
        return OK, struct.pack("<H", _RESERVATION)

    async def _get_log_entry(self, data: bytes) -> Result:
        _, number, offset, count = struct.unpack("<HHBB", data)
        events = self._chassis.events
        if not events:
            return NOT_PRESENT, b""
        known = [event.number for event in events]
        asked = {_FIRST_RECORD: known[0], _LAST_RECORD: known[-1]}.get(number, number)
        if asked not in known:
            return NOT_PRESENT, b""
        at = known.index(asked)
        following = known[at + 1] if at + 1 < len(known) else _LAST_RECORD
        return OK, struct.pack("<H", following) + _part(log_record(events[at]), offset, count)

    async def _clear_log(self, data: bytes) -> Result:
        if data[2:5] != b"CLR":
            return BAD_FIELD, b""
        initiate = 0xAA
        if data[5] == initiate:
            self._chassis.clear_events()
        return OK, b"\x01"

    async def _get_log_time(self, _data: bytes) -> Result:
        return OK, struct.pack("<I", _seconds(self._chassis.now()))


def log_record(event: LoggedEvent) -> bytes:
    """An entry as a SEL event record (table 32-1), asserted."""
    sensor, offset = _EVENTS[event.kind]
    system_event, controller, revision = 0x02, 0x0020, 0x04
    head = struct.pack("<HBIH", event.number, system_event, _seconds(event.at), controller)
    return head + bytes([revision, sensor.kind, sensor.number, _SENSOR_SPECIFIC, offset, 0xFF, 0xFF])


def _part(record: bytes, offset: int, count: int) -> bytes:
    """The part of a record that a client asks for: ``count`` bytes, or all that is left."""
    everything = 0xFF
    return record[offset:] if count == everything else record[offset : offset + count]


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())
