"""The NBD protocol message by message, with every byte chosen by the test."""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from types import TracebackType
from typing import Self

READ, WRITE, DISC, FLUSH, TRIM, WRITE_ZEROES = 0, 1, 2, 3, 4, 6
OPT_EXPORT_NAME, OPT_ABORT, OPT_LIST, OPT_INFO, OPT_GO, OPT_STRUCTURED_REPLY = 1, 2, 3, 6, 7, 8
REP_ACK, REP_SERVER, REP_INFO = 1, 2, 3
REP_ERR_UNSUP, REP_ERR_INVALID, REP_ERR_UNKNOWN, REP_ERR_TOO_BIG = (2**31 + n for n in (1, 3, 6, 9))
EIO, EINVAL, ENOSPC = 5, 22, 28
FUA, NO_HOLE = 1, 2

OPT_MAGIC = 0x49484156454F5054
REQUEST_MAGIC = 0x25609513
ANSWER_S = 120.0


class NbdWire:
    """One connection to an NBD server, greeted; with ``export``, past GO, answered by simple replies."""

    def __init__(self, path: Path, export: str | None = None) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(ANSWER_S)
        self.socket.connect(str(path))
        self.receive(18)
        self.size = 0
        self._cookie = 0
        if export is not None:
            self.send_flags()
            self.go(export)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send_flags(self, flags: int = 3) -> None:
        self.socket.sendall(struct.pack(">I", flags))

    def receive(self, length: int) -> bytes:
        """Exactly ``length`` bytes. Raises EOFError where the server closes before."""
        data = b""
        while len(data) < length:
            piece = self.socket.recv(length - len(data))
            if not piece:
                raise EOFError("the server closed the connection")
            data += piece
        return data

    def send_option(self, option: int, data: bytes = b"", *, length: int | None = None) -> None:
        announced = len(data) if length is None else length
        self.socket.sendall(struct.pack(">QII", OPT_MAGIC, option, announced) + data)

    def option(self, option: int, data: bytes = b"") -> tuple[int, list[bytes]]:
        """Send an option; the type of the last reply, and the data of those before."""
        self.send_option(option, data)
        return self.option_replies()

    def option_replies(self) -> tuple[int, list[bytes]]:
        found: list[bytes] = []
        while True:
            _, _, kind, length = struct.unpack(">QIII", self.receive(20))
            data = self.receive(length)
            if kind not in {REP_SERVER, REP_INFO}:
                return kind, found
            found.append(data)

    def go(self, export: str) -> None:
        kind, found = self.option(OPT_GO, info_data(export))
        if kind != REP_ACK:
            raise ConnectionError(f"export {export}: option reply {kind:#x}")
        self.size = next(struct.unpack(">Q", data[2:10])[0] for data in found if data[:2] == b"\0\0")

    def send(self, command: int, offset: int, length: int, payload: bytes = b"", flags: int = 0) -> int:
        """Send a request and return its cookie."""
        self._cookie += 1
        header = struct.pack(">IHHQQI", REQUEST_MAGIC, flags, command, self._cookie, offset, length)
        self.socket.sendall(header + payload)
        return self._cookie

    def reply(self, length: int = 0) -> tuple[int, int, bytes]:
        """The next simple reply: cookie, error number, and ``length`` bytes where it succeeded."""
        _, errno, cookie = struct.unpack(">IIQ", self.receive(16))
        return cookie, errno, self.receive(length) if not errno else b""

    def read(self, offset: int, length: int) -> tuple[int, bytes]:
        self.send(READ, offset, length)
        _, errno, data = self.reply(length)
        return errno, data

    def write(self, offset: int, data: bytes, flags: int = 0) -> int:
        self.send(WRITE, offset, len(data), data, flags)
        return self.reply()[1]

    def plain(self, command: int, offset: int = 0, length: int = 0, flags: int = 0) -> int:
        """A request without data; the error number."""
        self.send(command, offset, length, flags=flags)
        return self.reply()[1]


def info_data(export: str, *infos: int) -> bytes:
    """The data of INFO and GO."""
    name = export.encode()
    return struct.pack(f">I{len(name)}sH{len(infos)}H", len(name), name, len(infos), *infos)
