"""The switch's front end without its wires: lines in, answer lines out. Does no I/O of its own.

:class:`SwitchCore` is what all connections share, :class:`SwitchSession` what belongs to one. A line's requests are
taken in order; once one is refused, the line's later commands are skipped and its queries are still answered, so
that a map that was refused is never followed by the trigger that was meant for it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from rackloop.abilities import BoxIdentity, LiveMap
from rackloop.errors import LabError, StaleGeneration
from rackloop.portmap import PortMap
from rackloop_drivers.fabric.flexfabric.dialect import codec
from rackloop_drivers.fabric.flexfabric.dialect import messages as m
from rackloop_drivers.fabric.flexfabric.dialect import scpi_errors as refusals
from rackloop_drivers.fabric.flexfabric.dialect.scpi_errors import ScpiError
from rackloop_drivers.fabric.flexfabric.peer import status
from rackloop_drivers.fabric.flexfabric.peer.control_lock import ControlLock
from rackloop_drivers.fabric.flexfabric.peer.matrix import PortMatrix

REMEMBERED_IDS = 64
SCPI_VERSION = "1999.0"


class SwitchCore:
    """The parts of the switch that belong to no connection: matrix, control lock, identity, ids of PHY drops.

    ``keep_token`` makes a newly granted token survive power loss; it returns once it does.
    """

    def __init__(
        self,
        matrix: PortMatrix,
        lock: ControlLock,
        *,
        serial: str = "FF000001",
        keep_token: Callable[[int], None] = lambda _token: None,
    ) -> None:
        self.matrix = matrix
        self.lock = lock
        self.identity = BoxIdentity("Rackloop", f"FlexFabric-{matrix.port_count}", serial, "1.0")
        self.keep_token = keep_token
        self._ids: OrderedDict[int, None] = OrderedDict()

    def is_repeated(self, request_id: int | None) -> bool:
        """Whether this id is among the last 64 that were carried out."""
        return request_id in self._ids

    def remember(self, request_id: int | None) -> None:
        """Note that the drop with this id was carried out."""
        if request_id is not None:
            self._ids[request_id] = None
            if len(self._ids) > REMEMBERED_IDS:
                self._ids.popitem(last=False)

    def lose_power(self) -> None:
        """Forget what the switch keeps in memory."""
        self.lock.lose_power()
        self._ids.clear()


@dataclass(frozen=True)
class _Staged:
    pairs: PortMap
    full: bool


class SwitchSession:
    """One connection: its staged map, its error queue and status registers, and the token it presented."""

    def __init__(self, core: SwitchCore, *, after_power_on: bool = False) -> None:
        self._core = core
        self._status = status.Status(events=status.POWER_ON if after_power_on else 0)
        self._staged: _Staged | None = None
        self._presented: int | None = None
        self._answers: list[str] = []
        self._asked_ns: int | None = None
        self._looked: LiveMap | None = None

    def overrun(self) -> None:
        """A line was longer than the input buffer."""
        self._status.report(ScpiError(refusals.BUFFER_OVERRUN))

    def fail(self) -> None:
        """A line ended in an error of the switch's own program."""
        self._status.report(ScpiError(refusals.SYSTEM_ERROR))

    async def execute(self, line: bytes, asked_ns: int | None = None) -> bytes:
        """Carry out one line, which came at ``asked_ns``; returns the answer line, empty where nothing was asked.

        Never raises.
        """
        self._asked_ns = asked_ns
        self._looked = None
        answers = self._answers = []
        is_refused = False
        for unit in codec.parse_line(line, self._core.matrix.port_count):
            refusal = unit.refusal
            request = unit.request
            if request is not None and (not is_refused or isinstance(request, m.Query)):
                refusal = await self._serve(request)
            if refusal is not None:
                is_refused = True
                self._status.report(refusal)
        return ";".join(answers).encode("ascii") + b"\n" if answers else b""

    async def _serve(self, request: m.Request) -> ScpiError | None:
        lock = self._core.lock
        if isinstance(request, m.Acting) and not lock.permits(self._presented):
            return ScpiError(refusals.COMMAND_PROTECTED, f"token {lock.holder} holds the lock")
        if not isinstance(request, m.Query):
            self._looked = None
        try:
            value = await self._HANDLERS[type(request)](self, request)
        except ScpiError as refusal:
            return refusal
        except StaleGeneration as stale:
            return ScpiError(refusals.SETTINGS_CONFLICT, str(stale))
        except LabError as error:
            return ScpiError(refusals.HARDWARE_ERROR, str(error))
        if isinstance(request, m.Query):
            self._answers.append(codec.format_answer(request, value))
        return None

    async def _identify(self, _: m.Identify) -> BoxIdentity:
        return self._core.identity

    async def _reset(self, _: m.Reset) -> None:
        await self._core.matrix.open(None, generation=None)

    async def _clear_status(self, _: m.ClearStatus) -> None:
        self._status.clear()

    async def _event_status(self, _: m.EventStatus) -> int:
        return self._status.take_events()

    async def _set_event_enable(self, request: m.SetEventEnable) -> None:
        self._status.event_enable = request.mask

    async def _event_enable(self, _: m.EventEnable) -> int:
        return self._status.event_enable

    async def _set_service_enable(self, request: m.SetServiceEnable) -> None:
        self._status.service_enable = request.mask

    async def _service_enable(self, _: m.ServiceEnable) -> int:
        return self._status.service_enable

    async def _status_byte(self, _: m.StatusByte) -> int:
        return self._status.byte(message_available=bool(self._answers))

    async def _note_completion(self, _: m.NoteCompletion) -> None:
        self._status.note_completion()

    async def _await_completion(self, _: m.AwaitCompletion) -> int:
        return 1

    async def _wait(self, _: m.Wait) -> None:
        """Every command is complete before the next is taken, so there is nothing to wait for."""

    async def _self_test(self, _: m.SelfTest) -> int:
        await self._core.matrix.generation()
        return 0

    async def _next_error(self, _: m.NextError) -> refusals.QueuedError:
        return self._status.take_error()

    async def _error_count(self, _: m.ErrorCount) -> int:
        return self._status.error_count()

    async def _version(self, _: m.Version) -> str:
        return SCPI_VERSION

    async def _port_count(self, _: m.PortCount) -> int:
        return self._core.matrix.port_count

    async def _request_lock(self, request: m.RequestLock) -> None:
        lock = self._core.lock
        highest_before = lock.highest
        lock.request(request.token)
        if lock.highest != highest_before:
            self._core.keep_token(lock.highest)
        self._presented = request.token

    async def _release_lock(self, request: m.ReleaseLock) -> None:
        self._core.lock.release(request.token)
        self._presented = None

    async def _lock_holder(self, _: m.LockHolder) -> int:
        return self._core.lock.holder

    async def _highest_token(self, _: m.HighestToken) -> int:
        return self._core.lock.highest

    async def _load_partial(self, request: m.LoadPartial) -> None:
        self._staged = _Staged(request.pairs, full=False)

    async def _load_full(self, request: m.LoadFull) -> None:
        self._staged = _Staged(request.pairs, full=True)

    async def _staged_map(self, _: m.StagedMap) -> PortMap:
        return self._staged.pairs if self._staged else PortMap()

    async def _staged_crc(self, _: m.StagedCrc) -> int:
        return (await self._staged_map(m.StagedMap())).crc32()

    async def _clear_staged(self, _: m.ClearStaged) -> None:
        self._staged = None

    async def _trigger(self, request: m.Trigger) -> None:
        matrix = self._core.matrix
        if self._staged is None:
            if request.generation is not None and request.generation != (now := await matrix.generation()):
                raise StaleGeneration(f"generation is {now}, not {request.generation}")
            raise ScpiError(refusals.TRIGGER_IGNORED, "no map is staged on this connection")
        staged, asked_ns = self._staged, self._asked_ns
        self._looked = await matrix.map(
            staged.pairs, full=staged.full, generation=request.generation, asked_ns=asked_ns
        )
        self._staged = None

    async def _generation(self, _: m.Generation) -> int:
        return (await self._live_map()).generation

    async def _live_map(self) -> LiveMap:
        """The live map at one moment since the line's last command: its queries up to the next are about the same."""
        if self._looked is None:
            self._looked = await self._core.matrix.get_map()
        return self._looked

    async def _live_pairs(self, request: m.LivePairs) -> PortMap:
        live = (await self._live_map()).pairs
        if request.ports is None:
            return live
        wanted = frozenset(request.ports)
        return PortMap(tuple(pair for pair in live if wanted.intersection(pair)))

    async def _states(self, request: m.States) -> tuple[str, ...]:
        return await self._core.matrix.states(request.ports)

    async def _open_ports(self, request: m.OpenPorts) -> None:
        self._looked = await self._core.matrix.open(
            request.ports, generation=request.generation, asked_ns=self._asked_ns
        )

    async def _open_all(self, request: m.OpenAll) -> None:
        self._looked = await self._core.matrix.open(None, generation=request.generation, asked_ns=self._asked_ns)

    async def _drop_phy(self, request: m.DropPhy) -> None:
        if not self._core.is_repeated(request.request_id):
            await self._core.matrix.phy_drop(request.ports, request.down_ms)
            self._core.remember(request.request_id)

    async def _flap_phy(self, request: m.FlapPhy) -> None:
        if not self._core.is_repeated(request.request_id):
            await self._core.matrix.phy_flap(request.ports, request.down_ms, request.up_ms, request.count)
            self._core.remember(request.request_id)

    async def _drop_counts(self, request: m.DropCounts) -> tuple[int, ...]:
        return await self._core.matrix.phy_counts(request.ports)

    async def _save_map(self, _: m.SaveMap) -> None:
        await self._core.matrix.save_map()

    async def _boot_map(self, _: m.BootMap) -> PortMap:
        return await self._core.matrix.saved_map()

    _HANDLERS: ClassVar[dict[type[m.Request], Callable[[SwitchSession, Any], Awaitable[Any]]]] = {
        m.Identify: _identify,
        m.Reset: _reset,
        m.ClearStatus: _clear_status,
        m.EventStatus: _event_status,
        m.SetEventEnable: _set_event_enable,
        m.EventEnable: _event_enable,
        m.SetServiceEnable: _set_service_enable,
        m.ServiceEnable: _service_enable,
        m.StatusByte: _status_byte,
        m.NoteCompletion: _note_completion,
        m.AwaitCompletion: _await_completion,
        m.Wait: _wait,
        m.SelfTest: _self_test,
        m.NextError: _next_error,
        m.ErrorCount: _error_count,
        m.Version: _version,
        m.PortCount: _port_count,
        m.RequestLock: _request_lock,
        m.ReleaseLock: _release_lock,
        m.LockHolder: _lock_holder,
        m.HighestToken: _highest_token,
        m.LoadPartial: _load_partial,
        m.LoadFull: _load_full,
        m.StagedMap: _staged_map,
        m.StagedCrc: _staged_crc,
        m.ClearStaged: _clear_staged,
        m.Trigger: _trigger,
        m.Generation: _generation,
        m.LivePairs: _live_pairs,
        m.States: _states,
        m.OpenPorts: _open_ports,
        m.OpenAll: _open_all,
        m.DropPhy: _drop_phy,
        m.FlapPhy: _flap_phy,
        m.DropCounts: _drop_counts,
        m.SaveMap: _save_map,
        m.BootMap: _boot_map,
    }
