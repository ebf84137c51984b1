"""The power of guests: machines are switched, rackd is told, and drives are looked at anew."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from rackloop.clock import VirtualClock
from rackloop_drivers.boxes import EventKind, MemorySwitching, Outlets
from rackloop_labs.virtual_rack.guest_power import GuestChassis, GuestSwitching

CLOCK = VirtualClock()
SRV1 = "server:srv1"


class RecordedMachine:
    """A machine that writes down what is done to it; a turn for each item of ``changed``."""

    def __init__(self) -> None:
        self.acts: list[str] = []
        self.runs = True
        self.changed: asyncio.Queue[None] = asyncio.Queue()

    async def power_on(self) -> None:
        self.acts.append("on")
        self.runs = True

    async def power_off(self) -> None:
        self.acts.append("off")
        self.runs = False

    async def is_on(self) -> bool:
        return self.runs

    async def press_button(self) -> None:
        self.acts.append("button")

    async def interrupt(self) -> None:
        self.acts.append("interrupt")

    async def power_changes(self) -> AsyncIterator[None]:
        while True:
            await self.changed.get()
            yield


class Rack:
    """One guest with its chassis; ``looked`` counts how often its drives were looked at."""

    def __init__(self) -> None:
        self.machine, self.rackd, self.looked = RecordedMachine(), MemorySwitching(), 0
        self.switch: list[bool] = []
        self.settled = asyncio.Event()
        self.settled.set()
        self.switching = GuestSwitching(self.rackd, {"srv1": self.machine}, self.cut, self.look, self.settle)
        self.chassis = GuestChassis("srv1", self.switching, CLOCK, self.machine)

    async def cut(self, on: bool) -> None:
        self.switch.append(on)

    def look(self) -> None:
        self.looked += 1

    async def settle(self) -> None:
        await self.settled.wait()


def with_rack(test: Callable[[Rack], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        await test(Rack())

    asyncio.run(run())


def test_a_guest_is_switched_once_and_rackd_is_told() -> None:
    async def test(rack: Rack) -> None:
        for on in (True, False, False, True):
            await rack.switching.set(SRV1, on=on)
            assert (await rack.switching.is_on(SRV1), await rack.rackd.is_on(SRV1)) == (on, on)
        assert (rack.machine.acts, rack.looked) == (["off", "on"], 2)

    with_rack(test)


def test_a_guest_is_given_power_once_its_drives_are_where_the_map_says() -> None:
    async def test(rack: Rack) -> None:
        await rack.switching.set(SRV1, on=False)
        rack.settled.clear()
        booting = asyncio.create_task(rack.switching.set(SRV1, on=True))
        while not await rack.rackd.is_on(SRV1):
            await asyncio.sleep(0)
        assert rack.machine.acts == ["off"]
        rack.settled.set()
        await booting
        assert rack.machine.acts == ["off", "on"]

    with_rack(test)


def test_an_outlet_takes_the_power_of_a_guest_and_gives_it_back() -> None:
    async def test(rack: Rack) -> None:
        outlets = Outlets("pdu1", 2, {1: rack.chassis})
        await outlets.switch(1, on=False)
        await outlets.switch(1, on=True)
        assert rack.machine.acts == ["off", "on"]
        assert [event.kind for event in rack.chassis.events] == [EventKind.AC_LOST, EventKind.POWER_ON]

    with_rack(test)


def test_a_guest_that_turns_itself_off_has_no_power_for_rackd_and_the_event_log_either() -> None:
    async def test(rack: Rack) -> None:
        following = asyncio.create_task(rack.switching.follow_guests())
        rack.machine.runs = False
        rack.machine.changed.put_nowait(None)
        while not rack.looked:
            await asyncio.sleep(0)
        following.cancel()
        assert not await rack.rackd.is_on(SRV1)
        assert [event.kind for event in rack.chassis.events] == [EventKind.POWER_OFF]
        await rack.chassis.turn_on()
        assert rack.machine.acts == ["on"]

    with_rack(test)


def test_the_button_and_the_interrupt_reach_the_guest_and_are_noted() -> None:
    async def test(rack: Rack) -> None:
        await rack.chassis.shut_down()
        await rack.chassis.interrupt()
        assert rack.machine.acts == ["button", "interrupt"]
        assert [event.kind for event in rack.chassis.events] == [EventKind.SHUTDOWN, EventKind.INTERRUPT]
        await rack.chassis.turn_off()
        await rack.chassis.shut_down()
        assert rack.machine.acts == ["button", "interrupt", "off"]

    with_rack(test)


def test_the_switch_and_drives_have_power_of_their_own() -> None:
    async def test(rack: Rack) -> None:
        await rack.switching.set("switch", on=False)
        await rack.switching.set("drive:d01", on=False)
        assert (rack.switch, await rack.switching.is_on("drive:d01"), rack.machine.acts) == ([False], False, [])

    with_rack(test)
