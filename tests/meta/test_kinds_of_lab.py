"""Whether a rack is virtual or physical: what harness, fixtures and test plans ask only where it is listed here."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.meta.tree import ROOT, beyond, check, files, parsed

CODE = ("harness", "fixtures", "testplans")
GUARD = "what is written on real drives takes a lease"
LEASES = "equipment may be controlled from several machines, and its leases are where all of them see them"
DESCRIBED = "real equipment has addresses, which its description has to give"
LOAD = "guests share the processors of this machine, and its load makes them late"
#: Files that ask, how often, and why. A file leaves the list, or its number shrinks, with its last question.
ASKING: Mapping[str, tuple[int, str]] = {
    "fixtures/rackloop_fixtures/session/plan_plugin.py": (2, f"{LEASES}; {LOAD}"),
    "harness/rackloop/lab/_wiring.py": (2, DESCRIBED),
    "harness/rackloop/safety/_destructive_guard.py": (1, GUARD),
    "harness/rackloop/safety/leases/_shared_store.py": (1, LEASES),
}


def questions(path: Path) -> Iterator[int]:
    """The line of each mention of one of the two kinds, and of each comparison of a kind with its word."""
    for node in ast.walk(parsed(path)):
        match node:
            case ast.Attribute(
                value=ast.Name(id="LabKind") | ast.Attribute(attr="LabKind"), attr="PHYSICAL" | "VIRTUAL"
            ):
                yield node.lineno
            case ast.Compare() if any(map(_is_kind, _compared(node))) and any(map(_is_word, _compared(node))):
                yield node.lineno
            case ast.Match(subject=subject) if _is_kind(subject):
                yield from (each.lineno for each in ast.walk(node) if isinstance(each, ast.expr) and _is_word(each))


def _compared(node: ast.Compare) -> Iterator[ast.expr]:
    for side in (node.left, *node.comparators):
        yield from side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else (side,)


def _is_kind(side: ast.expr) -> bool:
    return isinstance(side, ast.Attribute) and side.attr == "kind"


def _is_word(side: ast.expr) -> bool:
    return isinstance(side, ast.Constant) and side.value in {"physical", "virtual"}


def unlisted(paths: Iterable[Path], listed: Mapping[str, tuple[int, str]]) -> Iterator[str]:
    """Questions of files that the list does not have, and entries of the list that have become too large."""
    found = ((path, line) for path in paths for line in questions(path))
    advice = "ask for what the rack has or says (an ability, a time), which holds for either kind"
    return beyond(listed, found, advice, "tests/meta/test_kinds_of_lab.py: {name} asks {found} times, not {most}")


def test_only_what_is_listed_asks_whether_a_rack_is_virtual_or_physical() -> None:
    check(unlisted([path for path in files(".py") if path.relative_to(ROOT).parts[0] in CODE], ASKING))


def test_each_way_of_asking_is_found(tmp_path: Path) -> None:
    path = tmp_path / "made_up.py"
    path.write_text(
        "if lab.kind is LabKind.PHYSICAL: pass\n"
        "if lab.kind in {LabKind.MOCK, lab_module.LabKind.VIRTUAL}: pass\n"
        "if bench.lab.kind != 'physical': pass\n"
        "if lab.kind in ('mock', 'virtual'): pass\n"
        "match lab.kind:\n    case 'virtual': pass\n"
        "if lab.kind is LabKind.MOCK or word == 'virtual': pass\n"
    )
    assert sorted(questions(path)) == [1, 2, 3, 4, 6]
    assert len(list(unlisted([path], {}))) == 5
    assert list(unlisted([path], {"made_up.py": (5, "")})) == []
    assert len(list(unlisted([path], {"made_up.py": (6, "")}))) == 1
