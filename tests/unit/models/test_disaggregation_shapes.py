"""Shapes of the four designs, placements, moves and services."""

from __future__ import annotations

import pytest

from rackloop.errors import BadInput, NotSupported
from rackloop_models.disaggregation import (
    HDFS_WINDOW_S,
    History,
    InTransition,
    Load,
    Located,
    MappingService,
    Move,
    NameService,
    Placement,
    Rebuild,
    Shape,
    changes,
    complete,
    configuration,
    dealt,
    diurnal,
    elastic,
    failure,
    of_requests,
    stretched,
    with_servers,
)

SERVERS = [f"s{number}" for number in range(1, 7)]
PORTS = ["p0", "p1", "p2", "p3"]
DRIVES = [f"d{number:03}" for number in range(1, 200)]


def test_the_designs_take_as_many_drives_as_they_are_defined_to_have() -> None:
    assert len(elastic(SERVERS, PORTS, DRIVES).drives) == 8
    halved = failure(SERVERS, PORTS, DRIVES, spares=2)
    assert (len(halved.drives), len(halved.spares)) == (12, 2)
    assert set(halved.drives).isdisjoint(halved.spares)
    assert len(configuration(SERVERS, PORTS, ["e1", "e2", "e3"]).drives) == 2
    assert len(complete(SERVERS[:2], PORTS[:2], DRIVES[:16]).drives) == 16


def test_a_design_that_needs_more_ports_than_a_switch_has_is_refused() -> None:
    assert Shape(tuple(SERVERS), tuple(PORTS), tuple(DRIVES[:136])).needed_ports == 160
    with pytest.raises(NotSupported, match="need 161 ports, the switch has 160"):
        Shape(tuple(SERVERS), tuple(PORTS), tuple(DRIVES[:136]), ("spare",))


def test_a_design_that_has_too_few_drives_or_odd_ports_is_refused() -> None:
    with pytest.raises(NotSupported, match="4 for each at least; found 15"):
        complete(SERVERS[:2], PORTS[:2], DRIVES[:15])
    with pytest.raises(NotSupported, match=r"wants 8 .* \(nk/3\), found 7"):
        elastic(SERVERS, PORTS, DRIVES[:7])
    with pytest.raises(NotSupported, match="an even number; found 3"):
        failure(SERVERS, PORTS[:3], DRIVES, spares=1)
    with pytest.raises(BadInput, match="each named once"):
        Shape(("s1", "s1"), ("p0",), ("d1",))


def test_a_placement_never_has_two_drives_at_a_place_or_one_at_two() -> None:
    placement = Placement(elastic(SERVERS, PORTS, DRIVES), {"d1": ("s1", "p0")})
    for drive, place in (("d1", ("s2", "p0")), ("d2", ("s1", "p0")), ("d2", ("s9", "p0"))):
        with pytest.raises(ValueError, match=r"cannot come|no place"):
            placement.put(drive, place)
    with pytest.raises(ValueError, match="was not at"):
        placement.make([Move("d1", ("s3", "p0"), ("s2", "p0"))])


def test_drives_are_dealt_evenly_and_may_change_places_in_one_step() -> None:
    placement = dealt(failure(SERVERS, PORTS, DRIVES, spares=1))
    assert {server: len(placement.drives_of(server)) for server in SERVERS} == dict.fromkeys(SERVERS, 2)
    first, second = placement.drives_of("s1")[0], placement.drives_of("s2")[0]
    one, other = placement.at[first], placement.at[second]
    placement.make([Move(first, one, other), Move(second, other, one)])
    assert placement.drive_at(one) == second
    assert placement.place_of(first) == other


def test_the_mapping_service_names_servers_and_remembers_who_asked() -> None:
    history = History()
    service = MappingService(history, lambda: 7.0)
    service.settle("d1", "s1")
    assert service.server_of("d1") == "s1"
    service.lift("d1")
    with pytest.raises(InTransition):
        service.server_of("d1")
    assert service.lookups == 2
    assert history.of(Located) == [Located(7.0, "d1", "s1"), Located(7.0, "d1", None)]


def test_the_name_service_knows_blocks_by_the_last_report_of_their_drive() -> None:
    names = NameService(History(), lambda: 0.0)
    names.report("s1", "d1", ["a", "b"])
    names.report("s2", "d2", ["c"])
    names.forget_server("s1")
    assert names.missing() == {"a", "b"}
    assert names.server_of("a") is None
    assert names.server_of("c") == "s2"
    names.report("s3", "d1", ["b"])
    assert names.missing() == set()
    assert (names.server_of("a"), names.server_of("b")) == (None, "s3")
    assert names.updates == 3


def test_expanders_are_dealt_to_as_many_servers_as_are_asked_for() -> None:
    shape = configuration(SERVERS[:4], PORTS, ["e1", "e2"])
    one, two = with_servers(shape, 1), with_servers(shape, 2)
    assert (one.servers(), two.servers()) == (1, 2)
    assert changes(shape, one, two) == [Move("e2", ("s1", "p1"), ("s2", "p0"))]
    assert changes(shape, one, one) == []
    for count in (0, 3):
        with pytest.raises(BadInput, match="1 to 2 servers"):
            with_servers(shape, count)


def test_a_rebuild_takes_what_its_slowest_part_takes_after_the_window() -> None:
    rebuild = Rebuild(
        drives=2,
        drive_bytes=10e12,
        filled=0.5,
        sources=10,
        source_bytes_per_s=200e6,
        writers=10,
        writer_bytes_per_s=150e6,
        network_bytes_per_s=1.25e9,
    )
    assert rebuild.copied_bytes == 10e12
    assert rebuild.bytes_per_s == 1.25e9
    assert rebuild.seconds == HDFS_WINDOW_S + 8000


def test_the_load_of_a_trace_is_its_bytes_in_each_step_against_the_busiest() -> None:
    loads = of_requests([(10.0, 100), (10.5, 100), (12.1, 50)], step_s=1.0, high=0.8)
    assert loads == [Load(0.0, 0.8), Load(1.0, 0.0), Load(2.0, 0.2)]
    assert stretched(loads, 60)[2] == Load(120.0, 0.2)
    with pytest.raises(ValueError, match="no load"):
        of_requests([], step_s=1.0)


def test_a_diurnal_load_has_its_night_and_its_day_and_follows_its_seed() -> None:
    loads = diurnal(days=1, step_s=600, seed=3)
    assert loads == diurnal(days=1, step_s=600, seed=3)
    assert loads != diurnal(days=1, step_s=600, seed=4)
    assert len(loads) == 144
    night, day = loads[0].share, loads[72].share
    assert night < 0.3 < 0.7 < day
