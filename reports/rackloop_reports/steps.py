"""Allure steps of a test: acts with their switch commands and remaps, faults, tasks of playbooks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, assert_never

from rackloop.names import in_one_line
from rackloop.portmap import Full, MapChange, Open, Partial
from rackloop.record import Exchange, RemapSeen, TaskRan
from rackloop.record.acts import (
    AskGuard,
    BreakPart,
    ChangeMap,
    DropSignal,
    EndOrphan,
    FlapSignal,
    OtherAct,
    ResetLink,
    SanitizeDrive,
    SaveBootMap,
    TrimDrive,
    TurnOff,
    TurnOn,
    announced_json,
)
from rackloop.units import counted
from rackloop_reports.formatting import value_text
from rackloop_reports.record import Act, FaultRecord, RunRecord, TestRecord, fault_records

TITLE = "What was done to the rack"
TASKS_TITLE = "How the servers were provisioned"
FAULTS_TITLE = "What was broken on purpose"
#: More acts than this are shown by their first and last; the attachments have them all.
MOST_ACTS = 200
MOST_FAULTS = 200
_LONGEST_LINE = 160

Json = dict[str, Any]


def steps_of(test: TestRecord, run: RunRecord) -> list[Json]:
    """One step that holds all acts of ``test`` in order, one for its faults, one for the tasks of its playbook.

    None for what it has none of.
    """
    return [*_of_acts(test, run), *_of_faults(test, run), *_of_tasks(test.tasks, run)]


def _of_acts(test: TestRecord, run: RunRecord) -> list[Json]:
    if not test.acts:
        return []
    remaps: dict[int, list[RemapSeen]] = defaultdict(list)
    for remap in test.remaps:
        remaps[remap.generation].append(remap)
    exchanges = sorted(test.exchanges, key=lambda exchange: exchange.started_ns)
    shared = _share_out(test.acts, exchanges, run)
    half = MOST_ACTS // 2
    first, last = (shared, []) if len(shared) <= MOST_ACTS else (shared[:half], shared[-half:])
    steps = [_act_step(act, within, remaps, run) for act, within in [*first, *last]]
    if last:
        left_out = len(shared) - len(steps)
        begins, ends = (run.wall_ms(act.announced_ns) for act, _ in (shared[half], shared[-half]))
        steps.insert(half, _step(f"... {left_out} acts more: see the attachments", begins, ends))
    is_ok = all(act.error is None for act in test.acts)
    return [_step(f"{TITLE} ({len(test.acts)} acts)", steps[0]["start"], steps[-1]["stop"], steps, is_ok=is_ok)]


def is_ours(step: Mapping[str, Any]) -> bool:
    """True for a step that this module made."""
    return str(step.get("name", "")).startswith((TITLE, FAULTS_TITLE, TASKS_TITLE))


def _of_faults(test: TestRecord, run: RunRecord) -> list[Json]:
    faults = fault_records(test.faults)
    if not faults:
        return []
    steps = [_fault_step(fault, run) for fault in faults[:MOST_FAULTS]]
    if len(faults) > MOST_FAULTS:
        last = steps[-1]["stop"]
        steps.append(_step(f"... {len(faults) - MOST_FAULTS} faults more: see the events", last, last))
    is_ok = all(fault.healed_ns is not None for fault in faults if fault.is_acknowledged)
    return [_spanning(f"{FAULTS_TITLE} ({counted(len(faults), 'fault')})", steps, is_ok=is_ok)]


def _fault_step(fault: FaultRecord, run: RunRecord) -> Json:
    details = ", ".join(f"{name} {value}" for name, value in fault.parameters.items())
    said = [f"{fault.kind} of {fault.target}" + (f" ({details})" if details else "")]
    if not fault.is_acknowledged:
        said.append("was not made")
    elif fault.effect is not None:
        after = value_text((fault.effect.at_ns - fault.began_ns) / 1e9, "s")
        said.append(f"first seen by {fault.effect.clock} after {after}")
    if fault.is_acknowledged:
        healed_ns = fault.healed_ns
        took = "its end was not observed" if healed_ns is None else value_text((healed_ns - fault.began_ns) / 1e9, "s")
        said.append(took if healed_ns is None else f"undone after {took}")
    ended_ns = fault.healed_ns or (run.ended_ns if fault.is_acknowledged else fault.began_ns)
    is_ok = fault.healed_ns is not None or not fault.is_acknowledged
    return _step(", ".join(said), run.wall_ms(fault.began_ns), run.wall_ms(ended_ns), is_ok=is_ok)


def _of_tasks(tasks: Sequence[TaskRan], run: RunRecord) -> list[Json]:
    """A step for each task of a playbook, and in it one for each server."""
    if not tasks:
        return []
    by_task: dict[tuple[str, str], list[TaskRan]] = defaultdict(list)
    for task in tasks:
        by_task[task.role, task.task].append(task)
    steps = [_task_step(role, name, ran, run) for (role, name), ran in by_task.items()]
    is_ok = all(step["status"] != "broken" for step in steps)
    servers = len({task.server for task in tasks})
    title = f"{TASKS_TITLE} ({counted(len(steps), 'task')} on {counted(servers, 'server')})"
    return [_spanning(title, steps, is_ok=is_ok)]


def _task_step(role: str, name: str, ran: Sequence[TaskRan], run: RunRecord) -> Json:
    outcomes = Counter(task.status for task in ran)
    summary = ", ".join(f"{number} {status}" for status, number in sorted(outcomes.items()))
    servers = [_server_step(task, run) for task in ran]
    title = f"{role}: {name} ({summary})" if role else f"{name} ({summary})"
    step = _spanning(title, servers, is_ok=all(one["status"] != "broken" for one in servers))
    if set(outcomes) == {"skipped"}:
        step["status"] = "skipped"
    return step


def _server_step(task: TaskRan, run: RunRecord) -> Json:
    why = f": {' '.join(task.reason.split())}" if task.reason else ""
    is_ok = task.status not in {"failed", "unreachable"}
    title = f"{task.server} {task.status}{why}"
    step = _step(title, run.wall_ms(task.started_ns), run.wall_ms(task.ended_ns), is_ok=is_ok)
    if task.status == "skipped":
        step["status"] = "skipped"
    return step


def _spanning(name: str, steps: Sequence[Json], *, is_ok: bool) -> Json:
    """A step from the start of the first of ``steps`` to the end of the last."""
    return _step(name, min(step["start"] for step in steps), max(step["stop"] for step in steps), steps, is_ok=is_ok)


def _share_out(acts: Sequence[Act], exchanges: Sequence[Exchange], run: RunRecord) -> list[tuple[Act, list[Exchange]]]:
    """Each act with the exchanges that began while it was under way; acts on the switch follow one another."""
    shared: list[tuple[Act, list[Exchange]]] = []
    at = 0
    for act in sorted(acts, key=lambda act: act.announced_ns):
        end_ns = act.done_ns if act.done_ns is not None else run.ended_ns
        while at < len(exchanges) and exchanges[at].started_ns < act.announced_ns:
            at += 1
        first = at
        while at < len(exchanges) and exchanges[at].started_ns <= end_ns:
            at += 1
        shared.append((act, list(exchanges[first:at])))
    return shared


def _act_step(
    act: Act, exchanges: Sequence[Exchange], remaps: Mapping[int, Sequence[RemapSeen]], run: RunRecord
) -> Json:
    stop_ns = act.done_ns if act.done_ns is not None else run.ended_ns
    parts = [
        _step(
            f"{in_one_line(exchange.sent, _LONGEST_LINE)}  ->  {in_one_line(exchange.received, _LONGEST_LINE)}",
            run.wall_ms(exchange.started_ns),
            run.wall_ms(exchange.ended_ns),
        )
        for exchange in exchanges
    ]
    followed = remaps.get(act.result.get("generation", -1), ())
    parts += [_remap_step(remap, run) for remap in followed if remap.stages]
    ending = f" - {act.error}" if act.error else "" if act.done_ns is not None else " - no recorded end"
    return _step(
        wording(act) + ending, run.wall_ms(act.announced_ns), run.wall_ms(stop_ns), parts, is_ok=act.error is None
    )


def _remap_step(remap: RemapSeen, run: RunRecord) -> Json:
    first, last = remap.stages[0], remap.stages[-1]
    stages = ", ".join(
        f"{stage.name} {value_text((stage.at_ns - first.at_ns) / 1e9, 's')}" for stage in remap.stages[1:]
    )
    name = f"{remap.server}.{remap.port} ({remap.stack}) gets {remap.drive}: {stages}"
    return _step(name, run.wall_ms(first.at_ns), run.wall_ms(last.at_ns))


def wording(act: Act) -> str:
    """An act in words: ``Join 1!102, 2!109 on generation 1``; one of another shape by its facts."""
    match act.what:
        case AskGuard(drive):
            return f"Ask the guard to let {drive} be written"
        case ChangeMap(change, generation):
            return f"{_change(change)} on generation {generation}"
        case DropSignal(ports, down_ms):
            return f"Drop the PHY of ports {_ports(ports)} for {down_ms} ms"
        case FlapSignal(ports, down_ms, up_ms, count):
            return f"Flap the PHY of ports {_ports(ports)} {count} times, {down_ms} ms down, {up_ms} ms up"
        case BreakPart(fault={"kind": "erasing", "method": method}):
            return f"Note at {act.resource} that its drive erases itself by {method}"
        case BreakPart(fault={"kind": "fail_fast", "within_s": within_s}):
            return f"Limit the error recovery of the drive at {act.resource} to {within_s:g} s"
        case BreakPart(fault=fault):
            return f"Break {act.resource} as {fault['kind']}"
        case TurnOn():
            return f"Turn {act.resource} on"
        case TurnOff():
            return f"Turn {act.resource} off"
        case SanitizeDrive(method):
            return f"Have {act.resource} erase itself by {method}"
        case TrimDrive():
            return f"Trim all of {act.resource}, which cannot sanitize itself"
        case SaveBootMap() | ResetLink() | EndOrphan() | OtherAct():
            facts = announced_json(act.what, act.resource)
            return f"{act.what.ability}: " + ", ".join(f"{key} {value}" for key, value in facts.items())
        case _:
            assert_never(act.what)


def _change(change: MapChange) -> str:
    match change:
        case Open(ports):
            return f"Open ports {_ports(ports)}"
        case Full(pairs):
            return f"Replace the whole map by {len(pairs)} pairs"
        case Partial(pairs):
            return in_one_line("Join " + ", ".join(f"{low}!{high}" for low, high in pairs), _LONGEST_LINE)
        case _:
            assert_never(change)


def _ports(ports: Iterable[int]) -> str:
    return ", ".join(str(port) for port in sorted(ports))


def _step(name: str, start_ms: int, stop_ms: int, steps: Sequence[Json] = (), *, is_ok: bool = True) -> Json:
    return {
        "name": name,
        "status": "passed" if is_ok else "broken",
        "stage": "finished",
        "start": start_ms,
        "stop": stop_ms,
        "steps": list(steps),
    }
