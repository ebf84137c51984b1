"""The outcomes of tasks on servers, from ansible-runner's events. Values in, values out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

_LEFT_OUT = re.compile(r"'(\w+)' not in rackloop_cannot")
_LONGEST_REASON = 2000
_CAPABILITIES = "rackloop_cannot"
# Ansible puts one before each role by itself.
_VALIDATION = "ansible.builtin.validate_argument_spec"


class TaskStatus(StrEnum):
    """The end of a task on a server."""

    OK = "ok"
    CHANGED = "changed"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True)
class TaskDone:
    """A task of a playbook that ended on a server.

    ``role`` is empty for a task outside roles. ``reason`` is None for a task that went well; else why it was skipped,
    what it failed with, or why the server was not reached.
    """

    host: str
    task: str
    role: str
    action: str
    status: TaskStatus
    duration_s: float
    reason: str | None = None
    play: str = ""


def redacting(secrets: Collection[str]) -> Callable[[str], str]:
    """A function that covers these up in a text."""
    # One that another begins with would leave the rest of that.
    longest_first = sorted(secrets, key=len, reverse=True)

    def redact(text: str) -> str:
        for secret in longest_first:
            text = text.replace(secret, "********")
        return text

    return redact


class TaskReader:
    """Makes :class:`TaskDone` of one run's events.

    It remembers what each server said it cannot do, so that a skipped task has the true reason and not the condition
    that was false. ``redact`` takes secrets out of what servers said.
    """

    def __init__(self, redact: Callable[[str], str] = str) -> None:
        self.under_way = ""
        self._cannot: dict[str, Mapping[str, str]] = {}
        self._redact = redact

    def read(self, event: Mapping[str, Any]) -> TaskDone | None:
        """The task that this event ends, or None. Afterwards ``under_way`` names the task that began last."""
        kind, data = str(event.get("event", "")), event.get("event_data", {})
        if kind in {"playbook_on_task_start", "playbook_on_handler_task_start"}:
            self.under_way = str(data.get("name", ""))
        if not kind.startswith("runner_on_"):
            return None
        result = data.get("res") or _printed(str(event.get("stdout", "")))
        facts = result.get("ansible_facts") or {}
        if _CAPABILITIES in facts:
            self._cannot[data["host"]] = facts[_CAPABILITIES]
        status = _status(kind, data, result)
        if status is None or (status is TaskStatus.OK and data.get("task_action") == _VALIDATION):
            return None
        return TaskDone(
            host=str(data.get("host", "")),
            task=str(data.get("task", "")),
            role=str(data.get("role", "")),
            action=str(data.get("task_action", "")),
            status=status,
            duration_s=float(data.get("duration") or 0.0),
            reason=self._reason(status, data, result),
            play=str(data.get("play", "")),
        )

    def _reason(self, status: TaskStatus, data: Mapping[str, Any], result: Mapping[str, Any]) -> str | None:
        match status:
            case TaskStatus.SKIPPED:
                return self._redact(self._why_skipped(data, result))
            case TaskStatus.FAILED | TaskStatus.UNREACHABLE:
                return said(result, self._redact)
            case _ if data.get("ignore_errors") and result.get("failed"):
                return f"failed, which the playbook allows: {said(result, self._redact)}"
        return None

    def _why_skipped(self, data: Mapping[str, Any], result: Mapping[str, Any]) -> str:
        condition = str(result.get("false_condition", ""))
        if (left_out := _LEFT_OUT.fullmatch(condition)) and (
            why := self._cannot.get(str(data.get("host")), {}).get(left_out[1])
        ):
            return why
        if condition:
            return f"the condition does not hold: {condition}"
        return str(result.get("skip_reason") or result.get("msg") or "Ansible gave no reason")


def _printed(line: str) -> Mapping[str, Any]:
    """The result of a skipped task; ansible-runner leaves it to what Ansible prints: ``skipping: [srv1] => {}``."""
    try:
        found = json.loads(line.partition(" => ")[2])
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _status(kind: str, data: Mapping[str, Any], result: Mapping[str, Any]) -> TaskStatus | None:
    match kind:
        case "runner_on_ok":
            return TaskStatus.CHANGED if result.get("changed") else TaskStatus.OK
        case "runner_on_failed":
            return TaskStatus.OK if data.get("ignore_errors") else TaskStatus.FAILED
        case "runner_on_skipped":
            return TaskStatus.SKIPPED
        case "runner_on_unreachable":
            return TaskStatus.UNREACHABLE
    return None


def said(result: Mapping[str, Any], redact: Callable[[str], str]) -> str:
    """The message of a task that failed, and what the program behind it printed as errors, without secrets."""
    if "censored" in result:
        return "its output is withheld (no_log)"
    texts = [result.get("msg"), result.get("stderr") or result.get("module_stderr"), *_of_items(result, redact)]
    # A secret that was cut, or whose spaces were joined, would not be known as one.
    told = list(dict.fromkeys(" ".join(redact(str(text)).split()) for text in texts if text))
    text = "; ".join(told) or "it said nothing"
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}..."


def _of_items(result: Mapping[str, Any], redact: Callable[[str], str]) -> list[str]:
    """The messages of the failed rounds of a loop."""
    rounds = result.get("results")
    return [said(item, redact) for item in rounds if item.get("failed")] if isinstance(rounds, list) else []
