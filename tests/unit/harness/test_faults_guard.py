"""Faults through their guard: asked first, journalled first, told in phases, and mended whatever comes in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from rackloop.errors import BadInput, DeadlineExceeded, FaultRefused, LabError, NotSupported
from rackloop.faults import FaultCutShort, Faults, FaultSpec, Injection
from rackloop.measurement import Cause, Verdict
from rackloop.record import FaultPhase, Stage, read_events
from rackloop.safety.undo import Equipment, UndoFailed
from rackloop_fixtures.session.outcome import of_exception
from tests.parts import parts
from tests.unit.harness.journalled_bench import Bench
from tests.unit.harness.sim_rack import BASELINE, RestoringPhy, SimPart

EVERY = [
    FaultSpec("phy_drop", "srv1.p0"),
    FaultSpec("phy_drop", "d02", {"down_s": 0.5}),
    FaultSpec("phy_flap", "port 103", {"count": 3}),
    FaultSpec("slow_training", "d01", {"factor": 8}),
    FaultSpec("stuck_port", "port 101"),
    FaultSpec("miswire", "srv1.p0", {"with": "srv1.p1"}),
    FaultSpec("fail_stop", "d01"),
    FaultSpec("fail_slow", "d03"),
    FaultSpec("hang", "d01"),
    FaultSpec("media_error", "d01"),
    FaultSpec("corrupt", "d01"),
    FaultSpec("crash_on_remap", "d01"),
    FaultSpec("server_crash", "srv1"),
    FaultSpec("server_hang", "srv1"),
    FaultSpec("power_loss", "srv1"),
    FaultSpec("partition", "srv1"),
    FaultSpec("switch_power_loss", "switch"),
    FaultSpec("control_lost", "switch"),
    FaultSpec("control_garbled", "switch"),
    FaultSpec("bmc_unreachable", "srv1"),
]


class Seen:
    """Sees every fault take effect at one moment."""

    def __init__(self) -> None:
        self.stage: Stage | None = None
        self.failure: Exception | None = None

    def first_effect(self, _injection: Injection) -> Stage | None:
        if self.failure is not None:
            raise self.failure
        return self.stage


class GuardedBench(Bench):
    """A simulated rack, its journal, its event stream, and the guard over them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.rack.outlets["server:srv1"] = self.rack.outlets.pop("srv1")
        self.seen = Seen()
        self.objections: list[str] = []
        self.faults = self.guard(replace(self.rack.equipment, phy=RestoringPhy(self.rack.switch)))

    def guard(self, equipment: Equipment) -> Faults:
        return Faults(
            self.lab,
            equipment,
            self.clock,
            self.recorder,
            events=self.events,
            test="faults/all",
            watch=self.seen,
            objections=lambda _spec: self.objections,
        )

    @property
    def phases(self) -> list[FaultPhase]:
        events = (stamped.event for stamped in read_events(self.events.path))
        return [event for event in events if isinstance(event, FaultPhase)]

    def truth(self) -> tuple[object, ...]:
        """Everything that is not as it was, as the rack itself knows it."""
        parts = {name: part.broken for name, part in self.rack.parts.items() if part.broken}
        off = [name for name, outlet in self.rack.outlets.items() if not outlet.on]
        return self.rack.switch.live == BASELINE, parts, off


WELL: tuple[object, ...] = (True, {}, [])


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[GuardedBench]:
    with closing(GuardedBench(tmp_path)) as bench:
        yield bench


@pytest.mark.parametrize("spec", EVERY, ids=str)
def test_a_fault_stands_while_its_block_runs_and_not_afterwards(bench: GuardedBench, spec: FaultSpec) -> None:
    with bench.faults.injected(spec) as injection:
        assert injection.stands
        (entry,) = bench.journal.standing("bench")
        assert entry.inverse
        assert bench.truth() != WELL or bench.rack.switch.drops
    assert not injection.stands
    assert bench.truth() == WELL
    assert bench.journal.standing("bench") == []


@pytest.mark.parametrize("spec", EVERY, ids=str)
def test_a_fault_is_not_made_where_it_cannot_be_journalled(bench: GuardedBench, spec: FaultSpec) -> None:
    bench.journal.close()
    with pytest.raises(LabError):
        bench.faults.begin(spec)
    assert bench.truth() == WELL
    assert bench.rack.switch.drops == []


