"""Plans: what they select, what they demand, and how a mistake in one is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop.errors import BadInput, DescriptionError
from rackloop.lab.yaml._examine import field_texts
from rackloop.measurement import Limit
from rackloop.plan import Plan, PlanEntry, Provision, find_testplans, load_plan, override
from rackloop.plan._planfile import (
    WrittenEntry,
    WrittenHealth,
    WrittenInstead,
    WrittenLimit,
    WrittenLimitOn,
    WrittenPlan,
    WrittenProvision,
)

TEST_FILE = '''
"""A test file, read and never run."""
from nowhere import nothing

KIB, MIB = 1 << 10, 1 << 20
PARAMETERS: dict[str, object] = {
    "remaps": 400, "blocks": [4 * KIB, MIB], "stacks": ["vanilla"],
    "down_ms": 20.0, "wait": True, "note": "x", "odd": None,
}
MEASURES = {"remap.latency": "s", "remap.rate": "B/s", "remap.wrong": "1"}


def test_remap_latency():
    raise AssertionError


def test_other():
    raise AssertionError
'''

PLAN = """\
plan: nightly
purpose: The rack is quick.
seed: 7
tests:
  - test: fabric/remap_latency
    requires: [fabric.remap]
    with: {remaps: 40, blocks: [4 KiB, 8192], stacks: [no, 1e3], down_ms: 2, wait: no, note: 007}
    limits:
      - {measure: remap.latency, where: {stack: vanilla}, quantile: p99.9, max: 2 ms, on: {lab_kind: mock}}
      - {measure: remap.rate, quantile: mean, min: 280 MB/s}
      - {measure: remap.wrong, max: 0, min: 0}
    repeats: 3
    timeout: 10 min
    labels: {severity: critical}
  - test: power/cut::all
    may_skip: [fault.hang, parts]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A testplans folder with two test files."""
    for name, text in (("fabric/test_remap_latency.py", TEST_FILE), ("power/test_cut.py", "def test_all(): ...\n")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    return tmp_path


def load(text: str, root: Path) -> Plan:
    (root / "nightly.yaml").write_text(text, encoding="utf-8")
    return load_plan(root / "nightly.yaml", root)


def test_a_plan_says_what_to_run_and_what_to_reach(root: Path) -> None:
    plan = load(PLAN, root)
    assert (plan.plan, plan.purpose, plan.seed) == ("nightly", "The rack is quick.", 7)
    assert plan.source == root / "nightly.yaml"
    latency, cut = plan.tests
    assert cut == PlanEntry(file="power/cut", function="test_all", may_skip=("fault.hang", "parts"))
    assert (latency.file, latency.function, latency.requires) == ("fabric/remap_latency", None, ("fabric.remap",))
    assert (latency.repeats, latency.timeout_s, latency.labels) == (3, 600.0, {"severity": "critical"})
    assert latency.parameters == {
        "remaps": 40, "blocks": [4096, 8192], "stacks": ["no", "1e3"], "down_ms": 2.0, "wait": False, "note": "007",
    }  # fmt: skip
    assert isinstance(latency.parameters["down_ms"], float)
    assert latency.limits == (
        Limit("remap.latency", {"stack": "vanilla"}, 0.999, None, 0.002, "s", "max 2 ms", {"lab_kind": "mock"}),
        Limit("remap.rate", {}, "mean", 280e6, None, "B/s", "min 280 MB/s", {}),
        Limit("remap.wrong", {}, None, 0.0, 0.0, "1", "min 0, max 0", {}),
    )


def test_a_plan_names_the_servers_it_needs_or_their_tags(root: Path) -> None:
    assert load(PLAN, root).servers == ()
    assert load(PLAN.replace("seed: 7", "servers: [srv1, tag:nvme8]"), root).servers == ("srv1", "tag:nvme8")


def test_the_shipped_plan_fits_the_shipped_tests() -> None:
    plan = load_plan("smoke")
    assert [entry.file for entry in plan.tests] == [
        "fabric/remap_latency",
        "fabric/switched_throughput",
        "fabric/undisturbed_io",
        "fabric/phy_drop",
        "fabric/identity",
        "workload/trace_replay",
        "disaggregation/failure",
    ]
    assert all(entry.limits for entry in plan.tests)


WRONG = [
    ("plan: nightly", "paln: nightly", "1:1: paln: unknown key", ["did you mean 'plan'?"]),
    ("plan: nightly\n", "", "1:1: plan: is missing", ["results carry"]),
    ("seed: 7", "servers: [srv1, 'tag:']", "3:17: servers[1]: expected a server such as srv1, or a tag", ["tag:nvme8"]),
    ("seed: 7", "servers: srv1", "3:10: servers: expected a list", ["'srv1'"]),
    ("seed: 7", "seed: -1", "3:7: seed: expected a whole number from 0", ["'-1'"]),
    (
        "fabric/remap_latency",
        "fabric/remap_latenzy",
        "5:11: tests[0].test: there is no test",
        ["'fabric/remap_latency'"],
    ),
    ("fabric/remap_latency", "../x", "5:11: tests[0].test: expected a test such as", ["'../x'"]),
    (
        "power/cut::all",
        "power/cut::some",
        "15:11: tests[1].test: power/cut has no test 'test_some'",
        ["known: test_all"],
    ),
    ("[fabric.remap]", "fabric.remap", "6:15: tests[0].requires: expected a list", ["'fabric.remap'"]),
    ("[fabric.remap]", "[Fabric]", "6:16: tests[0].requires[0]: expected a dotted name", ["'Fabric'"]),
    (
        "{remaps: 40",
        "{remap: 40",
        "7:12: tests[0].with.remap: fabric/remap_latency has no such",
        ["did you mean 'remaps'?"],
    ),
    ("remaps: 40", "remaps: many", "7:20: tests[0].with.remaps: expected a whole number, or a size", ["'many'"]),
    ("[4 KiB, 8192]", "[4 KiB, 8 KiX]", "7:40: tests[0].with.blocks[1]: expected a whole number", ["'8 KiX'"]),
    ("[4 KiB, 8192]", "4 KiB", "7:32: tests[0].with.blocks: expected a list such as [4 KiB, 1 MiB]", ["'4 KiB'"]),
    ("down_ms: 2,", "down_ms: 1e999,", "7:75: tests[0].with.down_ms: expected a number", ["'1e999'"]),
    ("wait: no", "wait: later", "7:84: tests[0].with.wait: expected true or false", ["'later'"]),
    ("note: 007", "note: {}", "7:94: tests[0].with.note: expected a text of at most", ["a mapping"]),
    ("note: 007", "odd: 1", "7:93: tests[0].with.odd: its default in the test file, None", ["cannot set it"]),
    (
        "remap.latency,",
        "remap.latenzy,",
        "9:19: tests[0].limits[0].measure: fabric/remap_latency measures",
        ["'remap.latency'"],
    ),
    ("p99.9", "p100", "9:69: tests[0].limits[0].quantile: expected max, min, mean", ["'p100'"]),
    ("p99.9", "p0", "9:69: tests[0].limits[0].quantile: expected", ["p50"]),
    ("max: 2 ms", "max: 2", "9:81: tests[0].limits[0].max: expected a quantity in s such as 2 ms", ["no unit"]),
    ("max: 2 ms", "max: 2 MB", "9:81: tests[0].limits[0].max: expected a quantity in s", ["'2 MB'"]),
    (", max: 2 ms", "", "9:9: tests[0].limits[0]: sets no bound", ["max: 2 ms"]),
    ("lab_kind: mock", "lab_kind: mok", "9:102: tests[0].limits[0].on.lab_kind: 'mok' is not known", ["'mock'"]),
    ("lab_kind: mock", "lab_kin: mock", "9:92: tests[0].limits[0].on.lab_kin: unknown key", ["'lab_kind'"]),
    (
        "max: 0, min: 0",
        "max: 0, min: 1",
        "11:45: tests[0].limits[2].min: the lowest value allowed, 1, is above",
        ["highest, 0"],
    ),
    ("repeats: 3", "repeats: 0", "12:14: tests[0].repeats: expected a whole number from 1", ["'0'"]),
    ("timeout: 10 min", "timeout: 10", "13:14: tests[0].timeout: expected a quantity in s", ["no unit"]),
    ("timeout: 10 min", "timeout: 1e300 s", "13:14: tests[0].timeout: expected a time above zero", ["720 h"]),
    ("repeats: 3", "repeats: 10000", "5:3: tests: comes to 10,001 tests", ["at most 10,000"]),
    ("timeout: 10 min", "timeout: 0 s", "13:14: tests[0].timeout: expected a time above zero", ["5 s"]),
    ("severity: critical", "severity: []", "14:24: tests[0].labels.severity: expected a text", ["a list"]),
]


@pytest.mark.parametrize(("old", "new", "start", "words"), WRONG, ids=[f"{row[0]}>{row[1]}" for row in WRONG])
def test_a_mistake_is_reported_where_it_stands(old: str, new: str, start: str, words: list[str], root: Path) -> None:
    assert old in PLAN
    with pytest.raises(DescriptionError) as caught:
        load(PLAN.replace(old, new, 1), root)
    found = [str(problem).replace(f"{root / 'nightly.yaml'}:", "") for problem in caught.value.problems]
    assert [problem.startswith(start) for problem in found].count(True) == 1, found
    assert all(any(word in problem for problem in found) for word in words), found


def test_every_mistake_is_reported_in_one_pass(root: Path) -> None:
    """A broken limit is taken out, and those after it are still named by their own positions."""
    text = PLAN.replace("measure: remap.latency, ", "").replace("280 MB/s", "280 m").replace("min: 0", "min: x")
    text = text.replace("{measure: remap.wrong", "{quantile: often}\n      - {measure: remap.wrong")
    text = text.replace("power/cut", "power/cat").replace("remaps: 40", "remaps: x")
    with pytest.raises(DescriptionError) as caught:
        load(text, root)
    assert [problem.path for problem in caught.value.problems] == [
        "tests[0].with.remaps",
        "tests[0].limits[0].measure",
        "tests[0].limits[1].min",
        "tests[0].limits[2].measure",
        "tests[0].limits[2].quantile",
        "tests[0].limits[3].min",
        "tests[1].test",
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("def broken(:\n", "test_cut.py:1 is not Python"),
        ("X = 1\n\0", "test_cut.py:1 is not Python: source code string cannot contain null bytes"),
        ("PARAMETERS = dict(a=1)\n", "PARAMETERS is not a dictionary of constants"),
        ("MEASURES = {'a': unit()}\n", "MEASURES is not a dictionary of constants"),
        ("N = 1\nMEASURES = {'a': N.real}\n", "MEASURES is not a dictionary of constants"),
    ],
)
def test_a_test_file_that_cannot_be_read_is_a_problem_of_the_plan(content: str, words: str, root: Path) -> None:
    (root / "power" / "test_cut.py").write_text(content)
    with pytest.raises(DescriptionError) as caught:
        load(PLAN, root)
    [problem] = caught.value.problems
    assert (problem.line, problem.column, problem.path) == (15, 11, "tests[1].test")
    assert words in problem.message


PLAYBOOK = """\
- hosts: servers
  roles: [{role: base, tags: [always]}, {role: tools, tags: [tools]}]
  tasks: [{name: x, tags: "links,tools", debug: !unsafe y}]
