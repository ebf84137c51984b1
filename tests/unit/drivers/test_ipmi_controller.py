"""The simulated controller at the edge of its protocol: retries, noise, and who is not logged in."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rackloop.clock import VirtualClock
from rackloop_drivers.boxes import Account, Chassis, EventKind, MemorySwitching
from rackloop_drivers.power.ipmi import IpmiBmc
from rackloop_drivers.power.ipmi import _rmcp as rmcp
from rackloop_drivers.power.ipmi._session import OPERATOR, Session

CYCLE = (0x00, 0x02, b"\x02")
STATUS = (0x00, 0x01, b"")
CLIENT = ("192.0.2.1", 4000)


class Wire(asyncio.DatagramTransport):
    """What the controller sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []

    def sendto(self, data: Any, addr: Any = None) -> None:
        assert addr == CLIENT
        self.sent.append(bytes(data))


class Client:
    """One that is logged in, behind a wire that loses nothing."""

    def __init__(self) -> None:
        self.chassis = Chassis("srv1", MemorySwitching(), VirtualClock())
        self.bmc = IpmiBmc(self.chassis, Account("a", "b", VirtualClock()))
        self.wire = Wire()
        self.bmc.connection_made(self.wire)
        suite = rmcp.SUITES[1]
        self.session = Session(7, suite, keys=rmcp.Keys.of(suite, b"k" * 32), privilege=OPERATOR)
        self.bmc._sessions[self.session.controller_id] = self.session
        self.sequence = 0

    async def send(self, number: int, net_function: int, command: int, data: bytes) -> list[rmcp.Message]:
        """Send a request by its own number in a new packet, as a retry is; the answers so far."""
        head = bytes([0x20, net_function << 2])
        body = bytes([0x81, number << 2, command]) + data
        payload = b"".join(part + bytes([-sum(part) & 0xFF]) for part in (head, body))
        self.sequence += 1
        packet = rmcp.Packet(rmcp.IPMI, self.session.controller_id, self.sequence, payload)
        self.bmc.datagram_received(rmcp.wrap(packet, self.session.keys), CLIENT)
        await asyncio.gather(*self.bmc._answering)
        return [rmcp.Message.parse(rmcp.unwrap(sent, self.session.keys).payload) for sent in self.wire.sent]


def test_a_retry_is_answered_and_not_carried_out_again() -> None:
    async def run() -> None:
        client = Client()
        for _ in range(3):
            await client.send(1, *CYCLE)
        answers = await client.send(2, *STATUS)
        assert [answer.data[0] for answer in answers] == [0, 0, 0, 0]
        assert [event.kind for event in client.chassis.events] == [EventKind.POWER_OFF, EventKind.POWER_ON]
        await client.send(3, *CYCLE)
        assert len(client.chassis.events) == 4

    asyncio.run(run())


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ((0x00, 0x02, b""), 0xC7),
        ((0x00, 0x02, b"\x0f"), 0xCC),
        ((0x2C, 0x01, b""), 0xC1),
        ((0x0A, 0x43, bytes(6)), 0xCB),
        ((0x0A, 0x47, b"\x00\x00XYZ\xaa"), 0xCC),
    ],
    ids=["too short", "no such control", "no such command", "an empty log", "cleared by mistake"],
)
def test_what_it_does_not_do_has_a_code(request_: tuple[int, int, bytes], code: int) -> None:
    async def run() -> None:
        client = Client()
        (answer,) = await client.send(1, *request_)
        assert answer.data[0] == code
        assert client.chassis.events == []

    asyncio.run(run())


@pytest.mark.parametrize("noise", [b"", b"GET / HTTP/1.1", b"\x06\x00\xff\x07\x06\x12" + bytes(60), bytes(200)])
def test_noise_is_not_answered(noise: bytes) -> None:
    async def run() -> None:
        client = Client()
        client.bmc.datagram_received(noise, CLIENT)
        await asyncio.gather(*client.bmc._answering)
        assert client.wire.sent == []

    asyncio.run(run())


def test_a_command_outside_a_session_is_not_carried_out() -> None:
    async def run() -> None:
        client = Client()
        head, body = bytes([0x20, 0x00]), bytes([0x81, 0x04, 0x02, 0x00])
        payload = b"".join(part + bytes([-sum(part) & 0xFF]) for part in (head, body))
        client.bmc.datagram_received(rmcp.wrap(rmcp.Packet(rmcp.IPMI, 0, 0, payload), None), CLIENT)
        await asyncio.gather(*client.bmc._answering)
        assert client.wire.sent == []
        assert await client.chassis.is_on()

    asyncio.run(run())
