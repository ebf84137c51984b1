"""Documents: links lead somewhere, commands exist, decisions and changelog fragments keep their form."""

from __future__ import annotations

import configparser
import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from command_line_reference import PAGE, page
from rackloop_cli.main import app
from testplan_reference import PAGE as TEST_PLANS
from testplan_reference import page as plans_page
from tests.meta.tree import ROOT, files, shown

PAGES = files(".md")
DECISIONS = ROOT / "docs" / "explanations" / "decisions"
RECORDS = sorted(DECISIONS.glob("[0-9]*.md"))
LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")
CONSOLE = re.compile(r"^ *```console\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^ *\$ (.+)$", re.MULTILINE)
FRAGMENT = re.compile(r"\+[a-z0-9-]+\.(added|changed|fixed|removed)\.md")


def anchors(page: Path) -> set[str]:
    """The fragments that links to a page may end with."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            broken.append(link)
    assert not broken


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
        return wrong_verb(arguments)
    if program.startswith(("tools/", "./")) and not (ROOT / program).is_file():
        return f"there is no file {program}"
    return ""


def wrong_verb(arguments: list[str]) -> str:
    if arguments[:1] == ["test"]:
        verbs = arguments[1].split(",") if len(arguments) > 1 and not arguments[1].startswith("-") else []
        unknown = sorted(set(verbs) - tox_verbs())
        return f"tox.ini has no {unknown}" if unknown else ""
    command, words = get_command(app), list(arguments)
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
    wrong = [f"{page}: {fault}" for page, words in shown_commands if (fault := wrong_with(words))]
    assert not wrong


def test_every_verb_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "verbs.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == tox_verbs()


def test_the_command_line_is_documented_as_it_is() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == page(), "run: python tools/command_line_reference.py"


def test_the_test_plans_are_documented_as_they_declare_themselves() -> None:
    written = TEST_PLANS.read_text(encoding="utf-8")
    assert written == plans_page(), "run: python tools/testplan_reference.py"


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = [int(record.name[:4]) for record in RECORDS]
    assert numbers == list(range(1, len(RECORDS) + 1))


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.name)
def test_a_decision_has_its_form_and_its_line_in_the_index(record: Path) -> None:
    text = record.read_text(encoding="utf-8")
    title = text.splitlines()[0]
    assert title.startswith(f"# {record.name[:4]}: ")
    assert re.search(r"^Date: \d{4}-\d{2}-\d{2}$", text, re.MULTILINE)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Status", "Context", "Decision", "Consequences"]
    index = (DECISIONS / "index.md").read_text(encoding="utf-8")
    assert f"- [{title.removeprefix('# ')}]({record.name})" in index


def test_changelog_fragments_have_their_names() -> None:
    odd = [path.name for path in (ROOT / "changelog.d").iterdir() if not FRAGMENT.fullmatch(path.name)]
    assert odd == ["README.md"]
