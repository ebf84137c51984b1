"""What becomes of a test of a plan: its verdict, its cause and its reason."""

from __future__ import annotations

import tempfile

import pytest

from rackloop.data import data_path
from rackloop.record import Measured
from tests.unit.plugin_case import Ran, run_plan

pytest_plugins = ["pytester"]

MEASURING = (
    "MEASURES = {'a.time': 's'}\n"
    "def test_it(measure):\n"
    "    measure('a.time', [0.001] * 50, errors=0, stack='x')\n"
    "    measure('a.time', [0.001] * 50, errors=0, stack='y')\n"
)


def run_one(pytester: pytest.Pytester, body: str, **entry: object) -> Ran:
    return run_plan(pytester, {"a/b": body}, {"test": "a/b", **entry})


@pytest.mark.parametrize(
    ("limit", "outcome", "verdict", "cause", "reason"),
    [
        ({"quantile": "p50", "max": "2 ms"}, "passed", "pass", None, None),
        ({"quantile": "p50", "max": "1 us"}, "failed", "fail", "product", "p50 is 1 ms, outside the limit max 1 us"),
        ({"quantile": "p99", "max": "2 ms"}, "failed", "unknown", "test", "50 samples do not carry p99: take more"),
        ({"quantile": "p50", "max": "1 us", "on": {"lab_kind": "virtual"}}, "passed", "pass", None, None),
    ],
)
def test_limits_decide(
    pytester: pytest.Pytester,
    limit: dict[str, object],
    outcome: str,
    verdict: str,
    cause: str | None,
    reason: str | None,
) -> None:
    ran = run_one(pytester, MEASURING, limits=[{"measure": "a.time", **limit}])
    ran.result.assert_outcomes(**{outcome: 1})
    assert (ran.only().verdict, ran.only().cause) == (verdict, cause)
    if reason:
        assert str(ran.only().reason).count(reason) == 2, "one for each stack"
    measured = [event for event in ran.events if isinstance(event, Measured)]
    assert [(event.labels, event.n) for event in measured] == [({"stack": "x"}, 50), ({"stack": "y"}, 50)]
    judged = None if "on" in limit else verdict
    assert {event.verdict for event in measured} == {judged}


HELPED = "from harness_of_theirs import helped\ndef test_it():\n    helped()\n"
OWN_FIXTURE = (
    "@pytest.fixture\ndef servers():\n    assert [], 'no server has the stack'\ndef test_it(servers):\n    pass\n"
)
OWN_HELPER = "def checked(found):\n    assert found\ndef test_it():\n    checked([])\n"
INNER = "def test_it():\n    def check(value):\n        assert value == 1, 'the drive says 2'\n    check(2)\n"


@pytest.mark.parametrize(
    ("body", "verdict", "cause", "reason"),
    [
        ("def test_it():\n    assert 1 == 2, 'the drive says 2'\n", "fail", "product", "the drive says 2"),
        (INNER, "fail", "product", "the drive says 2"),
        ("def test_it():\n    pytest.fail('it is slow')\n", "fail", "product", "it is slow"),
        ("def test_it():\n    with pytest.raises(OSError):\n        pass\n", "fail", "product", "DID NOT RAISE"),
        ("def test_it():\n    {}['x']\n", "unknown", "test", "KeyError"),
        ("def test_it():\n    int('x' * 9, base=99)\n", "unknown", "test", "ValueError"),
        ("def test_it(nobody):\n    pass\n", "unknown", "test", "nobody"),
        (HELPED, "unknown", "harness", "harness_of_theirs.py, helped: no server"),
        (OWN_FIXTURE, "unknown", "test", "servers: no server has the stack"),
        (OWN_HELPER, "unknown", "test", "checked"),
    ],
)
def test_only_what_the_test_asks_is_the_products(
    pytester: pytest.Pytester, body: str, verdict: str, cause: str, reason: str
) -> None:
    pytester.makepyfile(harness_of_theirs="def helped():\n    assert [], 'no server'\n")
    pytester.syspathinsert()
    ended = run_one(pytester, body).only()
    assert (ended.verdict, ended.cause) == (verdict, cause)
    assert reason in str(ended.reason)


ROBBED = """
from threading import Event
from rackloop.clock import RealClock
from rackloop.safety.leases import Holder, Leases, Slice, _holding, holding
from rackloop.safety.store import open_store

WHOLE = Slice(whole=True)

@pytest.fixture
def lease(tmp_path, monkeypatch):
    monkeypatch.setattr(_holding, "HEARTBEAT_S", 0.06)
    with holding(Leases(open_store(tmp_path / "store.sqlite", RealClock()), "mock"), WHOLE) as held:
        yield held

def test_it(lease):
    lease.leases.steal(lease.leases.request(WHOLE, Holder("eve", "there")), "an outage")
    try:
        Event().wait(60)
    except Exception:
        pass
    raise RuntimeError("it went on writing")
"""


def test_a_test_whose_lease_is_taken_is_ended_and_the_lab_is_why(pytester: pytest.Pytester) -> None:
    ended = run_one(pytester, ROBBED).only()
    assert (ended.verdict, ended.cause) == ("unknown", "lab")
    assert "stolen by eve@there" in str(ended.reason)


FIXTURE_THAT_CANNOT = """
from rackloop.errors import NotSupported
@pytest.fixture
def zones(): raise NotSupported("no zoning")
def test_it(zones): ...
"""


