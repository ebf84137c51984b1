"""A PDU with an SNMP agent, simulated: pysnmp's agent over the outlet tables."""

from __future__ import annotations

import asyncio
import bisect
import socket
import traceback
from typing import Any, Self

from pysnmp.carrier.asyncio.dgram import udp  # type: ignore[import-untyped]
from pysnmp.entity import config, engine  # type: ignore[import-untyped]
from pysnmp.entity.rfc3413 import cmdrsp, context  # type: ignore[import-untyped]
from pysnmp.proto.rfc1902 import Integer32, ObjectIdentifier, OctetString  # type: ignore[import-untyped]
from pysnmp.proto.rfc1905 import endOfMibView, noSuchInstance  # type: ignore[import-untyped]
from pysnmp.smi.error import NotWritableError, WrongTypeError, WrongValueError  # type: ignore[import-untyped]
from pysnmp.smi.instrum import AbstractMibInstrumController  # type: ignore[import-untyped]

from rackloop_drivers.boxes import Outlets
from rackloop_drivers.power.snmp._codec import Oid, OutletCommand, OutletMib, OutletState, Pending

_SYSTEM = (1, 3, 6, 1, 2, 1, 1)
_WRITER = "writer"
# What a delayed command waits, where the unit is not set to more.
_DELAY_S = 1.0


class SnmpPdu:
    """Answers SNMP versions 1 and 2c to those who know ``community``, and to ``user`` version 3 as well.

    The community is the user's password, of at least 8 characters. ``read_community`` may read, and not write.
    ``is_hung`` makes it take packets and never answer.
    """

    def __init__(
        self,
        outlets: Outlets,
        mib: OutletMib,
        community: str,
        *,
        user: str | None = None,
        read_community: str | None = None,
    ) -> None:
        self._tree = _Tree(outlets, mib, writers={_WRITER, user})
        self._user = user
        self._password = community
        self._communities = {_WRITER: community} | ({"reader": read_community} if read_community else {})
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._engine: Any = None

    async def __aenter__(self) -> Self:
        self._engine = engine.SnmpEngine()
        transport = _Transport().open_server_mode(sock=self._socket)
        self._transport = transport
        config.add_transport(self._engine, udp.DOMAIN_NAME, transport)
        for name, community in self._communities.items():
            config.add_v1_system(self._engine, name, community)
        if self._user is not None:
            signed, encrypted = config.USM_AUTH_HMAC96_SHA, config.USM_PRIV_CFB128_AES
            config.add_v3_user(self._engine, self._user, signed, self._password, encrypted, self._password)
        snmp_context = context.SnmpContext(self._engine)
        snmp_context.unregister_context_name(b"")
        snmp_context.register_context_name(b"", self._tree)
        for responder in (
            cmdrsp.GetCommandResponder,
            cmdrsp.NextCommandResponder,
            cmdrsp.BulkCommandResponder,
            cmdrsp.SetCommandResponder,
        ):
            responder(self._engine, snmp_context)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._engine.close_dispatcher()
        self._tree.close()
        self._socket.close()

    @property
    def is_hung(self) -> bool:
        """Whether packets are taken and not answered."""
        return bool(self._transport.is_hung)

    @is_hung.setter
    def is_hung(self, is_hung: bool) -> None:
        self._transport.is_hung = is_hung

    @property
    def address(self) -> str:
        """Its address, ``host:port``."""
        host, port = self._socket.getsockname()
        return f"{host}:{port}"


class _Transport(udp.UdpAsyncioTransport):  # type: ignore[misc]
    is_hung = False

    def datagram_received(self, datagram: bytes, transportAddress: Any) -> None:  # noqa: N803 - pysnmp's name
        if self.is_hung:
            return
        try:
            self._callback_function(self, transportAddress, datagram)
        except Exception as error:
            # A message that cannot be read is discarded (RFC 3412, 7.2), which pysnmp's decoder does not see of each.
            if _is_of_tree(error):
                raise


