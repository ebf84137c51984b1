"""An event loop in a thread, for synchronous drivers against asynchronous peers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """The loop; ``run`` awaits a coroutine there and returns what it gives."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=30)

    def call(self, function: Callable[[], T]) -> T:
        """Call ``function`` on the loop's thread."""

        async def called() -> T:
            return function()

        return self.run(called())

    @contextmanager
    def entered(self, manager: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """An asynchronous context, for as long as a block lasts."""
        value = self.run(_awaited(manager.__aenter__()))
        try:
            yield value
        finally:
            self.run(_awaited(manager.__aexit__(None, None, None)))


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


@contextmanager
def loop_thread() -> Iterator[LoopThread]:
    """A loop that runs while the block lasts."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="peers", daemon=True)
    thread.start()
    try:
        yield LoopThread(loop)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
