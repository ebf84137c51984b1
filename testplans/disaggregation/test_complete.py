"""Complete disaggregation: a drive is remapped for each I/O; costs of LWFS and remaps."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any, TypeVar

import pytest

from rackloop.abilities.blocks import BLOCK_BYTES, IoFailed
from rackloop.errors import BadInput, ProductFailed
from rackloop.lab import Lab
from rackloop.parameters import choice, whole
from rackloop.units import counted
from rackloop_fixtures import (
    Compared,
    Labels,
    Measure,
    Progress,
    Rack,
    Stopwatch,
    StorageParts,
    StorageRack,
    Took,
    added_s,
    measure_compared,
    require_rules,
)
from rackloop_models.disaggregation import (
    POLICIES,
    Assignment,
    Chosen,
    Io,
    PerIoController,
    Placement,
    Shape,
    complete,
    complete_rules,
)
from rackloop_models.lwfs import HEADER_BYTES, Address, LwfsClient, LwfsFile

T = TypeVar("T")

PAYLOAD = BLOCK_BYTES - HEADER_BYTES
# A record takes a block, and what a drive may give has room for two such files.
FILE_BLOCKS = 8000
PARAMETERS = {
    "servers": whole(2, "servers that share the drives, the last of the lab", most=1000),
    "ports": whole(2, "ports of each server that are used", most=1000),
    "drives": whole(16, "drives that share the ports", most=10_000),
    "policies": choice(
        ["least_recently_used", "least_work"],
        "policies that choose the drive to be unmapped, each in turn",
        among=["least_recently_used", "least_work"],
    ),
    "ios": whole(64, "I/Os written by each policy, and as many read", most=1_000_000),
    "direct_ios": whole(200, "I/Os on a drive that stays attached, for comparison", most=FILE_BLOCKS),
    "rounds": whole(10, "rounds of the I/Os for comparison", least=2, most=10_000),
}
MEASURES = {
    "complete.io": "s",
    "complete.moved": "1",
    "complete.take": "s",
    "complete.guard": "s",
    "complete.overhead": "1",
    "complete.rule_broken": "1",
    "lwfs.io": "s",
    "lwfs.direct": "s",
    "lwfs.overhead": "1",
    "lwfs.key_reads": "1",
    "lwfs.metadata_calls": "1",
}
HEADLINES = ("complete.overhead",)

pytestmark = pytest.mark.rackloop(
    purpose="remap a drive for each I/O by a policy, and measure what that and the store cost",
    requires=["fabric.remap", "probe", "remap.announce", "blocks.harness"],
    destructive=True,
    time_class="seconds",
)


def check(lab: Lab, parameters: Mapping[str, Any]) -> None:
    """Raise BadInput for so many I/Os that chance may give a drive more of them than its file holds."""
    drives = len(_shape(lab, parameters).drives)
    most = drives * FILE_BLOCKS // 2
    if parameters["ios"] > most:
        raise BadInput(
            f"ios: the files of {counted(drives, 'drive')} have room for {most} records drawn at random, "
            f"and {parameters['ios']} are to be written; take more drives"
        )


def drives_erased(lab: Lab, parameters: Mapping[str, Any]) -> list[str]:
    """The many drives that share a few server ports."""
    return list(_shape(lab, parameters).drives)


def estimate_s(lab: Lab, parameters: Mapping[str, Any]) -> float:
    """About 15 ms an I/O that is remapped, twice as many of them as are written, and each drive formatted."""
    moves = len(parameters["policies"]) * (parameters["drives"] + 2 * parameters["ios"])
    return float(1 + moves * 0.01 + added_s(lab, remaps=moves, permits=moves))


def _shape(lab: Lab, parameters: Mapping[str, Any]) -> Shape:
    parts = StorageParts.of(lab)
    # The quickest attach is at the end of the mock rack's servers.
    servers = parts.servers[-parameters["servers"] :]
    return complete(servers, parts.ports[: parameters["ports"]], parts.drives[: parameters["drives"]])


@dataclass
class PerIoService:
    """The rack-local service of this design: asked for a drive's server, it has the drive attached there first."""

    storage: StorageRack
    controller: PerIoController
    assigned: Assignment | None = None
    guard_s: float = 0.0
    takes_s: list[float] = field(default_factory=list)
    key_reads: list[int] = field(default_factory=list)

    def server_of(self, drive_id: str) -> str:
        """The server that the policy chooses for the next I/O on the drive."""
        storage = self.storage
        self.assigned = assigned = self.controller.assign(drive_id, storage.now_s())
        storage.history.note(Chosen(storage.now_s(), assigned.io, drive_id, assigned.place[0]))
        self.guard_s = 0.0
        if assigned.move is not None:
            evicted = [] if assigned.evicted is None else [assigned.evicted]
            (taken,) = storage.move([assigned.move], evicted=evicted)
            self.guard_s = taken.guard_s
            self.takes_s.append(taken.seconds - taken.guard_s)
            self.key_reads.append(taken.key_reads)
        return storage.mapping.server_of(drive_id)


