"""Plans: one YAML file that selects tests and says with which parameters they run and what they must reach."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rackloop.data import data_path
from rackloop.errors import BadInput
from rackloop.inspection.health import rule_names
from rackloop.lab import load_profile
from rackloop.lab.yaml import SUFFIXES, Examined, Plain, Step, compose_file, examine, find_description
from rackloop.measurement import Limit
from rackloop.names import guess
from rackloop.parameters import Parameter, declared_by, default_of, part
from rackloop.plan._planfile import MOST_TESTS, WrittenEntry, WrittenLimit, WrittenOn, WrittenPlan
from rackloop.plan._playbooks import find_playbook, roles_of
from rackloop.plan._testplans import Declared, files_by_name, path_of, read_declared
from rackloop.units import parse_quantity

if TYPE_CHECKING:
    from rackloop.faults.schedules import RandomSchedule, Schedule
    from rackloop.lab import Lab

_SETTING = "--set "
_LONGEST_SAID = 60
# A leading zero makes it a text: a serial number, a MAC address.
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_STAND_INS: dict[tuple[str, ...], Plain] = {
    ("plan",): "unnamed",
    ("purpose",): "unknown",
    # Of a step of a schedule whose times are wrong, the rest is looked at.
    ("tests", "*", "schedule", "steps", "*", "at"): "0 s",
    ("tests", "*", "schedule", "steps", "*", "lasts"): "1 s",
    ("tests", "*", "schedule", "random", "*", "lasts"): "1 s",
}


@dataclass(frozen=True)
class Instead:
    """Fields of an entry in runs with the facts ``on`` (``lab``, ``lab_kind``)."""

    on: Mapping[str, str]
    may_skip: tuple[str, ...]
    parameters: Mapping[str, Any]
    places: Mapping[str, str]


@dataclass(frozen=True)
class PlanEntry:
    """One test of a plan. ``file`` is its name below ``testplans/``, ``function`` one test of it, or None for all.

    ``parameters`` are those that the plan, or a setting from outside, gives, as the test file's ``PARAMETERS`` declare
    them; the others keep their defaults. ``places`` says where each was given, and by the empty name where the entry
    is: ``file:line:column``, or ``--set KEY=VALUE``. ``expected_health`` are the rules of
    :mod:`rackloop.inspection.health` that it breaks on purpose. ``schedule`` has the faults that it plays. ``disturbs``
    are drives that may lose their links though they are not scratch.
    """

    file: str
    function: str | None = None
    requires: tuple[str, ...] = ()
    may_skip: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    limits: tuple[Limit, ...] = ()
    repeats: int = 1
    timeout_s: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    expected_health: tuple[str, ...] = ()
    schedule: Schedule | RandomSchedule | None = None
    disturbs: tuple[str, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict, compare=False)
    instead: tuple[Instead, ...] = ()

    @property
    def said_by(self) -> str:
        """The place of the entry, and the settings of it from outside."""
        settings = [where for where in self.places.values() if where.startswith(_SETTING)]
        return ", ".join([self.places.get("", self.file), *settings])


@dataclass(frozen=True)
class Provision:
    """The provisioning before the first test: these ``roles`` of ``playbook`` on these ``servers``, or all of either.

    ``variables`` outrank the roles' defaults.
    """

    playbook: Path
    roles: tuple[str, ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)
    timeout_s: float = 600.0
    servers: tuple[str, ...] = ()

    def __str__(self) -> str:
        on = f" on {', '.join(self.servers)}" if self.servers else ""
        return f"{self.playbook.stem} ({', '.join(self.roles) or 'all of it'}){on}"


@dataclass(frozen=True)
class Plan:
    """The tests to run, in order, and what a pass of them means.

    ``seed`` is None where each run chooses its own, ``provision`` where servers are taken as they are. ``servers`` are
    those to lease, by name or by ``tag:NAME``; all of the lab where there are none.
    """

    plan: str
    purpose: str
    tests: tuple[PlanEntry, ...]
    seed: int | None
    source: Path
    provision: Provision | None = None
    servers: tuple[str, ...] = ()


def find_testplans(chosen: str | Path | None = None) -> Path:
    """The folder of test files: the ``chosen`` one, else those shipped. Raises BadInput where it is none."""
    if chosen is None:
        return data_path("testplans")
    if not (root := Path(os.path.normpath(Path(chosen).expanduser().absolute()))).is_dir():
        raise BadInput(f"{chosen} is not a folder: --testplans names the one that your tests are in")
    return root


def load_plan(path_or_name: str | Path, testplans_root: Path | None = None) -> Plan:
    """The plan in a file. A bare name such as ``smoke`` finds ``testplans/smoke.yaml`` here, then below the root.

    Tests are looked for below ``testplans_root``, by default among those shipped; their files are read, not run.
    Raises BadInput where there is no such file, DescriptionError with every problem the file has.
    """
    root = testplans_root or data_path("testplans")
    path = find_description(path_or_name, "plan", (Path("testplans"), root))
    examined = examine(compose_file(path), WrittenPlan, stand_ins=_STAND_INS)
    files = files_by_name(root)
    entries = tuple(
        _entry(examined, ("tests", index), written, files)
        for index, written in enumerate(examined.value.tests if examined.value else ())
    )
    if (total := sum(entry.repeats for entry in entries)) > MOST_TESTS:
        examined.report(("tests",), f"comes to {total:,} tests, repeats included; at most {MOST_TESTS:,} are allowed")
    provision = _provision(examined, path)
    written = examined.finish()
    return Plan(written.plan, written.purpose, entries, written.seed, path.absolute(), provision, written.servers)


def _provision(examined: Examined[WrittenPlan], plan: Path) -> Provision | None:
    """The provisioning, its roles held against the playbook; a playbook's file lies relative to the plan."""
    written = examined.value.provision if examined.value else None
    if written is None:
        return None
    is_name = Path(written.playbook).suffix == "" and len(Path(written.playbook).parts) == 1
    try:
        playbook = find_playbook(written.playbook if is_name else plan.parent / written.playbook)
        known = roles_of(playbook)
    except BadInput as error:
        examined.report(("provision", "playbook"), str(error))
        return None
    for index, role in enumerate(written.roles):
        if role not in known:
            examined.report(
                ("provision", "roles", index), f"{playbook.name} has no role {role!r}; {guess(role, known)}"
            )
    variables = {name: resolved(value) for name, value in written.variables.items()}
    return Provision(playbook, written.roles, variables, written.timeout, written.servers)