def test_faults_nest_and_are_mended_in_reverse(bench: GuardedBench) -> None:
    with ExitStack() as stack:
        for spec in (FaultSpec("fail_slow", "d01"), FaultSpec("media_error", "d01"), FaultSpec("stuck_port", "d01")):
            stack.enter_context(bench.faults.injected(spec))
        assert len(bench.rack.parts["drive:d01"].broken) == 2
        bench.rack.told.clear()
    assert bench.rack.told == ["mend switch_port:101", "mend drive:d01", "mend drive:d01"]


def test_leaving_the_guard_ends_what_stands_and_names_all_that_cannot_be_mended(bench: GuardedBench) -> None:
    with pytest.raises(UndoFailed) as raised, bench.faults as faults:  # noqa: PT012 - mending fails on the way out
        for name in ("control_lost", "hang", "stuck_port", "server_crash"):
            faults.begin(
                FaultSpec(name, {"hang": "d01", "stuck_port": "d01", "server_crash": "srv1"}.get(name, "switch"))
            )
        bench.rack.parts["drive:d01"].stays = bench.rack.parts["switch_port:101"].stays = True
        bench.rack.parts["server:srv1"].stays = True
    assert {problem.split(":")[0] for problem in raised.value.problems} == {"server", "switch_port", "drive"}
    assert len(bench.journal.standing("bench")) == 3


def test_an_error_of_the_block_goes_on_with_a_note_of_what_was_not_mended(bench: GuardedBench) -> None:
    with (  # noqa: PT012 - the failure is the block's
        pytest.raises(ZeroDivisionError) as raised,
        bench.faults.injected(FaultSpec("hang", "d01")),
    ):
        bench.rack.parts["drive:d01"].stays = True
        raise ZeroDivisionError
    assert any("drive:d01: its hang was told to end" in note for note in raised.value.__notes__)


def _lose_the_answer() -> None:
    raise DeadlineExceeded("no answer")


def test_a_fault_whose_answer_was_lost_is_mended_at_once(bench: GuardedBench) -> None:
    bench.rack.parts["drive:d01"].after = _lose_the_answer
    with pytest.raises(DeadlineExceeded):
        bench.faults.begin(FaultSpec("hang", "d01"))
    assert bench.truth() == WELL
    assert bench.journal.standing("bench") == []
    assert not bench.faults.made[0].stands


def test_a_fault_whose_answer_was_lost_and_that_stays_is_said_to_stand_and_ended_with_the_guard(
    bench: GuardedBench,
) -> None:
    part = bench.rack.parts["drive:d01"]
    part.after, part.stays = _lose_the_answer, True
    with bench.faults as faults:
        with pytest.raises(
            UndoFailed, match=r"hang of d01 may stand, as its begin failed: no answer; .*was told to end"
        ):
            faults.begin(FaultSpec("hang", "d01"))
        assert faults.made[0].stands
        part.stays = False
    assert bench.truth() == WELL


def test_ending_twice_is_ending_once(bench: GuardedBench) -> None:
    injection = bench.faults.begin(FaultSpec("hang", "d01"))
    bench.faults.end(injection)
    bench.faults.end(injection)
    assert bench.rack.told == ["break drive:d01", "mend drive:d01"]


def test_one_who_cannot_look_keeps_no_fault_from_being_mended(bench: GuardedBench) -> None:
    bench.seen.failure = OSError("the log is gone")
    with pytest.raises(OSError, match="the log is gone"), bench.faults as faults:  # noqa: PT012 - on the way out
        faults.begin(FaultSpec("hang", "d01"))
        faults.begin(FaultSpec("server_crash", "srv1"))
    assert bench.truth() == WELL
    assert bench.journal.standing("bench") == []


def test_an_event_log_that_takes_nothing_keeps_no_fault_from_being_mended(bench: GuardedBench) -> None:
    hang, crash = (bench.faults.begin(FaultSpec(*of)) for of in (("hang", "d01"), ("server_crash", "srv1")))
    bench.seen.stage = Stage("offline", bench.clock.now_ns(), "rackd", 1000)
    bench.events.close()
    with pytest.raises(LabError, match="has ended"):
        bench.faults.end_all()
    assert not hang.stands
    assert not crash.stands
    assert bench.truth() == WELL


