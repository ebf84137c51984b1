"""Patches in tests: none but those listed here, each file with its reason."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.meta.tree import ROOT, beyond, check, files, parsed

MACHINE = "what the kernel or all users of a machine share, and no argument or variable may replace"
SECONDS = "seconds of a protocol, which no caller chooses, are too long to wait for"
ENTRY = "an entry point that opens labs and stores itself is cut off from them"
WITHOUT = "a check is left out, or gets it wrong, to show that without it the result is wrong"
#: Files that patch, how often, and why. A file leaves the list, or its number shrinks, with its last patch.
PATCHED: Mapping[str, tuple[int, str]] = {
    "tests/contracts/conftest.py": (1, MACHINE),
    "tests/contracts/test_provision.py": (1, MACHINE),
    "tests/contracts/test_store_contract.py": (1, MACHINE),
    "tests/contracts/test_store_turns.py": (1, SECONDS),
    "tests/unit/fixtures/test_lease_lost.py": (2, SECONDS),
    "tests/unit/fixtures/test_plugin_outcomes.py": (1, SECONDS),
    "tests/unit/harness/test_events.py": (1, MACHINE),
    "tests/unit/harness/test_guard_worlds.py": (1, WITHOUT),
    "tests/unit/harness/test_leases_holder.py": (2, MACHINE),
    "tests/unit/harness/test_leases_model.py": (2, MACHINE),
    "tests/unit/harness/test_leases_shared_store.py": (1, MACHINE),
    "tests/unit/harness/test_store_clock.py": (1, MACHINE),
    "tests/unit/harness/test_upkeep.py": (1, SECONDS),
    "tests/unit/models/test_disaggregation_elastic.py": (1, WITHOUT),
    "tests/unit/models/test_erasure_engines.py": (1, MACHINE),
    "tests/unit/tools/test_lab_down.py": (1, ENTRY),
    "tests/unit/tools/test_lab_session.py": (2, ENTRY),
    "tests/unit/tools/test_schedule_commands.py": (1, ENTRY),
}


def patches(paths: Iterable[Path]) -> Iterator[tuple[Path, int]]:
    """The file and line of each patch, by unittest.mock or a MonkeyPatch, also in code that a test writes to a file."""
    for path in paths:
        for node in ast.walk(parsed(path)):
            match node:
                case ast.Call(func=ast.Attribute(attr="setattr" | "delattr", value=receiver)):
                    if "patch" in ast.unparse(receiver):
                        yield path, node.lineno
                case ast.Constant(value=str(text)) if "monkeypatch" + ".setattr(" in text:
                    yield path, node.lineno
                case ast.ImportFrom(module="unittest.mock") | ast.Import(names=[ast.alias(name="unittest.mock")]):
                    yield path, node.lineno
                case ast.ImportFrom(module="unittest", names=names) if any(alias.name == "mock" for alias in names):
                    yield path, node.lineno


def unlisted(paths: Iterable[Path], listed: Mapping[str, tuple[int, str]]) -> Iterator[str]:
    """Patches of files that the list does not have, and entries of the list that have become too large."""
    advice = "pass in what is patched: an argument, a fake, the environment"
    wrong = "tests/meta/test_patches.py: {name} patches {found} times, not {most}"
    return beyond(listed, patches(paths), advice, wrong)


def test_nothing_is_patched_but_what_is_listed() -> None:
    check(unlisted([path for path in files(".py") if path.is_relative_to(ROOT / "tests")], PATCHED))


def test_each_kind_of_patch_is_found(tmp_path: Path) -> None:
    path = tmp_path / "test_made_up.py"
    patch = "monkeypatch" + ".setattr"
    path.write_text(
        "import unittest\nfrom unittest import mock\nimport unittest.mock\nfrom unittest.mock import patch\n"
        f"def test(monkeypatch):\n    {patch}(clock, 'now', 0)\n    monkeypatch.setenv('A', 'b')\n"
        "    with pytest.MonkeyPatch.context() as patch:\n        patch.setattr('os.kill', None)\n"
        f"    setattr(case, 'size', 1)\n    write('{patch}(clock, 0)')\n"
    )
    assert sorted(line for _, line in patches([path])) == [2, 3, 4, 6, 9, 11]
    assert len(list(unlisted([path], {}))) == 6
    assert len(list(unlisted([path], {"test_made_up.py": (5, "")}))) == 6
    assert list(unlisted([path], {"test_made_up.py": (6, "")})) == []
    assert len(list(unlisted([path], {"test_made_up.py": (7, "")}))) == 1