@dataclass
class TimedIos:
    """I/Os of a client through the service, one after the other.

    Times are without the guard's, which is the harness's own.
    """

    service: PerIoService
    client: LwfsClient
    moved_s: list[float] = field(default_factory=list)
    stayed_s: list[float] = field(default_factory=list)
    guard_s: list[float] = field(default_factory=list)
    every: list[Took] = field(default_factory=list)

    def do(
        self, file: LwfsFile, record: str, request: Callable[[], Address | bytes], payload: bytes
    ) -> Address | bytes:
        """One I/O, noted and timed.

        Raises what it raises, ProductFailed where that is an error with which a server answered that had the drive.
        """
        storage = self.service.storage
        watch = _stopwatch(storage)
        try:
            answer = request()
        except IoFailed as error:
            # Before its server was asked, the drive was on its way.
            if self.client.asked_s < watch.began_s:
                raise
            raise ProductFailed(
                f"the I/O on {record} met an error that nothing explains, from {self.client.served_by}, which had "
                f"{file.drive_id}: {error}"
            ) from error
        ended_s, took = storage.now_s(), watch.stop(less_s=self.service.guard_s)
        assigned = self.service.assigned
        assert assigned is not None
        self.service.controller.finished(assigned)
        content = answer if isinstance(answer, bytes) else payload
        is_write = isinstance(answer, Address)
        storage.history.note(
            Io(
                watch.began_s,
                ended_s,
                file.drive_id,
                self.client.served_by,
                is_write,
                record,
                zlib.crc32(content),
                ok=True,
                asked_s=self.client.asked_s,
                io=assigned.io,
            )
        )
        self.every.append(took)
        (self.stayed_s if assigned.move is None else self.moved_s).append(took.seen_s)
        if assigned.move is not None:
            self.guard_s.append(self.service.guard_s)
        return answer


def test_complete(
    rack: Rack, labels: Labels, parameters: Mapping[str, Any], measure: Measure, progress: Progress
) -> None:
    """Per policy: format all drives, time I/O on one that stays, then on all with remaps as the policy wants."""
    shape = _shape(rack.lab, parameters)
    for policy in parameters["policies"]:
        with StorageRack(rack, labels, shape.servers).open() as storage:
            _format(storage, shape)
            direct = _beside_direct(storage, shape, parameters, measure, policy)
            _per_io(storage, shape, policy, parameters, measure, progress, direct)


def _rounds(ios: Sequence[T], many: int) -> list[Sequence[T]]:
    """The I/Os in so many rounds; the last ones that fill no round are in the last."""
    each = len(ios) // many
    return [ios[start * each : (start + 1) * each if start + 1 < many else None] for start in range(many)]


def _overheads(
    statistic: Callable[[Sequence[float]], float], ios: Sequence[Took], raw: Sequence[Took], rounds: int
) -> list[Compared]:
    """The ``statistic`` of I/Os over the median of raw ones, in rounds with both of their own: each is one draw."""
    many = min(rounds, len(ios), len(raw))
    return [
        Compared.of(Took.over(statistic, one), Took.over(median, other))
        for one, other in zip(_rounds(ios, many), _rounds(raw, many), strict=True)
    ]


def _stopwatch(storage: StorageRack) -> Stopwatch:
    return Stopwatch(storage.now_s, storage.rack.waited_s, storage.rack.late_with)


def _format(storage: StorageRack, shape: Shape) -> None:
    """Give every drive a store, as many at once as there are ports."""
    places = shape.places
    for first in range(0, len(shape.drives), len(places)):
        drives = shape.drives[first : first + len(places)]
        storage.deploy(Placement(shape, dict(zip(drives, places, strict=False))))
        for drive in drives:
            storage.let_go(drive)