def test_a_part_whose_mending_breaks_off_in_any_way_keeps_no_other_from_being_mended(bench: GuardedBench) -> None:
    bench.faults.begin(FaultSpec("server_crash", "srv1"))
    bench.faults.begin(FaultSpec("hang", "d01"))

    def break_off() -> None:
        raise RuntimeError("a defect")

    bench.rack.parts["drive:d01"].mending = break_off
    with pytest.raises(UndoFailed, match="hang of d01: a defect"):
        bench.faults.end_all()
    assert not bench.rack.parts["server:srv1"].broken


def test_a_link_that_the_mending_itself_takes_is_no_effect_of_the_fault(bench: GuardedBench) -> None:
    injection = bench.faults.begin(FaultSpec("hang", "d01"))
    bench.seen.stage = Stage("offline", bench.clock.now_ns() + 2_000, "rackd", 1_000)
    bench.faults.end(injection)
    assert injection.effect is None


def test_keys_of_faults_differ_and_name_the_run(bench: GuardedBench) -> None:
    keys = {bench.faults.begin(FaultSpec("fail_slow", "d01")).key for _ in range(3)}
    other = bench.guard(bench.rack.equipment).begin(FaultSpec("fail_slow", "d01")).key
    assert len({*keys, other}) == 4
    assert all(key.startswith("run-1/") for key in keys)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (FaultSpec("hang", "d03"), "drive d03 is not marked scratch"),
        (FaultSpec("corrupt", "d03"), "drive d03 is not marked scratch"),
        (FaultSpec("media_error", "d03"), "drive d03 is not marked scratch"),
        (FaultSpec("miswire", "d01", {"with": "d03"}), "drive d03 is not marked scratch"),
        (FaultSpec("phy_drop", "port 40"), "port 40 has no signal"),
    ],
)
def test_a_fault_that_may_do_harm_or_nothing_is_refused(bench: GuardedBench, spec: FaultSpec, reason: str) -> None:
    with pytest.raises(FaultRefused, match=reason) as raised:
        bench.faults.begin(spec)
    assert raised.value.exit_code == 2
    assert bench.journal.since(0) == []
    assert bench.phases == []


def test_a_drive_worth_keeping_does_not_lose_its_power(bench: GuardedBench) -> None:
    bench.rack.outlets["drive:d03"] = bench.rack.outlets["srv2"]
    with pytest.raises(FaultRefused, match="drive d03 is not marked scratch"):
        bench.faults.begin(FaultSpec("power_loss", "d03"))


@pytest.mark.parametrize("kind", ["power_loss", "server_crash", "server_nmi"])
def test_a_server_keeps_its_power_for_a_drive_worth_keeping_unless_the_plan_disturbs_it(
    bench: GuardedBench, kind: str
) -> None:
    bench.rack.outlets["server:srv2"] = bench.rack.outlets.pop("srv2")
    bench.rack.parts["server:srv2"] = SimPart("crash", "nmi")
    with bench.faults.injected(FaultSpec(kind, "srv2")):
        assert bench.truth() != WELL
    bench.recorder = replace(bench.recorder, disturbs=frozenset())
    with pytest.raises(FaultRefused, match=f"{kind} of srv2 may not be made: drive d03 is not marked scratch"):
        bench.guard(bench.rack.equipment).begin(FaultSpec(kind, "srv2"))
    assert bench.truth() == WELL


@pytest.mark.parametrize(
    "spec",
    [FaultSpec("hang", "d01"), FaultSpec("server_crash", "srv1"), FaultSpec("power_loss", "srv1")],
    ids=str,
)
def test_what_is_broken_already_is_not_broken_again(bench: GuardedBench, spec: FaultSpec) -> None:
    bench.faults.begin(spec)
    with pytest.raises(FaultRefused, match="already"):
        bench.faults.begin(spec)


def test_a_cable_that_is_swapped_is_not_swapped_on(bench: GuardedBench) -> None:
    bench.faults.begin(FaultSpec("miswire", "srv1.p0", {"with": "srv1.p1"}))
    with pytest.raises(FaultRefused, match="the cable of port 2 is swapped already"):
        bench.faults.begin(FaultSpec("miswire", "srv2.p0", {"with": "srv1.p1"}))


