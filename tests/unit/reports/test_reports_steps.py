"""Acts as steps: what was sent, what came back, which drive came where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rackloop.clock import VirtualClock
from rackloop.record import (
    ActAnnounced,
    ActDone,
    EventLog,
    Exchange,
    RemapSeen,
    RunStarted,
    Stage,
    TaskRan,
    TestStarted,
)
from rackloop_reports.record import RunRecord, read_run
from rackloop_reports.steps import MOST_ACTS, TASKS_TITLE, TITLE, is_ours, steps_of

TEST = "fabric/identity::identity"


def run_with(tmp_path: Path, acts: int, *, error: str | None = None) -> RunRecord:
    clock = VirtualClock()
    log = EventLog(tmp_path / "events.jsonl", clock)
    log.write(RunStarted("p", "", "mock", "mock", 1, "2026-01-01T00:00:00+00:00", {}, {}, []))
    log.write(TestStarted(TEST, "try"))
    for number in range(1, acts + 1):
        what = {"do": "apply", "change": {"act": "join", "pairs": [[1, 101]]}, "generation": number}
        log.write(ActAnnounced(number, TEST, "fabric", what))
        sent_ns = clock.now_ns()
        clock.advance(0.002)
        log.write(Exchange(TEST, "switch", ":TRIG 1\n", "0\n", sent_ns, clock.now_ns()))
        log.write(ActDone(number, TEST, error, {"generation": number + 1}))
        stages = [Stage("commanded", sent_ns, "harness", 0), Stage("verified", sent_ns + 1_500_000, "rackprobe", 0)]
        log.write(RemapSeen(TEST, "comreset", "srv1", "p0", "d01", number + 1, stages))
        clock.advance(0.001)
    log.close()
    return read_run(tmp_path)


def children(step: dict[str, Any]) -> list[str]:
    return [part["name"] for part in step["steps"]]


def test_an_act_holds_its_commands_and_its_remaps(tmp_path: Path) -> None:
    run = run_with(tmp_path, 2)
    (whole,) = steps_of(run.tests[0], run)
    assert is_ours(whole)
    assert children(whole) == ["Join 1!101 on generation 1", "Join 1!101 on generation 2"]
    assert children(whole["steps"][0]) == [":TRIG 1  ->  0", "srv1.p0 (comreset) gets d01: verified 1.5 ms"]
    assert whole["steps"][1]["start"] - whole["steps"][0]["start"] == 3


def test_an_act_that_failed_says_why_and_breaks_the_whole(tmp_path: Path) -> None:
    run = run_with(tmp_path, 1, error="the switch is gone")
    (whole,) = steps_of(run.tests[0], run)
    assert whole["status"] == "broken"
    assert whole["steps"][0]["name"].endswith("the switch is gone")


def test_an_act_of_an_old_record_whose_remap_has_no_stages_is_a_step(tmp_path: Path) -> None:
    run = run_with(tmp_path, 1)
    run.tests[0].remaps[:] = [RemapSeen(TEST, "comreset", "srv1", "p0", "d01", 2, [])]
    (whole,) = steps_of(run.tests[0], run)
    assert children(whole["steps"][0]) == [":TRIG 1  ->  0"]


def test_many_acts_are_shown_by_the_first_and_the_last(tmp_path: Path) -> None:
    run = run_with(tmp_path, MOST_ACTS + 7)
    (whole,) = steps_of(run.tests[0], run)
    names = children(whole)
    assert whole["name"] == f"{TITLE} ({MOST_ACTS + 7} acts)"
    assert len(names) == MOST_ACTS + 1
    assert names[MOST_ACTS // 2] == "... 7 acts more: see the attachments"
    assert names[-1] == f"Join 1!101 on generation {MOST_ACTS + 7}"


def test_a_test_that_did_nothing_has_no_steps(tmp_path: Path) -> None:
    run = run_with(tmp_path, 0)
    assert steps_of(run.tests[0], run) == []


def test_tasks_of_a_playbook_are_steps_with_a_step_for_each_server(tmp_path: Path) -> None:
    run = run_with(tmp_path, 0)
    provisioning = run.tests[0]
    ended = [
        ("srv1", "tools", "Look", "ok", None),
        ("srv2", "tools", "Look", "changed", None),
        ("srv1", "tools", "Load", "skipped", "no modules"),
        ("srv2", "tools", "Load", "skipped", "no modules"),
        ("srv1", "", "Ask", "ok", None),
        ("srv2", "", "Ask", "failed", "x " * 200),
    ]
    provisioning.tasks = [
        TaskRan(TEST, "site", server, role, task, "a.b.c", status, reason, number * 10**9, (number + 1) * 10**9)
        for number, (server, role, task, status, reason) in enumerate(ended)
    ]
    (whole,) = steps_of(provisioning, run)
    assert is_ours(whole)
    assert (whole["name"], whole["status"]) == (f"{TASKS_TITLE} (3 tasks on 2 servers)", "broken")
    assert whole["stop"] - whole["start"] == 6000
    assert children(whole) == ["tools: Look (1 changed, 1 ok)", "tools: Load (2 skipped)", "Ask (1 failed, 1 ok)"]
    assert [step["status"] for step in whole["steps"]] == ["passed", "skipped", "broken"]
    assert children(whole["steps"][1]) == ["srv1 skipped: no modules", "srv2 skipped: no modules"]
    assert children(whole["steps"][2]) == ["srv1 ok", "srv2 failed: " + ("x " * 200).strip()]
