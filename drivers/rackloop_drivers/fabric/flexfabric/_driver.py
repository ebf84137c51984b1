"""The FlexFabric switch as Rackloop uses it: a :class:`~rackloop.abilities.Fabric` and a PHY control."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rackloop.abilities import Applied, BoxIdentity, LiveMap, PortState, Staged
from rackloop.clock import Clock, Deadline
from rackloop.errors import BadInput, DeadlineExceeded, FabricError, LabError, StaleGeneration
from rackloop.portmap import Full, MapChange, Open, PortMap, disturbed_ports
from rackloop_drivers.fabric.flexfabric._session import (
    ANSWER_LOST,
    ANSWER_WITHIN_S,
    ATTEMPTS,
    BAUD,
    Exchange,
    FlexFabricSession,
    in_doubt,
)
from rackloop_drivers.fabric.flexfabric.dialect import messages as m
from rackloop_drivers.fabric.flexfabric.dialect.scpi_errors import SETTINGS_CONFLICT, TRIGGER_IGNORED

_GENERATION = (m.Generation(),)
_INSTANT_S = 1e-6


def open_flexfabric(
    url: str,
    clock: Clock,
    deadline: Deadline,
    token: int | None = None,
    *,
    answer_within_s: float = ANSWER_WITHIN_S,
    baud: int = BAUD,
    on_exchange: Callable[[Exchange], None] | None = None,
) -> FlexFabricSession:
    """Open a switch and take its control lock where ``token`` is given.

    ``url`` is ``tcp://HOST:PORT``, a device path, ``socket://HOST:PORT`` or ``rfc2217://HOST:PORT``.
    ``answer_within_s`` is how long an answer may stay away before it counts as lost.

    Raises :class:`~rackloop.errors.NotConnected` (no answer), :class:`~rackloop.errors.DeadlineExceeded`
    (silent), :class:`~rackloop.errors.ProtocolError` (noise, or another box) or
    :class:`~rackloop.errors.LockedOut` (a higher token was granted).
    """
    session = FlexFabricSession(
        url, clock, token=token, answer_within_s=answer_within_s, baud=baud, on_exchange=on_exchange
    )
    session.connect(deadline)
    return session


@contextmanager
def _already_told() -> Iterator[None]:
    """Questions after a command was sent: that one of them is refused does not say that the command was."""
    try:
        yield
    except FabricError as error:
        if error.code:
            raise FabricError(f"{error}; the change that was sent before may have been made") from error
        raise


class FlexFabric:
    """The switch's port map.

    A change is staged, read back, compared with what was meant and only then triggered, guarded by the generation.
    When the acknowledgement of the trigger is lost, the generation and the live map tell whether it was done.
    """

    def __init__(self, session: FlexFabricSession) -> None:
        self.session = session
        # What the connection has staged, and the live map it was staged on.
        self._staged: tuple[Staged, LiveMap] | None = None

    def identify(self, deadline: Deadline) -> BoxIdentity:
        """The identity that the switch reports."""
        identity: BoxIdentity
        (identity,) = self.session.ask((m.Identify(),), deadline)
        return identity

    def port_count(self, deadline: Deadline) -> int:
        """The number of ports, numbered from 1."""
        count: int
        (count,) = self.session.ask((m.PortCount(),), deadline)
        return count

    def generation(self, deadline: Deadline) -> int:
        """The number of changes of the live map so far."""
        generation: int
        (generation,) = self.session.ask(_GENERATION, deadline)
        return generation

    def live_map(self, deadline: Deadline) -> LiveMap:
        """The live map and the generation that names it, read together."""
        while True:
            before, pairs, after = self.session.ask(_look(None), deadline)
            if before == after:
                return LiveMap(after, pairs)
            if deadline.is_over():
                raise DeadlineExceeded(f"{self.session.url}: the live map keeps changing; stop the other controller")

    def apply(self, change: MapChange, deadline: Deadline, *, on: LiveMap | None = None) -> Applied:
        """Change the live map, exactly once, in two exchanges: stage and read back, then trigger and read back.

        The live map is read while staging where ``on`` is not given. Raises :class:`~rackloop.errors.StaleGeneration`
        where the switch has another map than that before the trigger; :class:`~rackloop.errors.FabricError` where the
        switch refuses, where ports do not follow, and where after a lost acknowledgement the switch is in neither the
        old nor the intended state.
        """
        with self.session.exclusive():
            before = self._stage(change, deadline, on)
            return self._execute(change, before, _trigger(change, before.generation), deadline)

    def stage(self, change: MapChange, deadline: Deadline, *, on: LiveMap | None = None) -> Staged:
        """Have the switch hold ``change`` ready for :meth:`trigger`; the live map stays as it is.

        What was staged before is forgotten. Raises :class:`~rackloop.errors.StaleGeneration` where the switch has
        another map than ``on``, :class:`~rackloop.errors.FabricError` where it refuses the map.
        """
        with self.session.exclusive():
            before = self._stage(change, deadline, on)
            if isinstance(change, Open):
                # The switch opens ports at once; what is left of the map without them can be staged.
                self._stage(Full(change.after(before.pairs)), deadline, before)
            staged = Staged(change, before.generation)
            self._staged = (staged, before)
            return staged

    def trigger(self, staged: Staged, deadline: Deadline) -> Applied:
        """Execute what :meth:`stage` gave, exactly once, in one exchange.

        Raises as :meth:`apply` does, and :class:`~rackloop.errors.FabricError` where another change was staged or made
        through this object since; nothing was done then.
        """
        with self.session.exclusive():
            if self._staged is None or self._staged[0] is not staged:
                raise FabricError(
                    f"{self.session.url}: another change was staged or made since this one; stage it again",
                    TRIGGER_IGNORED,
                )
            before = self._staged[1]
            return self._execute(staged.change, before, m.Trigger(before.generation), deadline)

    def _execute(self, change: MapChange, before: LiveMap, command: m.Request, deadline: Deadline) -> Applied:
        """Have ``change`` executed by ``command``, which was prepared for the live map ``before``."""
        self._staged = None
        intended = change.after(before.pairs)
        disturbed = tuple(sorted(disturbed_ports(before.pairs, intended)))
        attempt = 1
        lost: LabError | None = None
        commanded_ns = self.session.clock.now_ns()
        while True:
            was_sent = False
            try:
                if attempt > 1:
                    self._stage(change, deadline, before)
                    command = _trigger(change, before.generation)
                if lost is None:
                    commanded_ns = self.session.clock.now_ns()
                was_sent = True
                # No map is read back before ports are opened: one that noise made another has lost its circuit then.
                ports = None if isinstance(command, m.OpenPorts) else disturbed or None
                sent, answers = self.session.act_once(command, deadline, *_look(ports))
            except ANSWER_LOST as error:
                if not was_sent:
                    raise
                lost = error
            except FabricError as refused:
                # A connection that was made anew meanwhile has nothing staged.
                is_unstaged = refused.code == TRIGGER_IGNORED and attempt < ATTEMPTS
                if lost is None and not is_unstaged:
                    raise
                # The generation may be another because the trigger without an answer was carried out late.
                if lost is not None and not (is_unstaged or isinstance(refused, StaleGeneration)):
                    raise in_doubt(refused) from refused
            else:
                now_ns = self.session.clock.now_ns()
                applied = Applied(before.generation + 1, sent.begun_ns, now_ns, sent.written_ns)
                with _already_told():
                    self._check_followed(intended, before.generation + 1, ports, answers)
                return applied
            if lost is not None:
                with _already_told():
                    was_done = self._was_done(change, before, deadline, lost)
                if was_done:
                    return Applied(before.generation + 1, commanded_ns, self.session.clock.now_ns())
                if attempt == ATTEMPTS:
                    raise lost
            attempt += 1

    def _stage(self, change: MapChange, deadline: Deadline, on: LiveMap | None) -> LiveMap:
        """Have the switch hold ``change`` ready for its trigger, where it needs that; the live map as it is.

        Where ``on`` is given only its generation is compared.
        """
        self._staged = None
        if isinstance(change, Open):
            return self.live_map(deadline) if on is None else on
        load = m.LoadFull(change.pairs) if isinstance(change, Full) else m.LoadPartial(change.pairs)
        seen: tuple[m.Query[Any], ...] = _look(None) if on is None else _GENERATION
        staged, crc, *live = self.session.act(load, deadline, m.StagedMap(), m.StagedCrc(), *seen)
        if staged != change.pairs or crc != change.pairs.crc32():
            raise FabricError(
                f"{self.session.url}: expected ({change.pairs.canonical_text()}) to be staged, found "
                f"({staged.canonical_text()}) with CRC {crc}; nothing was triggered; check the line and try again"
            )
        if on is None:
            before, pairs, after = live
            return LiveMap(after, pairs) if before == after else self.live_map(deadline)
        if live != [on.generation]:
            raise StaleGeneration(
                f"{self.session.url}: expected generation {on.generation}, found {live[0]}: "
                "the live map has changed; read it and decide anew",
                SETTINGS_CONFLICT,
            )
        return on

    def _was_done(self, change: MapChange, before: LiveMap, deadline: Deadline, lost: LabError) -> bool:
        """Whether a change whose acknowledgement was lost has been made. Raises where that cannot be said."""
        intended = LiveMap(before.generation + 1, change.after(before.pairs))
        found = self.live_map(deadline)
        if found == intended:
            return True
        if found.generation == before.generation:
            return False
        raise FabricError(
            f"{self.session.url}: the acknowledgement of a map change was lost ({lost}); expected generation "
            f"{before.generation} (not done) or {intended.generation} with ({intended.pairs.canonical_text()}) (done), "
            f"found {found.generation} with ({found.pairs.canonical_text()}); the switch lost power or another "
            "controller changed it: bring the rack back to its baseline"
        )

    def _check_followed(
        self, intended: PortMap, generation: int, ports: Collection[int] | None, answers: Sequence[Any]
    ) -> None:
        """Compare these ports, or all, with what was meant, as of the generation that the change made.

        A stuck port acknowledges and stays put.

        ``answers`` are those to :func:`_look` behind the trigger. They say nothing where another change followed.
        """
        first, pairs, last = answers
        if min(first, last) < generation:
            raise FabricError(
                f"{self.session.url}: the switch acknowledged a map change, after which generation {generation} was "
                f"expected, found {min(first, last)}: it was not made, or the line is noisy; bring the rack back to "
                "its baseline"
            )
        if not generation == first == last:
            return
        compared = disturbed_ports(intended, pairs) if ports is None else ports
        stuck = sorted(port for port in compared if pairs.peer_of(port) != intended.peer_of(port))
        if stuck:
            raise FabricError(
                f"{self.session.url}: the switch acknowledged a map change that ports {stuck} did not follow: "
                f"expected {[intended.peer_of(port) for port in stuck]} at their other ends, found "
                f"{[pairs.peer_of(port) for port in stuck]}; check these ports and the line to the switch"
            )

    def port_states(self, ports: Collection[int], deadline: Deadline) -> dict[int, PortState]:
        """The state of each port, as the switch sees it."""
        wanted = tuple(sorted(set(ports)))
        if not wanted:
            return {}
        (states,) = self.session.ask((m.States(wanted),), deadline)
        return dict(zip(wanted, states, strict=True))

    def take_lock(self, token: int, deadline: Deadline) -> None:
        """Take the control lock, and present the token again whenever the session has to reconnect."""
        self.session.present(token, deadline)

    def release_lock(self, token: int, deadline: Deadline) -> None:
        """Give the control lock back; the token is not presented again, even where the switch gave the lock away."""
        try:
            self.session.act(m.ReleaseLock(token), deadline)
        finally:
            self.session.token = None

    def save_boot_map(self, deadline: Deadline) -> None:
        """Keep the live map as the one the switch starts with."""
        self.session.act(m.SaveMap(), deadline)

    def boot_map(self, deadline: Deadline) -> PortMap:
        """The map the switch starts with."""
        pairs: PortMap
        (pairs,) = self.session.ask((m.BootMap(),), deadline)
        return pairs

    def close(self) -> None:
        """Close the session, and with it every ability that shares it."""
        self.session.close()


class FlexFabricPhy:
    """The switch's power over the signal of each port. A request is retried under the same id until it is answered."""

    def __init__(self, session: FlexFabricSession) -> None:
        self.session = session

    def drop(self, ports: Collection[int], down_s: float, deadline: Deadline, *, request_id: int) -> None:
        """Take the signal away for ``down_s``; returns when the switch has begun."""
        self.session.act(m.DropPhy(tuple(sorted(set(ports))), _milliseconds(down_s), request_id), deadline)

    def flap(
        self, ports: Collection[int], down_s: float, up_s: float, count: int, deadline: Deadline, *, request_id: int
    ) -> None:
        """Take the signal away ``count`` times; returns when the switch has begun."""
        wanted = tuple(sorted(set(ports)))
        request = m.FlapPhy(wanted, _milliseconds(down_s), _milliseconds(up_s), count, request_id)
        self.session.act(request, deadline)

    def restore(self, ports: Collection[int], deadline: Deadline) -> None:
        """End what is left of drops and flaps of these ports: the switch forgets it for a drop of an instant."""
        if ports:
            self.drop(ports, _INSTANT_S, deadline, request_id=deadline.clock.now_ns())

    def drop_counts(self, ports: Collection[int], deadline: Deadline) -> dict[int, int]:
        """Drops the switch has seen on each port."""
        wanted = tuple(sorted(set(ports)))
        if not wanted:
            return {}
        (counts,) = self.session.ask((m.DropCounts(wanted),), deadline)
        return dict(zip(wanted, counts, strict=True))


def _look(ports: tuple[int, ...] | None) -> tuple[m.Query[Any], ...]:
    """The queries for the live circuits of ``ports``, or all, and for changes meanwhile."""
    return m.Generation(), m.LivePairs(ports), m.Generation()


def _trigger(change: MapChange, generation: int) -> m.Request:
    return m.OpenPorts(tuple(sorted(change.ports)), generation) if isinstance(change, Open) else m.Trigger(generation)


def _milliseconds(seconds: float) -> float:
    if not (math.isfinite(seconds) and seconds >= 0):
        raise BadInput(f"a signal cannot be away for {seconds} s; give a length of time from 0 s to an hour")
    return seconds * 1000
