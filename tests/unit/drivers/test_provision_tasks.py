"""What ansible-runner's events say became of each task."""

from __future__ import annotations

from typing import Any

import pytest

from rackloop_drivers.provision import HostTally, Provisioned, TaskDone, TaskStatus
from rackloop_drivers.provision._tasks import TaskReader, redacting

SKIPPING = """skipping: [srv1] => {"changed": false, "false_condition": "%s", "skip_reason": "Conditional"}"""


def event(kind: str, result: dict[str, Any] | None = None, *, stdout: str = "", **more: Any) -> dict[str, Any]:
    data = {"host": "srv1", "task": "Do it", "role": "tools", "play": "P", "task_action": "a.b.c", "duration": 0.5}
    return {"event": kind, "stdout": stdout, "event_data": {**data, **({"res": result} if result else {}), **more}}


def read(*events: dict[str, Any], reader: TaskReader | None = None) -> TaskDone:
    """What the last of the events says."""
    reader = reader or TaskReader()
    *_, last = [reader.read(each) for each in events]
    assert last is not None
    return last


def test_a_task_that_went_well_is_ok_or_changed() -> None:
    assert read(event("runner_on_ok", {"changed": False})) == TaskDone(
        "srv1", "Do it", "tools", "a.b.c", TaskStatus.OK, 0.5, None, "P"
    )
    assert read(event("runner_on_ok", {"changed": True})).status is TaskStatus.CHANGED


def test_a_failed_task_tells_its_message_and_what_was_printed_as_error() -> None:
    done = read(event("runner_on_failed", {"msg": "non-zero\n return", "stderr": "no space", "rc": 1}))
    assert (done.status, done.reason) == (TaskStatus.FAILED, "non-zero return; no space")


def test_a_failed_loop_tells_what_its_rounds_said() -> None:
    rounds = [{"failed": True, "msg": "first"}, {"failed": False, "msg": "fine"}, {"failed": True, "msg": "third"}]
    done = read(event("runner_on_failed", {"msg": "One or more items failed", "results": rounds}))
    assert done.reason == "One or more items failed; first; third"


def test_what_no_log_withholds_stays_withheld() -> None:
    done = read(event("runner_on_failed", {"censored": "the output has been hidden", "changed": False}))
    assert done.reason == "its output is withheld (no_log)"


def test_a_failure_that_the_playbook_allows_is_none() -> None:
    done = read(event("runner_on_failed", {"msg": "no", "failed": True}, ignore_errors=True))
    assert (done.status, done.reason) == (TaskStatus.OK, "failed, which the playbook allows: no")


def test_a_server_that_is_not_reached_says_why() -> None:
    done = read(event("runner_on_unreachable", {"unreachable": True, "msg": "Connection refused"}))
    assert (done.status, done.reason) == (TaskStatus.UNREACHABLE, "Connection refused")


def test_a_skipped_task_has_the_reason_that_the_server_gave() -> None:
    facts = event("runner_on_ok", {"ansible_facts": {"rackloop_cannot": {"modules": "no CAP_SYS_MODULE"}}})
    skipped = event("runner_on_skipped", stdout=SKIPPING % "'modules' not in rackloop_cannot")
    assert read(facts, skipped).reason == "no CAP_SYS_MODULE"
    other = event("runner_on_skipped", stdout=SKIPPING % "'modules' not in rackloop_cannot", host="srv2")
    assert read(facts, other).reason == "the condition does not hold: 'modules' not in rackloop_cannot"


@pytest.mark.parametrize(
    ("stdout", "reason"),
    [
        (SKIPPING % "links | length > 0", "the condition does not hold: links | length > 0"),
        ("skipping: [srv1]", "Ansible gave no reason"),
        ("skipping: [srv1] => [1]", "Ansible gave no reason"),
    ],
)
def test_a_skipped_task_always_has_a_reason(stdout: str, reason: str) -> None:
    done = read(event("runner_on_skipped", stdout=stdout))
    assert (done.status, done.reason) == (TaskStatus.SKIPPED, reason)


def test_other_events_and_checks_of_arguments_that_pass_are_no_tasks() -> None:
    reader = TaskReader()
    validation = {"task_action": "ansible.builtin.validate_argument_spec"}
    assert reader.read({"event": "playbook_on_task_start", "event_data": {"name": "tools : Do it"}}) is None
    assert reader.under_way == "tools : Do it"
    assert reader.read(event("runner_on_start")) is None
    assert reader.read(event("runner_item_on_ok", {"changed": True})) is None
    assert reader.read({"event": "verbose"}) is None
    assert reader.read(event("runner_on_ok", {"changed": False}, **validation)) is None
    assert reader.read(event("runner_on_failed", {"msg": "missing"}, **validation)) is not None


def test_secrets_are_taken_out_of_what_servers_say() -> None:
    """Whole, where one of them is the beginning of another."""
    reader = TaskReader(redacting(["hunter", "hunter-2026!"]))
    done = read(event("runner_on_failed", {"msg": "bad passwords hunter-2026! and hunter"}), reader=reader)
    assert done.reason == "bad passwords ******** and ********"


@pytest.mark.parametrize("said", [f"{'x' * 1995}hunter2026", "bad password hunter  2026"])
def test_of_a_secret_no_part_is_told_where_what_was_said_is_shortened(said: str) -> None:
    reader = TaskReader(redacting(["hunter2026", "hunter  2026"]))
    assert "hunt" not in str(read(event("runner_on_failed", {"msg": said}), reader=reader).reason)


def test_the_tally_counts_each_server_apart() -> None:
    ended = [("srv1", "ok"), ("srv2", "changed"), ("srv1", "skipped"), ("srv1", "ok")]
    tasks = tuple(TaskDone(host, "t", "", "a", TaskStatus(status), 0.1) for host, status in ended)
    assert Provisioned("site", tasks, 1.0).hosts == {"srv1": HostTally(2, 0, 1, 0, 0), "srv2": HostTally(0, 1, 0, 0, 0)}
