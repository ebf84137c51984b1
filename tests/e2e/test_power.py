"""The power of a mock rack by hand: what is cut is shown, given back by heal, and said clearly where it cannot be."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from rackloop.clock import Deadline
from rackloop_drivers.rackd import RackdControl
from tests.deadlines import CLOCK
from tests.e2e.command_line import SLOW_S, CommandLine


def states(rackloop: CommandLine) -> dict[str, tuple[str, str]]:
    """For each server the state of its own power and of the outlet that feeds it, as `show` draws them."""
    shown = rackloop("power", "mock", "show")
    rows = [line.split() for line in shown.out.splitlines() if line.strip().startswith("srv")]
    return {row[0]: (row[2], row[4]) for row in rows}


def switched_off_by_itself(rackloop: CommandLine, server: str) -> None:
    """Have the rack cut the power of ``server``, as somebody with a hand in the box would."""
    with closing(RackdControl(Path(rackloop.endpoints()["control"]), CLOCK)) as rackd:
        rackd.request("power", Deadline.after(CLOCK, SLOW_S), target=f"server:{server}", on=False)


def test_power_is_cut_shown_and_given_back(rackloop: CommandLine) -> None:
    assert rackloop("lab", "up", "mock").status == 0
    whole = dict.fromkeys(("srv1", "srv2", "srv3", "srv4"), ("on", "on"))
    assert states(rackloop) == whole

    assert "rackloop heal mock" in rackloop("power", "mock", "off", "srv3").out
    assert rackloop("power", "mock", "off", "pdu2/1").status == 0
    shown = rackloop("power", "mock", "show")
    assert shown.status == 3, "a controller without feed does not answer"
    assert "server:srv2: " in shown.out
    assert states(rackloop) == whole | {"srv2": ("?", "OFF"), "srv3": ("OFF", "on")}

    rackloop("power", "mock", "cycle", "srv3").refused(2, "srv3 is off", "rackloop power mock on srv3")
    rackloop("power", "mock", "off", "sv1").refused(2, "nothing called 'sv1'", "did you mean 'srv1'?")
    healed = rackloop("heal", "mock")
    assert healed.status == 0, healed
    assert states(rackloop) == whole

    for target in ("srv1", "pdu3/1", "outlet:pdu1/1"):
        assert rackloop("power", "mock", "cycle", target).out == f"{target} is on again\n"
    assert rackloop("power", "mock", "on", "srv1").out == "srv1 is on\n"
    assert states(rackloop) == whole


def test_status_says_where_every_box_answers(rackloop: CommandLine) -> None:
    assert rackloop("lab", "up", "mock").status == 0
    shown, endpoints = rackloop("lab", "status", "mock").out, rackloop.endpoints()
    for said in (endpoints["ssh"]["key_file"], endpoints["ssh"]["known_hosts"]):
        assert said in shown
    rows = {row[0]: row[1:] for row in map(str.split, shown.splitlines()) if row}
    for name, server in endpoints["servers"].items():
        assert rows[name] == [server["ssh"], server["bmc"]["driver"], server["bmc"]["address"]]
    for name, pdu in endpoints["pdu"].items():
        assert rows[name] == ["-", pdu["driver"], pdu["address"]]


def test_what_heal_asks_to_turn_on_stays_on(rackloop: CommandLine) -> None:
    assert rackloop("lab", "up", "mock").status == 0
    switched_off_by_itself(rackloop, "srv1")
    asked = rackloop("heal", "mock")
    assert asked.status == 3
    assert "server:srv1 is off and no journal entry says why" in asked.out

    assert rackloop("power", "mock", "on", "srv1").out == "srv1 is on\n"
    assert rackloop("heal", "mock").status == 0
    assert states(rackloop)["srv1"] == ("on", "on")


@pytest.mark.parametrize(
    ("lab", "status", "said"),
    [
        ("example-rack", 3, ("tcp://switch.lab.example:5025: no switch there",)),
        ("mock", 3, ("lab mock is not up",)),
        ("nowhere", 2, ("nowhere",)),
    ],
)
def test_a_lab_whose_power_cannot_be_switched(
    lab: str, status: int, said: tuple[str, ...], rackloop: CommandLine
) -> None:
    rackloop("power", lab, "off", "srv1").refused(status, *said)
