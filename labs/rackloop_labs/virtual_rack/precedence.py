"""Precedence of what drives and measures a virtual rack over its guests, which take all the processor that there is."""

from __future__ import annotations

import asyncio
from pathlib import Path

# As nice values are: a guest's share of a busy core is a tenth of what asks for little of it.
_NICE = 10
# The kernel changes no two groups within a tenth of a second, except for who may do anything.
_AGAIN_S = 0.12
_TRIES = 20


async def give_way(pid: int) -> None:
    """Have the session of ``pid`` give way to other sessions, where the kernel groups work by them (``sched(7)``).

    A session's weight on a core is the share of its work that it did there of late. Where that is little, the core
    holds a moment's work against it for seconds while a session of the same precedence has work all the time.
    """
    autogroup = Path(f"/proc/{pid}/autogroup")
    for _ in range(_TRIES):
        try:
            autogroup.write_text(str(_NICE), encoding="ascii")
        except BlockingIOError:
            await asyncio.sleep(_AGAIN_S)
        except OSError:
            return
        else:
            return
