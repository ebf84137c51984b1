"""Documents: links, commands, decision records, changelog fragments."""

from __future__ import annotations

import configparser
import re
import shlex
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from typer.main import get_command

from command_line_reference import PAGE, page
from fixtures_reference import PAGE as FIXTURES
from fixtures_reference import page as fixtures_page
from generated import between
from interference_reference import BEGIN, PROFILE, WORDS
from interference_reference import PAGE as INTERFERENCE
from interference_reference import shown as shown_figure
from rack_reference import PAGE as RACK
from rack_reference import page as rack_page
from rackloop.lab import load_profile
from rackloop_cli.main import app
from scenario_reference import PAGE as SCENARIOS
from scenario_reference import page as scenarios_page
from scheduler_reference import PAGE as SWITCH
from scheduler_reference import page as switch_page
from testplan_reference import PAGE as TEST_PLANS
from testplan_reference import page as plans_page
from tests.meta.tree import ROOT, check, files, shown

PAGES = files(".md")
DECISIONS = ROOT / "docs" / "explanations" / "decisions"
RECORDS = sorted(DECISIONS.glob("[0-9]*.md"))
LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")
CONSOLE = re.compile(r"^ *```console\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^ *\$ (.+)$", re.MULTILINE)
DECISION_HEADINGS = ["Status", "Context", "Decision", "Consequences"]
FRAGMENT = re.compile(r"\+[a-z0-9-]+\.(added|changed|fixed|removed)\.md")


def anchors(page: Path) -> set[str]:
    """The fragments that links to a page may end with."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken_links(pages: Iterable[Path]) -> Iterator[str]:
    """Links within the checkout whose file or heading does not exist."""
    for source in pages:
        for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
            for link in LINK.findall(line):
                target, _, anchor = link.partition("#")
                path = (source.parent / target).resolve() if target else source
                exists = path.exists() and (not anchor or anchor in anchors(path))
                if not exists and not re.match(r"[a-z]+:", link):
                    yield f"{shown(source)}:{number}: {link}: no such file or heading"


def test_links_lead_somewhere() -> None:
    check(broken_links(PAGES))


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# The rack\n[a](#the-rack) [b](#rack)\n[c](page.md) [d](other.md) [e](https://x)\n")
    assert [found.split(": ")[:2] for found in broken_links([page])] == [
        ["page.md:2", "#rack"],
        ["page.md:3", "other.md"],
    ]


@cache
def tox_verbs() -> set[str]:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    return {name.removeprefix("testenv:") for name in tox.sections() if name.startswith("testenv:")}


def commands_shown() -> list[tuple[str, list[str]]]:
    """Each command that a page shows, as words, with the page's name."""
    return [
        (shown(page), shlex.split(command, comments=True))
        for page in PAGES
        for block in CONSOLE.findall(page.read_text(encoding="utf-8"))
        for command in COMMAND.findall(block)
    ]


