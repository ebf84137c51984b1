"""Python examples of the documents: each runs (conftest.py) or says why not, and names what exists."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from sybil import Document

from tests.console_examples import WHOLE, commands_of, find_files
from tests.meta.tree import ROOT, check, files, parsed, shown

BLOCK = re.compile(r"^( *)```python\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
SKIPPED = re.compile(r'<!--- skip: next( ".+ .+")? -->')
MOST_SKIPPED = 17
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
#: What examples use that is no name of a package of ours: an error of the reader's product, the fixture.
OF_READERS = frozenset({"ClientError", "measure"})


def examples(pages: Iterable[Path]) -> Iterator[tuple[Path, int, str]]:
    """Each example with its page and the line before its first."""
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for block in BLOCK.finditer(text):
            yield page, text[: block.start()].count("\n") + 1, re.sub(rf"^{block[1]}", "", block[2], flags=re.MULTILINE)


@cache
def defined() -> frozenset[str]:
    """The names that modules of our packages define, and Python's own."""
    names = set(dir(builtins))
    for path in files(".py"):
        if path.parts[len(ROOT.parts)] not in {"tests", "benchmarks"}:
            for node in parsed(path).body:
                match node:
                    case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                        names.add(name)
                    case ast.Assign(targets=[ast.Name(id=name)]):
                        names.add(name)
    return frozenset(names)


def unknown_names(pages: Iterable[Path]) -> Iterator[str]:
    """Classes and functions that an example uses and neither defines, nor imports, nor finds in our packages."""
    for page, line, code in examples(pages):
        tree = compile(code, page.name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        known = made_by(tree) | defined() | OF_READERS
        for node in sorted(used_by(tree), key=lambda node: node.lineno):
            if node.id not in known:
                yield f"{shown(page)}:{line + node.lineno}: {node.id}: no package of ours has it"


def made_by(tree: ast.AST) -> set[str]:
    """The names that an example defines, sets or imports."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.ImportFrom(names=aliases):
                names |= {alias.asname or alias.name for alias in aliases}
    return names


def used_by(tree: ast.AST) -> list[ast.Name]:
    """The names of classes, which begin with a capital, and of functions that are called."""
    nodes = list(ast.walk(tree))
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    return [node for node in nodes if isinstance(node, ast.Name) and (node.id[0].isupper() or node in called)]


def test_examples_name_what_exists() -> None:
    check(unknown_names(PAGES))


def test_few_examples_do_not_run_and_they_say_why() -> None:
    skips = [(page, skip[1]) for page in PAGES for skip in SKIPPED.finditer(page.read_text(encoding="utf-8"))]
    check(f"{shown(page)}: say why the example is skipped" for page, why in skips if not why)
    assert len(skips) <= MOST_SKIPPED


def test_an_unknown_name_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Drives\n\n```python\nfrom x import Known\nclock = RealClock()\nhost = SshHots(clock, Known)\n"
        "await run_on_every(host, len(clock))\n```\n\n1. Again\n\n    ```python\n    SshGone\n    ```\n"
    )
    assert list(unknown_names([page])) == [
        "page.md:6: SshHots: no package of ours has it",
        "page.md:7: run_on_every: no package of ours has it",
        "page.md:13: SshGone: no package of ours has it",
    ]


def test_what_a_command_says_is_compared_but_for_what_varies() -> None:
    block = """\
        $ rackloop lab up mock
        lab mock is up (1.1 s): 4 servers
        $ rackloop lab lease mock \\
            --for 2h
        ...
        lease 415603aa of ann@ctl1
        """
    up, lease = commands_of(block)
    assert (up.line, lease.line) == ("rackloop lab up mock", "rackloop lab lease mock --for 2h")
    assert up.leases("lab mock is up (312 ms): 4 servers\n") == {}
    assert up.leases("lab mock is down\n") is None
    assert lease.leases("waited\nlease 0a1b2c3d of root@node\n") == {"415603aa": "0a1b2c3d"}
    assert lease.leases("waited 20261122\nlease 41096133 of root@node\n") == {"415603aa": "41096133"}
    assert lease.leases("waited\nlease is lost\n") is None


def test_a_command_that_takes_minutes_is_only_planned() -> None:
    (run,) = commands_of("$ ./rackloop run smoke --lab mock    # a comment\n")
    assert run.run_as() == "./rackloop run smoke --lab mock --dry-run"


def test_a_command_that_takes_hours_is_never_run_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WHOLE, "1")
    minutes, hours = commands_of("$ ./rackloop run qualify --lab mock\n$ ./rackloop run qualify --set seconds=60\n")
    assert minutes.is_whole
    assert hours.run_as() == "./rackloop run qualify --set seconds=60 --dry-run"
    assert not hours.is_whole


@pytest.mark.parametrize("asked", [None, "1"])
def test_a_command_without_a_report_of_its_own_accord_is_compared(
    asked: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(WHOLE, raising=False)
    if asked:
        monkeypatch.setenv(WHOLE, asked)
    (command,) = commands_of("$ ./rackloop run my_tests/test_it.py --no-report\nFAIL it\n")
    assert command.is_whole


def test_a_block_that_is_a_file_is_found() -> None:
    page = Document("<!--- file: mine.yaml -->\n\n```yaml\nplan: mine\n```\n", "docs/how-to/page.md")
    (found,) = find_files(page)
    assert found.parsed == ("mine.yaml", "plan: mine\n")
