"""A run of a plan: its verdict, its exit status, and everything it leaves."""

from __future__ import annotations

import json
import secrets
import socket
import xml.etree.ElementTree as ET
from importlib.resources import files

import jsonschema
import pytest

from rackloop.data import data_path
from rackloop.seed import choose_seed
from tests.e2e.command_line import CommandLine, Results
from tests.e2e.entries import IDENTITY, IMPOSSIBLE, PHY, REMAP, THROUGHPUT, TOO_FEW, UNDISTURBED


def run(rackloop: CommandLine, *arguments: str, status: int) -> Results:
    ended = rackloop("run", *arguments, "--out", "out")
    assert ended.status == status, ended
    assert "Traceback" not in ended.err, ended
    return Results(rackloop.directory / "out")


def test_a_pass_leaves_every_record(rackloop: CommandLine) -> None:
    rackloop.renders_reports = True
    plan = rackloop.plan(REMAP, THROUGHPUT, UNDISTURBED, PHY, IDENTITY)
    ended = rackloop("run", plan, "--lab", "mock", "--out", "out", "--seed", "7")
    assert ended.status == 0, ended
    assert "seed 7" in ended.out
    assert "simulated" in ended.out

    results = Results(rackloop.directory / "out")
    schema = json.loads(files("rackloop_reports").joinpath("summary.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(results.summary)
    assert (results.summary["verdict"], results.summary["seed"]) == ("pass", 7)
    assert (results.summary["plan"], results.summary["lab"], results.summary["lab_kind"]) == ("small", "mock", "mock")
    assert len(results.summary["duts"]) == 32
    assert list(results.tests()) == [
        "fabric/remap_latency::remap_latency",
        "fabric/switched_throughput::switched_throughput",
        "fabric/undisturbed_io::undisturbed_io",
        "fabric/phy_drop::phy_drop",
        "fabric/identity::identity",
    ]
    latency = [m for m in results.summary["tests"][0]["measurements"] if m["name"] == "remap.latency"]
    assert {m["labels"]["stack"]: m["n"] for m in latency} == dict.fromkeys(
        ("vanilla", "no_timeouts", "warm_port", "comreset"), 12
    )

    kinds = [stamped.event.kind for stamped in results.events]
    assert (kinds[0], kinds[-1]) == ("run.started", "run.finished")
    assert [stamped.seq for stamped in results.events] == list(range(1, len(kinds) + 1))
    assert kinds.count("act.announced") == kinds.count("act.done") > 30

    suites = ET.parse(results.directory / "junit.xml").getroot()  # noqa: S314 - written by the run
    cases = list(suites.iter("testcase"))
    assert len(cases) == 5
    assert not list(suites.iter("failure"))
    assert not list(suites.iter("error"))
    assert len(list((results.directory / "allure-results").glob("*-result.json"))) == 5
    assert "simulated" in (results.directory / "report" / "index.html").read_text()


def test_a_missed_limit_is_the_products_failure(rackloop: CommandLine) -> None:
    results = run(rackloop, str(rackloop.plan(IMPOSSIBLE)), "--lab", "mock", status=1)
    (test,) = results.summary["tests"]
    assert (results.summary["verdict"], test["verdict"], test["cause"]) == ("fail", "fail", "product")
    assert "outside the limit max 0" in test["reason"]
    assert results.of_kind("run.finished")[0].exit_code == 1


def test_too_few_samples_say_nothing(rackloop: CommandLine) -> None:
    results = run(rackloop, str(rackloop.plan(TOO_FEW)), "--lab", "mock", status=3)
    (test,) = results.summary["tests"]
    assert (results.summary["verdict"], test["verdict"]) == ("unknown", "unknown")
    assert "12 samples do not carry p99: take more" in test["reason"]


def test_a_rack_without_a_switch_cannot_do_what_needs_one(rackloop: CommandLine) -> None:
    described = data_path("labs").joinpath("direct-attached.yaml").read_text()
    lab = rackloop.directory / "ours.yaml"
    # One store has a physical lab of this name on this machine, and keeps it after the test.
    name = f"das-{secrets.token_hex(4)}"
    described = described.replace("name: direct-attached", f"name: {name}")
    lab.write_text(described.replace("ctl1.lab.example", socket.gethostname()))
    ended = rackloop("run", rackloop.plan(IDENTITY, PHY), "--lab", lab, "--out", "out")
    assert ended.status == 3, ended
    results = Results(rackloop.directory / "out")
    assert results.summary["verdict"] == "blocked"
    assert {test["verdict"] for test in results.summary["tests"]} == {"blocked"}
    assert ended.err.index("identity cannot run here: the rack") < ended.err.index("identity: blocked")
    assert all("fixed cabling" in test["reason"] for test in results.summary["tests"])


def test_a_physical_lab_that_cannot_be_leased_is_not_touched(rackloop: CommandLine) -> None:
    ended = rackloop("run", rackloop.plan(IDENTITY), "--lab", "example-rack", "--out", "out")
    assert ended.status == 3, ended
    assert "lab store postgresql://rackloop@db.lab.example/rackloop" in ended.out + ended.err
    assert Results(rackloop.directory / "out").of_kind("act.announced") == []
    assert not (rackloop.state_home / "labs" / "example-rack" / "store.sqlite").exists()


def test_an_expression_selects_tests(rackloop: CommandLine) -> None:
    plan = rackloop.plan(REMAP, IDENTITY)
    results = run(rackloop, str(plan), "--lab", "mock", "-k", "identity and not latency", status=0)
    assert list(results.tests()) == ["fabric/identity::identity"]


def acts(results: Results) -> dict[str, list[object]]:
    """What was done to each part of the rack, without the generations, which count what happened before.

    A part is the switch, or a server: servers label their drives side by side, in an order that no run chooses.
    """
    done: dict[str, list[object]] = {}
    for act in results.of_kind("act.announced"):
        part = act.what["path"].partition(".")[0] if act.ability == "guard" else "switch"
        done.setdefault(part, []).append({key: value for key, value in act.what.items() if "generation" not in key})
    return done


def test_servers_of_one_stack_are_judged_together(rackloop: CommandLine) -> None:
    limit = {"measure": "remap.latency", "where": {"stack": "comreset"}, "quantile": "p50", "max": "1 h"}
    results = run(rackloop, str(rackloop.plan(REMAP | {"limits": [limit]})), "--lab", "disaggregation", status=0)
    measured = [event for event in results.of_kind("measured") if event.name == "remap.latency"]
    # Of six servers, twelve changes each.
    assert [(event.labels, event.n, event.verdict) for event in measured] == [({"stack": "comreset"}, 72, "pass")]


def test_a_seed_replays_a_run(rackloop: CommandLine) -> None:
    plan, seed = rackloop.plan(IDENTITY), choose_seed()
    assert rackloop("lab", "up", "mock").status == 0
    done = {}
    for out, given in (("a", seed), ("b", seed), ("c", seed + 1)):
        ended = rackloop("run", plan, "--lab", "mock", "--seed", str(given), "--out", out)
        assert ended.status == 0, ended
        done[out] = acts(Results(rackloop.directory / out))
    assert len(done["a"]["switch"]) >= 30
    assert done["a"] == done["b"]
    assert done["a"] != done["c"]


def test_workers_have_racks_of_their_own_and_one_record(rackloop: CommandLine) -> None:
    results = run(rackloop, str(rackloop.plan(IDENTITY | {"repeats": 3}, REMAP)), "--lab", "mock", "-n", "2", status=0)
    assert set(results.tests()) == {
        "fabric/identity::identity[1]",
        "fabric/identity::identity[2]",
        "fabric/identity::identity[3]",
        "fabric/remap_latency::remap_latency",
    }
    assert [stamped.seq for stamped in results.events] == list(range(1, len(results.events) + 1))
    numbers = [act.act for act in results.of_kind("act.announced")]
    assert len(set(numbers)) == len(numbers)
    assert {number // 10**9 for number in numbers} == {1, 2}
    assert len(results.of_kind("run.started")) == len(results.of_kind("run.finished")) == 1
    assert not rackloop.processes()


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_dry_run_touches_nothing(rackloop: CommandLine, workers: tuple[str, ...]) -> None:
    plan = rackloop.plan(UNDISTURBED, IDENTITY)
    before = sorted(rackloop.directory.rglob("*"))
    ended = rackloop("run", plan, "--lab", "mock", "--dry-run", *workers)
    assert ended.status == 0, ended
    assert "nothing was touched" in ended.out
    assert "6 full and partial remaps" in ended.out
    assert "2 tests, about " in ended.out
    assert "24 drives erased" in ended.out
    assert sorted(rackloop.directory.rglob("*")) == before
    assert not list(rackloop.state_home.iterdir())


def test_a_lab_left_running_is_used_and_left_up(rackloop: CommandLine) -> None:
    assert rackloop("lab", "up", "mock").status == 0
    before = rackloop.endpoints()
    run(rackloop, str(rackloop.plan(IDENTITY)), "--lab", "mock", status=0)
    after = rackloop.endpoints()
    assert not before.pop("attempts")
    assert all(attempt["reasons"] == [] for attempt in after.pop("attempts"))
    assert after == before
    assert rackloop("lab", "down", "mock").out == "lab mock is down\n"
    assert rackloop("lab", "down", "mock").out == "lab mock was not up\n"
    assert not rackloop.processes()


def test_plans_and_tests_may_lie_elsewhere(rackloop: CommandLine) -> None:
    own = rackloop.directory / "mine" / "cables"
    own.mkdir(parents=True)
    (own / "test_count.py").write_text(
        "import pytest\n"
        "PARAMETERS = {'least': 1}\n"
        "MEASURES = {'cables.count': '1'}\n"
        "pytestmark = pytest.mark.rackloop(purpose='count the circuits', requires=[], destructive=False,\n"
        "                                  time_class='seconds')\n"
        "def test_count(rack, parameters, measure):\n"
        "    circuits = len(rack.fabric.live_map(rack.deadline()).pairs)\n"
        "    measure('cables.count', circuits)\n"
        "    assert circuits >= parameters['least']\n"
    )
    rackloop.write(
        "mine/own.yaml",
        {
            "plan": "own",
            "purpose": "The cables are there.",
            "tests": [
                {"test": "cables/count", "limits": [{"measure": "cables.count", "quantile": "max", "min": "24"}]},
                {"test": "cables/count", "with": {"least": 25}},
            ],
        },
    )
    results = run(rackloop, "own", "--testplans", "mine", "--lab", "mock", status=1)
    assert [(test["id"], test["verdict"], test["cause"]) for test in results.summary["tests"]] == [
        ("cables/count::count[1]", "pass", None),
        ("cables/count::count[2]", "fail", "product"),
    ]
