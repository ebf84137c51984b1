"""What a user gets wrong: one clear message, exit status 2, nothing done."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from rackloop.data import data_path
from tests.e2e.command_line import CommandLine
from tests.e2e.entries import IDENTITY, REMAP

LAB: dict[str, Any] = {
    "name": "tiny",
    "kind": "mock",
    "store": "sqlite",
    "fabric": {"driver": "flexfabric", "ports": "16", "control": {"tcp": "auto"}},
    "servers": {"srv1": {"stack": "comreset", "ports": {"p0": "1", "p1": "2"}}},
    "drives": {
        "d01": {"profile": "sata-ssd", "serial": "RL1", "wwn": "5000c500a0000001", "size": "1 GiB", "port": "9",
                "scratch": "true"},
        "d02": {"profile": "sata-ssd", "serial": "RL2", "wwn": "5000c500a0000002", "size": "1 GiB", "port": "10",
                "scratch": "true"},
    },
    "baseline": {"srv1": {"p0": "d01", "p1": "d02"}},
}  # fmt: skip


def nothing_was_done(rackloop: CommandLine) -> bool:
    return not (rackloop.directory / "out").exists() and not list(rackloop.state_home.iterdir())


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("name: [tiny\nkind: mock\n", ("lab.yaml:2:", "expected")),
        ("kind: mock\n", ("lab.yaml:1:", "name")),
        ("- a list\n", ("lab.yaml:1:1",)),
        ("", ("lab.yaml",)),
    ],
    ids=["broken", "incomplete", "list", "empty"],
)
def test_a_lab_that_is_no_lab(rackloop: CommandLine, document: str, said: tuple[str, ...]) -> None:
    (rackloop.directory / "lab.yaml").write_text(document)
    rackloop("run", rackloop.plan(IDENTITY), "--lab", "lab.yaml", "--out", "out").refused(2, *said)
    assert nothing_was_done(rackloop)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"fabric": LAB["fabric"] | {"ports": "many"}}, ("fabric.ports", "whole number", "'many'")),
        ({"servers": {"srv1": {"stack": "comreset", "ports": {"p0": "1", "p1": "1"}}}}, ("servers.srv1.ports.p1", "1")),
        ({"baseline": {"srv1": {"p0": "d1"}}}, ("baseline.srv1.p0", "did you mean 'd01'?")),
        ({"baseline": {"srv2": {"p0": "d01"}}}, ("baseline", "srv1")),
        ({"kind": "mok"}, ("kind", "did you mean 'mock'?")),
        ({"fabrik": {}}, ("fabrik", "did you mean 'fabric'?")),
    ],
    ids=["type", "port-twice", "drive", "server", "kind", "key"],
)
def test_a_lab_that_cannot_be(rackloop: CommandLine, changes: dict[str, Any], said: tuple[str, ...]) -> None:
    lab = rackloop.write("lab.yaml", LAB | changes)
    rackloop("run", rackloop.plan(IDENTITY), "--lab", lab, "--out", "out").refused(2, "lab.yaml:1:", *said)
    assert nothing_was_done(rackloop)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (IDENTITY | {"test": "fabric/identiti"}, ("there is no test 'fabric/identiti'", "fabric/identity")),
        (IDENTITY | {"test": "fabric/identity::other"}, ("has no test 'test_other'",)),
        (IDENTITY | {"limits": [{"measure": "identity.wrongs", "max": "0"}]}, ("measures nothing of that name",)),
        (IDENTITY | {"with": {"remap": "1"}}, ("has no such parameter", "did you mean 'remaps'?")),
        (IDENTITY | {"with": {"remaps": "some"}}, ("with.remaps", "'some'")),
        (REMAP | {"limits": [{"measure": "remap.latency", "max": "2 m/s"}]}, ("limits", "2 m/s")),
    ],
    ids=["test", "function", "measure", "parameter", "type", "unit"],
)
def test_a_plan_that_cannot_be(rackloop: CommandLine, entry: dict[str, Any], said: tuple[str, ...]) -> None:
    rackloop("run", rackloop.plan(entry), "--lab", "mock", "--out", "out").refused(2, *said)
    assert nothing_was_done(rackloop)


@pytest.mark.parametrize("how", [(), ("--dry-run",), ("-n", "2")], ids=["run", "dry", "workers"])
def test_an_ability_nobody_knows(rackloop: CommandLine, how: tuple[str, ...]) -> None:
    plan = rackloop.plan(IDENTITY | {"requires": ["fabric.remaps"]})
    ended = rackloop("run", plan, "--lab", "mock", "--out", "out", *how)
    ended.refused(2, "no ability is named 'fabric.remaps'", "did you mean 'fabric.remap'?")
    assert nothing_was_done(rackloop)


def test_every_problem_of_a_plan_is_said_at_once(rackloop: CommandLine) -> None:
    plan = rackloop.plan(IDENTITY | {"with": {"remap": "1"}}, {"test": "fabric/nothing"}, {"repeats": "0"})
    ended = rackloop("run", plan, "--lab", "mock")
    ended.refused(2)
    assert len([line for line in ended.err.splitlines() if "small.yaml:1:" in line]) >= 4, ended


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "smoke", "--lab", "mok"), ("no lab description is named 'mok'", "did you mean 'mock'?")),
        (("run", "smoek", "--lab", "mock"), ("no plan is named 'smoek'", "did you mean 'smoke'?")),
        (("run", "absent/p.yaml", "--lab", "mock"), ("there is no plan at absent/p.yaml",)),
        (("run", "smoke", "--lab", "mock", "-k", "nothing"), ("no test of the plan smoke is selected",)),
        (("run", "smoke", "--lab", "mock", "-k", "(("), ("((",)),
        (("run", "smoke", "--lab", "mock", "--seed", "-1"), ("--seed",)),
        (("run", "smoke", "--lab", "mock", "--testplans", "absent"), ("absent is not a folder",)),
        (("run", "smoke", "--lab", "mock", "-n", "0"), ("-n",)),
        (("run", "smoke", "--lab", "direct-attached", "-n", "2"), ("needs as many racks",)),
        (("run", "smoke"), ("--lab",)),
        (("lab", "up", "example-rack"), ("of kind physical: it is not brought up",)),
        (("lab", "build", "mock"), ("of kind mock: only the guests of a virtual lab are built",)),
        (("lab", "lease", "mock", "--for", "soon"), ("expected a time such as 90s or 5min", "found 'soon'")),
        (("lab", "lease", "mock", "--for", "1h", "--servers", "srv9"), ("no server is named 'srv9'",)),
        (("run", "smoke", "--lab", "mock", "-n", "2", "--servers", "srv1"), ("leave --servers",)),
        (("heal", "mok"), ("did you mean 'mock'?",)),
        (("heal", "mock", "--above", str(2**63 - 2)), ("--above", str(2**62))),
        (("lab", "lease", "mock", "--for", "1h", "--priority", str(10**20)), ("--priority", "1000000")),
        (("report", "absent"), ("absent", "give the output directory of a run")),
        (("fabric", "mock", "map", "1"), ("'1' is no pair",)),
        (("fabric", "mock", "map", "1!161"), ("port 161 is not one of the switch's 1 to 160",)),
        (("fabric", "mock", "map", "1!101", "2!101"), ("at most one circuit",)),
        (("fabric", "mock", "map", "srv1.p9=d01"), ("srv1", "p9")),
        (("fabric", "mock", "map", "srv1.p0=dd01"), ("did you mean 'd01'?",)),
        (("fabric", "mock", "drop", "1", "--ms", "0"), ("--ms 0 is not between 1 us and an hour",)),
    ],
    ids=lambda value: "-".join(value).replace("/", "") if isinstance(value, tuple) else str(value),
)
def test_an_argument_that_makes_no_sense(
    rackloop: CommandLine, arguments: tuple[str, ...], said: tuple[str, ...]
) -> None:
    rackloop(*arguments).refused(2, *said)
    assert nothing_was_done(rackloop)
    assert not (rackloop.directory / "runs").exists()


def test_results_are_never_mixed(rackloop: CommandLine) -> None:
    (rackloop.directory / "out").mkdir()
    (rackloop.directory / "out" / "precious").write_text("mine")
    rackloop("run", rackloop.plan(IDENTITY), "--lab", "mock", "--out", "out").refused(2, "out is not empty")
    assert [path.name for path in (rackloop.directory / "out").iterdir()] == ["precious"]


def test_results_of_a_run_that_began_meanwhile_are_left_to_it(rackloop: CommandLine) -> None:
    (rackloop.directory / "other_run.py").write_text("open('out/events.jsonl', 'x').write('theirs')\n")
    path = {"PYTHONPATH": str(rackloop.directory), "PYTEST_ADDOPTS": "-p other_run"}
    ended = rackloop("run", rackloop.plan(IDENTITY), "--lab", "mock", "--out", "out", **path)
    ended.refused(2, "events.jsonl: File exists", "choose another --out")
    assert (rackloop.directory / "out" / "events.jsonl").read_text() == "theirs"


@pytest.mark.parametrize("place", ["small.yaml", "small.yaml/below", "/proc/rackloop", "/proc/self/fdinfo"])
def test_results_that_cannot_be_written(rackloop: CommandLine, place: str) -> None:
    ended = rackloop("run", rackloop.plan(IDENTITY), "--lab", "mock", "--out", place)
    ended.refused(2, "choose another --out")


def test_results_are_kept_where_the_report_can_be_made(rackloop: CommandLine) -> None:
    place = os.fsdecode(b"na\xefve")
    ended = rackloop("run", rackloop.plan(IDENTITY), "--lab", "mock", "--out", f"{place}/out")
    ended.refused(2, r"na\udcefve/out is not UTF-8", "choose another --out")
    assert not (rackloop.directory / place).exists()


def test_a_given_directory_outlives_a_run_that_never_began(rackloop: CommandLine) -> None:
    (rackloop.directory / "out").mkdir()
    rackloop("run", rackloop.plan(IDENTITY), "--lab", "mock", "-k", "none", "--out", "out").refused(2, "is selected")
    assert not list((rackloop.directory / "out").iterdir())


@pytest.mark.parametrize("name", ["small.yaml/state", "x" * 100])
def test_a_state_directory_that_cannot_be(rackloop: CommandLine, name: str) -> None:
    rackloop.plan(IDENTITY)
    home = str(rackloop.directory / name)
    rackloop("lab", "up", "mock", RACKLOOP_STATE_HOME=home).refused(2, "RACKLOOP_STATE_HOME")


def test_a_lab_is_brought_up_once(rackloop: CommandLine) -> None:
    assert rackloop("lab", "up", "mock").status == 0
    rackloop("lab", "up", "mock").refused(2, "lab mock is up already", "rackloop lab down mock")


def test_a_test_file_that_does_not_load(rackloop: CommandLine) -> None:
    own: Path = rackloop.directory / "mine" / "a"
    own.mkdir(parents=True)
    (own / "test_b.py").write_text("import nothing_like_it\ndef test_b(): ...\n")
    plan = rackloop.plan({"test": "a/b"})
    ended = rackloop("run", plan, "--testplans", "mine", "--lab", "mock", "--out", "out")
    ended.refused(2, "test files that cannot be loaded", "a/test_b.py", "No module named 'nothing_like_it'")
    assert nothing_was_done(rackloop)


@pytest.mark.parametrize(
    ("body", "said"),
    [("pytest.skip('too small')", "Skipped: too small"), ("raise SystemExit(0)", "SystemExit: 0")],
    ids=["skip", "exit"],
)
def test_a_check_that_ends_more_than_itself_is_bad_input(rackloop: CommandLine, body: str, said: str) -> None:
    (rackloop.directory / "test_it.py").write_text(
        f"import pytest\ndef check(lab, parameters): {body}\ndef test_it(lab): ...\n"
    )
    rackloop("run", "test_it.py", "--dry-run").refused(2, f"check(lab, parameters) of test_it.py broke with {said}")


def test_a_profile_that_the_simulated_rack_refuses_is_bad_input(rackloop: CommandLine) -> None:
    shipped = (data_path("labs") / "profiles" / "sata-ssd.yaml").read_text()
    own = shipped.replace("profile: sata-ssd", "profile: own").replace("channels: 8 ", "channels: 0 ")
    (rackloop.directory / "own.yaml").write_text(own)
    lab = rackloop.directory / "lab.yaml"
    lab.write_text(
        "{name: own, kind: mock, fabric: {driver: static}, servers: {srv1: {ports: {p0}}}, drives: {d01: "
        "{profile: own.yaml, serial: S1, wwn: 5000c500a0000001, size: 64 MiB, attached: srv1/p0, scratch: true}}}"
    )
    rackloop("lab", "up", lab).refused(2, "refuses what the description", "drives.d01: timing: channels is 0")
    (rackloop.directory / "own.yaml").write_text(own.replace("channels: 0 ", "chanels: 8 "))
    for verb in ("check", "up"):
        rackloop("lab", verb, lab).refused(2, "timing.chanels", "did you mean 'channels'?")
