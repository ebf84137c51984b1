"""A lab that is a process of this machine while it is up: brought up and down."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from rackloop.clock import Clock, Deadline
from rackloop.errors import BadInput, LabError
from rackloop.lab import Lab, LabState
from rackloop.seed import choose_seed
from rackloop_drivers.rackd import RackdControl
from rackloop_labs import _daemon
from rackloop_labs._daemon import Leash
from rackloop_labs._fixed_cabling import numbered
from rackloop_labs.described import require_described

_DOWN_S = 60.0
_CONNECT_S = 5.0
_POLL_S = 0.02


class LabProcess:
    """Brings the rack of ``lab`` up and down. Its state is kept under the lab's name.

    ``module`` is the program of the process. On a busy machine it takes its time to come up, ``up_s`` at most; one that
    ends instead is noticed at once.
    """

    module: ClassVar[str] = "rackloop_labs.labd"
    up_s: ClassVar[float] = 60.0

    def __init__(self, lab: Lab, clock: Clock, state: LabState | None = None) -> None:
        self.lab = lab
        self.clock = clock
        self.state = state or LabState.of(lab.name)

    def is_up(self) -> bool:
        """Whether the rack is up, once one that is coming up or ending has done so: after ``up_s`` at the latest."""
        Deadline.after(self.clock, self.up_s).poll(
            lambda: self.state.endpoints_file.exists() or not self.state.is_held(), every_s=_POLL_S
        )
        return self.state.is_held()

    def up(self, *, leashed: bool = False, seed: int | None = None) -> Leash | None:
        """Bring the rack up at its baseline map; it stays up until :meth:`down`, or ``leashed`` until let go.

        Another process that brings it up is waited for. Raises BadInput where it is up already, LabError where it does
        not come up.
        """
        with self._alone():
            if self.is_up():
                name = self.lab.name
                raise BadInput(f"lab {name} is up already: use it, or `rackloop lab down {name}` first")
            deadline = Deadline.after(self.clock, self.up_s)
            chosen = choose_seed() if seed is None else seed
            return _daemon.start(self.lab, self.state, chosen, deadline, leashed=leashed, module=self.module)

    def leashed(self, seed: int | None = None, *, bring_up: bool = True) -> Leash | None:
        """Bring the rack up until the leash is let go; None where it is up, or is not to be brought up.

        One that comes up is waited for in any case. Raises as :meth:`up` does.
        """
        if self.is_up() or not bring_up:
            return None
        try:
            return self.up(leashed=True, seed=seed)
        except BadInput:
            # Another process may have brought it up meanwhile.
            if not self.is_up():
                raise
            return None

    def down(self) -> bool:
        """Take the rack down and leave nothing behind; False where it was not up.

        Raises BadInput where it was brought up from another description.
        """
        require_described(self.lab, self.state, to_end=True)
        return _daemon.stop(self.state, Deadline.after(self.clock, _DOWN_S))

    def release(self, leash: Leash) -> None:
        """End a leashed rack and return once nothing is left of it."""
        leash.let_go()
        _daemon.wait_until_gone(self.state, Deadline.after(self.clock, _DOWN_S))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let no other process bring the lab up meanwhile. Raises LabError where one does so all the time."""
        waited = Deadline.after(self.clock, 2 * self.up_s)
        lock = waited.poll(lambda: self.state.take("up"), lambda taken: taken is not None, every_s=_POLL_S)
        if lock is None:
            raise LabError(f"another process has been bringing lab {self.lab.name} up for long; see {self.state.log}")
        try:
            yield
        finally:
            os.close(lock)

    def status(self) -> dict[str, Any]:
        """Every endpoint, with the drive that each server port sees now.

        ``truth_lost`` is how many records of what the rack did its truth log lacks. Raises LabError where the lab is
        not up, BadInput where it was brought up from another description.
        """
        require_described(self.lab, self.state)
        endpoints = self.state.endpoints()
        control = RackdControl(Path(endpoints["control"]), self.clock)
        try:
            live = dict(control.request("get_map", Deadline.after(self.clock, _CONNECT_S))["pairs"])
            endpoints["truth_lost"] = control.request("stats", Deadline.after(self.clock, _CONNECT_S))["truth_lost"]
        finally:
            control.close()
        behind = {drive["port"]: name for name, drive in endpoints["drives"].items()}
        lab = numbered(self.lab)
        behind |= {expander.port: name for name, expander in lab.expanders.items()}
        peers = live | {high: low for low, high in live.items()}
        for server, described in lab.servers.items():
            for port, number in described.ports.items():
                endpoints["servers"][server]["ports"][port]["drive"] = behind.get(peers.get(number))
        return endpoints
