"""A pytest session that is a run of a plan: what it selects, refuses and repeats."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml

from rackloop.clock import RealClock
from rackloop.errors import EXIT_LAB_FAILED, NotConnected
from rackloop.lab import LabState, load_lab
from rackloop.record import RunFinished, RunStarted
from rackloop.safety.leases import Holder, Leases, reduced, slice_of
from rackloop.safety.store import open_lab_store
from rackloop_fixtures._selection import narrowed
from tests.unit.plugin_case import MARKED, run_plan

pytest_plugins = ["pytester"]

TWO = "def test_one(): ...\ndef test_two(): ...\n"


def test_plain_pytest_is_left_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(): assert 1 + 1 == 2\ndef test_not(): assert 1 + 1 == 3\n")
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-v")
    result.assert_outcomes(passed=1, failed=1)
    assert "rackloop:" not in result.stdout.str()
    assert [path.name for path in pytester.path.iterdir() if path.name != "__pycache__"] == [
        "test_plain_pytest_is_left_alone.py"
    ]


def test_fixtures_are_there_in_a_run_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(rack): ...\n")
    result = pytester.runpytest_inprocess()
    result.stdout.fnmatch_lines(["*fixture 'rack' not found*"])


def test_the_marker_is_known(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(f"{MARKED}def test_it(): ...\n")
    pytester.runpytest_inprocess("--strict-markers").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("# bare\n", "a test of a plan declares itself"),
        ("import pytest\npytestmark = pytest.mark.rackloop(purpose='x')\n", "requires, destructive, time_class"),
        (MARKED.replace("'seconds'", "'weeks'"), "time_class is one of seconds, minutes, hours, not 'weeks'"),
        (MARKED.replace("rackloop(", "rackloop(1, "), "takes keywords only"),
        (
            "import pytest\npytestmark = pytest.mark.rackloop(purpos='x', requires='probe', time_class='weeks')\n",
            (
                "needs the keywords purpose, destructive; it has no keyword purpos; did you mean 'purpose'?; "
                "requires is a list, such as ['probe']; time_class is one of seconds, minutes, hours, not 'weeks'; "
                'such as pytestmark = pytest.mark.rackloop(purpose="what this test will do"'
            ),
        ),
        (MARKED.replace("requires=[]", "requires=['fabrik.remap']"), "did you mean fabric.remap?"),
    ],
    ids=["bare", "incomplete", "time-class", "positional", "all-at-once", "ability"],
)
def test_a_test_that_does_not_declare_itself_is_refused(pytester: pytest.Pytester, mark: str, said: str) -> None:
    ran = run_plan(pytester, {"a/b": f"{mark}def test_it(): ...\n"}, {"test": "a/b"})
    assert ran.result.ret == pytest.ExitCode.USAGE_ERROR
    assert said in ran.result.stderr.str()
    assert not ran.finished


def test_only_what_the_plan_selects_runs_and_in_its_order(pytester: pytest.Pytester) -> None:
    files = {"a/b": TWO, "a/c": TWO, "a/d": TWO}
    ran = run_plan(pytester, files, {"test": "a/d::two"}, {"test": "a/b"})
    assert [test for test, _, _ in ran.verdicts] == ["a/d::two", "a/b::one", "a/b::two"]
    ran.result.assert_outcomes(passed=3, deselected=3)


def test_the_record_begins_and_ends(pytester: pytest.Pytester) -> None:
    ran = run_plan(pytester, {"a/b": TWO}, {"test": "a/b", "labels": {"severity": "critical"}})
    begun, ended = ran.events[0], ran.events[-1]
    assert isinstance(begun, RunStarted)
    assert isinstance(ended, RunFinished)
    assert (begun.plan, begun.lab, begun.seed, len(begun.duts)) == ("own", "mock", 1, 24)
    assert (ended.verdict, ended.exit_code, ended.interrupted) == ("pass", 0, False)
    assert ran.started[0].labels == {"epic": "A", "feature": "B", "story": "try it", "severity": "critical"}


def test_repeats_are_numbered(pytester: pytest.Pytester) -> None:
    ran = run_plan(pytester, {"a/b": "def test_it(): ...\n"}, {"test": "a/b", "repeats": 2})
    assert ran.verdicts == [("a/b::it[1]", "pass", None), ("a/b::it[2]", "pass", None)]


def test_one_file_may_run_with_different_parameters(pytester: pytest.Pytester) -> None:
    body = (
        "PARAMETERS = {'size': 1, 'kind': 'small'}\nMEASURES = {'a.size': 'B'}\n"
        "def test_it(parameters, measure):\n"
        "    measure('a.size', parameters['size'], kind=parameters['kind'])\n"
    )
    limit = {"measure": "a.size", "quantile": "max", "max": "2 KiB"}
    ran = run_plan(
        pytester,
        {"a/b": body},
        {"test": "a/b", "limits": [limit]},
        {"test": "a/b", "with": {"size": "4 KiB", "kind": "large"}, "limits": [limit]},
        {"test": "a/b", "with": {"size": "8 KiB"}},
    )
    assert ran.verdicts == [
        ("a/b::it[1]", "pass", None),
        ("a/b::it[2]", "fail", "product"),
        ("a/b::it[3]", "pass", None),
    ]
    assert "a.size{kind=large}: the max is 4 KiB, outside the limit max 2 KiB" in str(ran.finished[1].reason)


def test_tests_of_one_name_in_two_classes_are_two(pytester: pytest.Pytester) -> None:
    body = "class TestOne:\n    def test_it(self): ...\nclass TestTwo:\n    def test_it(self): ...\n"
    ran = run_plan(pytester, {"a/b": body}, {"test": "a/b"})
    assert [test for test, _, _ in ran.verdicts] == ["a/b::TestOne::it", "a/b::TestTwo::it"]


def test_what_the_lab_lacks_is_a_skip_with_every_reason(pytester: pytest.Pytester) -> None:
    mark = MARKED.replace("requires=[]", "requires=['fabric.remap', 'phy.drop']")
    ran = run_plan(pytester, {"a/b": f"{mark}def test_it(): ...\n"}, {"test": "a/b"}, lab="direct-attached")
    assert (ran.only().verdict, ran.only().cause) == ("skipped", None)
    assert "fixed cabling" in str(ran.only().reason)


PICKY = """
from rackloop.errors import NotSupported
def estimate_s(lab, parameters):
    if parameters["early"]: raise NotSupported("lab mock has no two drives")
    return 1.0
