"""A controller's connection to the simulated switch, over any wire."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

from rackloop.clock import RealClock
from rackloop_drivers.fabric.flexfabric.peer.engine import SwitchCore, SwitchSession
from rackloop_drivers.fabric.flexfabric.peer.line_faults import LineFault, LineFaultRule, LineFaults
from rackloop_drivers.fabric.flexfabric.peer.line_reader import LineReader
from rackloop_drivers.fabric.flexfabric.peer.pace import PacedLine

_MOST_WAITING_LINES = 256


class Switch(Protocol):
    """The switch, as far as a connection needs it."""

    core: SwitchCore
    line_faults: LineFaults

    def power_cycle(self) -> Awaitable[None]:
        """Cut the power and give it back at once."""
        ...


class Connection:
    """Bytes in, answers out, one line at a time.

    A line that needs nothing from outside is answered before :meth:`feed` returns. Where the matrix answers later,
    the session's coroutine is resumed straight from the future it awaits, without a task in between.
    ``throttle`` is called with True when more lines wait than the input buffer should hold, with False when they
    have been taken. After :meth:`end` ``hang_up`` is called, once every line has been taken and answered.
    """

    def __init__(
        self,
        switch: Switch,
        output: PacedLine,
        throttle: Callable[[bool], None] = lambda _on: None,
        hang_up: Callable[[], None] = lambda: None,
    ) -> None:
        self._switch = switch
        self._output = output
        self._throttle = throttle
        self._hang_up = hang_up
        self._is_throttled = False
        self._is_blocked = False
        self._is_open = True
        self._has_ended = False
        self._clock = RealClock()
        self._power_up(SwitchSession(switch.core))

    def _power_up(self, session: SwitchSession) -> None:
        self._session = session
        self._reader = LineReader()
        self._lines: deque[tuple[int, bytes | None]] = deque()
        self._running: Coroutine[Any, Any, None] | None = None

    def restart(self) -> None:
        """The switch lost power and has it again: session, staged map, half lines and unsent answers are gone."""
        self._output.clear()
        self._power_up(SwitchSession(self._switch.core, after_power_on=True))
        self._pump()

    def end(self) -> None:
        """The controller says nothing more: its half line is lost, what it said before is carried out."""
        self._has_ended = True
        self._pump()

    def lose(self) -> None:
        """The controller has gone and hears nothing more. What it said is carried out where it said that it was all."""
        if not self._has_ended:
            self.close()
            return
        self._is_open = False
        self._output.clear()
        self.block(is_blocked=False)

    def close(self) -> None:
        """The connection was cut, and what came by it is lost."""
        self._is_open = False
        self._output.clear()
        self._lines.clear()

    def feed(self, data: bytes) -> None:
        """Take bytes from the wire."""
        came_ns = self._clock.now_ns()
        self._lines.extend((came_ns, line) for line in self._reader.feed(data))
        self._pump()

    def block(self, *, is_blocked: bool) -> None:
        """Take no further lines while the controller does not read its answers."""
        self._is_blocked = is_blocked
        self._pump()

    def _pump(self) -> None:
        while self._lines and self._running is None and not self._is_blocked:
            came_ns, line = self._lines.popleft()
            if line is None:
                self._session.overrun()
            elif line:
                self._running = self._take(line, came_ns)
                self._resume(self._running)
        if self._has_ended:
            if self._running is None and not self._lines:
                self._output.when_sent(self._hang_up)
            return
        if self._is_throttled != (crowded := len(self._lines) > _MOST_WAITING_LINES):
            self._is_throttled = crowded
            self._throttle(crowded)

    def _resume(self, coroutine: Coroutine[Any, Any, None]) -> None:
        try:
            awaited: asyncio.Future[Any] = coroutine.send(None)
        except StopIteration:
            self._is_over(coroutine)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the next line has its turn all the same
            self._is_over(coroutine)
            self._session.fail()
            context = {"message": "a line for the simulated switch could not be carried out", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
        else:
            awaited.add_done_callback(lambda _done: self._go_on(coroutine))

    def _is_over(self, coroutine: Coroutine[Any, Any, None]) -> None:
        if self._running is coroutine:
            self._running = None

    def _go_on(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._resume(coroutine)
        self._pump()

    async def _take(self, line: bytes, came_ns: int) -> None:
        session = self._session
        rule = self._switch.line_faults.verdict(line)
        if rule is None:
            if answer := await session.execute(line, came_ns):
                self._send(session, answer)
            return
        if rule.act is LineFault.UNHEARD:
            return
        if rule.act is LineFault.POWER_LOSS_BEFORE:
            await self._switch.power_cycle()
            return
        if rule.act is LineFault.STUCK_PORT and rule.port is not None:
            await self._switch.core.matrix.stick(rule.port, stuck=True)
        answer = await session.execute(line, came_ns)
        if rule.act is LineFault.POWER_LOSS_AFTER:
            await self._switch.power_cycle()
        elif answer:
            self._send_badly(session, answer, rule)

    def _send(self, session: SwitchSession, answer: bytes, delay_s: float = 0.0) -> None:
        if self._is_open and session is self._session:
            self._output.send(answer, delay_s)

    def _send_badly(self, session: SwitchSession, answer: bytes, rule: LineFaultRule) -> None:
        if rule.act is LineFault.GARBLED:
            answer = self._switch.line_faults.garble(answer)
        elif rule.act is LineFault.DOUBLED:
            answer += answer
        if rule.act is not LineFault.LOST:
            self._send(session, answer, rule.delay_s if rule.act is LineFault.LATE else 0.0)
