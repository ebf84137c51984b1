"""Moving drives among ports: each by a change of its own, and what is said of one that does not come."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from rackloop.abilities import Applied, Fabric, LiveMap, Staged
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import LabError, NotSupported, ProductFailed, RackloopError, StaleGeneration
from rackloop.lab import Lab, load_lab
from rackloop.portmap import MapChange, Open, Partial, PortMap
from rackloop.record import RemapSeen, Stage
from rackloop.safety.undo import JournalledFabric
from rackloop_drivers.workload import Expected, GaveUp, VerifiedRead
from rackloop_fixtures.rack.abilities import RackAbilities
from rackloop_labs.remapping import Remapping, attach, share_spares, stage_attach
from tests.deadlines import soon

SERVER = "srv4"  # its drives come within milliseconds
SLOW = "srv1"
PORTS = ("p0", "p1", "p2", "p3")
NONE = {"right": 0, "wrong_drive": 0}


class Rack:
    """A bench, its switch, one server's probe and the rack's log, on a clock that only ``switch_takes_s`` moves.

    A drive comes ``comes_s`` after the switch has acted; of that the probe waited ``waited_s`` for a core.
    """

    def __init__(
        self,
        switch_takes_s: float = 0.0,
        verdicts: dict[str, int] | None = None,
        comes_s: float = 1e-3,
        waited_s: float = 0.0,
    ) -> None:
        self.comes_s = comes_s
        self.waited_ns = round(waited_s * 1e9)
        self.lab: Lab = load_lab("mock")
        self.clock = VirtualClock()
        self.switch_takes_s = switch_takes_s
        self.verdicts = verdicts
        self.mount_error: str | None = None
        self.changes: list[MapChange] = []
        self.armed: deque[tuple[int, str, float]] = deque()
        self.arms = 0
        self.most_flying = 0
        self.order_of_acts: list[str] = []
        self.told: list[Collection[int]] = []
        self.overtaken = 0
        self.forgets = False

    def announce(self, ports: Collection[int]) -> None:
        self.told.append(ports)
        self.order_of_acts.append("announce")

    def apply(self, change: MapChange, _deadline: object) -> Applied:
        self.changes.append(change)
        commanded_ns = self.clock.now_ns()
        self.clock.advance(self.switch_takes_s)
        return Applied(len(self.changes), commanded_ns, self.clock.now_ns())

    def stage(self, change: MapChange, _deadline: object, *, on: LiveMap | None = None) -> Staged:
        assert on is None
        self.order_of_acts.append("stage")
        return Staged(change, len(self.changes))

    def trigger(self, staged: Staged, deadline: object) -> Applied:
        if self.overtaken:
            self.overtaken -= 1
            raise StaleGeneration("another controller was first", -221)
        self.order_of_acts.append("trigger")
        return self.apply(staged.change, deadline)

    def live_map(self, _deadline: object) -> LiveMap:
        if self.forgets:
            return LiveMap(1, PortMap())
        joined = self.lab.baseline[SERVER].items()
        pairs = ((self.lab.switch_port(SERVER, port), self.lab.where_is(drive)) for port, drive in joined)
        return LiveMap(1, PortMap.of(pairs))

    def order(self, target: str, _expected: Expected, *, timeout_s: float) -> int:
        self.order_of_acts.append("order")
        self.arms += 1
        self.armed.append((self.arms, target, self.clock.now_ns() + timeout_s * 1e9))
        self.most_flying = max(self.most_flying, len(self.armed))
        return self.arms

    def wait_armed(self, number: int, deadline: Deadline) -> None:
        assert number == self.arms
        assert not deadline.is_over()
        self.order_of_acts.append("armed")

    def wait_any(self, _deadline: object) -> tuple[int, VerifiedRead | GaveUp]:
        number, _, gives_up_ns = self.armed.popleft()
        return number, self._outcome(number, gives_up_ns)

    def wait(self, number: int, deadline: Deadline) -> VerifiedRead | GaveUp:
        (arm,) = (arm for arm in self.armed if arm[0] == number)
        assert deadline.remaining_s() >= (arm[2] - self.clock.now_ns()) / 1e9, (
            "an arm is waited for as long as it lasts"
        )
        self.armed.remove(arm)
        return self._outcome(number, arm[2])

    def _outcome(self, number: int, gives_up_ns: float) -> VerifiedRead | GaveUp:
        if self.verdicts is None:
            now_ns = self.clock.now_ns() + round(self.comes_s * 1e9)
            none = (None,) * 3
            rest = (*none, self.waited_ns, *none, self.mount_error)
            return VerifiedRead(number, 0, now_ns, 0, 0, 1, 0, 0, {**NONE, "right": 1}, *rest)
        reads = sum(self.verdicts.values())
        return GaveUp(number, 0, int(gives_up_ns), "no read verified in time", reads, 0, self.verdicts, (), None)

    def stages(self, applied: Applied, _port: int, _deadline: object, *, until: str) -> list[Stage]:
        assert until in {"answered", "executed"}
        return [Stage("executed", self.clock.now_ns(), "rackd", 0)] if applied.generation else []

    def write(self, _event: RemapSeen) -> None:
        """The remapping keeps its timelines as well."""

    def remapping(
        self,
        *,
        server: str = SERVER,
        spares: dict[str, str] | None = None,
        ports: Sequence[str] = PORTS,
        fabric: Fabric | None = None,
        late_with: Callable[[float], float] = lambda _seconds: 0.0,
    ) -> Remapping:
        baseline = self.lab.baseline[server]
        at = {(server, port): baseline[port] for port in ports}
        labels = dict.fromkeys(self.lab.drives, Expected("RL000001"))
        whole: Any = self
        return Remapping(
            whole,
            fabric or whole,
            {server: whole},
            whole,
            at=at,
            labels=labels,
            spares=spares or {},
            test="t",
            events=whole,
            late_with=late_with,
        )


class Unstaged(Rack):
    """The same with a switch that takes no map ahead."""

    def stage(self, change: MapChange, _deadline: object, *, on: LiveMap | None = None) -> Staged:
        raise NotSupported(f"this switch does not take {change} ahead, of {on}")


class Journalled(JournalledFabric):
    """The journalled fabric of a rack, whose journal is its list of acts; it ``takes_s`` before a change's turn."""

    def __init__(self, rack: Rack, takes_s: float = 0.0) -> None:
        whole: Any = rack
        super().__init__(whole, whole)
        self._rack = rack
        self._takes_s = takes_s

    def prepare(self, _change: MapChange, _deadline: object) -> None:
        self._rack.order_of_acts.append("prepare")
        self._rack.clock.advance(self._takes_s)

    def stage(self, change: MapChange, deadline: object, *, on: LiveMap | None = None) -> Staged:
        return self._rack.stage(change, deadline, on=on)

    def trigger(self, staged: Staged, deadline: object) -> Applied:
        return self._rack.trigger(staged, deadline)


