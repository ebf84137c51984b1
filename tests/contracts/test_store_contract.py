"""What the lab store owes, on a file and on a real PostgreSQL server: the journal, the leases, the tokens."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from threading import Event

import pytest

from rackloop.errors import BadInput, LabError
from rackloop.portmap import Open
from rackloop.record.acts import SaveBootMap, TurnOff
from rackloop.safety.leases import Holder, Lease, LeaseLost, Leases, Process, RackLeased, Ticket, holding, obtain
from rackloop.safety.leases._leases import LeaseTerms
from rackloop.safety.store import Store, open_store
from rackloop.safety.store._postgres import PostgresEngine
from rackloop.safety.undo import Journal
from tests.deadlines import CLOCK
from tests.parts import parts
from tests.postgres_server import PostgresServer, running_postgres

WHOLE = parts(whole=True)
SRV1, SRV2 = parts(servers=frozenset({"srv1"})), parts(servers=frozenset({"srv2"}))
BOTH = parts(servers=frozenset({"srv1", "srv2"}))
ME = Holder.here()

HOLD = """
import sys
from rackloop.clock import RealClock
from rackloop.lab import WHOLE_RACK, Parts
from rackloop.safety.leases import Leases, holding
from rackloop.safety.store import open_store
with holding(Leases(open_store(sys.argv[1], RealClock()), "lab"), Parts([WHOLE_RACK])) as held:
    print(held.lease.id, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The file or the URL of an empty store."""
    if request.param == "sqlite":
        return str(tmp_path / "store.sqlite")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.database()


@pytest.fixture
def store(where: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    # The tests' server has just been started, and leases that are not renewed are given time from then on.
    monkeypatch.setattr(PostgresEngine, "up_since_s", lambda _engine: 0.0)
    with closing(open_store(where, CLOCK)) as opened:
        yield opened


@pytest.fixture
def leases(store: Store) -> Leases:
    return Leases(store, "lab")


def granted(ticket: Ticket) -> Lease:
    assert ticket.lease is not None, ticket.held_up_by
    return ticket.lease


def ids(leases: Iterable[Lease | Ticket]) -> list[str]:
    return [lease.id for lease in leases]


def lapse(leases: Leases, lease: Lease | Ticket) -> None:
    """Let the time of a lease have passed, as if nobody had sent a heartbeat."""
    with leases.store.transaction() as tables:
        tables.rows("UPDATE lease SET until_s = until_s - 1000000 WHERE id = ?", lease.id)


def test_what_does_not_overlap_is_granted_side_by_side(leases: Leases) -> None:
    first, second = granted(leases.request(SRV1, ME)), granted(leases.request(SRV2, ME))
    assert ids(leases.held()) == ids([first, second])
    assert second.token > first.token


def test_what_overlaps_waits_and_is_told_for_whom(leases: Leases) -> None:
    first = granted(leases.request(SRV1, ME, purpose="smoke"))
    waiting = leases.request(WHOLE, ME)
    assert waiting.lease is None
    [why] = waiting.held_up_by
    assert f"srv1 held by {ME} for smoke since" in why
    assert ids(leases.queue()) == [waiting.id]
    leases.release(first)
    assert granted(leases.poll(waiting)).token > first.token
    assert leases.queue() == []


def test_priority_comes_first_then_who_asked_before(leases: Leases) -> None:
    holder = granted(leases.request(WHOLE, ME))
    low, early, late, high = (
        leases.request(SRV1, ME, priority=-1),
        leases.request(SRV1, ME),
        leases.request(SRV1, ME),
        leases.request(SRV1, ME, priority=5),
    )
    leases.release(holder)
    expected = [high, early, late, low]
    for place, ticket in enumerate(expected):
        assert [leases.poll(other).lease is None for other in expected[place + 1 :]] == [True] * (3 - place)
        leases.release(granted(leases.poll(ticket)))


def test_a_small_request_never_overtakes_one_it_would_hold_up(leases: Leases) -> None:
    granted(leases.request(SRV1, ME))
    waiting = leases.request(WHOLE, ME)
    assert leases.request(SRV2, ME).lease is None
    leases.release(waiting)
    assert leases.queue()[0].parts == SRV2


def test_one_that_holds_nobody_up_overtakes(leases: Leases) -> None:
    granted(leases.request(SRV1, ME))
    assert leases.request(SRV1, ME).lease is None
    granted(leases.request(SRV2, ME))


def test_a_request_is_granted_whole_or_not_at_all(leases: Leases) -> None:
    granted(leases.request(SRV1, ME))
    assert leases.request(BOTH, ME).lease is None
    assert [lease.parts for lease in leases.held()] == [SRV1]


def test_who_gave_a_place_up_is_not_waited_for(leases: Leases) -> None:
    holder = granted(leases.request(SRV1, ME))
    first, second = leases.request(BOTH, ME), leases.request(SRV1, ME)
    lapse(leases, first)
    leases.release(holder)
    granted(leases.poll(second))
    with pytest.raises(LeaseLost, match="was given up"):
        leases.poll(first)


def test_a_lease_without_heartbeats_ends_for_who_wants_it(leases: Leases) -> None:
    first = granted(leases.request(WHOLE, ME))
    lapse(leases, first)
    assert leases.held() == []
    second = granted(leases.request(SRV1, ME))
    with pytest.raises(LeaseLost, match="is over: lapsed"):
        leases.renew(first)
    assert ids(leases.held()) == ids([second])


def test_a_late_heartbeat_counts_while_nobody_was_granted_the_rack(leases: Leases) -> None:
    first = granted(leases.request(WHOLE, ME))
    lapse(leases, first)
    assert leases.renew(first).until > first.granted_at
    assert leases.request(SRV1, ME).lease is None


def test_a_persons_lease_ends_at_its_time_and_not_with_a_process(leases: Leases) -> None:
    lease = leases.keep(granted(leases.request(WHOLE, ME)), 7200.0)
    assert lease.holder.process is None
    assert 7100 < (lease.until - CLOCK.wall()).total_seconds() <= 7200
    lapse(leases, lease)
    with pytest.raises(LeaseLost, match="its time is up"):
        leases.renew(lease)


def test_a_part_of_a_lease_is_within_it_and_ends_with_it(leases: Leases) -> None:
    whole = leases.keep(granted(leases.request(BOTH, ME)), 60.0)
    with pytest.raises(BadInput, match="does not have all of the whole rack"):
        leases.request(WHOLE, ME, within=whole.id)
    part = granted(leases.request(SRV1, ME, within=whole.id))
    assert part.token > whole.token
    assert leases.request(SRV1, ME, within=whole.id).lease is None
    granted(leases.request(SRV2, ME, within=whole.id))
    leases.release(whole)
    assert leases.held() == []
    with pytest.raises(LeaseLost):
        leases.renew(part)
    with pytest.raises(LeaseLost):
        leases.request(SRV1, ME, within=whole.id)


def test_only_a_lease_that_the_asker_took_for_themselves_has_parts(leases: Leases) -> None:
    of_a_process = granted(leases.request(SRV1, ME))
    with pytest.raises(BadInput, match=rf"lease {of_a_process.id} .* is held by .*process"):
        leases.request(SRV1, ME, within=of_a_process.id)
    of_another = granted(leases.request(SRV2, Holder("ann", "there"), term_s=60.0))
    with pytest.raises(
        BadInput, match=rf"lease {of_another.id} .* is held by ann@there: only a lease that {ME.user} took"
    ):
        leases.request(SRV2, ME, within=of_another.id)
    assert ids(leases.held()) == [of_a_process.id, of_another.id]
    assert leases.queue() == []


def test_stealing_ends_what_is_in_the_way_and_nothing_else_and_is_recorded(leases: Leases) -> None:
    previous_holder, other = granted(leases.request(SRV1, ME)), granted(leases.request(SRV2, ME))
    granted_before = leases.request(SRV1, ME)
    new_holder = Holder("eve", "elsewhere")
    lease, ended = leases.steal(leases.request(SRV1, new_holder), "an outage")
    assert ids(ended) == [previous_holder.id]
    assert ids(leases.held()) == ids([other, lease])
    with pytest.raises(LeaseLost, match=r"stolen by eve@elsewhere \(an outage\)"):
        leases.fresh_token(previous_holder)
    [theft] = leases.thefts()
    assert (theft.lease, theft.previous_holder, theft.new_holder, theft.why) == (
        previous_holder.id,
        str(ME),
        "eve@elsewhere",
        "an outage",
    )
    assert leases.poll(granted_before).lease is None


def test_nobody_is_previous_holder_whom_the_new_holder_was_not_asked_about(leases: Leases) -> None:
    agreed, other = granted(leases.request(SRV1, ME)), granted(leases.request(SRV2, Holder("ann", "there")))
    ticket = leases.request(WHOLE, ME)
    with pytest.raises(RackLeased, match="srv2 held by ann@there") as refused:
        leases.steal(ticket, "an outage", [agreed.id])
    assert len(refused.value.held_up_by) == 1
    assert ids(leases.held()) == [agreed.id, other.id]
    with pytest.raises(RackLeased):
        obtain(leases, WHOLE, LeaseTerms(steal_why="an outage", steal_from=frozenset({agreed.id})))
    assert ids(leases.queue()) == [ticket.id]
    assert ids(leases.steal(ticket, "an outage", [agreed.id, other.id])[1]) == [agreed.id, other.id]


def test_a_part_of_a_lease_that_the_new_holder_agreed_to_ends_with_it(leases: Leases) -> None:
    agreed = leases.keep(granted(leases.request(BOTH, ME)), 60.0)
    granted(leases.request(SRV1, ME, within=agreed.id))
    assert leases.steal(leases.request(WHOLE, Holder("eve", "there")), "an outage", [agreed.id])[0].parts == WHOLE
    assert len(leases.held()) == 1


def test_tokens_only_grow_whoever_asks(leases: Leases) -> None:
    first = granted(leases.request(SRV1, ME))
    second = granted(leases.request(SRV2, ME))
    tokens = [first.token, second.token, *(leases.fresh_token(lease) for lease in (first, second, first))]
    assert tokens == sorted(set(tokens))


def test_nothing_is_journalled_under_a_lease_that_is_over(leases: Leases) -> None:
    journal = Journal(leases.store)
    lease = granted(leases.request(SRV1, ME))
    entry = journal.intend("lab", "run", "switch", what=SaveBootMap(), inverse=[], lease=lease)
    leases.steal(leases.request(SRV1, Holder("eve", "elsewhere")), "an outage")
    with pytest.raises(LeaseLost, match="stolen by eve"):
        journal.intend("lab", "run", "switch", what=SaveBootMap(), inverse=[], lease=lease)
    assert journal.standing("lab") == [entry]


def test_the_journal_gives_back_what_was_written(store: Store) -> None:
    journal = Journal(store)
    mark = journal.mark()
    first = journal.intend("lab", "run", "switch", what=SaveBootMap(), inverse=[Open(frozenset({1, 101}))])
    second = journal.intend("lab", "run", "server:srv1", what=TurnOff(), inverse=[])
    other = journal.intend("other", "run", "server:srv1", what=TurnOff(), inverse=[])
    acted = journal.acted(first, {"generation": 2})
    journal.failed(second, "refused")
    assert journal.standing("lab") == [acted]
    assert acted.ports == {1, 101}
    journal.undone([acted])
    assert (journal.standing("lab"), journal.standing("other")) == ([], [other])
    assert [entry.state.value for entry in journal.since(mark)] == ["intended", "failed", "undone"]


def test_attempts_are_kept_with_every_reason(leases: Leases) -> None:
    lease = granted(leases.request(SRV1, ME))
    leases.record_attempt(lease, "d01", ["it is the boot drive", "it is in use"])
    leases.record_attempt(lease, "d02", [])
    last, first = leases.attempts()
    assert (last.drive, last.reasons, last.who, last.lease) == ("d02", (), str(ME), lease.id)
    assert first.reasons == ("it is the boot drive", "it is in use")


def test_a_transaction_that_fails_leaves_nothing(store: Store) -> None:
    def fail() -> None:
        with store.transaction("lab") as tables:
            tables.rows("INSERT INTO fencing VALUES ('lab', 7)")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(store.read("SELECT * FROM fencing")) == []


def test_sql_that_is_wrong_is_one_clear_error(store: Store) -> None:
    with pytest.raises(LabError, match="lab store"), store.transaction() as tables:
        tables.rows("SELECT nothing FROM nowhere")
    with store.reading() as tables:
        assert tables.now_s() > 0


def test_a_lease_outlives_the_store_being_opened_anew(where: str, leases: Leases) -> None:
    lease = granted(leases.request(SRV1, ME))
    with closing(open_store(where, CLOCK)) as again:
        [found] = Leases(again, "lab").held()
        assert (found.id, found.token, found.parts) == (lease.id, lease.token, lease.parts)


def test_a_process_that_is_killed_holds_nothing_from_that_moment(where: str, leases: Leases) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, where], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        lease_id = holder.stdout.readline().decode().strip()
        [lease] = leases.held()
        assert lease.id == lease_id
        assert leases.request(SRV1, ME).lease is None
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert leases.held() == []
        granted(leases.request(SRV2, ME))


def test_a_block_holds_its_lease_and_gives_it_back_however_it_ends(leases: Leases) -> None:
    def fail() -> None:
        with holding(leases, WHOLE) as held:
            held.require()
            with holding(leases, SRV1):
                pytest.fail("it was granted twice")

    with pytest.raises(RackLeased, match=r"lab is not free: the whole rack held by .*; ask for it") as raised:
        fail()
    # What else can be asked for is the verb's to say.
    assert "--" not in str(raised.value)
    offered = raised.value.offering("wait for it (--wait)", "take it over (--steal)")
    assert "; wait for it (--wait), take it over (--steal), or see `rackloop lab status lab`" in str(offered)
    assert offered.held_up_by == raised.value.held_up_by
    assert leases.held() == []
    assert leases.queue() == []


def test_a_block_waits_for_its_turn(leases: Leases, where: str) -> None:
    has_it, may_end = Event(), Event()

    def hold() -> int:
        with closing(open_store(where, CLOCK)) as other, holding(Leases(other, "lab"), WHOLE) as held:
            has_it.set()
            may_end.wait()
            return held.lease.token

    with ThreadPoolExecutor(2) as pool:
        holder = pool.submit(hold)
        has_it.wait()
        waiting = pool.submit(lambda: _hold_once(where, LeaseTerms(wait_s=60.0)))
        while not leases.queue():
            assert not waiting.done()
        may_end.set()
        assert waiting.result() > holder.result()


def _hold_once(where: str, terms: LeaseTerms) -> int:
    with closing(open_store(where, CLOCK)) as other, holding(Leases(other, "lab"), SRV1, terms) as held:
        return held.lease.token


def test_clients_at_once_get_each_server_one_after_the_other(where: str) -> None:
    owner: dict[str, int] = {}

    def work(number: int) -> int:
        with ExitStack() as stack:
            store = stack.enter_context(closing(open_store(where, CLOCK)))
            wanted = (SRV1, SRV2, BOTH)[number % 3]
            for _ in range(4):
                with holding(Leases(store, "lab"), wanted, LeaseTerms(wait_s=120.0)) as held:
                    for server in wanted.servers:
                        assert owner.setdefault(server, number) == number
                    held.require()
                    for server in wanted.servers:
                        assert owner.pop(server) == number
        return number

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(work, range(6))) == list(range(6))


def test_a_server_that_is_started_again_has_every_lease(postgres: PostgresServer) -> None:
    with closing(open_store(postgres.database(), CLOCK)) as store:
        leases = Leases(store, "lab")
        lease = granted(leases.request(SRV1, ME))
        entry = Journal(store).intend("lab", "run", "switch", what=SaveBootMap(), inverse=[], lease=lease)
        postgres.stop()
        with pytest.raises(LabError, match="lab store postgresql://"):
            leases.held()
        postgres.start()
        assert ids(leases.held()) == [lease.id]
        assert leases.renew(lease).token == lease.token
        assert Journal(store).standing("lab") == [entry]


def test_a_restart_that_outlasts_a_heartbeat_ends_no_lease_of_a_process(postgres: PostgresServer) -> None:
    elsewhere = Holder("ann", "there", Process(1, 1, "pid:[1]", "another boot"))
    with closing(open_store(postgres.database(), CLOCK)) as store:
        leases = Leases(store, "lab")
        lease, person = granted(leases.request(SRV1, elsewhere)), granted(leases.request(SRV2, Holder("bob", "there")))
        waiting = leases.request(SRV1, ME)
        postgres.stop()
        postgres.start()
        # As if it had been away for so long that no heartbeat of anybody's came in its time.
        for one in (lease, person, waiting):
            lapse(leases, one)
        assert ids(leases.held()) == [lease.id]
        assert leases.poll(waiting).lease is None
        assert leases.renew(lease).token == lease.token


def test_who_waits_goes_on_waiting_while_the_store_does_not_answer(store: Store) -> None:
    asked = count()

    class Starting(Leases):
        def poll(self, ticket: Ticket) -> Ticket:
            if next(asked) < 2:
                raise LabError("the database system is starting up")
            return super().poll(ticket)

        def may_be_next(self, _ticket: Ticket) -> bool:
            self.release(before)
            return True

    leases = Starting(store, "lab")
    before = granted(leases.request(SRV1, ME))
    with holding(leases, SRV1, LeaseTerms(wait_s=60.0)) as held:
        assert held.parts == SRV1
    assert next(asked) == 3


def test_a_password_is_never_shown(postgres: PostgresServer) -> None:
    url = postgres.database().replace("rackloop@", "rackloop:sesame@")
    with closing(open_store(url, CLOCK)) as store:
        assert "sesame" not in store.name
    gone = url.replace("/lab", "/absent")
    with pytest.raises(LabError) as raised:
        open_store(gone, CLOCK)
    assert "sesame" not in str(raised.value)
    assert "does not exist" in str(raised.value)
