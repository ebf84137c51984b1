"""A server that a hardware watchdog would reset is neither told to panic nor held."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from rackloop.abilities import Host
from rackloop.errors import FaultRefused, LabError
from rackloop_drivers.hang import HostHang
from rackloop_drivers.host_tools import with_watchdogs
from tests.unit.drivers.panicking_server import BEFORE, Controller, World

# State, what is open, and what is said of it.
ACTIVE = "watchdog0 is active, and would reset it: stop what feeds it, as by RuntimeWatchdogSec=0"
OPEN = "watchdog0 may be active, since a watchdog is open, and would reset it"
UNTOLD = "watchdog0 does not say whether it is active"
RESETS = pytest.mark.parametrize(
    ("state", "opened", "said"),
    [("active", "", ACTIVE), (None, "/dev/watchdog0", OPEN), (None, "/dev/watchdog", OPEN), (None, None, UNTOLD)],
)
STAYS = pytest.mark.parametrize(
    ("state", "opened"), [("inactive", "/dev/watchdog0"), (None, ""), (None, "/dev/watchdog00"), (None, "/dev/null")]
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with closing(World(tmp_path)) as world:
        yield world


def add_watchdog(world: World, state: str | None, opened: str | None) -> None:
    """Where nothing ``opened`` is None, what is open cannot be looked at."""
    world.server.add_watchdog(state, opened or "")
    if opened is None:
        (world.folder / "srv1/proc/1/fd").rmdir()


def hang_of(world: World) -> HostHang:
    groups = world.folder / "groups"
    (groups / "system.slice").mkdir(parents=True)
    for file in ("cgroup.procs", "system.slice/cgroup.freeze"):
        (groups / file).touch()
    return HostHang(cast("Host", world.server), root=str(groups))


@RESETS
@pytest.mark.parametrize("kind", ["crash", "nmi"])
def test_a_server_that_a_watchdog_would_reset_does_not_panic(
    kind: str, state: str | None, opened: str | None, said: str, world: World
) -> None:
    add_watchdog(world, state, opened)
    controller = Controller(world.server)
    with pytest.raises(LabError, match=f"srv1: {said}"):
        world.break_as(kind, controller)
    assert (world.server.kernel / "sysrq-trigger").read_text() == ""
    assert (controller.seen, world.server.settings) == (None, BEFORE)


@STAYS
def test_a_server_whose_watchdog_is_not_active_may_panic(state: str | None, opened: str, world: World) -> None:
    world.server.panics = True
    add_watchdog(world, state, opened)
    world.break_as("crash")
    assert (world.server.kernel / "sysrq-trigger").read_text() == "c\n"


@RESETS
def test_a_server_that_a_watchdog_would_reset_is_not_held(
    state: str | None, opened: str | None, said: str, world: World
) -> None:
    add_watchdog(world, state, opened)
    with pytest.raises(FaultRefused, match=said):
        hang_of(world).prepare({"kind": "hang"}, world.deadline)


@STAYS
def test_of_a_watchdog_that_is_not_active_nothing_is_said(state: str | None, opened: str, world: World) -> None:
    add_watchdog(world, state, opened)
    said = world.server.run(["sh", "-c", with_watchdogs("active_watchdogs")], world.deadline)
    assert (said.stdout, said.stderr) == ("", "")