def pairs_of(rack: Rack) -> list[tuple[tuple[int, int], ...]]:
    return [change.pairs.pairs for change in rack.changes if isinstance(change, Partial)]


def test_each_drive_comes_by_a_map_change_of_its_own_and_all_ports_change_at_once() -> None:
    rack = Rack()
    remapping = rack.remapping(server=SLOW, spares={SLOW: "d19"})
    remapping.keep_changing(SLOW, 40, Event(), lambda: None)
    assert [len(pairs) for pairs in pairs_of(rack)] == [1] * 40
    assert len({timeline.generation for timeline in remapping.timelines(SLOW)}) == 40
    assert rack.most_flying == len(PORTS)
    # Nothing that another port had was taken away from it.
    at = {rack.lab.switch_port(SLOW, port): rack.lab.where_is(drive) for port, drive in rack.lab.baseline[SLOW].items()}
    for ((port, drive),) in pairs_of(rack):
        assert drive not in at.values()
        at[port] = drive


@pytest.mark.parametrize("spares", [{SLOW: "d19"}, {}], ids=["a spare", "a port that rests"])
def test_further_changes_go_on_with_the_drive_that_the_last_one_took_away(spares: dict[str, str]) -> None:
    rack = Rack()
    remapping = rack.remapping(server=SLOW, spares=spares)
    for changes in (5, 6):
        remapping.keep_changing(SLOW, changes, Event(), lambda: None)
    at = {rack.lab.switch_port(SLOW, port): rack.lab.where_is(drive) for port, drive in rack.lab.baseline[SLOW].items()}
    for change in rack.changes:
        if isinstance(change, Open):
            for port in change.ports:
                del at[port]
            continue
        ((port, drive),) = change.pairs.pairs
        assert drive not in at.values()
        at[port] = drive
    assert len(pairs_of(rack)) == 11
    assert len(rack.changes) == 11 + (not spares), "a port rests all the time"