PARAMETERS = {"early": 1}
def test_it(lab): raise NotSupported("lab mock has no two drives")
"""


@pytest.mark.parametrize("early", [0, 1])
def test_a_skip_in_a_slice_says_that_it_is_the_slice_which_lacks_something(
    pytester: pytest.Pytester, early: int
) -> None:
    entry = {"test": "a/b", "with": {"early": early}}
    ran = run_plan(pytester, {"a/b": PICKY}, entry, arguments=("--rackloop-servers=srv1",))
    assert ran.only().reason == "lab mock has no two drives; of the lab the run has srv1 alone"
    lab = load_lab("mock")
    part = reduced(lab, slice_of(lab, ["srv1", "srv3"]))
    assert narrowed(part, "none").endswith("; of the lab the run has srv1, srv3 alone")
    assert narrowed(lab, "none") == "none"


def test_a_dry_run_writes_nothing(pytester: pytest.Pytester) -> None:
    ran = run_plan(pytester, {"a/b": TWO}, {"test": "a/b"}, arguments=("--rackloop-dry-run",))
    assert not ran.directory.exists()


def test_a_state_directory_that_cannot_be_made_is_told_before_the_first_test(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RACKLOOP_STATE_HOME", "/proc/nowhere")
    ran = run_plan(pytester, {"a/b": "def test_it(journal): ...\n"}, {"test": "a/b"})
    assert ran.result.ret == pytest.ExitCode.USAGE_ERROR
    assert "rackloop: cannot make the lab's state directory /proc/nowhere" in ran.result.stderr.str()
    assert ran.started == []


@pytest.fixture
def state_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A state directory that is short enough for the sockets of a lab."""
    with TemporaryDirectory(prefix="rl-") as home:
        monkeypatch.setenv("RACKLOOP_STATE_HOME", home)
        yield


def _leased_srv1() -> str:
    """A lease of srv1 of the lab mock, as a person takes it; returns its id."""
    lab, clock = load_lab("mock"), RealClock()
    with closing(open_lab_store(lab, LabState.of(lab.name), clock)) as store:
        ticket = Leases(store, lab.name).request(slice_of(lab, ["srv1"]), Holder("eve", "there"), term_s=3600)
    assert ticket.lease is not None
    return ticket.lease.id


@pytest.mark.usefixtures("state_home")
def test_servers_that_a_lease_has_not_are_told_before_the_first_test(pytester: pytest.Pytester) -> None:
    lease = _leased_srv1()
    arguments = (f"--rackloop-lease={lease}", "--rackloop-servers=srv2")
    ran = run_plan(pytester, {"a/b": TWO}, {"test": "a/b"}, arguments=arguments)
    assert ran.result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"rackloop: lease {lease} has srv1" in ran.result.stderr.str()
    assert ran.started == []


@pytest.mark.usefixtures("state_home")
def test_a_store_that_does_not_answer_is_the_labs_failure_and_told_in_a_line(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_arguments: object) -> None:
        raise NotConnected("the store does not answer")

    monkeypatch.setattr("rackloop_fixtures._conductor.open_lab_store", gone)
    ran = run_plan(pytester, {"a/b": TWO}, {"test": "a/b"}, arguments=("--rackloop-lease=1",))
    assert ran.result.ret == EXIT_LAB_FAILED
    assert "the store does not answer" in ran.result.stderr.str()
    assert "Traceback" not in ran.result.stderr.str()


@pytest.mark.parametrize(
    ("missing", "said"), [("lab", "--rackloop-lab is missing"), ("out", "--rackloop-out is missing")]
)
def test_an_option_that_a_run_needs(pytester: pytest.Pytester, missing: str, said: str) -> None:
    given = {"plan": "smoke", "lab": "mock", "out": "out"}
    options = [f"--rackloop-{name}={value}" for name, value in given.items() if name != missing]
    result = pytester.runpytest_inprocess(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert said in result.stderr.str()


def test_the_guides_test_that_breaks_a_rack_is_complete(pytester: pytest.Pytester) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "how-to" / "break-a-rack.md").read_text(encoding="utf-8")
    test = guide.partition("```python\n")[2].partition("```")[0]
    plan = yaml.safe_load(guide.partition("```yaml\n")[2].partition("```")[0])
    ran = run_plan(pytester, {"drives/hang": test}, *plan["tests"], arguments=("--rackloop-dry-run",))
    assert ran.result.ret == pytest.ExitCode.OK, ran.result.stderr.str()


def test_a_file_without_measures_measures_nothing_and_may_ask_to(pytester: pytest.Pytester) -> None:
    body = "def test_quiet(measure): ...\ndef test_loud(measure): measure('a.time', 1.0)\n"
    ran = run_plan(pytester, {"a/b": body}, {"test": "a/b"})
    assert ran.verdicts == [("a/b::quiet", "pass", None), ("a/b::loud", "unknown", "test")]
    assert ran.finished[1].reason == "a/b::loud measures a.time, which its file does not declare in MEASURES"
