"""Playbooks: clean by Ansible's own linters, roles that say what they take and can all be taken back."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackloop.plan import find_playbook, roles_of
from tests.meta.tree import ROOT, shown

PLAYBOOKS = ROOT / "playbooks"
ROLES = sorted(path for path in (PLAYBOOKS / "roles").iterdir() if path.is_dir())
CHOSEN = roles_of(find_playbook("site"))
PAGE = ROOT / "docs" / "reference" / "provisioning.md"
SENTENCE = re.compile(r"[A-Z][a-z].* .*[a-z)]")


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else None


def linted(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What a linter says of the playbooks, with the programs beside this Python and no network."""
    bin_folder = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}
    return subprocess.run(
        [bin_folder / program, *arguments], cwd=PLAYBOOKS, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "argv", [("ansible-lint", "--strict"), ("yamllint", "--strict", ".")], ids=lambda argv: argv[0]
)
def test_the_playbooks_are_clean(argv: tuple[str, ...]) -> None:
    done = linted(*argv)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_made_is_taken_back_in_reverse_order() -> None:
    assert set(CHOSEN) == {role.name for role in ROLES} - {"capabilities", "packages"}
    assert roles_of(find_playbook("undo")) == CHOSEN[::-1]


@pytest.mark.parametrize("role", ROLES, ids=shown)
def test_a_role_says_what_it_takes(role: Path) -> None:
    options = read(role / "meta" / "argument_specs.yml")["argument_specs"]["main"]["options"]
    defaults = read(role / "defaults" / "main.yml") or {}
    assert set(options) >= set(defaults)
    for name, option in options.items():
        assert option["description"].endswith("."), name
        written = defaults.get(name)
        # One that is made of other variables is described in words.
        if not (isinstance(written, str) and "{{" in written):
            assert option.get("default") == written, name


@pytest.mark.parametrize("role", ROLES, ids=shown)
def test_a_role_is_in_the_reference_with_each_variable(role: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    if role.name in CHOSEN:
        assert f"### `{role.name}`" in page
        for name in read(role / "defaults" / "main.yml"):
            assert f"| `{name}` |" in page, name


@pytest.mark.parametrize("path", sorted(PLAYBOOKS.glob("roles/*/tasks/*.yml")), ids=shown)
def test_tasks_have_sentences_for_names(path: Path) -> None:
    def named(tasks: list[dict[str, Any]]) -> list[str]:
        return [name for task in tasks for name in (task["name"], *named(task.get("block", [])))]

    assert [name for name in named(read(path)) if not SENTENCE.fullmatch(name)] == []


def test_what_is_left_out_is_something_that_is_found_out() -> None:
    used = {
        what
        for path in PLAYBOOKS.rglob("*.yml")
        for what in re.findall(r"'(\w+)' not in rackloop_cannot", path.read_text(encoding="utf-8"))
    }
    module = (PLAYBOOKS / "library" / "rackloop_capabilities.py").read_text(encoding="utf-8")
    checks = re.search(r"^CHECKS = \((.+)\)$", module, re.MULTILINE)
    assert checks is not None
    assert used == set(checks[1].split(", "))
