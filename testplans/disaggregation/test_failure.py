"""Failure disaggregation: survivors take a failed server's drives, spares replace drives; the time to recovery."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Any

import pytest

from rackloop.abilities.blocks import IoFailed
from rackloop.errors import BadInput, LabError, NotSupported, ProductFailed
from rackloop.faults import FaultSpec
from rackloop.lab import Lab
from rackloop.parameters import choice, flag, number, size, whole
from rackloop.units import counted
from rackloop_fixtures import (
    Labels,
    Measure,
    Progress,
    Rack,
    StorageClient,
    StorageParts,
    StorageRack,
    added_s,
    require_rules,
)
from rackloop_models.disaggregation import (
    DriveFailed,
    FailureController,
    Heartbeats,
    Move,
    Rebuild,
    Redistribution,
    ServerFailed,
    ServerRecovered,
    Shape,
    failure_rules,
)

# The rebuild that a failover is compared with is worked out for real drives and a real network, not for the rack's.
PARAMETERS = {
    "policies": choice(
        ["one", "spread"], "policies for the drives of a failed server, each in turn", among=["one", "spread"]
    ),
    "repeats": whole(6, "servers that fail, one after the other", most=10_000),
    "half": flag(True, "fail half of the servers together as well"),
    "drive_failures": whole(1, "drives that fail", least=0, most=1000),
    "spares": whole(2, "drives kept for those", least=0, most=1000),
    "fault": choice(
        "power_loss", "the fault that fails a server", among=["power_loss", "server_crash", "server_hang", "partition"]
    ),
    "beat_s": number(0.05, "heartbeat period of a server", least=0.001, most=60, unit="s"),
    "patience_s": number(1.0, "time without heartbeat until a server counts as failed", least=0.01, most=600, unit="s"),
    "within_s": number(20.0, "deadline for all drives to be served again", least=0.1, most=3600, unit="s"),
    "rebuild_drive_bytes": size(10_000_000_000_000, "a drive of the modelled rebuild", least=4096, most=1 << 50),
    "rebuild_filled": number(0.7, "its fill level, as a share", most=1),
    "rebuild_drive_bytes_per_s": size(200_000_000, "its transfer rate", most=1_000_000_000_000, unit="B/s"),
    "rebuild_network_bytes_per_s": size(
        1_250_000_000, "the transfer rate of its network", most=1_000_000_000_000, unit="B/s"
    ),
}
MEASURES = {
    "failover.full_service": "s",
    "failover.detect": "s",
    "failover.remap": "s",
    "failover.announce": "s",
    "failover.half_lost": "s",
    "failover.spare": "s",
    "failover.stall": "s",
    "failover.ios": "1",
    "failover.name_updates": "1",
    "failover.rebuild_modelled": "s",
    "failover.rule_broken": "1",
}
HEADLINES = ("failover.full_service",)

pytestmark = pytest.mark.rackloop(
    purpose="fail servers and drives, move drives to survivors and spares, and measure how soon all is served again",
    requires=["fabric.remap", "probe", "remap.announce", "blocks.harness", "fault.fail_stop"],
    destructive=True,
    time_class="seconds",
)


def drives_erased(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The nk/2 drives and the spares."""
    shape = _shape(lab, parameters)
    return [*shape.drives, *shape.spares]


def check(lab: Lab, parameters: Mapping[str, Any]) -> None:
    """BadInput where more drives fail than spares are kept, NotSupported where clients have all drives but fewer."""
    fails, spares = parameters["drive_failures"], parameters["spares"]
    if fails > spares:
        raise BadInput(f"drive_failures: {fails} drives fail, and spares: {spares} are kept for them")
    shape = _shape(lab, parameters)
    idle = len(shape.drives) - len(shape.servers)
    if fails > idle:
        raise NotSupported(
            f"{counted(idle, 'drive')} of lab {lab.name} could fail beside those of the clients, one on each server, "
            f"and {fails} are to: set drive_failures"
        )


