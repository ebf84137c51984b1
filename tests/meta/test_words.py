"""Docstrings are plain technical English: noun phrases and verbs are their titles, people are called by their role."""

from __future__ import annotations

import ast
import re

from tests.meta.tree import ROOT, check, files, project, shown

CLAUSE = re.compile(r"(What|Whatever|Whether|Which|Who|Whose|Where|When|How|Why|That)\b")
NOBODY = re.compile(r"\b(somebody|nobody|whoever)\b", re.IGNORECASE)
ROOTS = {*project()["tool"]["hatch"]["build"]["dev-mode-dirs"], "playbooks", "testplans"}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def riddles(text: str) -> list[str]:
    """The first lines of a source's docstrings that break a rule."""
    documented = [node for node in ast.walk(ast.parse(text)) if isinstance(node, DOCUMENTED)]
    docstrings = [(node, docstring) for node in documented if (docstring := ast.get_docstring(node))]
    return [
        docstring.splitlines()[0]
        for node, docstring in docstrings
        if NOBODY.search(docstring) or (CLAUSE.match(docstring) and not is_predicate(node, docstring))
    ]


def is_predicate(node: DOCUMENTED, docstring: str) -> bool:
    """Whether a docstring says which question a function answers by true or false."""
    returns = getattr(node, "returns", None)
    return docstring.startswith("Whether ") and returns is not None and "bool" in ast.unparse(returns)


def test_docstrings_are_plain_english() -> None:
    assert riddles('"""Which store."""\ndef f():\n    """Whoever calls."""') == ["Which store.", "Whoever calls."]
    assert riddles('"""The store."""\ndef f():\n    """What it holds."""') == ["What it holds."]
    assert riddles('class Boot:\n    """Which start of this machine it is."""') == [
        "Which start of this machine it is."
    ]
    assert riddles('def f() -> bool:\n    """Whether it is on."""') == []
    assert riddles('def f() -> str:\n    """Whether it is on."""') == ["Whether it is on."]
    check(
        f"{shown(path)}: {line}"
        for path in files(".py")
        if path.relative_to(ROOT).parts[0] in ROOTS
        for line in riddles(path.read_text(encoding="utf-8"))
    )
