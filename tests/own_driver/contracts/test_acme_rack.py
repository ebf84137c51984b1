"""The drivers keep the contracts of their abilities, on the boxes simulated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from acme_rack.breaker import AcmeBreaker, SimAcmeBreaker
from acme_rack.controller import AcmeController, SimAcmeController
from acme_rack.line import serving
from acme_rack.strip import AcmePowerPort, AcmeStripDriver

from rackloop.clock import RealClock
from rackloop.contracts import phy_control, power_port
from rackloop.contracts.phy_control import PhyArm, PhyFactory
from rackloop.contracts.power_port import PowerPortFactory
from rackloop.lab import Pdu, load_driver
from rackloop_drivers.boxes import Chassis, MemorySwitching, Outlets


class Links:
    """Links that are broken when it is time, and count how often."""

    def __init__(self) -> None:
        self._clock = RealClock()
        self._broken: dict[int, list[int]] = {port: [] for port in range(1, 5)}

    async def request(self, op: str, **fields: Any) -> dict[str, Any]:
        if unknown := set(fields["ports"]) - set(self._broken):
            raise LookupError(f"no ports {unknown}")
        now_ns = self._clock.now_ns()
        if op == "phy_counts":
            return {"counts": [sum(at_ns <= now_ns for at_ns in self._broken[port]) for port in fields["ports"]]}
        period_ns = round((fields["down_ms"] + fields.get("up_ms", 0.0)) * 1e6)
        for port in fields["ports"]:
            self._broken[port] += [now_ns + number * period_ns for number in range(fields.get("count", 1))]
        return {}


@contextmanager
def running(box: AbstractAsyncContextManager[Any]) -> Iterator[Any]:
    """A simulated box on a loop of its own."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(box.__aenter__(), loop).result(20)
        asyncio.run_coroutine_threadsafe(box.__aexit__(None, None, None), loop).result(20)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture
def outlet() -> Iterator[PowerPortFactory]:
    strip = AcmeStripDriver.model_validate(
        {"driver": "acme_strip", "outlets": "4", "bank": "2"}, context={"file": Path("lab.yaml")}
    )
    place: Any = SimpleNamespace(name="strip")
    with running(strip.simulated(Outlets("strip", 4, {}), place)) as where:
        yield lambda: AcmePowerPort(where["address"], 2, 3)


@pytest.fixture
def controller() -> Iterator[PowerPortFactory]:
    box = SimAcmeController(Chassis("srv1", MemorySwitching(), RealClock()))
    with running(serving(box.answer)) as address:
        yield lambda: AcmeController(address)


@pytest.fixture
def breaker() -> Iterator[PhyFactory]:
    box = SimAcmeBreaker(Links())
    with running(serving(box.answer)) as address:

        @contextmanager
        def make() -> Iterator[PhyArm]:
            yield PhyArm(AcmeBreaker(address), (1, 2))

        yield make


@pytest.mark.parametrize("clause", power_port.CONTRACT, ids=lambda clause: clause.__name__)
def test_an_outlet_keeps_the_contract(clause: Callable[[PowerPortFactory], None], outlet: PowerPortFactory) -> None:
    clause(outlet)


@pytest.mark.parametrize("clause", power_port.CONTRACT, ids=lambda clause: clause.__name__)
def test_a_controller_keeps_the_contract(
    clause: Callable[[PowerPortFactory], None], controller: PowerPortFactory
) -> None:
    clause(controller)


@pytest.mark.parametrize("clause", phy_control.CONTRACT, ids=lambda clause: clause.__name__)
def test_a_breaker_keeps_the_contract(clause: Callable[[PhyFactory], None], breaker: PhyFactory) -> None:
    clause(breaker)


def test_the_strip_is_registered() -> None:
    assert load_driver(Pdu, "acme_strip") is AcmeStripDriver
