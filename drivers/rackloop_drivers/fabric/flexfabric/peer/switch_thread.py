"""A simulated switch on an event loop of its own, for synchronous callers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, TypeVar

from rackloop_drivers.fabric.flexfabric.peer.switch_peer import SwitchPeer

T = TypeVar("T")


class SwitchThread:
    """Runs a :class:`SwitchPeer` in a thread while the context lasts; ``make`` is awaited there to make it."""

    def __init__(self, make: Callable[[], Awaitable[SwitchPeer]]) -> None:
        self._make = make
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="flexfabric", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.peer = self._run(self._make)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self._run(self.peer.close)
        finally:
            self._stop()

    def call(self, act: Callable[[SwitchPeer], Awaitable[T]]) -> T:
        """Await ``act(peer)`` on the peer's loop and return what it gives."""
        return self._run(lambda: act(self.peer))

    def _run(self, act: Callable[[], Awaitable[T]]) -> T:
        async def awaited() -> T:
            return await act()

        return asyncio.run_coroutine_threadsafe(awaited(), self._loop).result()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
