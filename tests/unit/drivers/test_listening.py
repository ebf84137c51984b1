"""The end of a simulated box's listening leaves no connection half made."""

from __future__ import annotations

import asyncio
import gc
import socket
import warnings
from contextlib import closing

import pytest

from rackloop_drivers.boxes import stop_listening


@pytest.mark.parametrize("turns", range(5))
def test_a_connection_that_was_just_taken_is_closed_with_its_client(turns: int) -> None:
    """In each turn of the loop in which asyncio may be between accepting it and telling its protocol."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
        with closing(socket.create_connection(server.sockets[0].getsockname())):
            for _ in range(turns):
                await asyncio.sleep(0)
            await stop_listening(server)
        await server.wait_closed()

    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(scenario())
        gc.collect()
    assert not [one.message for one in caught]