def resolved(value: Plain) -> Any:
    """A variable for Ansible: true and false, whole numbers, and all else as the text it is written as."""
    match value:
        case "true" | "false":
            return value == "true"
        case str() if _WHOLE.fullmatch(value):
            return int(value)
        case list():
            return [resolved(item) for item in value]
        case dict():
            return {key: resolved(item) for key, item in value.items()}
    return value


def override(plan: Plan, settings: Iterable[str], testplans_root: Path | None = None) -> Plan:
    """The plan with parameters set from outside: each ``KEY=VALUE`` goes to every test that declares ``KEY``.

    A list is written with commas. What was set stands in the entries' labels too. Raises BadInput for a setting
    without ``=``, a key that no test of the plan declares, and a value that the parameter may not have.
    """
    root = testplans_root or data_path("testplans")
    declared = {entry.file: read_declared(path_of(root, entry.file)).parameters for entry in plan.tests}
    known = {key for parameters in declared.values() for key in parameters}
    entries = plan.tests
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise BadInput(
                f"--set {setting}: write KEY=VALUE; parameters of plan {plan.plan}: {', '.join(sorted(known))}"
            )
        if key not in known:
            raise BadInput(f"--set {setting}: no test of plan {plan.plan} has a parameter {key!r}; {guess(key, known)}")
        entries = tuple(
            _overridden(entry, key, text, declared[entry.file][key]) if key in declared[entry.file] else entry
            for entry in entries
        )
    return replace(plan, tests=entries)