def _is_of_tree(error: Exception) -> bool:
    """Whether it was raised while the outlets were asked, and not by a message that cannot be decoded."""
    above = traceback.extract_tb(error.__traceback__)[1:]
    return any(frame.filename == __file__ for frame in above)


class _Tree(AbstractMibInstrumController):  # type: ignore[misc]
    """The agent's objects, read from the outlets whenever it is asked."""

    def __init__(self, outlets: Outlets, mib: OutletMib, writers: set[str | None]) -> None:
        self._outlets = outlets
        self._writers = writers
        self._mib = mib
        self._commands = {mib.command(number): number for number in range(1, outlets.count + 1)}
        self._acting: set[asyncio.Task[None]] = set()

    def close(self) -> None:
        """Forget what was to be done."""
        for task in self._acting:
            task.cancel()

    def read_variables(self, *asked: Any, **_: Any) -> list[Any]:
        """GET."""
        values = self._values()
        return [(name, values.get(tuple(name), noSuchInstance)) for name, _ in asked]

    def read_next_variables(self, *asked: Any, **_: Any) -> list[Any]:
        """GETNEXT and GETBULK."""
        values = self._values()
        order = sorted(values)
        found = []
        for name, _ in asked:
            at = bisect.bisect_right(order, tuple(name))
            found.append((name, endOfMibView) if at == len(order) else (order[at], values[order[at]]))
        return found

    def write_variables(self, *asked: Any, **context: Any) -> list[Any]:
        """SET: all of it, or an error and nothing."""
        received = context["snmpEngine"].observer.get_execution_context("rfc3412.receiveMessage:request")
        may_write = str(received["securityName"]) in self._writers
        commands = []
        for index, (name, value) in enumerate(asked):
            if not may_write or tuple(name) not in self._commands:
                raise NotWritableError(name=name, idx=index)
            if value.tagSet != Integer32.tagSet:
                raise WrongTypeError(name=name, idx=index)
            if int(value) not in set(OutletCommand):
                raise WrongValueError(name=name, idx=index)
            commands.append((self._commands[tuple(name)], OutletCommand(int(value))))
        for outlet, command in commands:
            task = asyncio.ensure_future(self._carry_out(outlet, command))
            self._acting.add(task)
            task.add_done_callback(self._acting.discard)
        return list(asked)

    async def _carry_out(self, outlet: int, command: OutletCommand) -> None:
        outlets = self._outlets
        delay_s = max(outlets.delay_s, _DELAY_S)
        match command:
            case OutletCommand.IMMEDIATE_ON | OutletCommand.IMMEDIATE_OFF:
                await outlets.switch(outlet, on=command is OutletCommand.IMMEDIATE_ON)
            case OutletCommand.IMMEDIATE_REBOOT:
                await outlets.cycle(outlet)
            case OutletCommand.DELAYED_ON | OutletCommand.DELAYED_OFF:
                await outlets.switch(outlet, on=command is OutletCommand.DELAYED_ON, delay_s=delay_s)
            case OutletCommand.DELAYED_REBOOT:
                await outlets.cycle(outlet, delay_s)
            case OutletCommand.CANCEL_PENDING:
                outlets.cancel(outlet)

    def _values(self) -> dict[Oid, Any]:
        outlets, mib = self._outlets, self._mib
        values = {
            (*_SYSTEM, 1, 0): OctetString(f"{mib.manufacturer} switched PDU, simulated by Rackloop"),
            (*_SYSTEM, 2, 0): ObjectIdentifier(mib.unit),
            (*_SYSTEM, 5, 0): OctetString(outlets.name),
            mib.model: OctetString("simulated"),
            mib.outlet_count: Integer32(outlets.count),
        }
        for number in range(1, outlets.count + 1):
            state = Integer32(OutletState.ON if outlets.is_on(number) else OutletState.OFF)
            pending = Integer32(Pending.YES if outlets.is_pending(number) else Pending.NO)
            values |= {
                mib.name(number): OctetString(f"Outlet {number}"),
                mib.command(number): state,
                mib.state(number): state,
                mib.pending(number): pending,
            }
        return values
