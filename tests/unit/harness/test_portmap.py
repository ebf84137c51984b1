"""Port maps: canonical form, changes, what a change disturbs, and what undoes it."""

import binascii

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop.portmap import Full, MapChange, Open, Partial, PortMap, disturbed_ports, inverse

PORTS = 24


@st.composite
def maps(draw: st.DrawFn) -> PortMap:
    ports = draw(st.permutations(range(1, PORTS + 1)))
    count = draw(st.integers(0, PORTS // 2))
    return PortMap.of(zip(ports[:count], ports[count : 2 * count], strict=True))


changes: st.SearchStrategy[MapChange] = st.one_of(
    maps().map(Partial), maps().map(Full), st.frozensets(st.integers(1, PORTS)).map(Open)
)


def test_pairs_are_canonical_whatever_order_they_come_in() -> None:
    assert PortMap.of([(18, 2), (17, 1)]) == PortMap.of([(1, 17), (2, 18)])
    assert PortMap.of([(18, 2), (17, 1)]).canonical_text() == "1!17,2!18"


def test_the_checksum_is_crc32_of_the_canonical_text() -> None:
    assert PortMap.of([(18, 2), (17, 1)]).crc32() == binascii.crc32(b"1!17,2!18")


@pytest.mark.parametrize("bad", [[(1, 1)], [(1, 2), (2, 3)], [(1, 2), (1, 2)]])
def test_a_port_has_at_most_one_circuit(bad: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match=r"used twice|joined to itself"):
        PortMap.of(bad)


@given(live=maps(), partial=maps())
def test_a_partial_change_leaves_every_other_pair_alone(live: PortMap, partial: PortMap) -> None:
    after = Partial(partial).after(live)
    assert set(partial) <= set(after)
    assert set(after) - set(partial) == {pair for pair in live if not partial.ports().intersection(pair)} - set(partial)


@given(live=maps(), change=changes)
def test_only_ports_whose_circuit_differs_are_disturbed(live: PortMap, change: MapChange) -> None:
    after = change.after(live)
    disturbed = disturbed_ports(live, after)
    for pair in set(live) & set(after):
        assert not disturbed.intersection(pair)
    for port in disturbed:
        assert live.peer_of(port) != after.peer_of(port)


@given(live=maps(), change=changes)
def test_the_inverse_restores_the_map(live: PortMap, change: MapChange) -> None:
    current = change.after(live)
    for step in inverse(change, live):
        current = step.after(current)
    assert current == live
