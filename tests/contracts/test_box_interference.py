"""A victim beside a neighbour on another drive of its box, in virtual time: what cores and link cost it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rackloop.lab import load_profile
from rackloop_drivers.host import LocalExecutor
from rackloop_models.drives import DriveSim, load_box
from rackloop_models.tenancy import BoxInterference, box_interference
from tests.deadlines import CLOCK, soon

BLOCK = 4096


def run(seed: int = 1) -> tuple[BoxInterference, ...]:
    with LocalExecutor(CLOCK) as executor:
        sim = DriveSim(executor, load_profile("nvme-ssd"), size_bytes=1 << 28, seed=seed, drives=2)
        return box_interference(sim, load_box("gimbal-smartnic"), soon(300))


@pytest.fixture(scope="module")
def found() -> Mapping[tuple[str, str], BoxInterference]:
    return {(one.case, one.scheduler): one for one in run()}


def test_a_neighbour_with_a_core_of_its_own_costs_nothing(found: Mapping[tuple[str, str], BoxInterference]) -> None:
    for scheduler in ("none", "gimbal"):
        one = found["its drive", scheduler]
        assert abs(one.loss) < 0.02
        assert one.neighbour > 1.3 * one.beside, "it has a multiple of the victim's depth"
        assert one.core_use < 0.9
        assert one.link_use < 0.5


def test_a_core_that_both_drives_share_is_divided_by_depth(
    found: Mapping[tuple[str, str], BoxInterference],
) -> None:
    one = found["a core", "none"]
    assert one.core_use > 0.99
    assert one.link_use < 0.5
    # 1.8 us of the core's work are 556 thousand requests a second of both.
    assert (one.beside + one.neighbour) / BLOCK == pytest.approx(556e3, rel=0.01)
    assert one.alone == pytest.approx(found["its drive", "none"].alone, rel=0.02), "alone a core is enough"
    assert 0.3 < one.loss < 0.5


def test_a_link_that_both_drives_share_costs_though_their_cores_are_idle(
    found: Mapping[tuple[str, str], BoxInterference],
) -> None:
    one = found["the link", "none"]
    assert one.link_use > 0.95
    assert one.core_use < 0.5
    assert 0.4 < one.loss < 0.65


def test_gimbal_knows_nothing_of_the_core_and_bounds_what_its_drive_gives_the_link(
    found: Mapping[tuple[str, str], BoxInterference],
) -> None:
    none, gimbal = found["a core", "none"], found["a core", "gimbal"]
    assert gimbal.core_use > 0.99
    assert 0.75 * none.loss < gimbal.loss <= none.loss
    # Eight slots of 128 KiB are eight such reads in flight instead of 32.
    none, gimbal = found["the link", "none"], found["the link", "gimbal"]
    assert gimbal.neighbour < 0.6 * none.neighbour
    assert 0.1 < gimbal.loss < 0.5 * none.loss


def test_a_seed_gives_the_same_again(found: Mapping[tuple[str, str], BoxInterference]) -> None:
    assert run() == tuple(found.values()) != run(seed=2)
