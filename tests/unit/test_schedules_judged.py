"""What I/O may have felt of a fault, what a dry run says of a schedule, and what files schedules are left in."""

from __future__ import annotations

import pytest

from rackloop.errors import BadInput
from rackloop.faults import BlastRadius, FaultSpec, Injection
from rackloop.faults.schedules import FaultChoice, RandomSchedule
from rackloop.lab import load_lab
from rackloop_drivers.workload import WatchInterval
from rackloop_fixtures import seconds_to_service, unexplained_errors
from rackloop_fixtures._schedules import foreseen_faults, foreseen_s, schedule_file_name
from tests.unit.schedule_cases import schedule, step

S = 1_000_000_000


def interval(until_s: float, *, completed: int = 10, errors: int = 0) -> WatchInterval:
    """A part of a watch that ended ``until_s`` seconds after its beginning."""
    zero = dict.fromkeys(("max_us", "mean_us", "p50_us", "p90_us", "p99_us", "p999_us"), 0.0)
    return WatchInterval(
        t_ns=round(until_s * S),
        completed=completed,
        in_flight=1,
        errors=errors,
        last_error=None,
        bytes=0,
        max_submit_ns=0,
        max_complete_ns=0,
        verdicts={},
        offenders=(),
        **zero,
    )


def fault(began_s: float, healed_s: float | None, *, port: str = "p0") -> Injection:
    radius = BlastRadius(server_ports=frozenset({("srv1", port)}))
    healed_ns = None if healed_s is None else round(healed_s * S)
    return Injection(1, FaultSpec("hang", "d01"), "run/1", radius, round(began_s * S), healed_ns=healed_ns)


@pytest.mark.parametrize(
    ("faults", "unexplained"),
    [
        ([], 5),
        ([fault(3, 4)], 0),
        ([fault(3, None)], 0),
        ([fault(3, 4, port="p1")], 5),
        ([fault(1, 2)], 5),
        ([fault(1, 2.6)], 0),
        ([fault(5, 6)], 5),
    ],
)
def test_an_error_is_explained_by_a_fault_that_reached_its_port_then(faults: list[Injection], unexplained: int) -> None:
    watch = [interval(1), interval(2), interval(3), interval(4, errors=5), interval(5)]
    assert unexplained_errors(watch, faults, "srv1", "p0", settle_s=0.5) == unexplained


def test_service_is_back_with_the_first_interval_that_completes_without_an_error() -> None:
    watch = [
        interval(1),
        interval(2, completed=0),
        interval(3, completed=4, errors=4),
        interval(3.5, completed=0),
        interval(4.25),
    ]
    assert seconds_to_service(watch, fault(1.5, 3.2), 3 * S) == 1.25
    assert seconds_to_service(watch[:4], fault(1.5, 3.2), 3 * S) is None
    assert seconds_to_service([interval(1), interval(2), interval(3)], fault(1.5, 2), 2 * S) == 0.0


def test_a_dry_run_tells_each_fault_where_it_is_known_and_what_may_come_where_not() -> None:
    lab = load_lab("labs/mock.yaml")
    script = schedule(step(0, 1), step(2, 0.5, "srv1.p0", "phy_drop"))
    assert foreseen_faults(script, lab, None, "t") == [
        "hang of d01 at 0 s for 1 s",
        "phy_drop of srv1.p0 at 2 s for 0.5 s",
    ]
    assert foreseen_s(script) == 2.5
    chances = RandomSchedule("storm", (FaultChoice("hang", ("drives",), (1, 1)),), every_s=2.0, duration_s=30.0)
    (said,) = foreseen_faults(chances, lab, None, "t")
    assert said.startswith("hang: one about every 2 s for 30 s, at most 1 at once, drawn by the run's seed")
    assert foreseen_s(chances) == 30
    known = foreseen_faults(chances, lab, 7, "t")
    assert known == foreseen_faults(chances, lab, 7, "t") != foreseen_faults(chances, lab, 8, "t")
    assert all(line.startswith("hang of d") for line in known)


def test_a_dry_run_refuses_what_the_lab_cannot_have_even_without_a_seed() -> None:
    chances = RandomSchedule("storm", (FaultChoice("hang", ("d99",), (1, 1)),), every_s=2.0, duration_s=30.0)
    with pytest.raises(BadInput, match="nothing called 'd99'"):
        foreseen_faults(chances, load_lab("labs/mock.yaml"), None, "t")


def test_each_test_has_a_file_of_its_own() -> None:
    assert schedule_file_name("faults/storm::storm[2]") == "faults-storm-storm-2.yaml"
