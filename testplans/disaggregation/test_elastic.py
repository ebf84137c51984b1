"""Dynamic elastic disaggregation: servers come and go with the load of a day, and no I/O is lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars
import pytest

from rackloop.errors import BadInput
from rackloop.lab import Lab
from rackloop.parameters import number, text, whole
from rackloop_fixtures import (
    Labels,
    Measure,
    Progress,
    Rack,
    StorageClient,
    StorageParts,
    StorageRack,
    find_trace,
    require_rules,
)
from rackloop_models.disaggregation import (
    Active,
    Damping,
    ElasticController,
    Load,
    Need,
    Shape,
    another_day,
    diurnal,
    elastic,
    elastic_rules,
    of_requests,
    savings,
    simulate,
    stretched,
)
from rackloop_traces import open_trace

DAY_S = 86_400.0
# Of the pause between two I/Os, what the load of the day takes away at its peak.
_BUSY_SHARE = 5 / 6
# Without a trace the load is a made-up day. A trace is stretched to one.
PARAMETERS = {
    "trace": text("", "the trace that gives the day's load; a synthetic day where empty", longest=1024),
    "days": whole(12, "simulated days, each with its own load", least=2, most=10_000),
    "day_s": number(16.0, "duration of the day on the rack", least=1, most=86_400, unit="s"),
    "steps": whole(32, "loads of the day", least=2, most=100_000),
    "headroom": number(1.2, "headroom of the servers over the load", least=1, most=10),
    "hold_s": number(
        7200.0, "time that fewer servers must suffice before one is released, in the day's time", most=86_400, unit="s"
    ),
    "remap_s": number(2.0, "duration of a move in the model", least=0.001, most=3600, unit="s"),
    "pause_s": number(
        0.06, "pause between a client's I/Os without load, a sixth of it at the peak", least=0, most=3600, unit="s"
    ),
    "within_s": number(
        10.0, "deadline for a moved drive to be served again on the rack", least=0.1, most=3600, unit="s"
    ),
}
MEASURES = {
    "elastic.server_hours_saved": "h",
    "elastic.share_saved": "1",
    "elastic.migrations_per_hour": "1",
    "elastic.move": "s",
    "elastic.guard": "s",
    "elastic.ios": "1",
    "elastic.stall": "s",
    "elastic.lookups": "1",
    "elastic.rule_broken": "1",
}
HEADLINES = ("elastic.server_hours_saved", "elastic.stall")

pytestmark = pytest.mark.rackloop(
    purpose="let servers come and go with the load of a day, and show that no I/O is lost when drives move",
    requires=["fabric.remap", "probe", "remap.announce", "blocks.harness"],
    destructive=True,
    time_class="seconds",
)


def check(_lab: Lab, parameters: Mapping[str, Any]) -> None:
    """Raise BadInput where drives that move in the model are not there yet when the next load moves them on."""
    step_s = DAY_S / parameters["steps"]
    if parameters["remap_s"] >= step_s:
        raise BadInput(
            f"remap_s: a move takes {parameters['remap_s']:g} s, and the day's {parameters['steps']} loads follow each "
            f"other every {step_s:g} s; take fewer steps"
        )


def drives_erased(lab: Lab, _parameters: Mapping[str, Any]) -> list[str]:
    """The nk/3 drives that all servers share."""
    return list(_shape(lab).drives)


def estimate_s(_lab: Lab, parameters: Mapping[str, Any]) -> float:
    """The day as it runs on the rack, and a few seconds around it."""
    return 1 + float(parameters["day_s"])


def _shape(lab: Lab) -> Shape:
    parts = StorageParts.of(lab)
    return elastic(parts.servers, parts.ports, parts.drives)


def _loads(parameters: Mapping[str, Any], seed: int) -> list[Load]:
    """A day's loads, one each ``steps``-th of it."""
    step_s = DAY_S / parameters["steps"]
    if not parameters["trace"]:
        return diurnal(days=1, step_s=step_s, seed=seed)
    batches = polars.concat(
        batch.select(polars.col("t_ns") / 1e9, "size_bytes")
        for batch in open_trace(find_trace(parameters["trace"])).batches()
    )
    requests = list(batches.iter_rows())
    first_s, last_s = min(t_s for t_s, _ in requests), max(t_s for t_s, _ in requests)
    if last_s <= first_s:
        raise BadInput(f"trace {parameters['trace']} has no two requests at different times, and makes no day's load")
    factor = DAY_S / (last_s - first_s) * (1 - 1e-9)
    return stretched(of_requests(((t_s - first_s, size) for t_s, size in requests), step_s=step_s / factor), factor)


def test_elastic(
    rack: Rack, labels: Labels, parameters: Mapping[str, Any], measure: Measure, progress: Progress
) -> None:
    """The day in virtual time, then the same day on the rack, as many times faster as it takes."""
    shape, loads = _shape(rack.lab), _loads(parameters, rack.seed)
    damping = Damping(parameters["headroom"], parameters["hold_s"])
    days = [loads, *(another_day(loads, seed=rack.seed + number) for number in range(1, parameters["days"]))]
    modelled = [simulate(shape, day, damping, move_s=parameters["remap_s"]) for day in days]
    came_to = [savings(shape, day) for day in modelled]
    measure("elastic.server_hours_saved", [day.server_hours_saved for day in came_to], where="model")
    measure("elastic.share_saved", [day.share_saved for day in came_to], where="model")
    measure("elastic.migrations_per_hour", [day.migrations_per_hour for day in came_to], where="model")
    rules = elastic_rules(shape, damping, within_s=parameters["remap_s"], with_io=False)
    require_rules(measure, "elastic.rule_broken", rules, modelled[0], where="model")

    speed = DAY_S / parameters["day_s"]
    quick = Damping(damping.headroom, damping.hold_s / speed)
    controller = ElasticController(shape, quick)
    with StorageRack(rack, labels, shape.servers).open() as storage:
        storage.deploy(controller.placement)
        storage.history.note(Active(storage.now_s(), frozenset(controller.active)))
        clients = [StorageClient.on(storage, drive, f"client of {drive}") for drive in shape.drives]
        share = 0.0
        taken = []
        began_s = storage.now_s()
        steps = [client.step for client in clients]
        with storage.repeating(steps, lambda: parameters["pause_s"] * (1 - _BUSY_SHARE * share)):
            for step, load in enumerate(loads):
                storage.sleep(began_s + load.t_s / speed - storage.now_s())
                share, t_s, before = load.share, storage.now_s(), controller.active
                storage.history.note(Need(t_s, share))
                moves = controller.observe(Load(t_s, share))
                if controller.active != before:
                    storage.history.note(Active(t_s, frozenset(controller.active)))
                taken += storage.move(moves)
                progress(step, len(loads), "steps of the day")
        for client in clients:
            client.read_all()

    storage.plot()
    measure("elastic.share_saved", savings(shape, storage.history).share_saved, where="rack")
    if taken:
        measure("elastic.move", [one.seconds for one in taken])
        measure("elastic.guard", [one.guard_s for one in taken])
    for client in clients:
        measure("elastic.ios", client.ios, drive=client.drive)
        measure("elastic.lookups", client.client.lookups, drive=client.drive)
        measure("elastic.stall", client.longest_s, drive=client.drive)
    rules = elastic_rules(shape, quick, within_s=parameters["within_s"], with_io=True)
    require_rules(measure, "elastic.rule_broken", rules, storage.history, where="rack")
