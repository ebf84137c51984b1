"""Playbooks: Ansible's linters, documented variables, roles that can be undone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackloop.plan import find_playbook, roles_of
from tests.meta.tree import ROOT, check, shown

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


@pytest.mark.parametrize("name", ["site", "undo"])
def test_what_a_play_runs_is_found_once_its_lease_is_over(name: str) -> None:
    plays = read(PLAYBOOKS / f"{name}.yml")
    assert [play["environment"] for play in plays] == ["{{ rackloop_environment | default({}) }}"] * len(plays)


def undeclared_variables(roles: Iterable[Path]) -> Iterator[str]:
    """Variables that a role's ``argument_specs.yml`` lacks, does not describe or gives another default."""
    for role in roles:
        specs = role / "meta" / "argument_specs.yml"
        options = read(specs)["argument_specs"]["main"]["options"]
        defaults = read(role / "defaults" / "main.yml") or {}
        for name in sorted(set(defaults) - set(options)):
            yield f"{shown(specs)}: {name}: declare it"
        for name, option in options.items():
            written = defaults.get(name)
            # One that is made of other variables is described in words.
            computed = isinstance(written, str) and "{{" in written
            if not option["description"].endswith("."):
                yield f"{shown(specs)}: {name}: describe it in a sentence"
            if not computed and option.get("default") != written:
                yield f"{shown(specs)}: {name}: defaults/main.yml has {written!r}"


def undocumented_variables(roles: Iterable[Path], page: str) -> Iterator[str]:
    """Roles and variables that the page does not explain."""
    for role in roles:
        if f"### `{role.name}`" not in page:
            yield f"{shown(PAGE)}: add a heading ### `{role.name}`"
        for name in read(role / "defaults" / "main.yml"):
            if f"| `{name}` |" not in page:
                yield f"{shown(PAGE)}: {role.name}: add a row | `{name}` |"


def nameless_tasks(paths: Iterable[Path]) -> Iterator[str]:
    """Tasks whose names are no sentences."""

    def named(tasks: list[dict[str, Any]]) -> list[str]:
        return [name for task in tasks for name in (task["name"], *named(task.get("block", [])))]

    for path in paths:
        yield from (
            f"{shown(path)}: {name!r}: a sentence" for name in named(read(path)) if not SENTENCE.fullmatch(name)
        )


def test_roles_declare_their_variables() -> None:
    check(undeclared_variables(ROLES))


def test_roles_are_in_the_reference_with_each_variable() -> None:
    check(undocumented_variables([role for role in ROLES if role.name in CHOSEN], PAGE.read_text(encoding="utf-8")))


def test_tasks_have_sentences_for_names() -> None:
    check(nameless_tasks(sorted(PLAYBOOKS.glob("roles/*/tasks/*.yml"))))


def test_what_a_role_lacks_is_found(tmp_path: Path) -> None:
    role = tmp_path / "tuning"
    for folder, text in {
        "defaults": "a: 1\nb: 2\nc: '{{ a }}'\n",
        "meta": "argument_specs: {main: {options: {a: {description: First}, c: {description: Third.}}}}\n",
    }.items():
        (role / folder).mkdir(parents=True)
        (role / folder / {"meta": "argument_specs.yml"}.get(folder, "main.yml")).write_text(text)
    assert [found.partition(": ")[2] for found in undeclared_variables([role])] == [
        "b: declare it",
        "a: describe it in a sentence",
        "a: defaults/main.yml has 1",
    ]
    assert len(list(undocumented_variables([role], "### `tuning`\n| `a` |\n"))) == 2


def test_a_nameless_task_is_found(tmp_path: Path) -> None:
    path = tmp_path / "main.yml"
    path.write_text("- name: Set the governor\n  block: [{name: governor}]\n")
    assert list(nameless_tasks([path])) == ["main.yml: 'governor': a sentence"]


def test_what_is_left_out_is_something_that_is_found_out() -> None:
    used = {
        what
        for path in PLAYBOOKS.rglob("*.yml")
        for what in re.findall(r"'(\w+)' (?:not )?in rackloop_cannot", path.read_text(encoding="utf-8"))
    }
    module = (PLAYBOOKS / "library" / "rackloop_capabilities.py").read_text(encoding="utf-8")
    checks = re.search(r"^CHECKS = \((.+)\)$", module, re.MULTILINE)
    assert checks is not None
    assert used == set(checks[1].split(", "))


def listeners(roles: Iterable[Path]) -> Iterator[str]:
    """Roles that would have anything listen beyond the server itself unless a lab asks for it, or fio as a service."""
    for role in roles:
        for name, value in (read(role / "defaults" / "main.yml") or {}).items():
            if name.endswith("_address") and value != "127.0.0.1":
                yield f"{shown(role)}: {name} is {value}: listen on 127.0.0.1 unless the lab says otherwise"
            if name.endswith(("_devices", "_luns", "_hosts", "_initiators")) and value:
                yield f"{shown(role)}: {name} is {value}: offer nothing, to no one, unless the lab says so"
        for path in sorted(path for path in role.rglob("*") if path.suffix in {".yml", ".j2", ".py", ".sh"}):
            if re.search(r"fio\b.*--(?:server|daemonize)", path.read_text(encoding="utf-8")):
                yield f"{shown(path)}: fio as a server takes jobs that write from anyone: run it for one job"


def test_no_role_installs_a_writer_that_asks_for_no_password(tmp_path: Path) -> None:
    role = tmp_path / "role"
    (role / "defaults").mkdir(parents=True)
    (role / "tasks").mkdir()
    (role / "defaults" / "main.yml").write_text("x_address: 0.0.0.0\nx_devices: [/dev/sdb]\nx_port: 1\n")
    (role / "tasks" / "main.yml").write_text("- ansible.builtin.command: fio --server=0.0.0.0\n")
    assert [found.partition(": ")[2].split(" ")[0] for found in listeners([role])] == ["x_address", "x_devices", "fio"]
    check(listeners(ROLES))
