"""The wire: one TCP connection for each exchange, and the only place where the network's errors are met."""

from __future__ import annotations

import socket

from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, LabError, NotConnected, ProtocolError
from skeletons.line_box._codec import Answer, Refusal, Request, decode_reply, encode_request

_LONGEST_REPLY_BYTES = 65536


def exchange(address: tuple[str, int], request: Request, deadline: Deadline) -> Answer:
    """As :func:`ask`, and raises LabError when the box refuses."""
    reply = ask(address, request, deadline)
    if isinstance(reply, Refusal):
        raise LabError(f"{address[0]}:{address[1]} refused {request.verb}: {reply.reason}")
    return reply


def ask(address: tuple[str, int], request: Request, deadline: Deadline) -> Answer | Refusal:
    """Send ``request`` and wait for the reply.

    Raises NotConnected when nothing answers at ``address``, DeadlineExceeded when it answers too late,
    and ProtocolError when it does not speak the dialect.
    """
    host, port = address
    if deadline.is_over():
        raise DeadlineExceeded(f"{request.verb} to {host}:{port} was asked for after its deadline; nothing was sent")
    try:
        with socket.create_connection(address, timeout=deadline.remaining_s()) as connection:
            connection.sendall(encode_request(request))
            line = _read_line(connection, deadline)
    except TimeoutError as error:
        raise DeadlineExceeded(f"{host}:{port} did not answer {request.verb} in time") from error
    except OSError as error:
        raise NotConnected(f"nothing answers at {host}:{port} ({error}): check address, cable and power") from error
    return decode_reply(line)


def _read_line(connection: socket.socket, deadline: Deadline) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        if deadline.is_over():
            raise TimeoutError
        connection.settimeout(deadline.remaining_s())
        piece = connection.recv(4096)
        line += piece
        if not piece or len(line) > _LONGEST_REPLY_BYTES:
            raise ProtocolError(f"expected one line, got {line[:80]!r} and no end: is this the right box?")
    return line
