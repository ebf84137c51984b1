"""The rate of a host's clock: by exchanges while neither kernel steers, else by the most that kernels steer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackloop_drivers.clock_rate import ANY_RATE, DRIFT_PPM, WANDER_PPM, Exchange, own_steering, rate_between
from rackloop_drivers.host_clock import HostClock
from tests.unit.drivers.simulated_clocks import MS, S, Simulated, related


def steered(theirs: Simulated, turns: Sequence[tuple[int, int, int]]) -> list[Exchange]:
    """Exchanges at these moments, each with its ways there and back; the kernel says the rate that it is steered to."""
    return [
        replace(theirs.exchange(sent_ns, *ways), steering=str(theirs.rate(sent_ns // S))) for sent_ns, *ways in turns
    ]


ways = st.integers(min_value=0, max_value=20 * MS)
moments = st.lists(st.integers(min_value=0, max_value=200), min_size=2, max_size=40, unique=True)


@settings(deadline=None)
@given(
    st.floats(min_value=-DRIFT_PPM + WANDER_PPM, max_value=DRIFT_PPM - WANDER_PPM),
    st.lists(st.floats(min_value=-WANDER_PPM / 2, max_value=WANDER_PPM / 2), min_size=1, max_size=8),
    moments,
    st.data(),
)
def test_the_true_moment_is_within_its_error_while_a_rate_wanders(
    ppm: float, wander: list[float], seconds: list[int], data: st.DataObject
) -> None:
    theirs = Simulated(5 * S, [ppm + by for by in wander])
    exchanges = [
        replace(theirs.exchange(second * S, data.draw(ways), data.draw(ways)), steering="0 10000")
        for second in sorted(seconds)
    ]
    clock = related(exchanges)
    for exchange in exchanges:
        at_ns = exchange.sent_ns + data.draw(st.integers(min_value=0, max_value=30 * S))
        moment = clock.moment(theirs.at(at_ns))
        assert abs(moment.at_ns - at_ns) <= moment.error_ns + 1


@settings(deadline=None)
@given(st.lists(st.sampled_from([-400.0, 0.0, 350.0]), min_size=1, max_size=8), st.data())
def test_the_true_moment_is_within_its_error_where_a_kernel_steers_and_says_so(
    ppm: list[float], data: st.DataObject
) -> None:
    theirs = Simulated(0, ppm)
    # A second with another rate has an exchange of its own, as whoever asks every second has.
    turns = [(second * S + 500 * MS, data.draw(ways), data.draw(ways)) for second in range(20)]
    clock = related(steered(theirs, turns))
    at_ns = data.draw(st.integers(min_value=0, max_value=21 * S))
    moment = clock.moment(theirs.at(at_ns))
    assert abs(moment.at_ns - at_ns) <= moment.error_ns + 1


def test_a_clock_that_is_not_steered_is_known_far_from_its_narrow_exchanges() -> None:
    theirs = Simulated(7 * S, [-40.0])
    narrow = [(second * S, MS // 2, MS // 2) for second in (0, 1, 60, 61)]
    wide = [(second * S, 15 * MS, 15 * MS) for second in (70, 80, 90, 100)]
    at_ns = 85 * S
    known = related(steered(theirs, [*narrow, *wide])).moment(theirs.at(at_ns))
    # Half a millisecond of the exchange, 24 s away at a rate that 60 s with 1 ms tell, and what that may wander.
    assert known.error_ns < 0.5 * MS + 24 * (17 + WANDER_PPM) * 1000 + 10
    assert abs(known.at_ns - at_ns) <= known.error_ns
    untold = [replace(exchange, steering=None) for exchange in steered(theirs, [*narrow, *wide])]
    assert related(untold).moment(theirs.at(at_ns)).error_ns > 5 * MS


def test_a_stamp_behind_the_last_exchange_may_be_of_a_clock_that_was_steered_since() -> None:
    theirs = Simulated(0, [0.0])
    clock = related(steered(theirs, [(second * S, 0, 0) for second in range(30)]))
    assert clock.moment(39 * S).error_ns == pytest.approx(10 * S * DRIFT_PPM / 1e6, rel=0.01)


def test_a_rate_that_wanders_further_than_a_quartz_is_not_gone_by() -> None:
    theirs = Simulated(0, [0.0] * 30 + [300.0] * 30)
    exchanges = [replace(theirs.exchange(second * S, 0, 0), steering="0 10000") for second in range(60)]
    clock = related(exchanges)
    at_ns = 45 * S + S // 2
    moment = clock.moment(theirs.at(at_ns))
    assert moment.error_ns > 2 * S // 2 * WANDER_PPM // 500_000, "a half second at a rate that is known"
    assert abs(moment.at_ns - at_ns) <= moment.error_ns


def test_exchanges_may_be_told_in_another_order_than_they_were_made() -> None:
    theirs = Simulated(3 * S, [25.0])
    exchanges = steered(theirs, [(second * S, MS, 2 * MS) for second in range(20)])
    swapped = [exchanges[place ^ 1] for place in range(20)]
    at_ns = theirs.at(11 * S + S // 3)
    assert related(swapped).moment(at_ns).error_ns == pytest.approx(related(exchanges).moment(at_ns).error_ns, rel=0.2)


def test_a_rate_between_two_exchanges_is_what_their_ways_allow() -> None:
    first, last = Exchange(0, 0, 1000), Exchange(S, S + 30_000, S + 1000)
    rate = rate_between(first, last)
    assert [rate.least_ppm, rate.most_ppm] == pytest.approx([29, 31], abs=0.1)
    assert rate_between(first, Exchange(500, 700, 1500)) is ANY_RATE


def test_a_clock_is_one_sessions_may_go_on_with_while_it_is_known_and_of_one_boot() -> None:
    theirs = Simulated(0, [0.0])
    clock = HostClock("srv1")
    assert not clock.is_of("b1", "b1 c")
    clock.add(theirs.exchange(0, MS, MS))
    assert clock.is_of("b1", "b1 c")
    assert not clock.is_of("b2", "b2 c")
    theirs.jumps.append((S, 10 * S))
    clock.add(theirs.exchange(2 * S, MS, MS))
    assert not clock.is_of("b1", "b1 c")


def test_this_machine_says_how_its_clock_is_steered_or_that_it_is_slewing() -> None:
    said = own_steering()
    assert said is None or 9_000 <= int(said.split()[1]) <= 11_000
