"""An SNMP agent as its clients see it: integers read and written by SNMPv3, or by SNMPv1, which every PDU speaks."""

from __future__ import annotations

import socket
from typing import Any

from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, LabError, NameUnknown, NotConnected, ProtocolError
from rackloop_drivers.boxes import Login
from rackloop_drivers.endpoint import host_and_port
from rackloop_drivers.power.snmp._codec import Oid

_PORT = 161
_ANSWER_S = 1.0
_ATTEMPTS = 3
# Version 1 has no error for it (RFC 1157): its agents answer that what may not be written is not there.
_NO_SUCH_NAME = 2
_NOT_WRITABLE = (_NO_SUCH_NAME, 4, 6, 16, 17)


class SnmpAgent:
    """The agent at ``address`` (``host`` or ``host:port``).

    A login with a user is SNMPv3, signed by SHA-1 and encrypted by AES-128, both with the login's password. Without a
    user it is SNMPv1, and the password is the community: an agent does not answer those who do not know it, so that
    one with another community cannot be told from one that is not there.
    """

    def __init__(self, address: str, login: Login) -> None:
        self.address = address
        self._login = login
        self._endpoint = host_and_port(address, _PORT)

    def get(self, *oids: Oid, deadline: Deadline) -> tuple[int, ...]:
        """The integers at ``oids``.

        Raises DeadlineExceeded, NotConnected where nothing answers, ProtocolError for what is no integer, LabError
        where there is no such thing.
        """
        answered, values = self._ask("get_cmd", [(oid, None) for oid in oids], deadline)
        if answered:
            missing = ", ".join(".".join(map(str, oid)) for oid in oids)
            raise LabError(f"{self.address} has not all of {missing} ({answered}); is this the right kind of PDU?")
        return values

    def set(self, oid: Oid, value: int, deadline: Deadline) -> None:
        """Write an integer; where the deadline is over nothing is sent.

        Raises as :meth:`get` does, and LoginRefused where the community may only read.
        """
        answered, _ = self._ask("set_cmd", [(oid, value)], deadline)
        if answered in _NOT_WRITABLE:
            raise self._login.refused(f"it may not write {'.'.join(map(str, oid))}", for_good=False)
        if answered:
            raise LabError(f"{self.address} did not take {value} for {'.'.join(map(str, oid))}: error {answered}")

    def _ask(
        self, command: str, variables: list[tuple[Oid, int | None]], deadline: Deadline
    ) -> tuple[int, tuple[int, ...]]:
        # What an agent is asked through comes with the first question: most who make one never ask it.
        import asyncio

        with self._login.turn(deadline):
            password = self._login.password()
            if deadline.is_over():
                raise DeadlineExceeded(f"{self.address} was not asked: the deadline is over; allow more time")
            try:
                return asyncio.run(
                    asyncio.wait_for(self._exchange(command, password, variables), deadline.remaining_s())
                )
            except TimeoutError:
                raise DeadlineExceeded(f"{self.address} did not answer in time; is the agent hung?") from None
            except OSError as error:
                raise NotConnected(f"{self.address} cannot be reached: {error}; check the address") from None

    async def _exchange(
        self, command: str, password: str, variables: list[tuple[Oid, int | None]]
    ) -> tuple[int, tuple[int, ...]]:
        """The error status of the answer, and its integers."""
        from pysnmp.error import PySnmpError  # type: ignore[import-untyped]
        from pysnmp.proto import errind  # type: ignore[import-untyped]
        from pysnmp.proto.rfc1902 import Integer32  # type: ignore[import-untyped]
        from pysnmp.smi.rfc1902 import ObjectIdentity, ObjectType  # type: ignore[import-untyped]

        objects = [
            ObjectType(ObjectIdentity(oid), *([] if value is None else [Integer32(value)])) for oid, value in variables
        ]
        ask = self._ask_by_community if self._login.is_anonymous else self._ask_as_user
        try:
            failure, status, _, found = await ask(command, password, objects)
        except PySnmpError as error:
            if isinstance(unresolved := error.__context__, socket.gaierror):
                said = f"{self.address}: the name {self._endpoint[0]!r} does not resolve ({unresolved.strerror})"
                raise NameUnknown(f"{said}; look at it in the lab description, or ask the name service") from None
            raise NotConnected(f"{self.address} cannot be asked: {_words(error)}; check the address") from None
        if isinstance(failure, errind.RequestTimedOut):
            raise NotConnected(
                f"{self.address} does not answer ({_words(failure)}); check the address, whether the PDU has power, "
                "and its community: an agent is silent to those who do not know it"
            )
        if failure:
            raise self._login.refused(_words(failure))
        if int(status):
            return int(status), ()
        try:
            return 0, tuple(int(value) for _, value in found)
        except (TypeError, ValueError):
            raise ProtocolError(f"{self.address} answered something that is no integer: {_words(found)}") from None

    async def _target(self, snmp: Any) -> Any:
        """The agent's address; the library has a kind of its own for IPv6."""
        kind = snmp.Udp6TransportTarget if ":" in self._endpoint[0] else snmp.UdpTransportTarget
        return await kind.create(self._endpoint, timeout=_ANSWER_S, retries=_ATTEMPTS - 1)

    async def _ask_by_community(self, command: str, community: str, objects: list[Any]) -> Any:
        from pysnmp.hlapi.v1arch import asyncio as snmp  # type: ignore[import-untyped]

        dispatcher = snmp.SnmpDispatcher()
        try:
            target = await self._target(snmp)
            version_1 = 0
            return await getattr(snmp, command)(
                dispatcher, snmp.CommunityData(community, mpModel=version_1), target, *objects
            )
        finally:
            # Not dispatcher.close(), which fails on a request that is still waited for.
            dispatcher.transport_dispatcher.close_dispatcher()

    async def _ask_as_user(self, command: str, password: str, objects: list[Any]) -> Any:
        from pysnmp.hlapi.v3arch import asyncio as snmp  # type: ignore[import-untyped]

        engine = snmp.SnmpEngine()
        try:
            target = await self._target(snmp)
            user = snmp.UsmUserData(
                self._login.user,
                password,
                password,
                authProtocol=snmp.USM_AUTH_HMAC96_SHA,
                privProtocol=snmp.USM_PRIV_CFB128_AES,
            )
            return await getattr(snmp, command)(engine, user, target, snmp.ContextData(), *objects, lookupMib=False)
        finally:
            engine.close_dispatcher()


def _words(what: object) -> str:
    """The library's words, on one line and not longer than a line."""
    return " ".join(str(what).split())[:200]
