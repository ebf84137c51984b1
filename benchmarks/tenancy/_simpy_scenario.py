"""Tenants on a simple drive through Gimbal, in SimPy: what `drivesim` is held against.

The drive is what drivesim's model of an SSD is for reads of what was never written: a controller that takes its time
for each command, and a link that carries the data, each serving one request after the other. It has no flash, no buffer
and no translation layer, so it is simpler than what drivesim carries along. The scheduler is the rule of
``docs/explanations/schedulers.md`` for reads, with the defaults of the crate ``schedulers``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import simpy

from rackloop.seed import stream

MIB = float(1 << 20)
SLOT_BYTES = QUANTUM = 128 << 10
VIRTUAL_SLOTS = 8
BUCKET = 256.0 * 1024
WRITE_COST = 9.0
THRESH_MIN_US, THRESH_MAX_US = 250.0, 1500.0
RATE_MIN, RATE_MAX = 50 * MIB / 1e6, 4096 * MIB / 1e6  # bytes a microsecond
WINDOW_BYTES = 16 << 20

Process = Generator[simpy.Event, Any, None]


@dataclass(frozen=True)
class SimpleDrive:
    """Times of the controller for a command and of the link for its data, one request after the other on each."""

    command_us: float
    transfer_us: float


@dataclass
class _Slot:
    weighted: int = 0
    requests: int = 0
    completed: int = 0
    is_full: bool = False


@dataclass
class _Request:
    tenant: _Tenant
    size: int
    offset: int
    arrived_us: float
    dispatched_us: float = 0.0
    slot: _Slot | None = None


@dataclass(eq=False)
class _Tenant:
    queue: deque[_Request] = field(default_factory=deque)
    slots: list[_Slot] = field(default_factory=list)
    deficit: int = 0
    state: str = "idle"
    at_drive: int = 0
    latencies_us: list[float] = field(default_factory=list)

    def has_room(self, limit: int) -> bool:
        return len(self.slots) < limit or any(not slot.is_full for slot in self.slots)


class Gimbal:
    """Deficit round robin over tenants with a free virtual slot, at a target rate that follows the latency of reads."""

    def __init__(self) -> None:
        self.rate = 1000 * MIB / 1e6
        self.ewma_us = 0.0
        self.thresh_us = THRESH_MAX_US
        self.tokens = [BUCKET, BUCKET]
        self.filled_us = self.window_us = 0.0
        self.window_bytes = 0
        self.completion_rate: float | None = None
        self.list: deque[_Tenant] = deque()
        self.deferred: list[_Tenant] = []
        self.active = 0
        self.has_quantum = False

    @property
    def limit(self) -> int:
        return max(1, VIRTUAL_SLOTS // max(1, self.active))

    def arrive(self, request: _Request) -> None:
        tenant = request.tenant
        self.active += not tenant.queue and not tenant.at_drive
        tenant.queue.append(request)
        if tenant.state == "idle":
            tenant.state = "listed"
            self.list.append(tenant)

    def next(self, now_us: float) -> _Request | float | None:
        """The request that may go; the time to ask again; or nothing."""
        self._refill(now_us)
        while self.list:
            tenant = self.list[0]
            if not tenant.queue:
                self._delist("idle")
            elif not tenant.has_room(self.limit):
                self._delist("deferred")
            elif tenant.deficit < tenant.queue[0].size:
                if not self.has_quantum:
                    tenant.deficit += QUANTUM
                    self.has_quantum = True
                else:
                    self.list.rotate(-1)
                    self.has_quantum = False
            elif self.tokens[0] < tenant.queue[0].size:
                missing = tenant.queue[0].size - self.tokens[0]
                return now_us + missing / (self.rate * WRITE_COST / (WRITE_COST + 1)) + 1e-3
            else:
                return self._dispatch(tenant, now_us)
        return None

    def complete(self, request: _Request, now_us: float) -> None:
        latency_us = now_us - request.dispatched_us
        self.window_bytes += request.size
        if self.window_bytes >= WINDOW_BYTES:
            self.completion_rate = self.window_bytes / (now_us - self.window_us)
            self.window_bytes, self.window_us = 0, now_us
        self.ewma_us += (latency_us - self.ewma_us) / 2
        if self.ewma_us > self.thresh_us:
            if self.ewma_us > THRESH_MAX_US:
                self.rate = min(self.rate, self.completion_rate or self.rate)
                self.tokens = [min(0.0, tokens) for tokens in self.tokens]
            self.rate -= request.size / 1e6
            self.thresh_us = (self.thresh_us + THRESH_MAX_US) / 2
        else:
            self.rate += request.size / 1e6 * (1 if self.ewma_us > THRESH_MIN_US else 8)
            self.thresh_us -= (self.thresh_us - self.ewma_us) / 16
        self.rate = min(max(self.rate, RATE_MIN), RATE_MAX)
        tenant, slot = request.tenant, request.slot
        assert slot is not None
        slot.completed += 1
        if slot.is_full and slot.completed == slot.requests:
            tenant.slots.remove(slot)
        tenant.at_drive -= 1
        self.active -= not tenant.queue and not tenant.at_drive
        if tenant.state == "deferred" and tenant.has_room(self.limit):
            tenant.state = "listed"
            self.list.append(tenant)

    def _refill(self, now_us: float) -> None:
        refill = self.rate * (now_us - self.filled_us)
        self.filled_us = now_us
        writes = refill / (WRITE_COST + 1)
        read, write = self.tokens[0] + refill - writes, self.tokens[1] + writes
        self.tokens = [
            min(BUCKET, read + max(0.0, write - BUCKET)),
            min(BUCKET, write + max(0.0, read - BUCKET)),
        ]

    def _delist(self, state: str) -> None:
        tenant = self.list.popleft()
        tenant.deficit = 0
        tenant.state = state
        self.has_quantum = False

    def _dispatch(self, tenant: _Tenant, now_us: float) -> _Request:
        request = tenant.queue.popleft()
        self.tokens[0] -= request.size
        tenant.deficit -= request.size
        slot = next((slot for slot in tenant.slots if not slot.is_full), None)
        if slot is None:
            slot = _Slot()
            tenant.slots.append(slot)
        slot.weighted += request.size
        slot.requests += 1
        slot.is_full = slot.weighted >= SLOT_BYTES
        request.slot, request.dispatched_us = slot, now_us
        tenant.at_drive += 1
        if not tenant.queue:
            self._delist("idle")
        elif not tenant.has_room(self.limit):
            self._delist("deferred")
        return request


class Scenario:
    """Tenants that keep ``depth`` random reads outstanding each; ``run`` says how many were completed."""

    def __init__(self, drive: SimpleDrive, tenants: int, depth: int, size: int, region: int) -> None:
        self._drive = drive
        self._env = simpy.Environment()
        self._controller = simpy.Resource(self._env)
        self._link = simpy.Resource(self._env)
        self._gimbal = Gimbal()
        self._size, self._blocks = size, region // size
        self._random = stream(1, "simpy")
        self._asked_us: float | None = None
        self.tenants = [_Tenant() for _ in range(tenants)]
        for tenant in self.tenants:
            for _ in range(depth):
                self._arrive(tenant)

    def run(self, seconds: float) -> int:
        """Advance by so many virtual seconds; returns the requests that were completed in them."""
        before = sum(len(tenant.latencies_us) for tenant in self.tenants)
        self._dispatch()
        self._env.run(until=self._env.now + seconds * 1e6)
        return sum(len(tenant.latencies_us) for tenant in self.tenants) - before

    def _arrive(self, tenant: _Tenant) -> None:
        offset = self._random.randrange(self._blocks) * self._size
        self._gimbal.arrive(_Request(tenant, self._size, offset, self._env.now))

    def _dispatch(self) -> None:
        while True:
            choice = self._gimbal.next(self._env.now)
            if isinstance(choice, _Request):
                self._env.process(self._serve(choice))
                continue
            if choice is not None and (self._asked_us is None or choice < self._asked_us):
                self._asked_us = choice
                self._env.process(self._ask_again(choice))
            return

    def _ask_again(self, at_us: float) -> Process:
        yield self._env.timeout(max(0.0, at_us - self._env.now))
        if self._asked_us == at_us:
            self._asked_us = None
        self._dispatch()

    def _serve(self, request: _Request) -> Process:
        with self._controller.request() as turn:
            yield turn
            yield self._env.timeout(self._drive.command_us)
        with self._link.request() as turn:
            yield turn
            yield self._env.timeout(self._drive.transfer_us)
        request.tenant.latencies_us.append(self._env.now - request.arrived_us)
        self._gimbal.complete(request, self._env.now)
        self._arrive(request.tenant)
        self._dispatch()
