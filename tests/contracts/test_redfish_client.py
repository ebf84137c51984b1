"""The Redfish client alone, against a server that answers what real ones do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

import pytest

from rackloop.clock import RealClock
from rackloop.errors import BadInput, DeadlineExceeded, NotConnected, ProtocolError
from rackloop_drivers.power.redfish import serve_tls
from rackloop_drivers.power.redfish._client import HttpClient
from rackloop_drivers.power.redfish._http import HttpsServer, Request, Response
from tests.deadlines import soon
from tests.loop_thread import loop_thread

ELSEWHERE = "https://bmc.example/redfish/v1/"
SESSION = "of-this-session"


class Service:
    """Answers each target with what is put under it, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Response] = {}
        self.asked: list[Request] = []

    async def answer(self, request: Request) -> Response:
        self.asked.append(request)
        return self.answers.get(request.target, Response(HTTPStatus.NOT_FOUND))


@contextmanager
def served(directory: Path, service: Service) -> Iterator[HttpClient]:
    ca_file, context = serve_tls(directory, RealClock())
    server = HttpsServer(service.answer, context)
    with loop_thread() as loop:
        loop.run(server.resume())
        try:
            yield HttpClient(f"https://{server.address}", verify=ca_file)
        finally:
            loop.run(server.close())


@contextmanager
def saying(*pieces: bytes, then_waits: bool = False) -> Iterator[HttpClient]:
    """A server without TLS that sends the pieces to whoever connects, and ends, or says nothing more."""

    async def tell(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if then_waits:
            await reader.read()
        writer.close()

    with loop_thread() as loop:
        server = loop.run(asyncio.start_server(tell, "127.0.0.1", 0))
        host, port = server.sockets[0].getsockname()
        try:
            yield HttpClient(f"http://{host}:{port}", verify=True)
        finally:
            loop.call(server.close)


def test_a_redirection_within_the_service_is_followed(tmp_path: Path) -> None:
    service = Service()
    service.answers["/redfish/v1"] = Response(HTTPStatus.PERMANENT_REDIRECT, None, {"Location": "/redfish/v1/"})
    service.answers["/redfish/v1/"] = Response(HTTPStatus.OK, {"Id": "RootService"})
    with served(tmp_path, service) as client:
        assert client.send("GET", "/redfish/v1", soon(), token=SESSION).json() == {"Id": "RootService"}
    assert [request.headers["X-Auth-Token"] for request in service.asked] == [SESSION, SESSION]


@pytest.mark.parametrize(("method", "location"), [("GET", ELSEWHERE), ("POST", "/redfish/v1/")])
def test_no_token_and_no_act_goes_where_a_redirection_leads(tmp_path: Path, method: str, location: str) -> None:
    service = Service()
    service.answers["/here"] = Response(HTTPStatus.TEMPORARY_REDIRECT, None, {"Location": location})
    with served(tmp_path, service) as client, pytest.raises(ProtocolError, match="give that address instead"):
        client.send(method, "/here", soon(), body={"ResetType": "On"}, token=SESSION)
    assert len(service.asked) == 1


def test_redirections_in_a_circle_end(tmp_path: Path) -> None:
    service = Service()
    service.answers["/here"] = Response(HTTPStatus.FOUND, None, {"Location": "/here"})
    with served(tmp_path, service) as client, pytest.raises(ProtocolError, match="without an end"):
        client.send("GET", "/here", soon())


def test_the_gravest_reason_is_told(tmp_path: Path) -> None:
    told = [{"Severity": "Warning", "Message": "Slow."}, {"Severity": "Critical", "Message": "The fuse\nis gone."}]
    service = Service()
    service.answers["/it"] = Response(HTTPStatus.CONFLICT, {"error": {"@Message.ExtendedInfo": told, "message": "No."}})
    service.answers["/plain"] = Response(HTTPStatus.CONFLICT, {"error": {"message": "No."}})
    service.answers["/dumb"] = Response(HTTPStatus.CONFLICT, "<html>")
    with served(tmp_path, service) as client:
        said = [client.send("GET", path, soon()).said() for path in ("/it", "/plain", "/dumb")]
    assert said == ["The fuse is gone.", "No.", "it does not say why"]


def test_what_is_no_http_is_said_to_be_none() -> None:
    with saying(b"SSH-2.0-OpenSSH_9.2\r\n") as client, pytest.raises(ProtocolError, match="is no HTTP service"):
        client.send("GET", "/", soon())


def test_an_answer_that_was_cut_short_is_a_lost_connection() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
    with saying(head, b"{") as client, pytest.raises(NotConnected, match="cannot be reached"):
        client.send("GET", "/", soon())


def test_an_answer_without_an_end_is_not_waited_for_beyond_the_deadline() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
    with saying(head, b"{", then_waits=True) as client, pytest.raises(DeadlineExceeded, match="did not answer in time"):
        client.send("GET", "/", soon(0.2))


def test_a_certificate_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    client = HttpClient("https://127.0.0.1:1", verify=tmp_path / "ca.pem")
    with pytest.raises(BadInput, match=r"ca\.pem cannot be read: No such file"):
        client.send("GET", "/", soon())
