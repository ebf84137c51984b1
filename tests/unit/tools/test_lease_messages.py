"""What is said of leases is short: who has what, for what, since when and until when, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rackloop.clock import VirtualClock
from rackloop.errors import EXIT_BAD_INPUT
from rackloop.lab import Lab, parts_at, parts_of
from rackloop.safety.leases import Holder, Leases, LeaseTerms, RackLeased, obtain
from rackloop.safety.store import open_store
from rackloop_cli.lab import lease as lab_lease
from rackloop_cli.lab.status import print_holders
from rackloop_cli.main import main
from rackloop_cli.shared.own_lease import telling_own
from tests.unit.harness.sim_rack import described

ANN = Holder("ann", "there")
MINUTE = r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return described(tmp_path)


@pytest.fixture
def leases(lab: Lab, tmp_path: Path) -> Iterator[Leases]:
    with closing(open_store(tmp_path / "store.sqlite", VirtualClock())) as store:
        yield Leases(store, lab.name)


def test_who_finds_servers_leased_is_told_who_has_them_and_until_when(lab: Lab, leases: Leases) -> None:
    ticket = leases.request(parts_of(lab, ["srv1"]), ANN, purpose="firmware", term_s=3600.0)
    with pytest.raises(RackLeased) as raised:
        obtain(leases, parts_of(lab))
    assert re.fullmatch(
        rf"lab bench is not free: srv1 held by ann@there for firmware since {MINUTE} until {MINUTE} "
        rf"\(lease {ticket.id}\); ask for it later, or see `rackloop lab status bench`",
        str(raised.value),
    )


def test_a_lease_of_ones_own_in_the_way_is_told_to_be_so_with_how_to_give_it_back(lab: Lab, leases: Leases) -> None:
    own = leases.request(parts_of(lab, ["srv1"]), Holder.here(bound=False), term_s=3600.0)
    with pytest.raises(RackLeased) as raised, telling_own(leases, "take it over (--steal)"):
        obtain(leases, parts_of(lab))
    assert f"(lease {own.id}), which is your own lease and has not all that this takes; " in str(raised.value)
    assert f"give it back with `rackloop lab release bench {own.id}`, or see" in str(raised.value)
    assert "--steal" not in str(raised.value)


def test_a_lease_of_somebody_else_in_the_way_is_told_with_what_the_verb_offers(lab: Lab, leases: Leases) -> None:
    leases.request(parts_of(lab, ["srv1"]), ANN, term_s=3600.0)
    with (
        pytest.raises(RackLeased, match=r"; take it over \(--steal\), or see"),
        telling_own(leases, "take it over (--steal)"),
    ):
        obtain(leases, parts_of(lab))


def test_of_a_lease_that_is_over_only_refused_writes_are_shown(
    lab: Lab, leases: Leases, capsys: pytest.CaptureFixture[str]
) -> None:
    lease = leases.request(parts_of(lab, ["srv1"]), ANN, term_s=3600.0).lease
    assert lease is not None
    leases.record_attempt(lease, "d01", [])
    leases.record_attempt(lease, "d02", ["it is in use"])
    nothing: dict[str, Any] = dict.fromkeys(("queue", "stolen", "out_of_service", "standing"), ())
    nothing |= {
        "journal_damage": None,
        "attempts": [vars(one) | {"at": one.at.isoformat()} for one in leases.attempts()],
    }
    print_holders(lab, nothing | {"leases": ()})
    moment = rf"{MINUTE[:-4]}:\d\d UTC"
    refused = rf"permission to write d02 refused {moment} to ann@there under lease {lease.id}: it is in use"
    nobody, *told = capsys.readouterr().out.splitlines()
    assert nobody.endswith("no lease is held")
    [line] = told
    assert re.fullmatch(refused, line)


def test_what_a_process_holds_has_no_end_that_could_be_told(lab: Lab, leases: Leases) -> None:
    leases.request(parts_of(lab, ["srv1"]), Holder.here())
    assert " until " not in str(leases.held()[0])


def test_ports_are_named_where_no_server_stands_for_them(lab: Lab) -> None:
    assert parts_at(lab, [2, 102]).short == "drives d02; ports 2, 102"
    assert parts_of(lab).short == "the whole rack"


@pytest.mark.parametrize(
    ("term", "said"),
    [
        ("nonsense", "--for': expected a time such as 90s or 5min, or a number of seconds, found 'nonsense'"),
        ("-2h", "--for': expected a time such as 90s or 5min"),
        ("-2", "--for -2 s is over before it begins"),
        ("0 s", "--for 0 s is over before it begins"),
        ("800 h", "--for 800 h is longer than 30 days"),
    ],
)
def test_a_term_that_is_none_is_refused_for_what_is_wrong_with_it(
    term: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", "lease", "mock", f"--for={term}"]) == EXIT_BAD_INPUT
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("term", "said"),
    [
        ("never", "--for': expected a time such as 90s or 5min, or a number of seconds, found 'never'"),
        ("-3", "--for -3 s is no time to listen"),
        ("0", "--for 0 s is no time to listen"),
    ],
)
def test_a_time_to_listen_that_is_none_is_refused_as_other_times_are(
    term: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["console", "mock", "srv1", f"--for={term}"]) == EXIT_BAD_INPUT
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_lease_is_told_with_its_end_in_utc_and_who_waited_is_told_to_wait_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RACKLOOP_STATE_HOME", str(tmp_path))
    assert lab_lease.take("mock", 7200.0, LeaseTerms()) == 0
    assert re.search(rf", until {MINUTE[:-4]}:\d\d UTC\n", capsys.readouterr().out)
    for wait_s, advice in ((0.0, "wait for it"), (0.001, "wait longer")):
        with pytest.raises(RackLeased, match=rf"; {advice} \(--wait\), take it over"):
            lab_lease.take("mock", 7200.0, LeaseTerms(wait_s=wait_s))
