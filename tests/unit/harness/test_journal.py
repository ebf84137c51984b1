"""The undo journal: on disk before the act, honest when the disk or the file is not."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rackloop.clock import VirtualClock
from rackloop.errors import LabError
from rackloop.portmap import Open, Partial, PortMap
from rackloop.record.acts import ChangeMap
from rackloop.safety.store import StoreDamaged, open_store
from rackloop.safety.store._sqlite import SqliteEngine
from rackloop.safety.undo import Entry, EntryState, Journal, JournalDamaged

OPEN_1 = Open(frozenset({1}))
# https://sqlite.org/pragma.html#pragma_synchronous
FULL = 2
SWAP = ChangeMap(Partial(PortMap.of([(1, 102)])), 7)

FILL_UP = """
import resource, signal, sys
from pathlib import Path
from rackloop.clock import RealClock
from rackloop.errors import LabError
from rackloop.record.acts import BreakPart
from rackloop.safety.undo import Journal
from rackloop.safety.store import StoreDamaged, open_store
from rackloop.safety.store._sqlite import SqliteEngine
journal = Journal(open_store(Path(sys.argv[1]), RealClock()))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
promised = 0
try:
    for number in range(10_000):
        journal.intend("lab", "run", "drive:d01", what=BreakPart("x" * 150, {"kind": "x" * 350}), inverse=[])
        promised += 1
except LabError as error:
    print(promised, error)
"""
TWO_AT_ONCE = """
import sys
from pathlib import Path
from rackloop.clock import RealClock
from rackloop.record.acts import TurnOn
from rackloop.safety.undo import Journal
from rackloop.safety.store import StoreDamaged, open_store
from rackloop.safety.store._sqlite import SqliteEngine
journal = Journal(open_store(Path(sys.argv[1]), RealClock()))
for number in range(50):
    entry = journal.intend("lab", sys.argv[2], "srv1", what=TurnOn(), inverse=[])
    journal.acted(entry, {})
    if number % 2:
        journal.undone([entry])
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def journal(path: Path) -> Iterator[Journal]:
    journal = Journal(open_store(path, VirtualClock(start_ns=5)))
    yield journal
    journal.close()


def intend(journal: Journal, lab: str = "lab", resource: str = "switch") -> Entry:
    return journal.intend(lab, "run-1", resource, what=SWAP, inverse=[OPEN_1])


def test_an_intention_stands_until_it_is_undone(journal: Journal) -> None:
    entry = intend(journal)
    assert journal.standing("lab") == [entry]
    acted = journal.acted(entry, {"generation": 2})
    assert journal.standing("lab") == [acted]
    assert (acted.state, acted.acted_ns) == (EntryState.ACTED, 5)
    journal.undone([acted])
    assert journal.standing("lab") == []


def test_an_act_known_to_have_failed_leaves_nothing_standing(journal: Journal) -> None:
    entry = intend(journal)
    journal.failed(entry, "refused")
    assert journal.standing("lab") == []
    assert journal.since(0)[0].state is EntryState.FAILED


def test_standing_is_newest_first_and_of_one_lab(journal: Journal) -> None:
    first, other, last = intend(journal), intend(journal, lab="other"), intend(journal)
    assert [entry.id for entry in journal.standing("lab")] == [last.id, first.id]
    assert journal.standing("other") == [other]


def test_entries_come_back_as_they_were_written(path: Path, journal: Journal) -> None:
    entry = intend(journal, resource="pdu1/1")
    again = Journal(open_store(path, VirtualClock()))
    assert again.standing("lab") == [entry]
    assert entry.inverse == (OPEN_1,)
    assert entry.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert entry.wall == VirtualClock(start_ns=5).wall()
    again.close()


def test_since_a_mark_gives_what_came_later_in_any_state(journal: Journal) -> None:
    intend(journal)
    mark = journal.mark()
    later = [intend(journal), intend(journal, lab="other")]
    journal.undone(later[:1])
    assert [entry.id for entry in journal.since(mark)] == [later[1].id, later[0].id]


def test_many_entries_are_undone_together(journal: Journal) -> None:
    entries = [intend(journal) for _ in range(1000)]
    journal.undone(entries)
    assert journal.standing("lab") == []