"""


@pytest.mark.parametrize(
    ("written", "playbook"), [("true", "site.yml"), ("{}", "site.yml"), ("false", None), ("no", None)]
)
def test_a_plan_may_ask_for_its_servers_to_be_provisioned(written: str, playbook: str | None, root: Path) -> None:
    provision = load(f"provision: {written}\n{PLAN}", root).provision
    assert (provision.playbook.name if provision else None) == playbook
    assert provision is None or (provision.roles, provision.variables, provision.timeout_s) == ((), {}, 600.0)


def test_a_plan_says_how_its_servers_are_provisioned(root: Path) -> None:
    (root / "own.yml").write_text(PLAYBOOK)
    variables = "{links: [ens1f0, 007], tools_mtu: 9000, deep: {on: true, off: no}}"
    how = f"{{playbook: own.yml, roles: [tools, links], vars: {variables}, timeout: 2 min}}"
    assert load(f"provision: {how}\n{PLAN}", root).provision == Provision(
        root / "own.yml",
        ("tools", "links"),
        {"links": ["ens1f0", "007"], "tools_mtu": 9000, "deep": {"on": True, "off": "no"}},
        120.0,
    )


def test_tags_of_a_playbook_are_those_that_ansible_reads(root: Path) -> None:
    """A space behind a comma is of no tag, and tasks before and behind the roles have some too."""
    tasks = (
        "  pre_tasks: [{name: a, tags: early}]\n  post_tasks: [{name: b, tags: [late, {x: y}]}, {name: c, tags: }]\n"
    )
    (root / "own.yml").write_text(PLAYBOOK.replace('"links,tools"', '"links, extra"') + tasks)
    provision = load(f"provision: {{playbook: own.yml, roles: [early, extra, late]}}\n{PLAN}", root).provision
    assert provision is not None
    assert provision.roles == ("early", "extra", "late")


@pytest.mark.parametrize(
    ("how", "start", "words"),
    [
        ("maybe", "1:12: provision: expected true or false", "'maybe'"),
        ("{rolls: [base_tools]}", "1:13: provision.rolls: unknown key", "did you mean 'roles'?"),
        ("{roles: [base_tool]}", "1:21: provision.roles[0]: site.yml has no role", "did you mean 'base_tools'?"),
        ("{playbook: sight}", "1:23: provision.playbook: no playbook is named 'sight'", "did you mean 'site'?"),
        ("{playbook: gone.yml}", "1:23: provision.playbook: there is no playbook at", "check the path"),
        ("{playbook: nightly.yaml}", "1:23: provision.playbook: ", "is no playbook: expected a list of plays"),
        ("{timeout: 0 s}", "1:22: provision.timeout: expected a time above zero", "'0 s'"),
    ],
)
def test_a_mistake_in_how_to_provision_is_reported(how: str, start: str, words: str, root: Path) -> None:
    with pytest.raises(DescriptionError) as caught:
        load(f"provision: {how}\n{PLAN}", root)
    [problem] = [str(problem).replace(f"{root / 'nightly.yaml'}:", "", 1) for problem in caught.value.problems]
    assert problem.startswith(start)
    assert words in problem


def test_a_plan_says_what_a_test_does_to_the_racks_health(root: Path) -> None:
    written = "plan: x\npurpose: y\ntests:\n  - {test: fabric/remap_latency, health: {expect: [%s]}}\n"
    (entry,) = load(written % "media_errors, kernel.medium_error, boot_id", root).tests
    assert entry.expected_health == ("media_errors", "kernel.medium_error", "boot_id")
    with pytest.raises(
        DescriptionError, match=r"4:\d+: tests\[0\]\.health\.expect\[0\]: .*did you mean 'media_errors'"
    ):
        load(written % "media_error", root)


def test_parameters_may_differ_on_some_labs(root: Path) -> None:
    written = "    instead:\n      - {on: {lab_kind: virtual}, may_skip: [parts], with: {remaps: 4, down_ms: 3}}\n"
    entry = load(PLAN.replace("    limits:\n", f"{written}    limits:\n"), root).tests[0]
    (other,) = entry.instead
    assert (other.on, other.may_skip) == ({"lab_kind": "virtual"}, ("parts",))
    assert other.parameters == {"remaps": 4, "down_ms": 3}
    assert all(f"{root}/nightly.yaml:9:" in other.places[name] for name in other.parameters)
    assert entry.parameters["remaps"] == 40


@pytest.mark.parametrize(
    ("instead", "words"),
    [
        ("{on: {lab_kind: virtual}, with: {remap: 4}}", "instead[0].with.remap: fabric/remap_latency has no such"),
        ("{on: {lab_kind: virtual}, with: {remaps: few}}", "instead[0].with.remaps: expected a whole number"),
        ("{on: {lab_kind: real}, with: {remaps: 4}}", "instead[0].on.lab_kind: 'real' is not known here; known: mock"),
        ("{with: {remaps: 4}}", "instead[0].on: is missing"),
    ],
)
def test_a_mistake_in_what_differs_is_reported(instead: str, words: str, root: Path) -> None:
    with pytest.raises(DescriptionError) as caught:
        load(PLAN.replace("    limits:\n", f"    instead: [{instead}]\n    limits:\n"), root)
    [problem] = [str(problem) for problem in caught.value.problems]
    assert words in problem


def test_a_plan_that_is_nowhere_is_bad_input(root: Path) -> None:
    load(PLAN, root)
    with pytest.raises(BadInput, match=r"no plan is named 'nightli' .*did you mean 'nightly'\?"):
        load_plan("nightli", root)
    with pytest.raises(BadInput, match=r"there is no plan at plans/nightly\.yaml"):
        load_plan("plans/nightly.yaml", root)


def test_the_reference_page_has_every_key_with_its_words() -> None:
    rows = (Path(__file__).parents[3] / "docs" / "reference" / "plan-file.md").read_text().splitlines()
    for part in (
        WrittenPlan,
        WrittenProvision,
        WrittenEntry,
        WrittenInstead,
        WrittenHealth,
        WrittenLimit,
        WrittenLimitOn,
    ):
        for name, field in part.model_fields.items():
            key = field.alias or name
            start, end = f"| `{key}` |", f" {field_texts(part)[key]} |"
            found = [row for row in rows if row.startswith(start) and row.endswith(end)]
            assert len(found) == 1, name
            assert ("| required |" in found[0]) == field.is_required(), name


def test_a_limit_may_be_for_one_profile_of_drives(root: Path) -> None:
    [limit, *_] = load(PLAN.replace("on: {lab_kind: mock}", "on: {profile: nvme-ssd}"), root).tests[0].limits
    assert limit.on == {"profile": "nvme-ssd"}
    with pytest.raises(DescriptionError, match=r"'nvme-sdd' is not known here; did you mean 'nvme-ssd'\?"):
        load(PLAN.replace("on: {lab_kind: mock}", "on: {profile: nvme-sdd}"), root)
    with pytest.raises(DescriptionError, match="profile"):
        load(PLAN.replace("    limits:\n", "    instead: [{on: {profile: nvme-ssd}, with: {}}]\n    limits:\n"), root)


@given(st.data())
def test_no_edit_of_a_plan_ends_in_a_traceback(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    root = tmp_path_factory.mktemp("root")
    (root / "fabric").mkdir()
    (root / "fabric" / "test_remap_latency.py").write_text(TEST_FILE)
    start, length = data.draw(st.integers(0, len(PLAN))), data.draw(st.integers(0, 60))
    put = data.draw(st.text(max_size=20) | st.sampled_from(["{", "]", "\n", ": ", "[a]", "- ", "{a: b}", "~", "''"]))
    text = (PLAN[:start] + put + PLAN[start + length :]).encode("utf-8", "replace").decode()
    try:
        sound = bool(load(text, root).tests)
    except DescriptionError as error:
        sound = bool(error.problems)
    assert sound


SETTINGS: list[tuple[str, str]] = [
    ("remaps", "--set remaps: write KEY=VALUE; parameters of plan nightly: blocks,"),
    ("remap=4", "--set remap=4: no test of plan nightly has a parameter 'remap'; did you mean 'remaps'?"),
    ("remaps=many", "--set remaps=many: fabric/remap_latency: expected a whole number"),
    ("wait=perhaps", "--set wait=perhaps: fabric/remap_latency: "),
]


@pytest.mark.parametrize(("setting", "words"), SETTINGS)
def test_a_setting_that_fits_no_test_is_bad_input(setting: str, words: str, root: Path) -> None:
    plan = load(PLAN, root)
    with pytest.raises(BadInput) as caught:
        override(plan, [setting], root)
    assert words in str(caught.value)


def test_settings_replace_what_the_plan_says_and_are_recorded(root: Path) -> None:
    plan = override(load(PLAN, root), ["remaps=7", "blocks=8 KiB,2 MiB", "note=a=b"], root)
    entry = plan.tests[0]
    assert entry.parameters["remaps"] == 7
    assert entry.parameters["blocks"] == [8 << 10, 2 << 20]
    assert entry.parameters["note"] == "a=b"
    assert {"remaps": "7", "note": "a=b"}.items() <= entry.labels.items()


def test_what_is_said_of_an_entry_is_of_that_one_though_one_before_it_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    steps = "[{at: 1 s, lasts: 1 sek, fault: hang, target: d01}]"
    path.write_text(
        "plan: x\npurpose: Y.\ntests:\n  - {tst: a/b}\n"
        f"  - {{test: faults/storm, schedule: {{schedule: s, steps: {steps}}}}}\n"
    )
    with pytest.raises(DescriptionError) as caught:
        load_plan(path, find_testplans(None))
    assert "tests[1].schedule.steps[0].lasts: expected a quantity in s such as 2 ms, found '1 sek'" in str(caught.value)
    assert "neither steps" not in str(caught.value)


def test_a_list_of_entries_that_are_all_wrong_is_not_called_empty(root: Path) -> None:
    path = root / "wrong.yaml"
    path.write_text("plan: x\npurpose: Y.\ntests:\n  - {tst: a/b}\n")
    with pytest.raises(DescriptionError) as caught:
        load_plan(path, root)
    assert "tests[0].tst: unknown key; did you mean 'test'?" in str(caught.value)
    assert "is empty" not in str(caught.value)
    path.write_text("plan: x\npurpose: Y.\ntests: []\n")
    with pytest.raises(DescriptionError, match="tests: is empty; give at least one entry"):
        load_plan(path, root)


@pytest.mark.parametrize(
    ("test", "measure"), [("fabric/phy_drop", "phy.miscounted"), ("direct/phy_reset", "phy.uncounted")]
)
def test_plans_that_are_shipped_judge_whether_phys_were_disturbed(test: str, measure: str) -> None:
    plans = [load_plan(path) for path in find_testplans().glob("*.yaml")]
    judged = {
        plan.plan: any(limit.measure == measure for limit in entry.limits)
        for plan in plans
        for entry in plan.tests
        if entry.file == test
    }
    assert len(judged) == 2
    assert all(judged.values()), judged
