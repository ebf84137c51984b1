"""Stripes over a rack's drives: a server fails, its drives are moved or rebuilt, and tenants' I/O continues."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from typing import Any

import pytest

from rackloop.abilities.blocks import BLOCK_BYTES
from rackloop.errors import BadInput, LabError, ProductFailed
from rackloop.faults import FaultSpec
from rackloop.lab import Lab
from rackloop.parameters import choice, number, size, whole
from rackloop_fixtures import (
    ErasureRack,
    ErasureTenant,
    Labels,
    Measure,
    Progress,
    Rack,
    StorageParts,
    added_s,
)
from rackloop_models.disaggregation import Shape
from rackloop_models.rack_erasure import Health, RecoveryController, ServerLoss, StripeCode, Throttle

PARAMETERS = {
    "k": whole(4, "data units of a stripe", most=254),
    "m": whole(2, "redundancy units of a stripe", most=254),
    "unit_bytes": size(65536, "a unit", least=4096, most=16 << 20, multiple=4096),
    "objects": whole(96, "objects that are written, at most as many as fit", most=1_000_000),
    "policies": choice(
        ["move", "rebuild"], "recovery policies for a lost server, each in turn", among=["move", "rebuild"]
    ),
    "fault": choice(
        "power_loss", "the fault that fails a server", among=["power_loss", "server_crash", "server_hang", "partition"]
    ),
    "written_meanwhile": whole(12, "objects written while it is lost", least=0, most=1_000_000),
    "spares": whole(4, "drives kept for those that fail", most=1000),
    "throttles": choice(["none", "throttled"], "throttling of the rebuild, each in turn", among=["none", "throttled"]),
    "throttle_bytes_per_s": size(4_000_000, "the rate of a throttled rebuild", most=1_000_000_000_000, unit="B/s"),
    "throttle_floor_bytes_per_s": size(
        2_000_000, "the lowest rate of a throttled rebuild", most=1_000_000_000_000, unit="B/s"
    ),
    "latency_target_s": number(
        0.005, "the tenant latency above which a rebuild is throttled", least=1e-6, most=60, unit="s"
    ),
    "tenant_pause_s": number(0.01, "think time of the tenant between requests", most=60, unit="s"),
    "healthy_s": number(1.0, "time of measuring the tenant before the failure", least=0.01, most=3600, unit="s"),
}
MEASURES = {
    "rebuild.time": "s",
    "rebuild.restored": "s",
    "rebuild.bytes": "B",
    "rebuild.units": "1",
    "rebuild.tenant_latency": "s",
    "rebuild.backoffs": "1",
    "rebuild.wrong": "1",
    "rebuild.refused": "1",
    "rebuild.server_failures_survived": "1",
    "degraded.read_latency": "s",
}
HEADLINES = ("rebuild.time",)

pytestmark = pytest.mark.rackloop(
    purpose="fail a server and drives under erasure-coded stripes, move or rebuild what was lost, and verify all of it",
    requires=["fabric.remap", "probe", "remap.announce", "blocks.harness", "fault.fail_stop"],
    destructive=True,
    time_class="seconds",
)


def drives_erased(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The nk/2 drives and the spares."""
    shape = _shape(lab, parameters)
    return [*shape.drives, *shape.spares]


