"""What is done after a burst is done once it is over, or when it has lasted too long."""

from __future__ import annotations

import asyncio

from rackloop_labs.mock_hosts._debounce import debounced

NEVER_S = 1000.0
SOON_S = 120.0


async def acts(bursts: list[int], *, quiet_s: float, most_s: float) -> int:
    """How often is acted on bursts of so many happenings each, one after the other."""
    happened, acted = asyncio.Event(), asyncio.Event()
    count = 0

    async def act() -> None:
        nonlocal count
        count += 1
        acted.set()

    following = asyncio.create_task(debounced(happened, act, quiet_s=quiet_s, most_s=most_s))
    async with asyncio.timeout(SOON_S):
        for happenings in bursts:
            acted.clear()
            for _ in range(happenings):
                happened.set()
                await asyncio.sleep(0)
            await acted.wait()
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    return count


def test_a_burst_is_acted_on_once_it_is_over() -> None:
    assert asyncio.run(acts([1, 1], quiet_s=0.001, most_s=NEVER_S)) == 2


def test_many_happenings_are_one_act() -> None:
    assert asyncio.run(acts([1000], quiet_s=0.001, most_s=NEVER_S)) < 1000


def test_a_burst_that_does_not_end_is_acted_on_all_the_same() -> None:
    assert asyncio.run(acts([1], quiet_s=NEVER_S, most_s=0.001)) == 1


def test_nothing_is_done_where_nothing_happens() -> None:
    async def wait() -> bool:
        acted = asyncio.Event()

        async def act() -> None:
            acted.set()

        following = asyncio.create_task(debounced(asyncio.Event(), act, quiet_s=0, most_s=0))
        for _ in range(10):
            await asyncio.sleep(0)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        return acted.is_set()

    assert not asyncio.run(wait())