def test_threads_share_a_journal(journal: Journal) -> None:
    def act(number: int) -> int:
        return journal.acted(intend(journal), {"number": number}).id

    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(act, range(200)))
    assert len(set(numbers)) == 200
    assert {entry.id for entry in journal.standing("lab")} == set(numbers)


def test_processes_share_a_journal_from_its_first_moment_on(path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", TWO_AT_ONCE, str(path), f"run-{number}"], stderr=subprocess.PIPE)
        for number in range(4)
    ]
    complaints = [writer.communicate(timeout=60)[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 4, complaints
    journal = Journal(open_store(path, VirtualClock()))
    assert len(journal.standing("lab")) == 100
    assert {entry.run for entry in journal.standing("lab")} == {f"run-{number}" for number in range(4)}
    journal.close()


def test_on_a_full_disk_nothing_is_promised_that_is_not_kept(path: Path) -> None:
    filled = subprocess.run(
        [sys.executable, "-c", FILL_UP, str(path)], capture_output=True, text=True, check=True, timeout=60
    )
    promised, message = filled.stdout.split(" ", 1)
    assert str(path) in message
    assert "nothing may be done to the lab without it" in message
    journal = Journal(open_store(path, VirtualClock()))
    assert len(journal.standing("lab")) == int(promised) > 0
    journal.close()


def test_an_intention_is_synced_and_an_outcome_is_not(journal: Journal) -> None:
    statements: list[str] = []
    engine = journal.store._engine
    assert isinstance(engine, SqliteEngine)
    # What is known not to have happened need not be on the disk.
    journal.failed(intend(journal), "refused")
    engine._db.set_trace_callback(statements.append)
    entry = intend(journal)
    assert statements[0] == "PRAGMA synchronous = FULL"
    assert statements[-1] == "COMMIT"
    statements.clear()
    intend(journal)
    assert (statements[0].split()[0], statements[-1]) == ("BEGIN", "COMMIT")
    assert engine._db.execute("PRAGMA synchronous").fetchone() == (FULL,)
    statements.clear()
    journal.acted(entry, {})
    assert statements == []


def test_an_outcome_is_written_with_the_next_intention_in_one_synced_transaction(path: Path, journal: Journal) -> None:
    first = intend(journal)
    journal.acted(first, {"generation": 8})
    statements: list[str] = []
    engine = journal.store._engine
    assert isinstance(engine, SqliteEngine)
    engine._db.set_trace_callback(statements.append)
    second = intend(journal)
    kinds = [statement.split()[0] for statement in statements]
    assert kinds == ["BEGIN", "UPDATE", "INSERT", "COMMIT"]
    assert engine._db.execute("PRAGMA synchronous").fetchone() == (FULL,)
    other = Journal(open_store(path, VirtualClock()))
    assert [(entry.id, entry.state) for entry in other.standing("lab")] == [
        (second.id, EntryState.INTENDED),
        (first.id, EntryState.ACTED),
    ]
    other.close()


def test_an_outcome_that_a_refused_intention_could_not_write_is_written_later(path: Path, journal: Journal) -> None:
    entry = journal.acted(intend(journal), {})
    engine = journal.store._engine
    assert isinstance(engine, SqliteEngine)
    engine._db.execute("CREATE TRIGGER full BEFORE INSERT ON undo_entry BEGIN SELECT RAISE(ABORT, 'disk'); END")
    with pytest.raises(LabError, match="disk"):
        intend(journal)
    other = Journal(open_store(path, VirtualClock()))
    assert [seen.state for seen in other.standing("lab")] == [EntryState.INTENDED]
    journal.close()
    assert other.standing("lab") == [entry]
    other.close()


def test_an_outcome_that_the_store_refuses_keeps_nobody_from_reading_what_stands(journal: Journal) -> None:
    entry = intend(journal)
    engine = journal.store._engine
    assert isinstance(engine, SqliteEngine)
    engine._db.execute("CREATE TRIGGER full BEFORE UPDATE ON undo_entry BEGIN SELECT RAISE(ABORT, 'disk'); END")
    journal.acted(entry, {})
    assert [seen.state for seen in journal.standing("lab")] == [EntryState.INTENDED]
    engine._db.execute("DROP TRIGGER full")
    assert [seen.state for seen in journal.standing("lab")] == [EntryState.ACTED]


def test_the_store_is_in_write_ahead_mode(path: Path, journal: Journal) -> None:
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    database.close()


def test_another_schema_is_refused_by_number(path: Path, journal: Journal) -> None:
    with sqlite3.connect(path) as database:
        database.execute("UPDATE undo_schema SET version = 99")
    database.close()
    with pytest.raises(LabError, match="schema 99, this Rackloop knows 2"):
        Journal(open_store(path, VirtualClock()))


def test_the_store_may_hold_other_tables(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE tokens (lab TEXT)")
    database.close()
    journal = Journal(open_store(path, VirtualClock()))
    assert intend(journal).id == 1
    journal.close()


def test_a_file_that_is_no_database_is_one_clear_error(path: Path) -> None:
    path.write_bytes(b"not a database at all, " * 400)
    with pytest.raises(StoreDamaged, match=r"store\.sqlite is damaged.*heal"):
        Journal(open_store(path, VirtualClock()))


def test_a_missing_directory_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"nowhere/store\.sqlite"):
        Journal(open_store(tmp_path / "nowhere" / "store.sqlite", VirtualClock()))


def test_what_can_be_read_of_a_damaged_journal_is_given(path: Path, journal: Journal) -> None:
    entries = [intend(journal, resource=f"r{number}-" + "x" * 300) for number in range(60)]
    journal.close()
    content = bytearray(path.read_bytes())
    page = 4096
    victim = next(at for at in range(page, len(content), page) if b"r10-" in content[at : at + page])
    content[victim : victim + page] = b"\xff" * page
    path.write_bytes(content)
    damaged = Journal(open_store(path, VirtualClock()))
    with pytest.raises(JournalDamaged) as raised:
        damaged.standing("lab")
    readable = [entry.id for entry in raised.value.readable]
    assert readable
    assert readable == [entry.id for entry in reversed(entries)][: len(readable)]
    damaged.close()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("inverse = '{'", "Expecting property name"),
        ("what = '7'", "malformed journal entry: act or inverse is not an object"),
        ("""what = '{"change": 7}'""", "malformed journal entry: act or inverse is not an object"),
        ("inverse = '[[]]'", "malformed journal entry: act or inverse is not an object"),
        ("inverse = '{}'", "malformed journal entry: act or inverse is not an object"),
        ("inverse = '[]'", "malformed journal entry: it has no inverse"),
        ("""inverse = '[{"act": "unthrottle"}]'""", "an act of another version of Rackloop: 'unthrottle'"),
        ("""inverse = '[{"act": "open", "ports": [0]}]'""", r"its inverse, open, cannot be carried out: ports \[0\]"),
        ("""what = '{"ports": ["a"]}'""", r"ports \['a'\]"),
        ("state = 'lost'", "'lost' is not a valid EntryState"),
        ("wall = '?'", "Invalid isoformat string"),
        ("what = X'FF'", "malformed journal entry: a column has a value of the wrong type"),
    ],
)
def test_an_entry_that_cannot_be_read_is_named_and_keeps_no_other_from_being_read(
    path: Path, journal: Journal, damage: str, said: str
) -> None:
    older, broken, newer = intend(journal), intend(journal, resource="pdu1/1"), intend(journal)
    with sqlite3.connect(path) as database:
        database.execute(f"UPDATE undo_entry SET {damage} WHERE id = ?", (broken.id,))  # noqa: S608 - own constants
    database.close()
    with pytest.raises(JournalDamaged, match=rf"damaged \(entry {broken.id}, of pdu1/1: .*{said}") as raised:
        journal.since(0)
    assert raised.value.readable == (newer, older)
    assert raised.value.broken == {broken.id: "pdu1/1"}


def test_a_result_is_kept_with_its_entry(path: Path, journal: Journal) -> None:
    entry = intend(journal)
    journal.acted(entry, {"generation": 7})
    journal.close()
    with sqlite3.connect(path) as database:
        (result,) = database.execute("SELECT result FROM undo_entry").fetchone()
    database.close()
    assert json.loads(result) == {"generation": 7}


def test_a_closed_journal_says_so(path: Path) -> None:
    journal = Journal(open_store(path, VirtualClock()))
    journal.close()
    with pytest.raises(LabError, match="closed"):
        intend(journal)