def test_nothing_else_is_changed_while_a_drive_comes_that_needs_milliseconds() -> None:
    rack = Rack()
    remapping = rack.remapping(spares={SERVER: "d19"})
    remapping.keep_changing(SERVER, 12, Event(), lambda: None)
    assert rack.most_flying == 1
    # All its ports have had their turn.
    assert {timeline.port for timeline in remapping.timelines(SERVER)} == set(PORTS)
    assert remapping.seen == len(rack.changes) == 12


def test_a_drive_that_answers_and_cannot_be_mounted_ends_the_changes() -> None:
    rack = Rack()
    rack.mount_error = "/dev/sda: cannot mount it as ext4: Invalid argument"
    with pytest.raises(
        LabError, match=r"srv4\.p0: d19 answered, but its first file could not be read: /dev/sda: cannot"
    ):
        rack.remapping(spares={SERVER: "d19"}).keep_changing(SERVER, 2, Event(), lambda: None)


def test_a_port_is_armed_while_the_switch_is_given_its_map_and_read_before_the_switch_is_told() -> None:
    rack = Rack()
    rack.remapping(spares={SERVER: "d19"}).keep_changing(SERVER, 2, Event(), lambda: None)
    assert rack.order_of_acts == ["announce", "order", "stage", "armed", "trigger"] * 2


def test_a_change_is_in_the_journal_before_its_turn() -> None:
    rack = Rack()
    remapping = rack.remapping(spares={SERVER: "d19"}, fabric=Journalled(rack))
    remapping.keep_changing(SERVER, 2, Event(), lambda: None)
    assert rack.order_of_acts == ["prepare", "announce", "order", "stage", "armed", "trigger"] * 2


def test_a_drive_that_is_attached_is_in_the_journal_before_its_server_is_told() -> None:
    rack = Rack()
    whole: Any = rack
    assert attach(whole, Journalled(rack), {(SERVER, "p0"): "d19"}, soon()).generation == 1
    assert rack.order_of_acts == ["prepare", "announce", "stage", "trigger"]


def test_the_time_for_a_change_begins_with_its_turn() -> None:
    rack = Rack()
    fabric = Journalled(rack, takes_s=3600.0)
    rack.remapping(spares={SERVER: "d19"}, fabric=fabric).keep_changing(SERVER, 2, Event(), lambda: None)
    assert rack.order_of_acts == ["prepare", "announce", "order", "stage", "armed", "trigger"] * 2