@pytest.mark.parametrize(
    ("body", "verdict", "cause", "reason"),
    [
        ("def test_it(): assert 1 == 2, 'not so'\n", "fail", "product", "not so"),
        ("def test_it(): raise KeyError('x')\n", "unknown", "test", "KeyError: 'x'"),
        (
            "from rackloop.errors import LabError\ndef test_it(): raise LabError('no cable')\n",
            "unknown", "lab", "no cable",
        ),
        (
            "from rackloop.errors import ToolError\ndef test_it(): raise ToolError('no fio')\n",
            "unknown", "harness", "no fio",
        ),
        (
            "from rackloop.errors import ProductFailed\ndef test_it(): raise ProductFailed('lost')\n",
            "fail", "product", "lost",
        ),
        (
            "from rackloop.errors import NotSupported\ndef test_it(): raise NotSupported('no zoning')\n",
            "skipped", None, "no zoning",
        ),
        (
            FIXTURE_THAT_CANNOT,
            "skipped", None, "no zoning",
        ),
        ("def test_it(measure): measure('a.x', 1.0)\nMEASURES = {}\n", "unknown", "test", "does not declare"),
        ("@pytest.mark.xfail(reason='old')\ndef test_it(): assert False\n", "skipped", None, "expected to fail: old"),
        ("@pytest.mark.xfail(reason='known')\ndef test_it(): ...\n", "fail", "test", "XPASS(strict)"),
    ],
    ids=["assert", "bug", "lab", "tool", "product", "not-supported", "fixture", "undeclared", "xfail", "xpass"],
)  # fmt: skip
def test_what_a_test_raises(pytester: pytest.Pytester, body: str, verdict: str, cause: str | None, reason: str) -> None:
    ran = run_one(pytester, body)
    assert (ran.only().verdict, ran.only().cause) == (verdict, cause)
    assert reason in str(ran.only().reason)
    if verdict == "skipped":
        assert ran.result.ret == pytest.ExitCode.OK


def test_a_tear_down_that_fails_makes_a_pass_unknown(pytester: pytest.Pytester) -> None:
    body = (
        "from rackloop.errors import LabError\n@pytest.fixture\ndef port():\n    yield\n"
        "    raise LabError('the port is stuck')\ndef test_it(port): ...\n"
    )
    ran = run_one(pytester, body)
    assert (ran.only().verdict, ran.only().cause, ran.only().reason) == ("unknown", "lab", "the port is stuck")


STUBBORN = """
from threading import Event
from rackloop.errors import LabError
def test_it():
    while True:
        try:
            Event().wait(3600)
        except (Exception, LabError):
            pass
"""


def test_a_test_over_its_time_is_unknown_even_if_it_retries(pytester: pytest.Pytester) -> None:
    ran = run_one(pytester, STUBBORN, timeout="50 ms")
    assert (ran.only().verdict, ran.only().cause) == ("unknown", "test")
    assert ran.only().reason == "a/b::it did not end within the 0.05 s that the plan gives it"


def test_time_over_in_one_test_is_not_over_in_the_next(pytester: pytest.Pytester) -> None:
    files = {"a/b": STUBBORN, "a/c": "def test_it(): ...\n"}
    ran = run_plan(pytester, files, {"test": "a/b", "timeout": "50 ms"}, {"test": "a/c", "timeout": "1 h"})
    assert [verdict for _, verdict, _ in ran.verdicts] == ["unknown", "pass"]


def test_a_broken_bench_is_told_once(pytester: pytest.Pytester) -> None:
    body = (
        "from rackloop_fixtures._outcome import BenchBroken\n@pytest.fixture(scope='session')\ndef rig():\n"
        "    raise BenchBroken('the pdu is dead')\ndef test_one(rig): ...\ndef test_two(rig): ...\n"
    )
    ran = run_one(pytester, body)
    assert ran.verdicts == [("a/b::one", "blocked", "lab"), ("a/b::two", "blocked", "lab")]
    assert {event.reason for event in ran.finished} == {"the pdu is dead"}
    assert "raise BenchBroken" not in ran.result.stdout.str()
    assert ran.result.stdout.str().splitlines().count("blocked: the pdu is dead") == 1
    assert "blocked as a/b::one is" in ran.result.stdout.str()


def test_a_lab_that_cannot_be_leased_from_here_is_bad_input_once(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = data_path("labs").joinpath("direct-attached.yaml").read_text()
    lab = pytester.path / "das1.yaml"
    lab.write_text("".join(line for line in described.splitlines(keepends=True) if "controllers:" not in line))
    body = "def test_one(rack): ...\ndef test_two(rack): ...\n"
    # Below the folder of a test the names of a lab's sockets would be too long.
    with tempfile.TemporaryDirectory(prefix="rl-", dir="/tmp") as home:
        monkeypatch.setenv("RACKLOOP_STATE_HOME", home)
        ran = run_plan(pytester, {"a/b": body}, {"test": "a/b"}, lab=str(lab))
    said = ran.result.stderr.str() + ran.result.stdout.str()
    assert ran.result.ret == pytest.ExitCode.USAGE_ERROR
    assert said.count("say `controllers: [") == 1
    assert ran.finished == []


def test_a_rack_that_is_refused_is_told_in_a_line(pytester: pytest.Pytester) -> None:
    body = (
        "from rackloop.errors import BadInput\n@pytest.fixture(scope='session')\ndef rig():\n"
        "    try:\n        {}['rig']\n    except KeyError as error:\n"
        "        raise BadInput('the lease lacks it') from error\ndef test_one(rig): ...\n"
    )
    ran = run_one(pytester, body)
    assert ran.verdicts == [("a/b::one", "unknown", "test")]
    assert "the lease lacks it" in ran.result.stdout.str().splitlines()
    assert "KeyError" not in ran.result.stdout.str()
