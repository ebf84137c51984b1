"""The far end of the wire: the line server that all simulated boxes share."""

from __future__ import annotations

import socketserver
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from rackloop.errors import ProtocolError
from skeletons.line_box._codec import Answer, Refusal, Request, decode_request, encode_reply


class LineBox(ABC):
    """Answers line by line, remembers in ``requests`` what it was asked, and refuses all while ``refusal`` is set."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.refusal = ""
        self._one_at_a_time = threading.Lock()

    @abstractmethod
    def act(self, request: Request) -> Answer | Refusal:
        """Do what is asked, or say why not."""

    def answer(self, line: bytes) -> bytes:
        """The line that the box sends back for ``line``."""
        try:
            request = decode_request(line)
            with self._one_at_a_time:
                self.requests.append(request)
                reply = Refusal(self.refusal) if self.refusal else self.act(request)
        except (ProtocolError, ValueError) as error:
            reply = Refusal(f"not understood: {error}")
        return encode_reply(reply)

    @contextmanager
    def serving(self) -> Iterator[tuple[str, int]]:
        """Listen on a free loopback port; yields host and port."""
        box = self

        class Conversation(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                for line in self.rfile:
                    self.wfile.write(box.answer(line))

        with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Conversation) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                yield "127.0.0.1", server.server_address[1]
            finally:
                server.shutdown()
                thread.join()
