"""The plan of configurations: a switch that forgets its map is the product's failure, not the lab's."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import ProductFailed
from rackloop.portmap import PortMap
from rackloop_models.disaggregation import History, Wipe
from tests.plan_modules import plan_module

CONFIGURATION = plan_module("disaggregation/configuration")
BEFORE = PortMap.of([(1, 150), (2, 151)])


def cut(*maps: PortMap) -> tuple[History, list[Any]]:
    """The history and the measurements of a power cut of the switch, whose map is read as these one after the other."""
    clock, read = VirtualClock(), iter(maps)
    rack = SimpleNamespace(
        clock=clock,
        deadline=lambda seconds=1.0: Deadline.after(clock, seconds),
        fabric=SimpleNamespace(live_map=lambda _deadline: SimpleNamespace(pairs=next(read))),
        power=lambda _port: SimpleNamespace(turn_off=lambda _deadline: None, turn_on=lambda _deadline: None),
        lab=SimpleNamespace(servers={}, time_s=lambda _what: 1.0),
    )
    history, measured = History(), list[Any]()
    deployment = CONFIGURATION.Deployment(
        rack, None, None, history, Wipe.NONE, 4096, lambda *told, **_labels: measured.append(told)
    )
    deployment.now = SimpleNamespace(name="2-servers", at={})
    deployment.cut_power("switch")
    return history, measured


def test_a_map_that_came_back_is_measured() -> None:
    history, measured = cut(BEFORE, BEFORE)
    assert len(history.events) == 1
    assert ("configuration.wrong_drives", 0) in measured


@pytest.mark.parametrize("pairs", [[], [(1, 150)], [(1, 151), (2, 150)]])
def test_a_map_that_was_forgotten_is_the_products_failure(pairs: Sequence[tuple[int, int]]) -> None:
    with pytest.raises(ProductFailed, match=r"after the switch had no power \d pairs of the map differ"):
        cut(BEFORE, PortMap.of(pairs))
