"""The end of a simulated box's listening."""

from __future__ import annotations

import asyncio


async def stop_listening(server: asyncio.Server) -> None:
    """Close ``server`` after the connections accepted so far have reached their protocols.

    asyncio accepts a connection in three turns of its loop, and leaves the socket open, with nothing to close it, where
    the server is closed between two of them (an assertion of ``Server._attach``, CPython 3.11 and 3.12).
    """
    loop = asyncio.get_running_loop()
    for listener in server.sockets:
        loop.remove_reader(listener)
    for _turn in range(2):
        await asyncio.sleep(0)
    server.close()