def wrong_with(words: list[str]) -> str:
    """Why a command that a page shows cannot be right, or nothing."""
    program, arguments = words[0], words[1:]
    if program in {"rackloop", "./rackloop"}:
        # What comes after -- is another program's.
        return wrong_verb(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    if program.startswith(("tools/", "./")) and not (ROOT / program).is_file():
        return f"there is no file {program}"
    return ""


command_line = cache(lambda: get_command(app))


def wrong_verb(arguments: list[str]) -> str:
    if arguments[:1] == ["test"] and arguments[1:2] not in (["list"], ["show"]):
        verbs = arguments[1].split(",") if len(arguments) > 1 and not arguments[1].startswith("-") else []
        unknown = sorted(set(verbs) - tox_verbs())
        return f"tox.ini has no {unknown}" if unknown else ""
    command, words = command_line(), list(arguments)
    while (children := getattr(command, "commands", None)) is not None:
        del words[: sum(parameter.param_type_name == "argument" for parameter in command.params)]
        if not words or words[0].startswith("-"):
            break
        if words[0] not in children:
            return f"rackloop has no {words[0]!r} in {arguments}"
        command = children[words.pop(0)]
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    unknown = [word for word in arguments if re.match(r"--?[a-z]", word) and word.partition("=")[0] not in known]
    return f"rackloop {' '.join(arguments)}: unknown {unknown}" if unknown else ""


def test_commands_in_documents_exist() -> None:
    shown_commands = commands_shown()
    assert shown_commands
    check(f"{page}: {fault}" for page, words in shown_commands if (fault := wrong_with(words)))


@pytest.mark.parametrize(
    "command",
    [
        "./rackloop test no-such-verb",
        "rackloop no-such-command",
        "rackloop run smoke --no-such-option",
        "tools/no-such-file x",
    ],
)
def test_a_command_that_does_not_exist_is_found(command: str) -> None:
    assert wrong_with(shlex.split(command))


def test_every_verb_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "verbs.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == tox_verbs()


def test_the_command_line_is_documented_as_it_is() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == page(), "run: python tools/command_line_reference.py"


def test_the_test_plans_are_documented_as_they_declare_themselves() -> None:
    written = TEST_PLANS.read_text(encoding="utf-8")
    assert written == plans_page(), "run: python tools/testplan_reference.py"


def test_the_page_of_fixtures_is_what_the_code_has() -> None:
    written = FIXTURES.read_text(encoding="utf-8")
    assert written == fixtures_page(), "run: python tools/fixtures_reference.py"


def test_the_page_of_scenario_files_has_the_keys_that_the_code_has() -> None:
    written = SCENARIOS.read_text(encoding="utf-8")
    assert written == scenarios_page(), "run: python tools/scenario_reference.py"


def test_the_page_of_the_switch_has_the_parameters_of_its_schedulers() -> None:
    written = SWITCH.read_text(encoding="utf-8")
    assert written == switch_page(), "run: python tools/scheduler_reference.py"


def test_the_page_of_the_rack_is_what_the_code_and_the_shipped_labs_have() -> None:
    written = RACK.read_text(encoding="utf-8")
    assert written == rack_page(), "run: python tools/rack_reference.py"


def test_the_table_of_interference_has_the_profiles_figures() -> None:
    # The model's side of it is held where the model runs, in tests/contracts/test_drivesim.py.
    rows = [line.strip("| ").split(" | ") for line in between(INTERFERENCE, BEGIN).splitlines()[2:]]
    expected = [
        (WORDS[one.figure], shown_figure(one.value, one), f"{one.within:.0%}")
        for one in load_profile(PROFILE).published
    ]
    found = [(figure, value, within) for figure, value, _, _, within in rows]
    assert found == expected, "run: python tools/interference_reference.py"


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = [int(record.name[:4]) for record in RECORDS]
    assert numbers == list(range(1, len(RECORDS) + 1))


def formless_decisions(records: Iterable[Path], index: str) -> Iterator[str]:
    """What decision records lack of their form, and records that the index lacks."""
    for record in records:
        text = record.read_text(encoding="utf-8")
        title = text.splitlines()[0]
        if not title.startswith(f"# {record.name[:4]}: "):
            yield f"{shown(record)}:1: begin the title with '# {record.name[:4]}: '"
        if not re.search(r"^Date: \d{4}-\d{2}-\d{2}$", text, re.MULTILINE):
            yield f"{shown(record)}: add a line 'Date: YYYY-MM-DD'"
        if re.findall(r"^## (.+)$", text, re.MULTILINE) != DECISION_HEADINGS:
            yield f"{shown(record)}: the headings are {DECISION_HEADINGS}"
        if f"- [{title.removeprefix('# ')}]({record.name})" not in index:
            yield f"{shown(record)}: add its line to the index"


def test_decisions_have_their_form_and_their_lines_in_the_index() -> None:
    check(formless_decisions(RECORDS, (DECISIONS / "index.md").read_text(encoding="utf-8")))


def test_a_formless_decision_is_found(tmp_path: Path) -> None:
    whole, formless = tmp_path / "0001-whole.md", tmp_path / "0002-formless.md"
    headings = "\n".join(f"## {heading}" for heading in DECISION_HEADINGS)
    whole.write_text(f"# 0001: Whole\n\nDate: 2024-01-02\n\n{headings}\n")
    formless.write_text("# Formless\n\n## Decision\n")
    found = list(formless_decisions([whole, formless], "- [0001: Whole](0001-whole.md)"))
    assert len(found) == 4
    assert all(offence.startswith("0002-formless.md:") for offence in found)


def test_changelog_fragments_have_their_names() -> None:
    odd = [path.name for path in (ROOT / "changelog.d").iterdir() if not FRAGMENT.fullmatch(path.name)]
    assert odd == ["README.md"]
