"""A plan with one test and the schedule it played: what runs it again just so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rackloop.faults.schedules import Schedule, flow, schedule_lines, time_text

if TYPE_CHECKING:
    from rackloop.measurement import Limit
    from rackloop.plan._plan import Plan, PlanEntry, Provision


def plan_yaml(plan: Plan, entry: PlanEntry, schedule: Schedule, seed: int, *, remark: str = "") -> str:
    """The text of a plan that runs ``entry`` of ``plan`` with ``schedule`` and ``seed``.

    ``remark`` stands at its head. A playbook that is not shipped is named by its path.
    """
    head = {"plan": plan.plan, "purpose": plan.purpose, "seed": seed, "servers": list(plan.servers)}
    if plan.provision is not None:
        head["provision"] = _provision(plan.provision)
    test = entry.file if entry.function is None else f"{entry.file}::{entry.function}"
    lines = [f"# {line}" for line in remark.splitlines()]
    lines += [f"{key}: {flow(value)}" for key, value in head.items() if value != []]
    lines += ["tests:", f"  - test: {test}", *(f"    {line}" for line in _entry(entry))]
    lines += ["    schedule:", *(f"      {line}" for line in schedule_lines(schedule))]
    return "".join(f"{line}\n" for line in lines)


def _entry(entry: PlanEntry) -> Iterator[str]:
    yield from _lines({"requires": list(entry.requires), "may_skip": list(entry.may_skip)})
    yield from _lines({"with": _plain(entry.parameters)})
    if entry.limits:
        yield "limits:"
        for limit in entry.limits:
            yield f"  - {flow(_limit(limit))}"
    if entry.timeout_s is not None:
        yield f"timeout: {time_text(entry.timeout_s)}"
    if entry.expected_health:
        yield f"health: {flow({'expect': list(entry.expected_health)})}"
    yield from _lines({"disturbs": list(entry.disturbs), "labels": dict(entry.labels)})


def _lines(written: Mapping[str, Any]) -> Iterator[str]:
    return (f"{key}: {flow(value)}" for key, value in written.items() if value)


def _limit(limit: Limit) -> dict[str, Any]:
    statistic = limit.quantile
    quantile = f"p{statistic * 100:.6f}".rstrip("0").rstrip(".") if isinstance(statistic, float) else statistic
    bounds = dict(bound.split(" ", 1) for bound in limit.text.split(", ") if bound)
    on = {**limit.on, **({"profile": limit.profile_file} if limit.profile_file else {})}
    written = {"measure": limit.measure, "where": dict(limit.where), "quantile": quantile, **bounds, "on": on}
    return {key: value for key, value in written.items() if value}


def _provision(provision: Provision) -> dict[str, Any]:
    from rackloop.data import data_path

    is_shipped = provision.playbook.parent == data_path("playbooks").absolute()
    written = {
        "playbook": provision.playbook.stem if is_shipped else str(provision.playbook),
        "roles": list(provision.roles),
        "servers": list(provision.servers),
        "vars": _plain(provision.variables),
        "timeout": time_text(provision.timeout_s),
    }
    return {key: value for key, value in written.items() if value}


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