def faults(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The faults, with their number. Raises NotSupported where no server may fail."""
    may_fail = StorageParts.of(lab).victims()
    return [
        f"{len(parameters['policies'])} times one of {', '.join(may_fail)} by {parameters['fault']}",
        f"{len(parameters['throttles'])} times a drive by fail_stop",
    ]


def check(_lab: Lab, parameters: Mapping[str, Any]) -> None:
    """Raise BadInput for a code that cannot be, and for a throttle whose floor is above its rate."""
    _code(parameters)
    rate, floor = parameters["throttle_bytes_per_s"], parameters["throttle_floor_bytes_per_s"]
    if floor > rate:
        raise BadInput(f"throttle_floor_bytes_per_s: {floor} is above throttle_bytes_per_s, {rate}")


def estimate_server_loss_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """A drive that is taken costs a tenth of a second."""
    policies = len(parameters["policies"])
    return 5 + policies * (_round_s(lab, parameters) + lab.time_s("answer")) + added_s(lab, returns=policies)


def estimate_throttle_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """A throttled rebuild has its rate, which may give way down to its floor."""
    k, m = parameters["k"], parameters["m"]
    on_drive = parameters["objects"] * (k + m) * parameters["unit_bytes"] / len(_shape(lab, parameters).drives)
    slow = on_drive * (k + 1) / parameters["throttle_floor_bytes_per_s"]
    return 5 + len(parameters["throttles"]) * _round_s(lab, parameters) + float(slow)


def _round_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    drives = len(_shape(lab, parameters).drives)
    return 4 + 0.1 * drives + added_s(lab, remaps=drives) + float(parameters["healthy_s"])


def _shape(lab: Lab, parameters: Mapping[str, Any]) -> Shape:
    return StorageParts.of(lab).failure(parameters["spares"])


def _code(parameters: Mapping[str, Any]) -> StripeCode:
    return StripeCode(parameters["k"], parameters["m"], parameters["unit_bytes"])


def _tenant(storage: ErasureRack, parameters: Mapping[str, Any]) -> ErasureTenant:
    """A tenant that has written all of its objects, each as large as can be, and read them back."""
    objects = range(min(parameters["objects"], storage.store.objects))
    tenant = ErasureTenant(storage, "tenant", objects, storage.store.object_bytes)
    tenant.write_all()
    tenant.read_all()
    tenant.require_right()
    return tenant


def test_server_loss(
    rack: Rack, labels: Labels, parameters: Mapping[str, Any], measure: Measure, progress: Progress
) -> None:
    """Per policy: a server fails, objects are read and some written without it, and all is made whole again."""
    shape = _shape(rack.lab, parameters)
    for name in parameters["policies"]:
        policy = ServerLoss(name)
        controller = RecoveryController(shape, policy)
        with ErasureRack(rack, labels, controller, _code(parameters)).open() as storage:
            tenant = _tenant(storage, parameters)
            measure("rebuild.server_failures_survived", storage.store.server_failures_survived, policy=policy)
            # Not the first reads: while those ran, drives with a write cache were still writing what they had taken.
            tenant.count_anew()
            tenant.read_all()
            measure("degraded.read_latency", tenant.read_s, policy=policy, when="healthy")
            server = rack.chance.choice(StorageParts.of(rack.lab).victims())
            with ExitStack() as standing:
                standing.enter_context(rack.faults.injected(FaultSpec(parameters["fault"], server, {})))
                began_s = storage.now_s()
                storage.server_lost(server)
                tenant.count_anew()
                tenant.read_all()
                measure("degraded.read_latency", tenant.read_s, policy=policy, when="degraded")
                for number in tenant.objects[: parameters["written_meanwhile"]]:
                    tenant.write(number)
                storage.recover(controller.server_failed(server))
                report = storage.store.rebuild(progress=partial(_tell, progress, name))
                restored_s = storage.now_s() - began_s
                tenant.read_all()
                _require_gone(rack, server)
            rack.bench.host(server).reconnect(rack.deadline(rack.lab.time_s("boot")))
            measure("rebuild.time", report.seconds, policy=policy)
            measure("rebuild.restored", restored_s, policy=policy)
            measure("rebuild.units", report.units, policy=policy)
            measure("rebuild.bytes", report.read_bytes, policy=policy, direction="read")
            measure("rebuild.bytes", report.written_bytes, policy=policy, direction="written")
            _require_whole(storage, tenant, measure, policy=policy)


def test_throttle(
    rack: Rack, labels: Labels, parameters: Mapping[str, Any], measure: Measure, progress: Progress
) -> None:
    """Per throttle: a drive fails under a tenant, and a spare is filled while the tenant goes on."""
    shape = _shape(rack.lab, parameters)
    for name in parameters["throttles"]:
        controller = RecoveryController(shape, ServerLoss.MOVE)
        with ErasureRack(rack, labels, controller, _code(parameters)).open() as storage:
            tenant = _tenant(storage, parameters)
            throttle = None
            if name != "none":
                throttle = Throttle(
                    parameters["throttle_bytes_per_s"],
                    rack.clock,
                    latency_target_s=parameters["latency_target_s"],
                    floor_bytes_per_s=parameters["throttle_floor_bytes_per_s"],
                )
            drive = rack.chance.choice(shape.drives)
            with storage.repeating([tenant.step], lambda: parameters["tenant_pause_s"]):
                tenant.count_anew()
                storage.sleep(parameters["healthy_s"])
                if healthy := list(tenant.read_s):
                    measure("rebuild.tenant_latency", healthy, throttle=name, when="healthy", request="read")
                with rack.faults.injected(FaultSpec("fail_stop", drive, {})):
                    _await_loss(storage, drive)
                    storage.drive_lost(drive, "it failed")
                    storage.recover(controller.drive_failed(drive))
                    tenant.count_anew()
                    report = storage.store.rebuild(
                        throttle=throttle,
                        progress=partial(_tell, progress, name),
                    )
                    reads, writes = list(tenant.read_s), list(tenant.write_s)
            tenant.read_all()
            measure("rebuild.time", report.seconds, throttle=name)
            measure("rebuild.bytes", report.read_bytes, throttle=name, direction="read")
            measure("rebuild.bytes", report.written_bytes, throttle=name, direction="written")
            for request, seconds in (("read", reads), ("write", writes)):
                if seconds:
                    measure("rebuild.tenant_latency", seconds, throttle=name, when="rebuilding", request=request)
            if throttle is not None:
                measure("rebuild.backoffs", throttle.backoffs, throttle=name)
            _require_whole(storage, tenant, measure, throttle=name)


def _tell(progress: Progress, name: str, done: int, total: int) -> None:
    progress(done, total, f"units rebuilt ({name})")


def _require_gone(rack: Rack, server: str) -> None:
    """Raise LabError where a server that was to fail still answers: nothing was survived then."""
    try:
        rack.bench.host(server).run(("true",), rack.deadline(rack.lab.time_s("answer")))
    except LabError:
        return
    raise LabError(f"server {server} was to fail and still answers; was the fault made?")


def _await_loss(storage: ErasureRack, drive: str) -> None:
    """Return when the store has given the drive up, or it does not answer: few objects may have no unit on it."""
    deadline = storage.rack.deadline()
    while drive not in storage.store.recovery_state().missing and _answers(storage, drive):
        if deadline.is_over():
            raise LabError(f"drive {drive} was to fail and still answers its server; was the fault made?")
        storage.sleep(0.01)


def _answers(storage: ErasureRack, drive: str) -> bool:
    try:
        storage.region_of(drive).read(0, BLOCK_BYTES)
    except LabError:
        return False
    return True


def _require_whole(storage: ErasureRack, tenant: ErasureTenant, measure: Measure, **labels: str) -> None:
    """Measure what came back wrong, and raise ProductFailed unless every unit is there and right, and of its codeword.

    Where units have wrong bytes the store is no longer healthy after a scrub; where redundancy was made wrong it is.
    """
    measure("rebuild.wrong", len(tenant.wrong), **labels)
    measure("rebuild.refused", tenant.refused, **labels)
    tenant.require_right()
    scrubbed = storage.store.scrub(repair=False)
    state = storage.store.recovery_state()
    is_whole = state.health is Health.HEALTHY and scrubbed.units == scrubbed.objects * storage.code.units
    if not is_whole or scrubbed.mismatched or scrubbed.lost:
        raise ProductFailed(f"after the rebuild the store is {state.health}, and a scrub found {asdict(scrubbed)}")
