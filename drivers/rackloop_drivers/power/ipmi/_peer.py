"""A server's IPMI controller, simulated: RMCP+ on UDP, as ipmitool's lanplus interface speaks it."""

from __future__ import annotations

import asyncio
import struct
import uuid
from typing import Any, Self, cast

from rackloop_drivers.boxes import Account, Chassis
from rackloop_drivers.power.ipmi import _rmcp as rmcp
from rackloop_drivers.power.ipmi._commands import APPLICATION, CLOSE_SESSION, Commands, before_login
from rackloop_drivers.power.ipmi._session import Session, open_session
from rackloop_drivers.power.ipmi._sol import SerialOverLan
from rackloop_drivers.socket_blackhole import block, unblock

_MOST_SESSIONS = 16


class IpmiBmc(asyncio.DatagramProtocol):
    """The controller of one server. Without feed it answers nothing, and has forgotten who was logged in.

    ``is_hung`` makes it say how to log in and nothing more, until its feed is cycled. ``is_pulled`` while its network
    cable is out. It has cipher suites 3 and 17. ``sol`` serves the server's serial line.
    """

    def __init__(self, chassis: Chassis, account: Account) -> None:
        self.is_hung = False
        self.is_pulled = False
        self._chassis = chassis
        self._account = account
        self._guid = uuid.uuid4()
        self.sol = SerialOverLan(chassis.line, lambda: self._socket_name[1], self._send_console)
        self._commands = Commands(chassis, account, self._guid, self.sol)
        self._clients: dict[int, tuple[str | Any, int]] = {}
        self._sessions: dict[int, Session] = {}
        self._transport: asyncio.DatagramTransport | None = None
        self._answering: set[asyncio.Task[None]] = set()
        chassis.follow_feed(self._feed)

    async def __aenter__(self) -> Self:
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._transport is not None:
            self._transport.close()
        await asyncio.gather(*self._answering, return_exceptions=True)

    @property
    def address(self) -> str:
        """Its address, ``host:port``."""
        host, port = self._socket_name
        return f"{host}:{port}"

    @property
    def _socket_name(self) -> tuple[str, int]:
        assert self._transport is not None, "it answers from __aenter__ on"  # noqa: S101
        host, port = self._transport.get_extra_info("sockname")
        return host, port

    async def pull_cable(self, *, out: bool) -> None:
        """Pull its network cable, or plug it in again: while it is out it cannot be reached."""
        assert self._transport is not None, "it answers from __aenter__ on"  # noqa: S101
        (block if out else unblock)(self._transport.get_extra_info("socket"))
        self.is_pulled = out

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to answer."""
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        """Answer a packet, unless it is malformed: such are dropped."""
        if not self._chassis.is_fed:
            return
        task = asyncio.create_task(self._answer(data, addr))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _feed(self, on: bool) -> None:  # noqa: ARG002, FBT001 - a listener
        for session in tuple(self._sessions.values()):
            self._forget(session)
        self.is_hung = False

    def _forget(self, session: Session) -> None:
        self.sol.forget(session)
        self._sessions.pop(session.controller_id, None)
        self._clients.pop(session.controller_id, None)

    def _send_console(self, session: Session, payload: bytes) -> None:
        """Send a packet of Serial over LAN."""
        client = self._clients.get(session.controller_id)
        if self._transport is None or client is None or not self._chassis.is_fed or self.is_hung:
            return
        session.sequence += 1
        packet = rmcp.Packet(rmcp.SOL, session.console_id, session.sequence, payload)
        self._transport.sendto(rmcp.wrap(packet, session.keys), client)

    async def _answer(self, data: bytes, client: tuple[str | Any, int]) -> None:
        try:
            session = self._sessions.get(rmcp.session_of(data))
            packet = rmcp.unwrap(data, session.keys if session else None)
            if self.is_hung and (session or packet.kind != rmcp.IPMI):
                return
            if session is not None:
                self._clients[session.controller_id] = client
            reply = await (self._in_session(session, packet) if session else self._outside(packet))
        except (KeyError, IndexError, ValueError, struct.error):
            return
        if reply is not None and self._transport is not None and self._chassis.is_fed:
            self._transport.sendto(reply, client)

    async def _outside(self, packet: rmcp.Packet) -> bytes | None:
        """Answer a client that is not logged in."""
        payload = packet.payload
        match packet.kind:
            case rmcp.IPMI:
                message = rmcp.Message.parse(payload)
                result = before_login(message)
                if result is None:
                    return None
                return rmcp.wrap(rmcp.Packet(rmcp.IPMI, 0, 0, message.answer(*result), packet.is_plus), None)
            case rmcp.OPEN_REQUEST:
                session, answer = open_session(payload)
                if session is not None:
                    self._sessions[session.controller_id] = session
                    # Clients that never closed their session go, the oldest first.
                    while len(self._sessions) > _MOST_SESSIONS:
                        self._forget(next(iter(self._sessions.values())))
                return self._handshake(rmcp.OPEN_RESPONSE, answer)
            case rmcp.RAKP1:
                known = self._sessions[_controller_id(payload)]
                return self._handshake(rmcp.RAKP2, known.challenge(payload, self._account, self._guid.bytes))
            case rmcp.RAKP3:
                known = self._sessions[_controller_id(payload)]
                return self._handshake(rmcp.RAKP4, known.admit(payload, self._account, self._guid.bytes))
        return None

    def _handshake(self, kind: int, payload: bytes) -> bytes:
        return rmcp.wrap(rmcp.Packet(kind, 0, 0, payload), None)

    async def _in_session(self, session: Session, packet: rmcp.Packet) -> bytes | None:
        """Answer a client that is logged in.

        A request that comes again, as it does when a client has lost patience, is answered again and not carried out.
        """
        if session.keys is not None and packet.kind == rmcp.SOL:
            self.sol.receive(session, packet.payload)
        if packet.kind != rmcp.IPMI or session.keys is None:
            return None
        if session.last_request != packet.payload:
            session.last_request, session.last_answer = packet.payload, None
            message = rmcp.Message.parse(packet.payload)
            if (message.net_function, message.command) == (APPLICATION, CLOSE_SESSION):
                self._forget(session)
                session.last_answer = message.answer(0)
            else:
                session.last_answer = message.answer(*await self._commands.run(message, session))
        if session.last_answer is None:
            return None
        session.sequence += 1
        reply = rmcp.Packet(rmcp.IPMI, session.console_id, session.sequence, session.last_answer)
        return rmcp.wrap(reply, session.keys)


def _controller_id(payload: bytes) -> int:
    return int.from_bytes(payload[4:8], "little")
