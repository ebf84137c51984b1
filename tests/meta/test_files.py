"""Files hold one noun and fit in the head; names say what a thing is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.meta.tree import ROOT, files, shown

LONGEST_LINES = 450
# Written apart, so that this file does not hold what it forbids.
UNFINISHED = re.compile(r"\b(" + "TO" + "DO|FIX" + r"ME)\b")
VAGUE = re.compile(r".(Manager|Helper|Helpers|Util|Utils|Base|Impl)$")
SCRIPTS = [ROOT / "rackloop", *sorted((ROOT / "tools").glob("new-*"))]
SOURCES = [*files(".py", ".rs", ".sh"), *SCRIPTS]
LOCKS = [*(ROOT / "requirements").glob("*.txt"), ROOT / "reports" / "allure" / "package-lock.json"]


@pytest.mark.parametrize("path", SOURCES, ids=shown)
def test_a_file_is_short_and_finished(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= LONGEST_LINES, f"{shown(path)} has {len(lines)} lines: it holds more than one noun"
    unfinished = [f"{shown(path)}:{number}" for number, line in enumerate(lines, 1) if UNFINISHED.search(line)]
    assert not unfinished, f"unfinished: {unfinished}"


@pytest.mark.parametrize("path", files(".py"), ids=shown)
def test_classes_have_telling_names(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    vague = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and VAGUE.search(node.name)]
    assert not vague, f"{vague}: say what it is, not that it helps"


@pytest.mark.parametrize("path", files(".py", ".rs", ".sh", ".md", ".toml", ".yaml", ".yml", ".ini"), ids=shown)
def test_nothing_depends_on_where_it_was_written(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.-])/(?:home/\w+|root|work)/", text), "a path of one machine"


@pytest.mark.parametrize("path", LOCKS, ids=shown)
def test_a_lock_pins_by_hash_and_names_no_registry(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        assert '"integrity": "sha512-' in text
        assert '"resolved"' not in text
    elif "==" in text:  # the lists of the system's packages pin nothing
        assert all("--hash=sha256:" in block for block in re.split(r"\n(?=\w)", text)[1:])
        assert "://" not in text


def test_the_bench_verb_runs_every_benchmark() -> None:
    verb = (ROOT / "tox.ini").read_text(encoding="utf-8").partition("[testenv:bench]")[2].partition("\n[")[0]
    assert set(re.findall(r"benchmarks/(\S+)", verb)) == {
        path.name for path in (ROOT / "benchmarks").glob("bench_*.py")
    }
