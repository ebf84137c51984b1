"""A host's clock on the run's: what exchanges tell of it, and when they tell nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackloop_drivers.clock_rate import DRIFT_PPM
from rackloop_drivers.host_clock import ClockUnknown, HostClock, own_boot_id, own_clock_id
from tests.unit.drivers.simulated_clocks import MS, S, Simulated, related

ways = st.integers(min_value=0, max_value=20 * MS)
short = st.integers(min_value=0, max_value=10 * MS)
clocks = st.builds(
    Simulated,
    st.integers(min_value=-(10**15), max_value=10**15),
    st.lists(st.floats(min_value=-DRIFT_PPM, max_value=DRIFT_PPM), min_size=1, max_size=8),
)


@settings(deadline=None)
@given(
    clocks,
    st.lists(st.tuples(st.integers(min_value=21 * MS, max_value=9 * S), ways, ways), min_size=1, max_size=12),
    st.floats(min_value=0, max_value=1),
)
def test_the_true_moment_is_within_its_error_whatever_either_way_takes(
    theirs: Simulated, turns: list[tuple[int, int, int]], share: float
) -> None:
    exchanges, sent_ns = [], 0
    for pause_ns, there_ns, back_ns in turns:
        sent_ns += pause_ns + 40 * MS
        exchanges.append(theirs.exchange(sent_ns, there_ns, back_ns))
    clock = related(exchanges)
    true_ns = round(share * (sent_ns + 40 * MS))
    moment = clock.moment(theirs.at(true_ns))
    assert abs(moment.at_ns - true_ns) <= moment.error_ns + 1
    offset = clock.offset()
    last = exchanges[-1]
    lows = last.theirs_ns - last.received_ns, last.theirs_ns - last.sent_ns
    assert lows[0] - 1 <= offset.offset_ns <= lows[1] + 1
    assert offset.error_ns <= last.width_ns // 2 + 2


def test_one_narrow_exchange_bounds_what_wide_ones_beside_it_do_not() -> None:
    theirs = Simulated(5 * S, [0])
    wide = [theirs.exchange(sent_ns, 18 * MS, 2 * MS) for sent_ns in range(0, S, 100 * MS)]
    clock = related([*wide, theirs.exchange(S, MS // 10, MS // 10), theirs.exchange(S + 100 * MS, MS, 19 * MS)])
    moment = clock.moment(theirs.at(S + 110 * MS))
    assert moment.error_ns < MS // 4
    assert abs(moment.at_ns - (S + 110 * MS)) <= moment.error_ns


def test_an_error_grows_with_the_time_from_the_nearest_exchange() -> None:
    theirs = Simulated(0, [DRIFT_PPM])
    clock = related([theirs.exchange(0, 0, 0)])
    assert clock.moment(theirs.at(10 * S)).error_ns == pytest.approx(5 * MS, rel=0.01)
    with pytest.raises(ClockUnknown, match="the clock of srv1 was last looked at 61 s from a stamp"):
        clock.moment(61 * S)
    with pytest.raises(ClockUnknown, match="looked at 61 s"):
        clock.moment(-61 * S)


def test_drift_comes_with_how_well_it_is_known() -> None:
    theirs = Simulated(7 * S, [-40.0])
    clock = related([theirs.exchange(second * S, MS // 2, MS // 2) for second in range(0, 100, 5)])
    drift = clock.drift()
    assert drift.error_ppm == pytest.approx(1 * MS / (95 * S) * 1e6, rel=0.01)
    assert abs(drift.ppm + 40) <= drift.error_ppm
    with pytest.raises(ClockUnknown, match="looked at once: its drift"):
        related([theirs.exchange(0, 0, 0)]).drift()


@settings(deadline=None)
@given(
    st.lists(st.tuples(short, short), min_size=6, max_size=6),
    st.sampled_from([-1, 1]),
    st.integers(min_value=25 * MS, max_value=10**14),
)
def test_a_clock_that_jumped_by_more_than_the_exchanges_allow_is_unknown_for_good(
    took: list[tuple[int, int]], sign: int, by_ns: int
) -> None:
    theirs = Simulated(0, [0])
    theirs.jumps.append((3 * S, sign * by_ns))
    exchanges = [theirs.exchange(second * S, *both) for second, both in enumerate(took)]
    clock = related(exchanges)
    for stamp_ns in (exchanges[0].theirs_ns, exchanges[-1].theirs_ns):
        with pytest.raises(ClockUnknown, match=r"srv1 jumped, or runs off faster than by 500 ppm.*measure anew"):
            clock.moment(stamp_ns)
    with pytest.raises(ClockUnknown, match="jumped"):
        clock.offset()


def test_a_clock_that_runs_off_is_no_clock_to_go_by() -> None:
    theirs = Simulated(0, [3000])
    with pytest.raises(ClockUnknown, match="runs off faster than by 500 ppm"):
        related([theirs.exchange(second * S, MS, MS) for second in range(6)]).moment(S)


def test_a_host_that_has_booted_has_another_clock() -> None:
    theirs = Simulated(0, [0])
    later = replace(theirs.exchange(S, MS, MS), boot_id="b2", clock_id="b2 c")
    with pytest.raises(ClockUnknown, match="srv1 has booted since its clock was first looked at"):
        related([theirs.exchange(0, MS, MS), later]).moment(0)


def test_a_clock_that_was_never_looked_at_is_unknown() -> None:
    with pytest.raises(ClockUnknown, match="the clock of srv1 was never looked at"):
        HostClock("srv1").moment(0)


def test_a_clock_of_ones_own_needs_no_error_and_is_held_to_it() -> None:
    theirs = Simulated(0, [0])
    clock = related([theirs.exchange(0, MS, 9 * MS), theirs.exchange(S, 9 * MS, MS)], own="b1 c")
    assert clock.is_own
    moment = clock.moment(500 * MS)
    assert (moment.at_ns, moment.error_ns) == (500 * MS, 0)
    with pytest.raises(ClockUnknown, match="looked at 61 s from a stamp"):
        clock.moment(62 * S)
    # The exchanges alone say as much as they can.
    assert abs(clock.offset().offset_ns) <= clock.offset().error_ns <= 10 * MS
    ahead = Simulated(S, [0])
    with pytest.raises(ClockUnknown, match="says that its clock is this machine's, and shows another time"):
        related([ahead.exchange(0, MS, MS)], own="b1 c").moment(0)


def test_this_machine_says_which_clock_it_has() -> None:
    boot = own_boot_id()
    assert boot is not None
    assert (own_clock_id() or "").startswith(f"{boot} ")
