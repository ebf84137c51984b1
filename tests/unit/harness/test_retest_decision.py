"""What a retest decides, from every outcome there can be."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from rackloop.lab import Part
from rackloop.measurement import Cause
from rackloop.safety.maintenance import Diagnosis, Finding, Seen, Trial, diagnose

D, E = Part.drive("d01"), Part.drive("d02")
P, Q = Part.port("srv1", "p0"), Part.port("srv1", "p1")
S = Part.server("srv1")
# The drive at its port, the drive at another, another drive at its port, that drive at its own.
PLACES = (("d01", "p0"), ("d01", "p1"), ("d02", "p0"), ("d02", "p1"))


def _trials(failed: str, seen: Seen = Seen.UNREADABLE, servers: tuple[str, str] = ("srv1", "srv1")) -> list[Trial]:
    """Trials in the order of PLACES: ``x`` failed, ``.`` worked, a blank was not made."""
    by_port = dict(zip(("p0", "p1"), servers, strict=True))
    return [
        Trial(drive, by_port[port], port, seen if mark == "x" else Seen.WORKS, 0.2)
        for (drive, port), mark in zip(PLACES, failed, strict=True)
        if mark != " "
    ]


@pytest.mark.parametrize(
    ("failed", "finding", "culprits"),
    [
        ("....", Finding.NOT_REPRODUCED, ()),
        ("x...", Finding.UNCLEAR, ()),
        (".x..", Finding.UNCLEAR, ()),
        ("..x.", Finding.UNCLEAR, ()),
        ("...x", Finding.UNCLEAR, ()),
        ("xx..", Finding.DRIVE, (D,)),
        ("..xx", Finding.DRIVE, (E,)),
        ("x.x.", Finding.PORT, (P,)),
        (".x.x", Finding.PORT, (Q,)),
        ("x..x", Finding.UNCLEAR, ()),
        (".xx.", Finding.UNCLEAR, ()),
        ("xxx.", Finding.SEVERAL, (D, P)),
        ("xx.x", Finding.SEVERAL, (D, Q)),
        ("x.xx", Finding.SEVERAL, (E, P)),
        (".xxx", Finding.SEVERAL, (E, Q)),
        ("xxxx", Finding.SERVER, (S,)),
    ],
)
def test_every_outcome_of_a_whole_retest_has_its_finding(
    failed: str, finding: Finding, culprits: tuple[Part, ...]
) -> None:
    found = diagnose(_trials(failed))
    assert (found.finding, set(found.culprits)) == (finding, set(culprits))


@pytest.mark.parametrize("marks", ["".join(marks) for marks in product("x. ", repeat=4) if set(marks) != {" "}])
def test_what_is_found_explains_every_trial_and_nothing_smaller_does(marks: str) -> None:
    trials = _trials(marks)
    found = diagnose(trials)
    explaining = [
        set(bad)
        for size in range(6)
        for bad in combinations((D, E, P, Q, S), size)
        if all((trial.seen is Seen.WORKS) != bool(trial.parts & set(bad)) for trial in trials)
    ]
    fewest = [bad for bad in explaining if len(bad) == len(explaining[0])] if explaining else []
    if len(fewest) == 1:
        assert set(found.culprits) == fewest[0]
        assert (found.finding is Finding.NOT_REPRODUCED) == (fewest[0] == set())
    else:
        assert found.finding is Finding.UNCLEAR
        assert set(found.culprits) == set().union(*fewest)


def test_where_there_is_no_switch_a_drive_cannot_be_told_from_its_cable_or_server() -> None:
    found = diagnose(_trials("x   "))
    assert (found.finding, set(found.culprits), found.cause) == (Finding.UNCLEAR, {D, P, S}, None)
    assert "it may be drive d01 or port srv1.p0 or server srv1" in str(found)


def test_a_port_that_cannot_be_told_from_its_server_is_the_labs_all_the_same() -> None:
    found = diagnose(_trials("x.x.", servers=("srv1", "srv2")))
    assert (found.finding, set(found.culprits), found.cause) == (Finding.UNCLEAR, {P, S}, Cause.LAB)


@pytest.mark.parametrize(
    ("failed", "cause"), [("xx..", Cause.PRODUCT), ("x.x.", Cause.LAB), ("xxxx", Cause.LAB), ("xxx.", Cause.LAB)]
)
def test_a_drive_is_the_product_and_what_leads_to_it_the_lab(failed: str, cause: Cause) -> None:
    assert diagnose(_trials(failed)).cause is cause


def test_a_drive_that_another_is_found_instead_of_is_not_at_fault_but_its_cable() -> None:
    found = diagnose(_trials("xx..", Seen.ANOTHER))
    assert (found.finding, found.culprits, found.cause) == (Finding.PORT, (D,), Cause.LAB)
    assert "the cable of drive d01, or its switch port" in str(found)


@pytest.mark.parametrize(("took_s", "finding"), [(0.9, Finding.NOT_REPRODUCED), (1.2, Finding.PORT)])
def test_a_port_where_links_come_far_later_than_elsewhere_is_at_fault(took_s: float, finding: Finding) -> None:
    trials = [
        Trial(drive, "srv1", port, Seen.WORKS, took_s if port == "p0" else 0.2 + took_s / 100) for drive, port in PLACES
    ]
    assert diagnose(trials).finding is finding


def test_a_diagnosis_tells_its_trials() -> None:
    found = diagnose([Trial("d01", "srv1", "p0", Seen.UNREADABLE, 0.1, "sector 3: EIO"), *_trials(" x..")])
    assert isinstance(found, Diagnosis)
    assert str(found).startswith(
        "the retest says: drive d01 (at srv1.p0 d01 could not be read: sector 3: EIO; at srv1.p1"
    )


def test_a_port_that_the_switch_does_not_move_is_at_fault_though_a_drive_works_there() -> None:
    stuck = Trial("d02", "srv1", "p0", Seen.STUCK, detail="ports [1] did not follow")
    found = diagnose([Trial("d01", "srv1", "p0", Seen.WORKS, 0.1), stuck])
    assert (found.finding, found.culprits) == (Finding.PORT, (P,))