def _overridden(entry: PlanEntry, key: str, text: str, declared: Any) -> PlanEntry:
    said = f"{_SETTING}{key}={text if len(text) <= _LONGEST_SAID else text[:_LONGEST_SAID] + '...'}"
    is_list = isinstance(default_of(declared), list)
    # Nothing between commas is nothing said, but for a list that has an empty text by default.
    items = text.split(",") if text or default_of(declared) == [""] else []
    written: Plain = [*items] if is_list else text
    value, problems = _value(written, declared)
    if problems:
        raise BadInput("; ".join(f"{said}: {entry.file}: {problem}" for problem in problems.values()))
    return replace(
        entry,
        parameters={**entry.parameters, key: value},
        labels={**entry.labels, key: text},
        places={**entry.places, key: said},
    )


def _value(written: Plain, declared: Any) -> tuple[Any, dict[tuple[int, ...], str]]:
    """The value of a parameter, and what is wrong with it by the place in it."""
    problems: dict[tuple[int, ...], str] = {}
    try:
        return declared_by(declared).read(written, problems), problems
    except ValueError as error:
        return None, {(): str(error)}


def require_parts(plan: Plan, lab: Lab, testplans_root: Path | None = None) -> None:
    """Raise BadInput with every place of ``plan`` that names a part which ``lab`` does not have."""
    drives = part("", "a drive", of="drive")
    root = testplans_root or data_path("testplans")
    problems = []
    for entry in plan.tests:
        declared = read_declared(path_of(root, entry.file)).parameters
        for name, value in entry.parameters.items():
            parameter = declared[name]
            if isinstance(parameter, Parameter) and (problem := parameter.problem_on(lab, value)):
                problems.append(f"{entry.places.get(name, entry.file)}: {name}: {problem}")
        for index, drive in enumerate(entry.disturbs):
            if problem := drives.problem_on(lab, drive):
                problems.append(f"{entry.places.get(_disturbed(index), entry.file)}: disturbs: {problem}")
    if problems:
        raise BadInput("\n".join(dict.fromkeys(problems)))


def _disturbed(index: int) -> str:
    """The key of a drive of ``disturbs`` among the places of an entry; no parameter is called so."""
    return f"disturbs[{index}]"


def _entry(
    examined: Examined[WrittenPlan], path: tuple[Step, ...], written: WrittenEntry, files: Mapping[str, Path]
) -> PlanEntry:
    """The entry with its test file's declarations held against it; what does not fit is reported."""
    name, _, function = written.test.partition("::")
    declared = _declared(examined, (*path, "test"), name, files)
    if declared and function:
        function = function if function.startswith("test_") else f"test_{function}"
        if function not in declared.functions:
            message = f"{name} has no test {function!r}; {guess(function, declared.functions)}"
            examined.report((*path, "test"), message)
    parameters: dict[str, Any] = {}
    instead = []
    disturbed = {_disturbed(at): examined.place((*path, "disturbs", at)) for at in range(len(written.disturbs))}
    places = {"": examined.place(path), **disturbed}
    limits = []
    if declared:
        parameters, given = _parameters(examined, (*path, "with"), written.parameters, declared, name)
        places |= given
        for index, other in enumerate(written.differing):
            here = (*path, "instead", index, "with")
            differing = _parameters(examined, here, other.parameters, declared, name)
            instead.append(Instead(_facts(other.on), other.may_skip, *differing))
        for index, limit in enumerate(written.limits):
            limits.append(_limit(examined, (*path, "limits", index), limit, name, declared.measures))
    for index, rule in enumerate(written.health.expect):
        if rule not in rule_names():
            message = f"no counter or kernel message is judged by this name; {guess(rule, rule_names())}"
            examined.report((*path, "health", "expect", index), message)
    return PlanEntry(
        file=name,
        function=function or None,
        requires=written.requires,
        may_skip=written.may_skip,
        parameters=parameters,
        limits=tuple(limits),
        repeats=written.repeats,
        timeout_s=written.timeout,
        labels=written.labels,
        expected_health=written.health.expect,
        disturbs=written.disturbs,
        schedule=_schedule(examined, path, written, declared, function or None),
        places=places,
        instead=tuple(instead),
    )


