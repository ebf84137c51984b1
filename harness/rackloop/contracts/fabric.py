"""The contract of every :class:`~rackloop.abilities.Fabric` with its callers.

Each call of the factory opens one more connection to the same switch; a factory that can give only one raises
:class:`~rackloop.errors.NotSupported` for the second. The clauses map and unmap the switch's last eight ports, one of
them every port for a moment, so on a real arm nothing may be in use. Each leaves the live map, the boot map and
the lock as it found them; only the generation and the highest token granted have grown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from rackloop.abilities import Fabric, LiveMap, stager
from rackloop.contracts._clause import CLOCK, clauses, must_raise, past, soon
from rackloop.errors import DeadlineExceeded, FabricError, LabError, LockedOut, NotSupported, StaleGeneration
from rackloop.portmap import Full, Open, Partial, PortMap, disturbed_ports, inverse

FabricFactory = Callable[[], Fabric]

_SPARE_PORTS = 8


def identifies_itself(make: FabricFactory) -> None:
    """Vendor, model, serial number and firmware are there, and stay the same."""
    with closing(make()) as fabric:
        identity = fabric.identify(soon())
        assert all((identity.vendor, identity.model, identity.serial, identity.firmware)), identity
        assert fabric.identify(soon()) == identity


def reads_the_live_map_without_changing_it(make: FabricFactory) -> None:
    """Reading twice gives the same map and generation, and only ports the switch has."""
    with closing(make()) as fabric:
        live = fabric.live_map(soon())
        assert fabric.live_map(soon()) == live
        assert all(1 <= port <= fabric.port_count(soon()) for port in live.pairs.ports())


def joins_ports_and_keeps_every_other_pair(make: FabricFactory) -> None:
    """A partial map joins what it names, leaves former partners open and touches nothing else."""
    with _spare_ports(make) as (fabric, (a, b, c, d, e, f, *_)):
        fabric.apply(Full(PortMap.of([(a, b), (c, d), (e, f)])), soon())
        fabric.apply(Partial(PortMap.of([(b, c)])), soon())
        assert fabric.live_map(soon()).pairs == PortMap.of([(b, c), (e, f)])


def replaces_the_whole_map(make: FabricFactory) -> None:
    """A full map is the live map afterwards, the empty one included."""
    with _spare_ports(make) as (fabric, (a, b, c, d, *_)):
        for pairs in ([(a, b), (c, d)], [(a, c)], []):
            fabric.apply(Full(PortMap.of(pairs)), soon())
            assert fabric.live_map(soon()).pairs == PortMap.of(pairs)


def carries_as_many_pairs_as_it_has_ports_for(make: FabricFactory) -> None:
    """A map that uses every port is executed like any other."""
    with _left_as_found(make()) as fabric:
        half = fabric.port_count(soon()) // 2
        every_port = PortMap.of((port, port + half) for port in range(1, half + 1))
        fabric.apply(Full(every_port), soon())
        assert fabric.live_map(soon()).pairs == every_port


def opens_ports(make: FabricFactory) -> None:
    """Opening one end opens the pair; opening what is open is no error."""
    with _spare_ports(make) as (fabric, (a, b, c, d, *_)):
        fabric.apply(Full(PortMap.of([(a, b), (c, d)])), soon())
        for ports in ({b}, {a, b}):
            fabric.apply(Open(frozenset(ports)), soon())
            assert fabric.live_map(soon()).pairs == PortMap.of([(c, d)])


def counts_every_change(make: FabricFactory) -> None:
    """Each executed change adds one to the generation, also one that changes nothing, and says the new generation."""
    with _spare_ports(make) as (fabric, (a, b, *_)):
        generation = fabric.live_map(soon()).generation
        pair = PortMap.of([(a, b)])
        for change in (Partial(pair), Partial(pair), Open(frozenset({a})), Full(fabric.live_map(soon()).pairs)):
            generation += 1
            assert fabric.apply(change, soon()).generation == generation
            assert fabric.live_map(soon()).generation == generation


def stamps_both_sides_of_the_trigger(make: FabricFactory) -> None:
    """The command is stamped before its acknowledgement, both within the call."""
    with _spare_ports(make) as (fabric, (a, b, *_)):
        began = CLOCK.now_ns()
        applied = fabric.apply(Partial(PortMap.of([(a, b)])), soon())
        assert began <= applied.commanded_ns < applied.acknowledged_ns <= CLOCK.now_ns()


def executes_what_was_staged_when_it_is_triggered(make: FabricFactory) -> None:
    """Staging leaves the live map alone; the trigger makes the change, adds one to the generation and is stamped."""
    with _spare_ports(make) as (fabric, (a, b, c, d, *_)):
        switch = stager(fabric)
        for change in (Full(PortMap.of([(a, b)])), Partial(PortMap.of([(b, c)])), Open(frozenset({b}))):
            live = fabric.live_map(soon())
            staged = switch.stage(change, soon(), on=live)
            assert fabric.live_map(soon()) == live
            began = CLOCK.now_ns()
            applied = switch.trigger(staged, soon())
            assert began <= applied.commanded_ns < applied.acknowledged_ns <= CLOCK.now_ns()
            assert applied.generation == live.generation + 1
            assert fabric.live_map(soon()) == LiveMap(applied.generation, change.after(live.pairs))
        with must_raise(StaleGeneration):
            switch.stage(Partial(PortMap.of([(c, d)])), soon(), on=live)


def triggers_a_staged_change_once_and_the_last_alone(make: FabricFactory) -> None:
    """A change already triggered, or with another staged or made after it, is not executed: FabricError."""
    with _spare_ports(make) as (fabric, (a, b, c, d, *_)):
        switch = stager(fabric)
        first = switch.stage(Full(PortMap.of([(a, b)])), soon())
        second = switch.stage(Full(PortMap.of([(c, d)])), soon())
        with must_raise(FabricError):
            switch.trigger(first, soon())
        switch.trigger(second, soon())
        overtaken = switch.stage(Full(PortMap.of([(a, b)])), soon())
        fabric.apply(Partial(PortMap.of([(c, d)])), soon())
        for staged in (second, overtaken):
            with must_raise(FabricError):
                switch.trigger(staged, soon())
        assert fabric.live_map(soon()).pairs == PortMap.of([(c, d)])


def refuses_to_trigger_at_another_generation(make: FabricFactory) -> None:
    """A change that another connection overtook raises StaleGeneration and is not made."""
    with _spare_ports(make) as (fabric, (a, b, c, d, *_)), closing(make()) as other:
        staged = stager(fabric).stage(Partial(PortMap.of([(a, b)])), soon())
        other.apply(Full(PortMap.of([(c, d)])), soon())
        with must_raise(StaleGeneration):
            stager(fabric).trigger(staged, soon())
        assert fabric.live_map(soon()).pairs == PortMap.of([(c, d)])


def undoes_a_change_with_its_inverse(make: FabricFactory) -> None:
    """Executing the inverse of a change brings the former map back."""
    with _spare_ports(make) as (fabric, (a, b, c, d, *_)):
        before = PortMap.of([(a, b), (c, d)])
        fabric.apply(Full(before), soon())
        change = Partial(PortMap.of([(b, c)]))
        fabric.apply(change, soon())
        for undo in inverse(change, before):
            fabric.apply(undo, soon())
        assert fabric.live_map(soon()).pairs == before


def refuses_a_stale_generation(make: FabricFactory) -> None:
    """A change guarded by another generation than the live one raises StaleGeneration and is not made."""
    with _spare_ports(make) as (fabric, (a, b, *_)):
        live = fabric.live_map(soon())
        for change in (Partial(PortMap.of([(a, b)])), Full(PortMap()), Open(frozenset({a}))):
            for generation in (live.generation + 1, live.generation - 1):
                with must_raise(StaleGeneration):
                    fabric.apply(change, soon(), on=LiveMap(generation, live.pairs))
        assert fabric.live_map(soon()) == live
        fabric.apply(Partial(PortMap.of([(a, b)])), soon(), on=live)


def refuses_a_bad_map_whole_and_goes_on(make: FabricFactory) -> None:
    """One port the switch does not have spoils the change: nothing of it is done, and the next call works."""
    with _spare_ports(make) as (fabric, (a, b, c, *_)):
        bad = PortMap.of([(a, b), (c, fabric.port_count(soon()) + 1)])
        live = fabric.live_map(soon())
        for change in (Partial(bad), Full(bad), Open(bad.ports())):
            with must_raise(FabricError):
                fabric.apply(change, soon())
            assert fabric.live_map(soon()) == live
        fabric.apply(Partial(PortMap.of([(a, b)])), soon())
        assert fabric.live_map(soon()).pairs.peer_of(a) == b


def refuses_a_deadline_that_is_over(make: FabricFactory) -> None:
    """A call that comes too late raises DeadlineExceeded and changes nothing."""
    with _spare_ports(make) as (fabric, (a, b, *_)):
        live = fabric.live_map(soon())
        with must_raise(DeadlineExceeded):
            fabric.apply(Partial(PortMap.of([(a, b)])), past())
        assert fabric.live_map(soon()) == live


def reports_the_states_it_is_asked_for(make: FabricFactory) -> None:
    """One state for each port asked for and no other; a port that is mapped to nothing is DOWN."""
    with _spare_ports(make) as (fabric, (a, b, c, *_)):
        fabric.apply(Full(PortMap.of([(a, b)])), soon())
        states = fabric.port_states({a, c}, soon())
        assert set(states) == {a, c}
        assert states[c].value == "DOWN"
        assert fabric.port_states((), soon()) == {}


def shows_every_connection_the_same_map(make: FabricFactory) -> None:
    """A change by one connection is read by another; a change prepared by one is not executed by another."""
    with _spare_ports(make) as (fabric, (a, b, c, d, *_)), closing(make()) as other:
        fabric.apply(Full(PortMap.of([(a, b)])), soon())
        assert other.live_map(soon()) == fabric.live_map(soon())
        other.apply(Partial(PortMap.of([(c, d)])), soon())
        assert fabric.live_map(soon()).pairs == PortMap.of([(a, b), (c, d)])


def keeps_the_map_when_a_connection_ends(make: FabricFactory) -> None:
    """Disconnecting changes nothing."""
    with _spare_ports(make) as (fabric, (a, b, *_)):
        with closing(make()) as other:
            other.apply(Partial(PortMap.of([(a, b)])), soon())
            live = other.live_map(soon())
        assert fabric.live_map(soon()) == live


def grants_the_lock_to_no_lower_token(make: FabricFactory) -> None:
    """Once a token was granted a lower one is refused, also after the lock was given back."""
    with _left_as_found(make()) as fabric:
        token = _granted_token(fabric)
        try:
            fabric.take_lock(token + 1, soon())
            with must_raise(LockedOut):
                fabric.take_lock(token, soon())
        finally:
            fabric.release_lock(token + 1, soon())
        with must_raise(LockedOut):
            fabric.take_lock(token, soon())


def grants_the_same_token_again(make: FabricFactory) -> None:
    """Asking twice is no error, nor is asking from another connection; giving back twice is none either."""
    with _left_as_found(make()) as fabric:
        token = _granted_token(fabric)
        fabric.take_lock(token, soon())
        with closing(make()) as other:
            other.take_lock(token, soon())
            _change(other)
        fabric.release_lock(token, soon())
        fabric.release_lock(token, soon())


def hands_the_lock_to_a_higher_token(make: FabricFactory) -> None:
    """A higher token takes over at once; who held the lock before may change nothing and still may read."""
    with _left_as_found(make()) as fabric, closing(make()) as other:
        token = _granted_token(fabric)
        other.take_lock(token + 1, soon())
        try:
            live = fabric.live_map(soon())
            with must_raise(LockedOut):
                _change(fabric)
            with must_raise(LockedOut):
                fabric.release_lock(token, soon())
            assert fabric.live_map(soon()) == live
            _change(other)
        finally:
            other.release_lock(token + 1, soon())


def refuses_changes_without_the_token(make: FabricFactory) -> None:
    """While the lock is held, a connection that has not presented the token may change nothing."""
    with _left_as_found(make()) as fabric, closing(make()) as stranger:
        token = _granted_token(fabric)
        try:
            live = fabric.live_map(soon())
            for act in (_change, _open_one, lambda box: box.save_boot_map(soon())):
                with must_raise(LockedOut):
                    act(stranger)
            assert stranger.live_map(soon()) == live
        finally:
            fabric.release_lock(token, soon())
        _change(stranger)


def keeps_the_lock_when_a_connection_ends(make: FabricFactory) -> None:
    """The lock belongs to the token and not to the connection."""
    with _left_as_found(make()) as fabric:
        with closing(make()) as other:
            token = _granted_token(other)
        with must_raise(LockedOut):
            _change(fabric)
        fabric.take_lock(token, soon())
        _change(fabric)
        fabric.release_lock(token, soon())


def saves_the_boot_map(make: FabricFactory) -> None:
    """Saving keeps the live map as the one to start with; later changes leave the saved one alone."""
    with _spare_ports(make) as (fabric, (a, b, *_)):
        saved_before = fabric.boot_map(soon())
        pair = PortMap.of([(a, b)])
        fabric.apply(Full(pair), soon())
        fabric.save_boot_map(soon())
        try:
            fabric.apply(Full(PortMap()), soon())
            assert fabric.boot_map(soon()) == pair
        finally:
            fabric.apply(Full(saved_before), soon())
            fabric.save_boot_map(soon())
        assert fabric.boot_map(soon()) == saved_before


def says_that_it_is_closed(make: FabricFactory) -> None:
    """Closing twice is no error; using a fabric that is closed is a LabError."""
    fabric = make()
    fabric.live_map(soon())
    fabric.close()
    fabric.close()
    with must_raise(LabError):
        fabric.apply(Full(PortMap()), soon())


CONTRACT = clauses(__name__)


def _last_ports(fabric: Fabric) -> tuple[int, ...]:
    count = fabric.port_count(soon())
    if count < _SPARE_PORTS:
        raise NotSupported(f"the contract maps {_SPARE_PORTS} ports and this switch has {count}")
    return tuple(range(count - _SPARE_PORTS + 1, count + 1))


@contextmanager
def _spare_ports(make: FabricFactory) -> Iterator[tuple[Fabric, tuple[int, ...]]]:
    """A fabric that is left as it was found, and the ports of it that may be mapped."""
    with _left_as_found(make()) as fabric:
        yield fabric, _last_ports(fabric)


@contextmanager
def _left_as_found(fabric: Fabric) -> Iterator[Fabric]:
    with closing(fabric):
        before = fabric.live_map(soon())
        try:
            yield fabric
        finally:
            _restore(fabric, before)


def _restore(fabric: Fabric, before: LiveMap) -> None:
    if disturbed_ports(fabric.live_map(soon()).pairs, before.pairs):
        fabric.apply(Full(before.pairs), soon())


def _change(fabric: Fabric) -> None:
    a, b, *_ = _last_ports(fabric)
    fabric.apply(Partial(PortMap.of([(a, b)])), soon())


def _open_one(fabric: Fabric) -> None:
    fabric.apply(Open(frozenset(_last_ports(fabric)[:1])), soon())


def _granted_token(fabric: Fabric) -> int:
    """Take the lock with a token that is little higher than the highest granted so far: 1 % at most."""
    token = 1
    while True:
        try:
            fabric.take_lock(token, soon())
        except LockedOut:
            token = max(token + 1, token * 101 // 100)
        else:
            return token
