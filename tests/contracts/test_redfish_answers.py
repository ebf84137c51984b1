"""What answers at a Redfish address and speaks no Redfish: one clear error, whatever it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from rackloop.errors import ProtocolError
from rackloop.lab import FileSecret
from rackloop_drivers.boxes import Login
from rackloop_drivers.power.redfish import RedfishEventLog, RedfishPowerPort, RedfishService
from tests.deadlines import soon

ROOT, SESSIONS, SYSTEMS = "/redfish/v1", "/redfish/v1/SessionService/Sessions", "/redfish/v1/Systems"
SOUND: dict[str, tuple[int, str]] = {
    ROOT: (
        200,
        json.dumps(
            {
                "Id": "RootService",
                "Name": "Root Service",
                "RedfishVersion": "1.15.0",
                "Systems": {"@odata.id": SYSTEMS},
                "Links": {"Sessions": {"@odata.id": SESSIONS}},
            }
        ),
    ),
    SESSIONS: (201, "{}"),
}


class Answers(ThreadingHTTPServer):
    """A web server that says the same at each path, and lets everybody in."""

    def __init__(self, said: dict[str, tuple[int, str]]) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.said = said


class Answering(BaseHTTPRequestHandler):
    server: Answers

    def do_GET(self) -> None:
        status, text = self.server.said.get(self.path.rstrip("/"), (404, "{}"))
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(status)
        self.send_header("X-Auth-Token", "token")
        self.send_header("Location", f"{SESSIONS}/1")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_POST(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def service(said: dict[str, tuple[int, str]], folder: Path) -> Iterator[RedfishService]:
    secret = folder / "password"
    secret.write_text("horse")
    with Answers(said) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        try:
            with closing(RedfishService(url, Login(url, "operator", FileSecret(secret)))) as opened:
                yield opened
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        (ROOT, 200, "<html>Welcome</html>"),
        (ROOT, 200, "[]"),
        (ROOT, 200, '"starting"'),
        (SYSTEMS, 200, "<html>Starting</html>"),
        (SYSTEMS, 200, "[]"),
        (SYSTEMS, 400, "[]"),
        (SYSTEMS, 503, '{"error": "starting"}'),
        (SYSTEMS, 200, "{}"),
        (SYSTEMS, 200, '{"Members": [null]}'),
    ],
)
def test_what_no_redfish_service_says_is_a_protocol_error(path: str, status: int, text: str, tmp_path: Path) -> None:
    with service(SOUND | {path: (status, text)}, tmp_path) as opened:
        for ask in (RedfishPowerPort(opened).is_on, RedfishEventLog(opened).events):
            with pytest.raises(ProtocolError, match=rf"^http://127\.0\.0\.1:[0-9]+{path}:? (answered|has|is no)"):
                ask(soon())
