"""What shows a table prints it as JSON too."""

from __future__ import annotations

import json
import os
from typing import Any

from rackloop.lab import LabState
from tests.e2e.command_line import CommandLine


def test_every_table_of_a_lab_that_is_up_is_there_as_json(rackloop: CommandLine) -> None:
    def told(*arguments: str) -> dict[str, Any]:
        ended = rackloop(*arguments, "--json")
        assert ended.status == 0, ended
        document: dict[str, Any] = json.loads(ended.out)
        assert document["schema"] == 1
        return document

    assert rackloop("lab", "up", "mock").status == 0
    dropped = rackloop("fabric", "mock", "drop", "srv1.p0", "5", "--ms", "20")
    assert dropped.out == "dropped srv1.p0 (port 1), 5 for 20 ms\n"
    circuit = told("fabric", "mock", "show")["ports"][0]
    assert (circuit["server"], circuit["port"], circuit["switch_port"], circuit["peer"]) == ("srv1", "p0", 1, 101)
    server = told("power", "mock", "show")["servers"][0]
    assert (server["server"], server["power"], server["outlet_power"]) == ("srv1", "on", "on")
    assert rackloop("store", "mock", "format", "d13").status == 0
    assert told("store", "mock", "status", "d13")["files"] == []
    healed = told("heal", "mock")
    assert healed["is_healed"]
    assert [entry["what"]["do"] for entry in healed["undone"]] == ["drop"]
    provisioned = told("lab", "provision", "mock", "--roles", "base_tools", "--servers", "srv2")
    assert set(provisioned["servers"]) == {"srv2"}
    assert {task["role"] for task in provisioned["tasks"]} >= {"base_tools"}


def test_a_lab_that_comes_up_or_ends_is_told_as_down_with_all_that_is_kept(rackloop: CommandLine) -> None:
    held = LabState.of("mock", root=rackloop.state_home).take()
    assert held is not None
    ended = rackloop("lab", "status", "mock", "--json")
    os.close(held)
    assert (ended.status, ended.err) == (3, "")
    told = json.loads(ended.out)
    assert (told["up"], told["leases"], told["standing"]) == (False, [], [])
