"""Bytes that no client should send do a simulated controller or PDU no harm, and are no complaint of its."""

from __future__ import annotations

import base64
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import pytest
from pyasn1.codec.ber import encoder  # type: ignore[import-untyped]
from pysnmp.proto import api  # type: ignore[import-untyped]

from rackloop.seed import Stream, stream
from tests.power_boxes import PASSWORD, USER, PowerBoxes, power_boxes

STORM = 2000
NAME, NAME_OID = b"apc", (1, 3, 6, 1, 2, 1, 1, 5, 0)
SYSTEM = (1, 3, 6, 1, 2, 1, 1, 1, 0)
COMMAND = (1, 3, 6, 1, 4, 1, 318, 1, 1, 12, 3, 3, 1, 1, 4, 1)
IN_TIME_S = 20.0


@pytest.fixture(scope="module")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PowerBoxes]:
    with power_boxes(tmp_path_factory.mktemp("power")) as boxes:
        yield boxes


@pytest.fixture(autouse=True)
def _no_complaint(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert [record.getMessage() for record in caplog.get_records("call")] == []


def snmp_message(version: Any, kind: str, oid: tuple[int, ...], value: Any) -> bytes:
    module = api.PROTOCOL_MODULES[version]
    pdu, message = getattr(module, kind)(), module.Message()
    module.apiPDU.set_defaults(pdu)
    module.apiPDU.set_varbinds(pdu, [(oid, value)])
    module.apiMessage.set_defaults(message)
    module.apiMessage.set_community(message, PASSWORD)
    module.apiMessage.set_pdu(message, pdu)
    return bytes(encoder.encode(message))


def damaged(message: bytes, noise: Stream) -> bytes:
    """One to three bytes are others, have come in between, or everything behind them is missing."""
    bad = bytearray(message)
    for _ in range(noise.randrange(1, 4)):
        at = noise.randrange(len(bad) + 1)
        match noise.randrange(4):
            case 0:
                bad[at:at] = noise.randbytes(1)
            case 1:
                del bad[at:]
            case _:
                bad[at : at + 1] = noise.randbytes(1)
    return bytes(bad)


def test_messages_that_cannot_be_read_are_dropped(boxes: PowerBoxes) -> None:
    v1, v2 = api.SNMP_VERSION_1, api.SNMP_VERSION_2C
    nothing = api.PROTOCOL_MODULES[v2].Null("")
    good = snmp_message(v1, "GetRequestPDU", SYSTEM, nothing)
    name = snmp_message(v1, "GetRequestPDU", NAME_OID, nothing)
    messages = [
        good,
        snmp_message(v1, "GetNextRequestPDU", SYSTEM, nothing),
        snmp_message(v2, "GetRequestPDU", SYSTEM, nothing),
        snmp_message(v2, "SetRequestPDU", COMMAND, api.PROTOCOL_MODULES[v2].Integer(1)),
    ]
    noise = stream(1, "snmp")
    host, port = boxes.apc.address.split(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        wire.settimeout(IN_TIME_S)
        wire.connect((host, int(port)))
        for number in range(STORM):
            wire.send(damaged(noise.choice(messages), noise))
            if number % 100 == 99:
                # Answered in order; what fits no buffer would be lost on the way.
                wire.send(name)
                while NAME not in wire.recv(65536):
                    pass


def request(
    target: bytes = b"/redfish/v1/Systems/1", head: bytes = b"", body: bytes = b"", method: bytes = b"GET"
) -> bytes:
    credentials = base64.b64encode(f"{USER}:{PASSWORD}".encode())
    head += b"Authorization: Basic " + credentials + b"\r\n"
    if b"Content-Length" not in head:
        head += b"Content-Length: %d\r\n" % len(body)
    return method + b" " + target + b" HTTP/1.1\r\n" + head + b"\r\n" + body


RESET = b"/redfish/v1/Systems/1/Actions/ComputerSystem.Reset"
DIGITS = b"7" * 5000
BAD_REQUESTS = {
    "no ASCII in the path": (request("/redfish/v1/Systems/ü".encode()), 400),
    "no ASCII in a header": (request(head="X-Mine: ü\r\n".encode()), 400),
    "no ASCII in a token": (request(head="X-Auth-Token: ü\r\n".encode()), 400),
    "a URL for a path": (request(b"//[::1"), 404),
    "half a URL": (request(b"http://[::1"), 400),
    "deep JSON": (request(RESET, body=b"[" * 100_000, method=b"POST"), 400),
    "a deep object": (request(RESET, body=b'{"a":' * 100_000, method=b"POST"), 400),
    "a body that is no text": (request(RESET, body=b"\xff\xfe", method=b"POST"), 400),
    "a length of 5000 digits": (request(head=b"Content-Length: " + DIGITS + b"\r\n"), 400),
    "a page of 5000 digits": (request(b"/redfish/v1/Systems/1/LogServices/SEL/Entries?$skip=" + DIGITS), 400),
    "a session of 5000 digits": (request(b"/redfish/v1/SessionService/Sessions/" + DIGITS), 404),
    "no request": (b"\0\r\n\r\n", 400),
}


@pytest.mark.parametrize(("sent", "status"), BAD_REQUESTS.values(), ids=BAD_REQUESTS)
def test_a_bad_redfish_request_is_refused(sent: bytes, status: int, boxes: PowerBoxes) -> None:
    host, port = boxes.redfish_bmc.url.removeprefix("https://").split(":")
    context = ssl.create_default_context(cafile=boxes.ca_file)
    with (
        socket.create_connection((host, int(port)), timeout=IN_TIME_S) as plain,
        context.wrap_socket(plain, server_hostname=host) as wire,
    ):
        wire.sendall(sent)
        assert wire.recv(65536).startswith(b"HTTP/1.1 %d " % status)
