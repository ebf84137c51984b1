"""Debouncing: one action for a burst of events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable


async def debounced(
    happened: asyncio.Event, act: Callable[[], Awaitable[None]], *, quiet_s: float, most_s: float
) -> None:
    """Await ``act`` after each burst of ``happened``, which is over once it was not set for ``quiet_s``.

    A burst that does not end within ``most_s`` is acted on all the same. Goes on until it is cancelled.
    """
    while True:
        await happened.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(most_s):
                while happened.is_set():
                    happened.clear()
                    await asyncio.sleep(quiet_s)
        happened.clear()
        await act()
