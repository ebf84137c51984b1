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

    Of two groups with the same precedence, one that works little may wait for seconds for one that never rests: its
    share of a core is what it used of late, and a moment's work is a long debt with a small share.
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
