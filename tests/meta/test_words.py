"""Docstrings and Rust doc comments are plain technical English, with noun phrases and verbs as titles."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from tests.meta.tree import ROOT, check, files, project, shown

CLAUSE = re.compile(r"(What|Whatever|Whether|Which|Who|Whose|Where|When|How|Why|That)\b")
NOBODY = re.compile(r"\b(somebody|nobody(?!:)|whoever)\b", re.IGNORECASE)
# A label that no drive has; the account of Unix has a colon behind it.
LABEL = "nobody"
ROOTS = {*project()["tool"]["hatch"]["build"]["dev-mode-dirs"], "playbooks", "testplans"}
DOC_COMMENT = re.compile(r"^[ \t]*//([/!])(?!/).*(?:\n[ \t]*//\1(?!/).*)*", re.MULTILINE)
DOC_MARK = re.compile(r"^[ \t]*//[/!] ?", re.MULTILINE)
RUST_BOOL = re.compile(r"(?:\s*#\[.*\])*\s*(?:[^{};]*\bfn\b[^{};]*->[^{};]*\bbool\b|[^{};,]*: bool\b)")
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def riddles(text: str) -> list[str]:
    """The first lines of a Python source's docstrings that break a rule."""
    documented = [node for node in ast.walk(ast.parse(text)) if isinstance(node, DOCUMENTED)]
    docstrings = [(node, docstring) for node in documented if (docstring := ast.get_docstring(node))]
    return [
        docstring.splitlines()[0]
        for node, docstring in docstrings
        if NOBODY.search(docstring) or (CLAUSE.match(docstring) and not is_predicate(node, docstring))
    ]


def attribute_docstrings(tree: ast.AST) -> Iterator[str]:
    """The docstrings of constants and fields, such as the help of a description's keys."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            for before, after in pairwise(body):
                match before, after:
                    case ast.Assign() | ast.AnnAssign(), ast.Expr(ast.Constant(str() as docstring)):
                        yield docstring.strip()


def vague_words(text: str) -> list[str]:
    """Texts of a Python source, such as messages, that speak of nobody in particular, and riddles on its fields."""
    tree = ast.parse(text)
    said = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    vague = [line for line in said if NOBODY.search(line) and line != LABEL]
    return [*vague, *(line for line in attribute_docstrings(tree) if CLAUSE.match(line))]


def is_predicate(node: DOCUMENTED, docstring: str) -> bool:
    """Whether a docstring says which question a function answers by true or false."""
    returns = getattr(node, "returns", None)
    return docstring.startswith("Whether ") and returns is not None and "bool" in ast.unparse(returns)


def rust_riddles(text: str) -> list[str]:
    """The first lines of a Rust source's doc comments that break a rule; a bool field is a predicate, too."""
    comments = [(DOC_MARK.sub("", block[0]), block.end()) for block in DOC_COMMENT.finditer(text)]
    return [
        comment.splitlines()[0]
        for comment, end in comments
        if NOBODY.search(comment)
        or (CLAUSE.match(comment) and not (comment.startswith("Whether ") and RUST_BOOL.match(text, end)))
    ]


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


def test_messages_and_the_help_of_fields_are_plain_english() -> None:
    assert vague_words('raise X(f"{server}: nobody has it")') == [": nobody has it"]
    assert vague_words('class C:\n    size: int\n    """How large it is."""') == ["How large it is."]
    assert vague_words('class C:\n    size: int\n    """The size."""\nUSER = "nobody"') == []
    check(
        f"{shown(path)}: {line}"
        for path in files(".py")
        if path.relative_to(ROOT).parts[0] in ROOTS
        for line in vague_words(path.read_text(encoding="utf-8"))
    )


def test_documents_name_who_is_meant() -> None:
    check(
        f"{shown(path)}: {line.strip()}"
        for path in files(".md")
        if "decisions" not in path.parts
        for line in path.read_text(encoding="utf-8").splitlines()
        if NOBODY.search(line)
    )


def test_rust_doc_comments_are_plain_english() -> None:
    assert rust_riddles("//! What it does.\n\n/// How many.\nfn f() {}") == ["What it does.", "How many."]
    assert rust_riddles("/// The store.\n/// For whoever calls.\nstruct S;") == ["The store."]
    assert rust_riddles("/// The store.\n/// When full, it refuses.\nstruct S;\n// What follows.\nfn f() {}") == []
    assert rust_riddles("/// Whether it is on.\n#[must_use]\npub fn f(&self, x: u8) -> bool {") == []
    assert rust_riddles("struct S {\n    /// Whether it is on.\n    on: bool,\n}") == []
    assert rust_riddles("struct S {\n    /// Whether it is on.\n    on: u8,\n    off: bool,\n}\nfn f() -> bool {") == [
        "Whether it is on."
    ]
    check(f"{shown(path)}: {line}" for path in files(".rs") for line in rust_riddles(path.read_text(encoding="utf-8")))
