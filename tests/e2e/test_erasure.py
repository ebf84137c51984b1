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

RECOVERY: dict[str, Any] = {
    "test": "erasure/recovery",
    "with": {
        "drives": ["d01"],
        "codes": ["4+2"],
        "groups": 4,
        "objects": 8,
        "erasures": 21,
        "drive_erasures": 2,
        "beyond": 2,
        "corruptions": 3,
    },
    "limits": [
        {"measure": "recovery.wrong", "where": {"damage": damage}, "quantile": "max", "max": "0"}
        for damage in ("erased", "beyond m")
    ],
}
SILENT = {"measure": "recovery.wrong", "where": {"system": "local 4+2"}, "quantile": "max", "max": "0"}


def test_whatever_is_lost_is_had_again_and_what_nobody_covers_is_counted(rackloop: CommandLine) -> None:
    ended = rackloop("run", rackloop.plan(RECOVERY), "--lab", "disaggregation", "--seed", "5", "--out", "out")
    assert ended.status == 0, ended
    measured = [
        found for test in Results(rackloop.directory / "out").summary["tests"] for found in test["measurements"]
    ]

    def total(name: str, **labels: str) -> float:
        wanted = [found for found in measured if found["name"] == name]
        return sum(float(found["value"]) for found in wanted if labels.items() <= found["labels"].items())

    # Every pattern of one or two of six, before, during and after repair.
    for system in ("local 4+2", "rack 4+2"):
        of = {"system": system, "damage": "erased"}
        assert total("recovery.tried", **of, phase="before") > 21
        assert total("recovery.degraded_right", **of, phase="before") > 0
        assert total("recovery.tried", **of) == total("recovery.right", **of) + total("recovery.degraded_right", **of)
        assert total("recovery.loud", system=system, damage="beyond m") > 0
    assert total("recovery.wrong", system="local 4+2", damage="corrupted") > 0
    assert total("recovery.wrong", system="rack 4+2") == 0

    strict = RECOVERY | {"limits": [SILENT]}
    again = rackloop(
        "run", rackloop.plan(strict), "--lab", "disaggregation", "--seed", "5", "--out", "strict", "-k", "local"
    )
    assert again.status == 1, again
    assert not rackloop.processes()


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