def test_others_may_object_to_a_fault(bench: GuardedBench) -> None:
    bench.objections = ["drive d01 is in maintenance"]
    with pytest.raises(FaultRefused, match="d01 is in maintenance"):
        bench.faults.begin(FaultSpec("fail_slow", "d01"))
    assert bench.truth() == WELL


@pytest.mark.parametrize("spec", EVERY, ids=str)
def test_what_no_equipment_offers_is_not_supported(bench: GuardedBench, spec: FaultSpec) -> None:
    bare = bench.guard(Equipment(bench.rack.switch))
    with pytest.raises(NotSupported, match=r"nothing (in|that is leased of) the rack bench (can|switches)"):
        bare.begin(spec)
    assert bench.journal.since(0) == []


def test_a_bad_specification_touches_nothing(bench: GuardedBench) -> None:
    with pytest.raises(BadInput, match="hang has no parameter for"):
        bench.faults.begin(FaultSpec("hang", "d01", {"for": 1}))
    assert bench.journal.since(0) == []


def test_the_phases_of_a_fault_are_in_the_event_stream_with_their_stamps(bench: GuardedBench) -> None:
    spec = FaultSpec("fail_slow", "d01", {"extra_us": 900})
    bench.rack.parts["drive:d01"].after = lambda: bench.clock.advance(0.002)
    bench.clock.advance(1)
    with bench.faults.injected(spec):
        bench.seen.stage = Stage("offline", 1_001_500_000, "rackd", 1000)
        bench.clock.advance(3)
    commanded, acknowledged, effect, healed = bench.phases
    assert [phase.phase for phase in bench.phases] == ["commanded", "acknowledged", "effect", "healed"]
    assert (commanded.at_ns, acknowledged.at_ns) == (1_000_000_000, 1_002_000_000)
    assert (effect.at_ns, effect.error_ns, effect.clock) == (1_001_500_000, 1000, "rackd")
    assert (healed.at_ns, healed.clock) == (4_002_000_000, "harness")
    assert {(p.test, p.fault, p.fault_kind, p.target) for p in bench.phases} == {("faults/all", 1, "fail_slow", "d01")}
    assert commanded.parameters == {"extra_us": 900}


def test_an_effect_nobody_saw_is_absent_and_one_seen_afterwards_is_told_once(bench: GuardedBench) -> None:
    with bench.faults.injected(FaultSpec("hang", "d01")) as injection:
        pass
    assert [phase.phase for phase in bench.phases] == ["commanded", "acknowledged", "healed"]
    bench.faults.saw(injection, Stage("slow read", 5, "rackprobe", 10))
    bench.faults.saw(injection, Stage("slow read", 7, "rackprobe", 10))
    assert [(phase.phase, phase.at_ns) for phase in bench.phases[3:]] == [("effect", 5)]


def test_a_fault_ended_while_another_keeps_it_broken_is_mended_with_the_end_of_that(bench: GuardedBench) -> None:
    bench.rack.switch.saved = BASELINE
    stuck = bench.faults.begin(FaultSpec("stuck_port", "port 101"))
    power = bench.faults.begin(FaultSpec("switch_power_loss", "switch"))
    bench.rack.switch.stuck = {101}
    bench.rack.switch.saved = type(BASELINE)()
    bench.faults.end(power)
    assert power.is_ended
    assert power.stands
    bench.rack.switch.stuck = set()
    bench.faults.end(stuck)
    assert not power.stands
    assert bench.truth() == WELL


def test_what_touches_no_part_explains_no_part_that_stays_broken(bench: GuardedBench) -> None:
    bench.faults.begin(FaultSpec("bmc_unreachable", "srv1"))
    hang = bench.faults.begin(FaultSpec("hang", "d01"))
    bench.rack.parts["drive:d01"].stays = True
    with pytest.raises(UndoFailed, match="drive:d01"):
        bench.faults.end(hang)


@pytest.mark.parametrize("other", [FaultSpec("bmc_unreachable", "srv1"), FaultSpec("control_lost", "switch")], ids=str)
def test_power_that_another_fault_may_keep_away_is_given_back_with_the_end_of_that(
    bench: GuardedBench, other: FaultSpec
) -> None:
    power = bench.faults.begin(FaultSpec("power_loss", "srv1"))
    hindering = bench.faults.begin(other)
    bench.rack.outlets["server:srv1"].broken = True
    bench.faults.end(power)
    assert power.stands
    bench.rack.outlets["server:srv1"].broken = False
    bench.faults.end(hindering)
    assert not power.stands
    assert bench.truth() == WELL


