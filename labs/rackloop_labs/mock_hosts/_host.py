"""A mock server: its states and the transitions between them."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict
from typing import Any

from rackloop.clock import Clock
from rackloop.errors import BadInput, RackloopError
from rackloop_labs.labd_control import HostState
from rackloop_labs.mock_hosts._console import AT_NMI, KILLED_INIT, SYSRQ, MockConsole
from rackloop_labs.mock_hosts._line_server import LineServer
from rackloop_labs.mock_hosts._packet_filter import NFT, PacketFilter
from rackloop_labs.mock_hosts._power_tools import POWER_TOOLS, Planned, PowerAct, plan_power
from rackloop_labs.mock_hosts._rootfs import HostFolder
from rackloop_labs.mock_hosts._sandbox import Sandbox
from rackloop_labs.mock_hosts._ssh_server import SshServer
from rackloop_labs.mock_hosts._ssh_session import HostSession
from rackloop_labs.mock_hosts._sysfs import Sysfs
from rackloop_labs.mock_hosts._view import Answer
from rackloop_labs.mock_hosts._watch import HostWatch
from rackloop_labs.mock_hosts.tools import TOOLS

_NOT_FOUND = 127
_FAILED = 1
_NO_ANSWER = 125
# Who asked for a reboot by SSH hears that it was accepted before the connection goes.
_GRACE_S = 0.1


class MockHost:
    """A server of a mock rack. It is off until :meth:`power_on`; changes wait for each other.

    ``bindings`` is the file tree it boots with (bubblewrap's options), ``cut_power`` takes its power away in rackd,
    ``console`` is where it prints.
    """

    def __init__(
        self,
        name: str,
        folder: HostFolder,
        bindings: Sequence[str],
        watch: HostWatch,
        sysfs: Sysfs,
        clock: Clock,
        cut_power: Callable[[], Coroutine[Any, Any, object]],
        console: MockConsole,
    ) -> None:
        self.name = name
        self.state = HostState.OFF
        self._folder = folder
        self._bindings = bindings
        self._watch = watch
        self._sysfs = sysfs
        self._clock = clock
        self._cut_power = cut_power
        self._console = console
        self._changing = asyncio.Lock()
        self._sandbox: Sandbox | None = None
        self._tools: LineServer | None = None
        self._planned: asyncio.TimerHandle | None = None
        self._packet_filter = PacketFilter()
        self._background: set[asyncio.Task[object]] = set()

    def attach(self, ssh: SshServer) -> None:
        """Have ``ssh`` answer for the server whenever it is up."""
        self._ssh = ssh

    def session(self) -> HostSession:
        """A new session of a client that has logged in."""
        return HostSession(self._running(), self._sysfs.catch_up)

    async def power_on(self) -> None:
        """Get power, and boot.

        Raises ToolError where bubblewrap or util-linux is missing, LabError where no sandbox can be made.
        """
        async with self._changing:
            await self._boot()

    async def reset(self) -> None:
        """Boot anew, with a new boot id, whatever went before. Raises BadInput where the server has no power."""
        async with self._changing:
            self._must_be(HostState.UP, HostState.HUNG, HostState.CRASHED)
            await self._boot()

    async def power_off(self) -> None:
        """Lose power."""
        async with self._changing:
            await self._end(HostState.OFF)

    async def crash(self, why: str = SYSRQ) -> None:
        """Panic: the kernel is gone, the power and the drives' links stay. Raises BadInput where nothing runs."""
        async with self._changing:
            self._must_be(HostState.UP, HostState.HUNG)
            await self._panic(why)

    def interrupt(self) -> None:
        """Get an NMI, at which the kernel panics where its settings say so."""
        if self.state in {HostState.UP, HostState.HUNG} and self._folder.panics_at_nmi:
            self.begin(self.crash(AT_NMI))

    async def halt(self) -> None:
        """End in an orderly way, without power being cut. Raises BadInput where nothing runs."""
        async with self._changing:
            self._must_be(HostState.UP, HostState.HUNG)
            self._console.halt(await asyncio.to_thread(self._watch.up_us, self.name))
            await self._stop()

    async def hang(self) -> None:
        """Accept connections and answer nothing until :meth:`resume`. Raises BadInput where the server is not up."""
        async with self._changing:
            self._must_be(HostState.UP)
            self.state = HostState.HUNG
            self._ssh.pause()
            await self._running().freeze()

    async def resume(self) -> None:
        """Go on where the server hung. Raises BadInput where it does not hang."""
        async with self._changing:
            self._must_be(HostState.HUNG)
            await self._running().thaw()
            self._ssh.resume()
            self.state = HostState.UP

    @property
    def is_cut_off(self) -> bool:
        """Whether its network cable is pulled."""
        return self._ssh.is_cut

    def pull_cable(self, *, out: bool) -> None:
        """Pull its network cable or plug it in: while it is out the server cannot be reached, and goes on by itself."""
        if out != self._ssh.is_cut:
            (self._ssh.cut if out else self._ssh.join)()

    async def catch_up(self) -> None:
        """Have ``/sys`` tell what is so in the rack now; as it was where the server does not run."""
        if self._sandbox is not None:
            await self._sysfs.catch_up()

    async def close(self) -> None:
        """End for good."""
        await self.power_off()
        self._ssh.shut()
        if self._tools is not None:
            self._tools.close()
            await self._sysfs.close()

    def _sysrq(self, letter: str) -> None:
        """A program on the server asks its kernel to panic (``c``) or to reboot at once (``b``)."""
        acts = {"c": self.crash, "b": self.reset}
        if self.state is HostState.UP and letter in acts:
            self.begin(acts[letter]())

    def _must_be(self, *states: HostState) -> None:
        if self.state not in states:
            wanted = " or ".join(states)
            raise BadInput(f"server {self.name} is {self.state}, and only one that is {wanted} can do that")

    def _running(self) -> Sandbox:
        assert self._sandbox is not None  # noqa: S101 - a server that is up or hung has one
        return self._sandbox

    async def _boot(self) -> None:
        await self._end(HostState.OFF)
        self._packet_filter.forget()
        self._folder.forget_settings()
        self._console.boot()
        boot_id = str(uuid.uuid4())
        self._folder.boot_id.write_text(f"{boot_id}\n")
        if self._tools is None:
            self._sysfs.on_sysrq = self._sysrq
            await self._sysfs.start()
            self._tools = await LineServer.at(self._folder.tool_socket, self._answer, _refuse)
        self._sandbox = await Sandbox.boot(self.name, self._bindings)
        await asyncio.to_thread(self._watch.boot, self.name, boot_id)
        await asyncio.to_thread(self._sysfs.boot)
        self._ssh.open()
        self.state = HostState.UP
        self._console.up()
        self.begin(self._notice_end(self._sandbox))

    async def _end(self, state: HostState) -> None:
        """End what runs, and be in ``state``."""
        self.state = state
        self._forget_plan()
        self._console.end()
        self._ssh.close()
        if self._sandbox is not None:
            sandbox, self._sandbox = self._sandbox, None
            await sandbox.end()

    async def _panic(self, why: str) -> None:
        self._console.panic(await asyncio.to_thread(self._watch.up_us, self.name), why)
        await self._stop()

    async def _stop(self) -> None:
        await self._end(HostState.CRASHED)
        await asyncio.to_thread(self._watch.halt, self.name)

    async def _notice_end(self, sandbox: Sandbox) -> None:
        """A sandbox that ends by itself is a crash, as when a program in it calls reboot(2)."""
        await sandbox.wait()
        async with self._changing:
            if sandbox is self._sandbox:
                await self._panic(KILLED_INIT)

    async def _answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """The output of a tool that was called on this server."""
        given = question.get("argv", [])
        if not isinstance(given, list):
            return _refuse("argv is no list")
        tool, argv = str(question.get("tool")), [str(word) for word in given]
        if tool in POWER_TOOLS:
            answer, planned = plan_power(tool, argv, self._clock.wall())
            if planned is not None:
                self._plan(planned)
        elif tool == NFT:
            answer = self._packet_filter.nft(argv)
        elif tool in TOOLS:
            answer = await asyncio.to_thread(self._run_tool, tool, argv)
        else:
            answer = Answer(stderr=f"sh: {tool}: not found\n", status=_NOT_FOUND)
        return asdict(answer)

    def _run_tool(self, tool: str, argv: Sequence[str]) -> Answer:
        try:
            # What a script reads from /sys after a tool is not older than what the tool said.
            return TOOLS[tool](argv, self._sysfs.view(), self._watch.acts(self.name))
        except RackloopError as error:
            return Answer(stderr=f"{tool}: {error}\n", status=_FAILED)

    def _forget_plan(self) -> None:
        if self._planned is not None:
            self._planned.cancel()
            self._planned = None

    def _plan(self, planned: Planned) -> None:
        self._forget_plan()
        acts: dict[PowerAct, Callable[[], Coroutine[Any, Any, object]]] = {
            PowerAct.HALT: self.halt,
            PowerAct.POWER_OFF: self._cut_power,
            PowerAct.REBOOT: self.reset,
        }
        if act := acts.get(planned.act):
            loop = asyncio.get_running_loop()
            self._planned = loop.call_later(planned.in_s + _GRACE_S, lambda: self.begin(act()))

    def begin(self, change: Coroutine[Any, Any, object]) -> None:
        """Have a change made while others go on; what fails is said on standard error."""
        task = asyncio.create_task(change)
        self._background.add(task)
        task.add_done_callback(self._settle)

    def _settle(self, task: asyncio.Task[object]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            sys.stderr.write(f"labd: server {self.name}: {error}\n")


def _refuse(why: str) -> dict[str, Any]:
    """The answer to a question that no tool asks."""
    return asdict(Answer(stderr=f"hosttool: {why}\n", status=_NO_ANSWER))