def _parameters(
    examined: Examined[WrittenPlan], path: tuple[Step, ...], given: Mapping[str, Any], declared: Declared, test: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """The parameters at a place of the plan, and where each stands; what the test file does not declare is reported."""
    parameters, places = {}, {}
    for key, value in given.items():
        here = (*path, key)
        if key not in declared.parameters:
            examined.report(here, f"{test} has no such parameter; {guess(key, declared.parameters)}", key=True)
            continue
        parameters[key], problems = _value(value, declared.parameters[key])
        places[key] = examined.place(here)
        for place, problem in problems.items():
            examined.report((*here, *place), problem)
    return parameters, places


def _facts(on: WrittenOn) -> dict[str, str]:
    facts = {key: str(value) for key, value in on.model_dump(exclude_none=True).items()}
    # A profile may be given by its file, and is measured by its name.
    return facts | ({"profile": load_profile(facts["profile"]).name} if "profile" in facts else {})


def _schedule(
    examined: Examined[WrittenPlan],
    path: tuple[Step, ...],
    written: WrittenEntry,
    declared: Declared | None,
    function: str | None,
) -> Schedule | RandomSchedule | None:
    """The schedule of an entry; one that its test plays must be there, and one that it does not must not."""
    if declared:
        playing = declared.playing & ({function} if function else declared.functions)
        if playing and written.schedule is None and examined.is_sound(*path, "schedule"):
            examined.report(path, f"{written.test} plays a schedule of faults; add schedule: with one, or its file")
        if not playing and written.schedule is not None:
            examined.report((*path, "schedule"), f"{written.test} plays no schedule; delete this", key=True)
    if written.schedule is None:
        return None
    from rackloop.faults.schedules import examined_schedule

    name = written.test.partition("::")[0].rpartition("/")[2]
    return examined_schedule(examined, (*path, "schedule"), written.schedule, name[:32])


def _declared(
    examined: Examined[WrittenPlan], path: tuple[Step, ...], name: str, files: Mapping[str, Path]
) -> Declared | None:
    if name not in files:
        examined.report(path, f"there is no test {name!r}; {guess(name, files)}")
        return None
    try:
        return read_declared(files[name])
    except ValueError as error:
        examined.report(path, f"its file cannot be used: {error}")
        return None


def _limit(
    examined: Examined[WrittenPlan],
    path: tuple[Step, ...],
    written: WrittenLimit,
    test: str,
    measures: Mapping[str, str],
) -> Limit:
    if written.measure not in measures:
        message = f"{test} measures nothing of that name; {guess(written.measure, measures)}"
        examined.report((*path, "measure"), message)
    unit = measures.get(written.measure, "1")
    bounds: dict[str, float] = {}
    texts = {key: text for key, text in (("min", written.minimum), ("max", written.maximum)) if text is not None}
    for key, text in texts.items() if written.measure in measures else ():
        try:
            bounds[key] = parse_quantity(text, unit)
        except ValueError as error:
            examined.report((*path, key), str(error))
    if not texts and all(examined.is_sound(*path, key) for key in ("min", "max")):
        examined.report(path, "sets no bound; add max: or min: with a unit, such as max: 2 ms")
    if len(bounds) == 2 and bounds["min"] > bounds["max"]:
        examined.report(
            (*path, "min"), f"the lowest value allowed, {texts['min']}, is above the highest, {texts['max']}"
        )
    return Limit(
        measure=written.measure,
        where=written.where,
        quantile=written.quantile,
        minimum=bounds.get("min"),
        maximum=bounds.get("max"),
        unit=unit,
        text=", ".join(f"{key} {text}" for key, text in texts.items()),
        on=_facts(written.on),
        profile_file=profile if (profile := written.on.profile) and profile.endswith(SUFFIXES) else "",
    )