def test_a_dropped_port_is_not_waited_for_while_its_server_has_no_power(bench: GuardedBench) -> None:
    drop = bench.faults.begin(FaultSpec("phy_drop", "srv1.p0", {"down_s": 0.1}))
    bench.clock.advance(1)
    power = bench.faults.begin(FaultSpec("power_loss", "srv1"))
    bench.rack.switch.dark = {1, 101}
    bench.faults.end(drop)
    assert not drop.stands
    assert bench.clock.now_ns() == 1_000_000_000
    bench.faults.end(power)


LASTING = [
    (FaultSpec("phy_drop", "srv1.p0", {"down_s": 1.0}), 1.0, "its down_s"),
    (FaultSpec("phy_flap", "srv1.p0", {"down_s": 0.2, "up_s": 0.1, "count": 3}), 0.8, "its down_s and up_s and count"),
    (FaultSpec("phy_flap", "srv1.p0"), 1.05, "its time"),
]


@pytest.mark.parametrize(("spec", "lasts_s", "_said"), LASTING)
def test_a_fault_stands_as_long_as_it_was_told_to_however_soon_its_block_ends(
    bench: GuardedBench, spec: FaultSpec, lasts_s: float, _said: str
) -> None:
    with bench.faults.injected(spec) as injection:
        bench.clock.advance(0.008)
    assert injection.healed_ns is not None
    assert injection.healed_ns >= round(lasts_s * 1e9)
    assert [phase.phase for phase in bench.phases] == ["commanded", "acknowledged", "healed"]


@pytest.mark.parametrize(("spec", "lasts_s", "said"), LASTING)
def test_a_fault_that_is_ended_before_its_time_is_mended_and_says_so(
    bench: GuardedBench, spec: FaultSpec, lasts_s: float, said: str
) -> None:
    injection = bench.faults.begin(spec)
    bench.clock.advance(0.008)
    early = rf"fault 1, {spec}, ended {lasts_s * 1000 - 8:.0f} ms before {said}:"
    with pytest.raises(FaultCutShort, match=early) as raised:
        bench.faults.end(injection)
    assert (of_exception(raised.value).verdict, of_exception(raised.value).cause) == (Verdict.UNKNOWN, Cause.HARNESS)
    assert not injection.stands
    assert [(phase.phase, phase.at_ns) for phase in bench.phases[2:]] == [
        ("cut_short", 8_000_000),
        ("healed", 8_000_000),
    ]
    bench.faults.end(injection)


def test_a_fault_left_to_its_guard_is_not_ended_before_its_time_unnoticed(bench: GuardedBench) -> None:
    with pytest.raises(FaultCutShort, match="ended 1000 ms before its down_s"), bench.faults:
        bench.faults.begin(FaultSpec("phy_drop", "srv1.p0", {"down_s": 1}))
    assert bench.truth() == WELL


def test_an_error_of_the_block_ends_a_fault_at_once_and_tells_by_how_much_it_was_early(bench: GuardedBench) -> None:
    with pytest.raises(RuntimeError) as raised, bench.faults.injected(FaultSpec("phy_drop", "d02", {"down_s": 60})):
        raise RuntimeError("the test itself")
    assert bench.clock.now_ns() == 0
    assert "ended 60000 ms before its down_s" in raised.value.__notes__[0]


def test_a_drop_that_nothing_ends_early_is_waited_for_and_in_time(bench: GuardedBench) -> None:
    faults = bench.guard(bench.rack.equipment)
    injection = faults.begin(FaultSpec("phy_drop", "srv1.p0", {"down_s": 0.5}))
    faults.end(injection)
    assert injection.healed_ns == 500_000_000


def test_the_reach_of_a_fault_decides_what_io_may_notice() -> None:
    radius = parts(servers={"srv1"}, server_ports={("srv2", "p0")}, drives={"d04"})
    assert radius.may_touch(server="srv1", port="p3")
    assert radius.may_touch(server="srv2", port="p0")
    assert radius.may_touch(server="srv3", drive="d04")
    assert not radius.may_touch(server="srv2", port="p1", drive="d05")