def _beside_direct(
    storage: StorageRack, shape: Shape, parameters: Mapping[str, Any], measure: Measure, policy: str
) -> dict[str, list[Took]]:
    """I/O of one block on one drive that stays, raw and through LWFS in turns; the raw ones."""
    drive = shape.drives[0]
    storage.deploy(Placement(shape, {drive: shape.places[0]}))
    storage.metadata.create("beside", drive, FILE_BLOCKS)
    calls = storage.metadata.calls
    client = LwfsClient(storage.metadata, storage.mapping, storage.servers, storage.wall_s, keeps_servers=True)
    file, session, region = client.open("beside"), storage.session(drive), storage.region_of(drive)
    raw_offset = region.offset + region.size_bytes - BLOCK_BYTES
    times: dict[tuple[str, str], list[Took]] = {
        (access, op): [] for access in ("direct", "lwfs") for op in ("append", "read")
    }

    def timed(access: str, op: str, request: Callable[[], object]) -> object:
        watch = _stopwatch(storage)
        answer = request()
        times[access, op].append(watch.stop())
        return answer

    def write_raw() -> None:
        session.write(raw_offset, bytes(BLOCK_BYTES))
        session.flush()

    for number in range(parameters["direct_ios"]):
        payload = number.to_bytes(8, "big") * (PAYLOAD // 8)
        address = timed("lwfs", "append", lambda payload=payload: file.append(payload))  # type: ignore[misc]
        assert isinstance(address, Address)
        timed("direct", "append", write_raw)
        if timed("lwfs", "read", lambda address=address: file.read(address)) != payload:  # type: ignore[misc]
            raise ProductFailed(f"{drive} does not read back what was appended at {address}")
        timed("direct", "read", lambda: session.read(raw_offset, BLOCK_BYTES))
    for op in ("append", "read"):
        lwfs, direct = times["lwfs", op], times["direct", op]
        measure("lwfs.io", [each.seen_s for each in lwfs], op=op, policy=policy)
        measure("lwfs.direct", [each.seen_s for each in direct], op=op, policy=policy)
        overheads = _overheads(median, lwfs, direct, parameters["rounds"])
        measure_compared(measure, "lwfs.overhead", overheads, op=op, policy=policy)
    measure("lwfs.metadata_calls", storage.metadata.calls - calls, policy=policy)
    storage.let_go(drive)
    return {op: times["direct", op] for op in ("append", "read")}


def _per_io(
    storage: StorageRack,
    shape: Shape,
    policy: str,
    parameters: Mapping[str, Any],
    measure: Measure,
    progress: Progress,
    direct: Mapping[str, Sequence[Took]],
) -> None:
    """Write a record on a drive drawn at random, as often as there are I/Os, and read each again in another order."""
    service = PerIoService(storage, PerIoController(shape, POLICIES[policy]()))
    client = LwfsClient(storage.metadata, service, storage.servers, storage.wall_s, now_s=storage.now_s)
    files = {}
    for drive in shape.drives:
        storage.metadata.create(f"file on {drive}", drive, FILE_BLOCKS)
        files[drive] = client.open(f"file on {drive}")
    chance = storage.rack.chance
    written: list[tuple[str, str, Address, bytes]] = []
    appends, reads = TimedIos(service, client), TimedIos(service, client)
    for number in range(parameters["ios"]):
        drive = chance.choice(shape.drives)
        payload = chance.randbytes(PAYLOAD)
        record = f"{drive}/{number}"
        address = appends.do(files[drive], record, lambda: files[drive].append(payload), payload)  # noqa: B023
        assert isinstance(address, Address)
        written.append((drive, record, address, payload))
        progress(number, 2 * parameters["ios"], f"I/Os by {policy}")
    chance.shuffle(written)
    for number, (drive, record, address, payload) in enumerate(written):
        reads.do(files[drive], record, lambda: files[drive].read(address), payload)  # noqa: B023
        progress(parameters["ios"] + number, 2 * parameters["ios"], f"I/Os by {policy}")

    for op, ios in (("append", appends), ("read", reads)):
        for kind, seconds in (("moved", ios.moved_s), ("stayed", ios.stayed_s)):
            if seconds:
                measure("complete.io", seconds, op=op, kind=kind, policy=policy)
        measure("complete.moved", len(ios.moved_s) / parameters["ios"], op=op, policy=policy)
        overheads = _overheads(fmean, ios.every, direct[op], parameters["rounds"])
        measure_compared(measure, "complete.overhead", overheads, op=op, policy=policy)
    measure("complete.take", service.takes_s, policy=policy)
    measure("complete.guard", [*appends.guard_s, *reads.guard_s], policy=policy)
    measure("lwfs.key_reads", service.key_reads, policy=policy)
    require_rules(measure, "complete.rule_broken", complete_rules(shape), storage.history, policy=policy)