def test_servers_are_told_of_a_staged_map_only_when_it_is_triggered() -> None:
    rack = Rack()
    whole: Any = rack
    staged = stage_attach(whole, whole, {(SERVER, "p0"): "d19"}, soon())
    # The drive that is at the port may be read until here: a notice would reset its link.
    assert rack.order_of_acts == ["stage"]
    at_a_test: Any = SimpleNamespace(bench=whole, fabric=whole, deadline=soon)
    assert RackAbilities.trigger(at_a_test, staged).generation == 1
    assert rack.order_of_acts == ["stage", "announce", "trigger"]
    assert rack.told == [staged.change.after(PortMap()).ports()]
    # One that became stale is not told of twice.
    RackAbilities.trigger(at_a_test, stage_attach(whole, whole, {(SERVER, "p0"): "d19"}, soon()), is_told=True)
    assert rack.order_of_acts[3:] == ["stage", "trigger"]


def test_a_switch_that_takes_no_map_ahead_is_told_when_the_port_is_read() -> None:
    rack = Unstaged()
    rack.remapping(spares={SERVER: "d19"}).keep_changing(SERVER, 2, Event(), lambda: None)
    assert rack.order_of_acts == ["announce", "order", "armed"] * 2
    assert len(rack.changes) == 2


def test_a_change_that_another_controller_overtook_is_staged_again() -> None:
    rack = Rack()
    rack.overtaken = 2
    rack.remapping(spares={SERVER: "d19"}).keep_changing(SERVER, 1, Event(), lambda: None)
    assert rack.order_of_acts == ["announce", "order", *["stage", "armed"] * 3, "trigger"]
    assert len(rack.changes) == 1


def test_without_a_spare_one_port_rests_and_its_drive_goes_round() -> None:
    rack = Rack()
    remapping = rack.remapping(server=SLOW)
    remapping.keep_changing(SLOW, 12, Event(), lambda: None)
    resting = rack.lab.switch_port(SLOW, "p3")
    assert rack.changes[0] == Open(frozenset({resting}))
    assert resting not in {port for pairs in pairs_of(rack) for port, _ in pairs}
    assert remapping.seen == 12
    assert rack.most_flying == len(PORTS) - 1


def test_one_port_and_no_spare_can_exchange_nothing() -> None:
    with pytest.raises(NotSupported, match="srv4 has one port and the rack no drive to spare"):
        Rack().remapping(ports=["p0"]).keep_changing(SERVER, 1, Event(), lambda: None)


def test_somebody_who_must_stop_starts_no_further_change() -> None:
    rack, stop = Rack(), Event()
    rack.remapping(server=SLOW, spares={SLOW: "d19"}).keep_changing(SLOW, 40, stop, stop.set)
    assert len(rack.changes) == len(PORTS)


def test_a_switch_that_takes_its_time_is_no_drive_that_comes_late() -> None:
    rack = Rack(switch_takes_s=9.0)
    remapping = rack.remapping(spares={SERVER: "d19"})
    remapping.keep_changing(SERVER, 1, Event(), lambda: None)
    assert [timeline.attach_s for timeline in remapping.timelines(SERVER)] == [0.001]


@pytest.mark.parametrize(
    ("waited_s", "error", "said"),
    [
        (0.4, ProductFailed, r"came late after .*; that was after 5\.50 s, and it may take 5 s$"),
        (0.6, RackloopError, r"may take 5 s; this machine may have added 0\.60 s to that: run it on a quieter"),
    ],
)
def test_a_drive_that_comes_late_is_the_products_unless_the_machine_may_have_made_it_late(
    waited_s: float, error: type[RackloopError], said: str
) -> None:
    remapping = Rack(comes_s=5.5, waited_s=waited_s).remapping(spares={SERVER: "d19"})
    with pytest.raises(error, match=said) as raised:
        remapping.keep_changing(SERVER, 1, Event(), lambda: None)
    assert raised.type is error


def test_a_drive_that_others_answer_for_is_the_products() -> None:
    rack = Rack(verdicts={**NONE, "wrong_drive": 40})
    with pytest.raises(ProductFailed, match=r"did not come after the switch had acted \(40 reads: 40 wrong_drive"):
        rack.remapping(spares={SERVER: "d19"}).keep_changing(SERVER, 1, Event(), lambda: None)


