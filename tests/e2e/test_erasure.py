"""Erasure-coded stripes on the mock rack of the failure design, in their shortest form."""

from __future__ import annotations

from typing import Any

from tests.e2e.command_line import CommandLine, Results

REBUILD: dict[str, Any] = {
    "test": "erasure/rebuild",
    "with": {"objects": 16, "written_meanwhile": 3, "throttles": ["throttled"], "healthy_s": 0.2},
    "limits": [
        {"measure": "rebuild.wrong", "quantile": "max", "max": "0"},
        {"measure": "rebuild.refused", "quantile": "max", "max": "0"},
    ],
}


def test_a_server_and_a_drive_fail_and_every_object_is_had_again(rackloop: CommandLine) -> None:
    ended = rackloop("run", rackloop.plan(REBUILD), "--lab", "disaggregation", "--seed", "5", "--out", "out")
    assert ended.status == 0, ended
    units = {
        measured["labels"]["policy"]: measured["value"]
        for test in Results(rackloop.directory / "out").summary["tests"]
        for measured in test["measurements"]
        if measured["name"] == "rebuild.units"
    }
    # Moved drives lack what was written meanwhile; spares lack a unit of every object, of each server.
    assert units["move"] <= 3
    assert units["rebuild"] == 16
    assert not rackloop.processes()
