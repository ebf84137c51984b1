"""Heal with a journal that holds what this version cannot carry out: said, kept, and no reason to stop."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rackloop.portmap import Open
from rackloop.record.acts import SaveBootMap
from rackloop.safety.undo import JournalDamaged
from tests.unit.harness.journalled_bench import Bench
from tests.unit.harness.sim_rack import BASELINE

INVERSES = {
    "nothing": [],
    "an act of a newer version": [{"act": "unthrottle"}],
    "no kind": [{"key": "x"}],
    "power without a state": [{"act": "power"}],
    "power twice": [{"act": "power", "on": True}, {"act": "power", "on": False}],
    "letters for ports": [{"act": "join", "pairs": [["a", "b"]]}],
    "a port joined to itself": [{"act": "replace", "pairs": [[1, 1]]}],
    "truths for ports": [{"act": "open", "ports": [True]}],
    "no list of ports": [{"act": "open", "ports": 7}],
    "no time": [{"act": "settle", "ports": [1], "lasts_ms": "soon"}],
    "no end": [{"act": "settle", "ports": [1], "lasts_ms": math.inf}],
    "no key": [{"act": "mend", "key": ["x"]}],
    "a text": "open",
    "a number": [5],
}


@pytest.mark.parametrize("inverse", INVERSES.values(), ids=INVERSES)
def test_what_cannot_be_undone_is_said_and_keeps_standing_and_all_else_is_undone(bench: Bench, inverse: object) -> None:
    for port in (1, 2, 6):
        bench.acting.fabric.apply(Open(frozenset({port})), bench.deadline)
    with bench.journal.store.transaction() as tables:
        tables.rows("UPDATE undo_entry SET inverse = ? WHERE id = 2", json.dumps(inverse))
    for _ in range(2):
        report = bench.heal()
        assert not report.is_healed
        assert any("entry 2, of switch: " in problem for problem in report.problems)
    assert bench.switch.live == BASELINE
    with pytest.raises(JournalDamaged) as damage:
        bench.journal.standing("bench")
    assert damage.value.readable == ()
    assert damage.value.broken == {2: "switch"}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["act", "ports", "pairs", "on", "key", "lasts_ms", "change", "do"]), inner)
    ),
    max_leaves=8,
)
_ACTS = st.fixed_dictionaries(
    {"act": st.sampled_from(["open", "join", "replace", "save", "power", "mend", "settle", "unthrottle"])},
    optional={
        "ports": st.lists(st.integers(-1, 200), max_size=3) | _JSON,
        "pairs": st.lists(st.lists(st.integers(-1, 200), min_size=2, max_size=2), max_size=3) | _JSON,
        "on": st.booleans() | _JSON,
        "key": _JSON,
        "lasts_ms": st.floats() | st.integers(0, 10) | _JSON,
    },
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    what=_JSON,
    inverse=st.lists(_ACTS, max_size=3) | _JSON,
    resource=st.sampled_from(
        ["switch", "srv1", "drive:d01", "port:7", "switch_port:7", "port:", "slot:srv1/", "", "\ud7ff\n"]
    ),
)
def test_heal_ends_in_a_report_whatever_a_journal_holds(
    bench: Bench, what: object, inverse: object, resource: str
) -> None:
    entry = bench.journal.intend("bench", "run", resource, what=SaveBootMap(), inverse=[])
    with bench.journal.store.transaction() as tables:
        tables.rows("UPDATE undo_entry SET state = 'undone' WHERE id <> ?", entry.id)
        texts = json.dumps(what), json.dumps(inverse)
        tables.rows("UPDATE undo_entry SET what = ?, inverse = ? WHERE id = ?", *texts, entry.id)
    report = bench.heal()
    # What came to nothing is marked so; what did not is said.
    assert report.problems or [undone.id for undone in report.undone] == [entry.id]
