"""Rules of single files: short, finished, telling names, pinned locks, no path of one machine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.meta.tree import ROOT, check, files, parsed, shown
from tests.slow_files import SLOW_FILES

LONGEST_LINES = 450
# The core knows no vendor, no pytest and no terminal: what grows belongs to a package that does.
CORE, CORE_LINES = ROOT / "harness" / "rackloop", 18_000
# Split, so that this file does not hold what it forbids.
UNFINISHED = re.compile(r"\b(" + "TO" + "DO|FIX" + r"ME)\b")
VAGUE = re.compile(r".(Manager|Helper|Helpers|Util|Utils|Base|Impl)$")
MACHINE_PATH = re.compile(r"(?<![\w.-])/(?:home/\w+|root|work)/")
SCRIPTS = [ROOT / "rackloop", *sorted((ROOT / "tools").glob("new-*"))]
SOURCES = [*files(".py", ".rs", ".sh"), *SCRIPTS]
TEXTS = files(".py", ".rs", ".sh", ".md", ".toml", ".yaml", ".yml", ".ini")
LOCKS = [*(ROOT / "requirements").glob("*.txt"), ROOT / "reports" / "allure" / "package-lock.json"]


def too_long(paths: Iterable[Path]) -> Iterator[str]:
    """Files of more than ``LONGEST_LINES``."""
    for path in paths:
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > LONGEST_LINES:
            yield f"{shown(path)}: {lines} lines of at most {LONGEST_LINES}: it holds more than one noun, split it"


def lines_of(folder: Path) -> int:
    """The number of lines of all Python files below a folder."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in folder.rglob("*.py"))


def lines_with(pattern: re.Pattern[str], paths: Iterable[Path], advice: str) -> Iterator[str]:
    """Lines of the files in which the pattern occurs."""
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if found := pattern.search(line):
                yield f"{shown(path)}:{number}: {found[0]}: {advice}"


def vague_classes(paths: Iterable[Path]) -> Iterator[str]:
    """Classes whose names say that they help, not what they are."""
    for path in paths:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef) and VAGUE.search(node.name):
                yield f"{shown(path)}:{node.lineno}: class {node.name}: say what it is, not that it helps"


def loose_locks(paths: Iterable[Path]) -> Iterator[str]:
    """Lock files with a requirement that has no hash, or with the address of a registry."""
    for path in paths:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            hashed, named = '"integrity": "sha512-' in text, '"resolved"' in text
        else:  # the lists of the system's packages pin nothing
            blocks = re.split(r"\n(?=\w)", text)[1:] if "==" in text else []
            hashed, named = all("--hash=sha256:" in block for block in blocks), "==" in text and "://" in text
        if not hashed or named:
            yield f"{shown(path)}: pins without a hash or names a registry: run ./rackloop test lock"


def test_the_core_is_small(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "two.py").write_text("A = 1\nB = 2\n")
    assert lines_of(tmp_path) == 2
    assert lines_of(CORE) <= CORE_LINES, "move what knows equipment, tests or people out of the core"


def test_files_are_short() -> None:
    check(too_long(SOURCES))


def test_files_are_finished() -> None:
    check(lines_with(UNFINISHED, SOURCES, "finish it or open an issue"))


def test_classes_have_telling_names() -> None:
    check(vague_classes(files(".py")))


def test_nothing_depends_on_where_it_was_written() -> None:
    check(lines_with(MACHINE_PATH, TEXTS, "a path of one machine: make it relative"))


def test_locks_pin_by_hash_and_name_no_registry() -> None:
    check(loose_locks(LOCKS))


def test_the_bench_verb_runs_every_benchmark() -> None:
    verb = (ROOT / "tox.ini").read_text(encoding="utf-8").partition("[testenv:bench]")[2].partition("\n[")[0]
    assert set(re.findall(r"benchmarks/(\S+)", verb)) == {
        str(path.relative_to(ROOT / "benchmarks")) for path in (ROOT / "benchmarks").rglob("bench_*.py")
    }


def test_a_verb_runs_every_folder_of_tests() -> None:
    run = set(re.findall(r"tests/[\w/]+", (ROOT / "tox.ini").read_text(encoding="utf-8")))
    # A package that is built and installed first: tests/e2e/test_own_driver.py runs its tests.
    folders = {f"tests/{path.relative_to(ROOT / 'tests').parts[0]}" for path in (ROOT / "tests").rglob("test_*.py")}
    assert folders - run == {"tests/own_driver"}


def test_the_slow_files_are_there() -> None:
    assert [name for name in SLOW_FILES if not (ROOT / name).is_file()] == []


def test_a_long_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "long.py"
    path.write_text("\n" * LONGEST_LINES)
    assert list(too_long([path])) == []
    path.write_text("\n" * (LONGEST_LINES + 1))
    assert list(too_long([path])) == ["long.py: 451 lines of at most 450: it holds more than one noun, split it"]


@pytest.mark.parametrize(
    ("pattern", "line"), [(UNFINISHED, "# FIX" + "ME: later"), (MACHINE_PATH, 'open("/' + 'root/x")')]
)
def test_each_line_that_breaks_a_rule_is_found(tmp_path: Path, pattern: re.Pattern[str], line: str) -> None:
    path = tmp_path / "two.py"
    path.write_text(f"{line}\nx = 1\n{line}\n")
    assert [found.split(" ")[0] for found in lines_with(pattern, [path], "")] == ["two.py:1:", "two.py:3:"]


def test_a_vague_class_is_found(tmp_path: Path) -> None:
    path = tmp_path / "vague.py"
    path.write_text("class Rack: ...\nclass RackManager: ...\nclass Base: ...\n")
    assert list(vague_classes([path])) == ["vague.py:2: class RackManager: say what it is, not that it helps"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.txt", "# a lock\na==1 \\\n    --hash=sha256:00\nb==2\n"),
        ("run.txt", "--index-url https://x\na==1 \\\n    --hash=sha256:00\n"),
        ("lock.json", '{"a": {"version": "1"}}'),
        ("lock.json", '{"a": {"integrity": "sha512-0", "resolved": "https://x"}}'),
    ],
)
def test_a_loose_lock_is_found(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert len(list(loose_locks([path]))) == 1


def test_the_failure_lists_all_offenders() -> None:
    with pytest.raises(AssertionError, match=r"2 offenders:\na.py:1: x\nb.py:2: y"):
        check(["a.py:1: x", "b.py:2: y"])
