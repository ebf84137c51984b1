"""The JSON lines of labd's sockets, wherever the socket lies."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from rackloop_labs.mock_hosts._line_server import LineServer


async def reply(request: dict[str, Any]) -> dict[str, Any]:
    return {"heard": request["word"]}


async def talk(folder: Path, sent: bytes) -> bytes:
    """What a server in ``folder`` answers before it ends the connection, or the client does."""
    server = await LineServer.at(folder / "socket", reply, lambda why: {"refused": why})
    try:
        descriptor = os.open(folder, os.O_PATH)
        reader, writer = await asyncio.open_unix_connection(f"/proc/self/fd/{descriptor}/socket")
        os.close(descriptor)
        writer.write(sent)
        writer.write_eof()
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""  # it left something unread
        finally:
            writer.close()
    finally:
        server.close()


def test_each_line_has_an_answer(tmp_path: Path) -> None:
    assert asyncio.run(talk(tmp_path, b'{"word":1}\n{"word":2}\n')) == b'{"heard": 1}\n{"heard": 2}\n'


@pytest.mark.parametrize("line", [b"nonsense", b"[1]", b"7", b"\xff\xfe", b"[" * 200_000, b'{"a":' * 200_000, b"\0"])
def test_a_line_that_is_no_object_is_answered_and_the_next_one_heard(tmp_path: Path, line: bytes) -> None:
    answers = asyncio.run(talk(tmp_path, line + b'\n{"word":2}\n'))
    assert answers == b'{"refused": "the line is no JSON object"}\n{"heard": 2}\n'


def test_a_line_that_is_too_long_is_answered_and_ends_the_connection(tmp_path: Path) -> None:
    answers = asyncio.run(talk(tmp_path, b'{"word":1}\n"' + b"x" * (2 << 20) + b'"\n{"word":2}\n'))
    # What it left unread may reset the connection before the answers are read.
    assert answers in (b"", b'{"heard": 1}\n{"refused": "the line is longer than 1 MiB"}\n')


def test_a_path_may_be_longer_than_an_address(tmp_path: Path) -> None:
    deep = tmp_path / ("deep" * 30)
    deep.mkdir()
    assert asyncio.run(talk(deep, b'{"word":1}\n')) == b'{"heard": 1}\n'


def test_the_socket_goes_with_its_server(tmp_path: Path) -> None:
    asyncio.run(talk(tmp_path, b""))
    assert list(tmp_path.iterdir()) == []