def faults(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The faults, with their number. Raises NotSupported where too few servers may fail."""
    times, may_fail = len(parameters["policies"]), ", ".join(_victims(lab, parameters))
    return [
        f"{times * parameters['repeats']} times one of {may_fail} by {parameters['fault']}",
        *(
            [f"{times} times {_half(lab)} of {may_fail} together by {parameters['fault']}"]
            if parameters["half"]
            else []
        ),
        f"{times * parameters['drive_failures']} times a drive by fail_stop",
    ]


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """A failed server takes the patience of who waits for it and a second to come back."""
    each_s = parameters["patience_s"] + 0.8
    failures = parameters["repeats"] + parameters["half"] * _half(lab)
    policies = len(parameters["policies"])
    return float(2 + policies * (2 + failures * each_s) + added_s(lab, returns=policies * failures))


def _shape(lab: Lab, parameters: Mapping[str, Any]) -> Shape:
    return StorageParts.of(lab).failure(parameters["spares"])


def _half(lab: Lab) -> int:
    return len(lab.servers) // 2


def _victims(lab: Lab, parameters: Mapping[str, Any]) -> tuple[str, ...]:
    return StorageParts.of(lab).victims(_half(lab) if parameters["half"] else 1)


@dataclass
class Failover:
    """A controller at work on a rack: it hears of servers, gives them up, and has their drives served by others."""

    storage: StorageRack
    controller: FailureController
    clients: list[StorageClient]
    beat_s: float
    patience_s: float
    detect_s: list[float] = field(default_factory=list)
    remap_s: list[float] = field(default_factory=list)
    announce_s: list[float] = field(default_factory=list)
    full_service_s: list[float] = field(default_factory=list)
    _listening: list[Future[None]] = field(default_factory=list)

    def report(self, drives: Iterable[str]) -> None:
        """Have the servers of these drives read what is on them, and tell the name service.

        Raises ProductFailed where a drive answers its server with an error.
        """
        storage = self.storage
        on = {client.drive: client for client in self.clients}
        for drive in drives:
            server = storage.mapping.server_of(drive)
            blocks = set()
            if drive in on:
                grant = on[drive].client.grant(on[drive].name, on[drive].rights)
                try:
                    records = storage.servers[server].recover(drive, grant.token).records
                except IoFailed as error:
                    raise ProductFailed(f"{server}, which has {drive}, cannot read what is on it: {error}") from error
                blocks = {f"{on[drive].name}/{number}" for number in range(len(records))}
            storage.names.report(server, drive, blocks)

    def lose_server(self, server: str, fault: str, standing: ExitStack) -> None:
        """Break a server until ``standing`` is left, and return when its drives are served by others."""
        storage, began_s = self.storage, self.storage.now_s()
        standing.enter_context(storage.rack.faults.injected(FaultSpec(fault, server, {})))
        storage.history.note(ServerFailed(storage.now_s(), server, began_s))
        # The harness plays the server's storage process, which dies with it.
        storage.died(server)
        self._listening += self._await_loss(server)
        detected_s = storage.now_s()
        storage.names.forget_server(server)
        moves = self.controller.server_failed(server)
        storage.move(moves)
        mapped_s = storage.now_s()
        self._announce(moves)
        done_s = storage.now_s()
        self.detect_s.append(detected_s - began_s)
        self.remap_s.append(mapped_s - detected_s)
        self.announce_s.append(done_s - mapped_s)
        self.full_service_s.append(done_s - began_s)

    def bring_back(self, server: str) -> None:
        """Give a server that is well again its share of the drives."""
        storage = self.storage
        for listener in self._listening:
            listener.result()
        self._listening.clear()
        storage.rack.bench.host(server).reconnect(storage.rack.deadline(storage.rack.lab.time_s("boot")))
        storage.history.note(ServerRecovered(storage.now_s(), server))
        back = self.controller.server_back(server)
        storage.move(back)
        self.report(move.drive for move in back)

    def lose_drive(self, drive: str) -> float:
        """Break a drive, and return how long it took until a spare served in its place."""
        storage, began_s = self.storage, self.storage.now_s()
        with storage.rack.faults.injected(FaultSpec("fail_stop", drive, {})):
            deadline = storage.rack.deadline()
            while storage.is_readable(drive):
                if deadline.is_over():
                    raise LabError(f"drive {drive} was to fail and still answers its server; was the fault made?")
                storage.sleep(self.beat_s)
            storage.history.note(DriveFailed(storage.now_s(), drive, began_s))
            storage.let_go(drive)
            move = self.controller.drive_failed(drive)
            storage.move([move], new=[move.drive])
            self.report([move.drive])
            StorageClient.on(storage, move.drive, f"first on {move.drive}").step()
            return storage.now_s() - began_s

    def _await_loss(self, server: str) -> list[Future[None]]:
        """Hear every server again and again until one is given up, which must be this one; the listeners, ending.

        Raises LabError where another is, or none until long after this one should have been.
        """
        storage, over, lock = self.storage, Event(), Lock()
        # A server is given up after two questions in vain, which its patience has room for.
        answers_s = max(1.0, self.patience_s / 2)
        deadline = storage.rack.deadline(self.patience_s + 2 * answers_s + storage.rack.lab.time_s("boot"))
        beats = Heartbeats(self.controller.up, self.patience_s, storage.now_s())

        def listen(name: str) -> None:
            while not over.is_set():
                # Who does not answer keeps only its own listener waiting.
                try:
                    storage.rack.bench.host(name).run(("true",), storage.rack.deadline(answers_s))
                except LabError:
                    with lock:
                        beats.missed(name)
                else:
                    with lock:
                        beats.heard(name, storage.now_s())
                storage.sleep(self.beat_s)

        threads = ThreadPoolExecutor(len(self.controller.up), thread_name_prefix="beat")
        lost: list[str] = []
        try:
            listening = [threads.submit(listen, name) for name in self.controller.up]
            while not lost:
                if deadline.is_over():
                    raise LabError(f"server {server} was to fail and still answers; was the fault made?")
                storage.sleep(self.beat_s)
                with lock:
                    lost = beats.lost(storage.now_s())
        finally:
            over.set()
            # A command to a server that hangs takes its time to end, and nothing has to wait for it.
            threads.shutdown(wait=False)
        if lost != [server]:
            raise LabError(f"{', '.join(lost)} did not answer for {self.patience_s:g} s, and only {server} was broken")
        return listening

    def _announce(self, moves: Iterable[Move]) -> None:
        self.report(move.drive for move in moves)
        missing = self.storage.names.missing()
        if missing:
            raise ProductFailed(f"no server announced {len(missing)} blocks, {min(missing)} among them")


def test_failure(
    rack: Rack, labels: Labels, parameters: Mapping[str, Any], measure: Measure, progress: Progress
) -> None:
    """Per policy: servers fail one after the other while clients work, then drives."""
    shape, may_fail = _shape(rack.lab, parameters), _victims(rack.lab, parameters)
    # Often enough to meet every failure; slow servers have slow clients.
    pause_s = parameters["patience_s"] / 20
    for name in parameters["policies"]:
        policy = Redistribution(name)
        with StorageRack(rack, labels, shape.servers).open() as storage:
            failover = _deployed(storage, FailureController(shape, policy), parameters)
            victims = [rack.chance.choice(may_fail) for _ in range(parameters["repeats"])]
            with storage.repeating([client.step for client in failover.clients], lambda: pause_s):
                for number, server in enumerate(victims):
                    _lose_and_bring_back(failover, [server], parameters["fault"])
                    progress(number + 1, len(victims), f"servers failed ({policy})")
                alone = len(failover.full_service_s)
                if parameters["half"]:
                    half = rack.chance.sample(may_fail, k=_half(rack.lab))
                    _lose_and_bring_back(failover, half, parameters["fault"])
                used = {client.drive for client in failover.clients}
                idle = [drive for drive in failover.controller.placement.at if drive not in used]
                spare_s = [failover.lose_drive(drive) for drive in idle[: parameters["drive_failures"]]]
            for client in failover.clients:
                client.read_all()
        storage.plot()
        _measure(failover, policy, measure, spare_s, alone)
        rules = failure_rules(
            shape, policy, within_s=parameters["within_s"], drives_fail=parameters["drive_failures"] > 0, with_io=True
        )
        require_rules(measure, "failover.rule_broken", rules, storage.history, policy=policy)
    measure("failover.rebuild_modelled", _rebuild(shape, parameters).seconds, errors=0, drives=str(shape.k // 2))


def _deployed(storage: StorageRack, controller: FailureController, parameters: Mapping[str, Any]) -> Failover:
    """Every drive with a store and announced, and a client on one drive of each server."""
    storage.deploy(controller.placement)
    shape = controller.shape
    first = [controller.placement.drives_of(server)[0] for server in shape.servers]
    clients = [StorageClient.on(storage, drive, f"client of {drive}") for drive in first]
    failover = Failover(storage, controller, clients, parameters["beat_s"], parameters["patience_s"])
    for client in clients:
        client.step()
    failover.report(shape.drives)
    return failover


def _lose_and_bring_back(failover: Failover, servers: Sequence[str], fault: str) -> None:
    """Lose these servers one after the other, none back before the last is served by others; then all come back."""
    with ExitStack() as standing:
        for server in servers:
            failover.lose_server(server, fault, standing)
    for server in servers:
        failover.bring_back(server)


def _measure(failover: Failover, policy: Redistribution, measure: Measure, spare_s: list[float], alone: int) -> None:
    """The times of the first ``alone`` failures, each with all other servers up; of the others, in full service."""
    measure("failover.full_service", failover.full_service_s[:alone], policy=policy)
    measure("failover.detect", failover.detect_s[:alone], policy=policy)
    measure("failover.remap", failover.remap_s[:alone], policy=policy)
    measure("failover.announce", failover.announce_s[:alone], policy=policy)
    if failover.full_service_s[alone:]:
        measure("failover.half_lost", failover.full_service_s[alone:], policy=policy)
    if spare_s:
        measure("failover.spare", spare_s, policy=policy)
    measure("failover.stall", [client.longest_s for client in failover.clients], policy=policy)
    measure("failover.ios", sum(client.ios for client in failover.clients), policy=policy)
    measure("failover.name_updates", failover.storage.names.updates, policy=policy)


def _rebuild(shape: Shape, parameters: Mapping[str, Any]) -> Rebuild:
    """Copying what a failed server had, from the drives that are left to the drives that are left."""
    left = len(shape.drives) - shape.k // 2
    return Rebuild(
        drives=shape.k // 2,
        drive_bytes=parameters["rebuild_drive_bytes"],
        filled=parameters["rebuild_filled"],
        sources=left,
        source_bytes_per_s=parameters["rebuild_drive_bytes_per_s"],
        writers=left,
        writer_bytes_per_s=parameters["rebuild_drive_bytes_per_s"],
        network_bytes_per_s=parameters["rebuild_network_bytes_per_s"],
    )