@pytest.mark.parametrize(
    ("late_s", "error", "said"),
    [
        (9.9, ProductFailed, r"did not come .* wrong_drive\); that was after 15\.00 s, and it may take 5 s$"),
        (10.1, RackloopError, r"15\.00 s, and it may take 5 s; this machine may have added 10\.10 s to that"),
    ],
)
def test_a_drive_that_does_not_come_is_the_products_unless_the_machine_may_have_kept_it(
    late_s: float, error: type[RackloopError], said: str
) -> None:
    rack = Rack(verdicts={**NONE, "wrong_drive": 40})
    remapping = rack.remapping(spares={SERVER: "d19"}, late_with=lambda _seconds: late_s)
    with pytest.raises(error, match=said) as raised:
        remapping.keep_changing(SERVER, 1, Event(), lambda: None)
    assert raised.type is error


def test_a_port_that_nobody_could_read_is_not_the_products() -> None:
    rack = Rack(verdicts=NONE)
    with pytest.raises(LabError, match="not one read was answered within") as raised:
        rack.remapping(spares={SERVER: "d19"}).keep_changing(SERVER, 1, Event(), lambda: None)
    assert not isinstance(raised.value, ProductFailed)


@pytest.mark.parametrize(("verdicts", "wrong"), [(None, 0), ({**NONE, "wrong_drive": 3}, 12)])
def test_reads_of_another_drive_are_counted_as_wrong(verdicts: dict[str, int] | None, wrong: int) -> None:
    remapping = Rack(verdicts=verdicts).remapping()
    remapping.check_all()
    assert (remapping.wrong, remapping.unread) == (wrong, 0)


def test_a_port_that_was_not_read_is_neither_right_nor_wrong_and_not_the_products() -> None:
    remapping = Rack(verdicts=NONE).remapping()
    with pytest.raises(LabError, match=r"srv4\.p0: not one read was answered within 5\.00 s") as raised:
        remapping.check_all()
    assert not isinstance(raised.value, ProductFailed)
    assert (remapping.wrong, remapping.unread) == (0, 4)


def test_a_read_that_was_wrong_outweighs_a_port_that_was_not_read() -> None:
    rack = Rack(verdicts={**NONE, "wrong_drive": 3})
    remapping = rack.remapping()
    remapping.check_all()
    rack.verdicts = NONE
    remapping.check_all()
    assert (remapping.wrong, remapping.unread) == (12, 4)


def test_a_map_that_the_switch_has_not_outweighs_a_port_that_was_not_read() -> None:
    rack = Rack(verdicts=NONE)
    rack.forgets = True
    remapping = rack.remapping()
    remapping.check_all()
    assert (remapping.wrong, remapping.unread, remapping.map_wrong) == (0, 4, 4)
    rack.forgets = False
    with pytest.raises(LabError, match="not one read was answered"):
        remapping.check_all()


def test_a_port_that_is_checked_is_waited_for_as_long_as_its_drive_may_take() -> None:
    rack = Rack(verdicts={**NONE, "wrong_drive": 1})
    rack.lab = rack.lab.model_copy(update={"times": rack.lab.times.model_copy(update={"act": 1.0, "online": 30.0})})
    remapping = rack.remapping()
    remapping.check_all()
    assert remapping.wrong == 4


def test_spares_are_scratch_drives_on_the_switch_and_the_slowest_servers_have_them() -> None:
    lab = load_lab("mock")
    assert share_spares(lab, lab.servers) == {"srv1": "d17", "srv2": "d18", "srv3": "d19"}
    assert share_spares(lab, ["srv4"]) == {"srv4": "d17"}
    kept = {name: drive for name, drive in lab.drives.items() if name not in {"d17", "d18", "d19"}}
    assert share_spares(lab.model_copy(update={"drives": kept}), lab.servers) == {}
