"""Skeletons of the generators, which pass every check as they are."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rackloop_cli.main import main
from tests.meta.tree import ROOT, project

ROOTS = project()["tool"]["hatch"]["build"]["dev-mode-dirs"]
# Names on both sides of "Sim" and "skeletons", so that what is sorted has to be sorted again.
DRIVERS = {
    "BlockDevice": "acme_volume",
    "Drive": "zeta_drive",
    "Executor": "omega_host",
    "Fabric": "ufo_switch",
    "PhyControl": "x1",
    "PowerPort": "a_name_of_16_ltr",
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source tree that may be written to."""
    copy = tmp_path_factory.mktemp("checkout")
    for folder in (*ROOTS, "testplans", "tests/contracts"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for shared in (ROOT / "tests").glob("*.py"):
        shutil.copy(shared, copy / "tests")
    for file in ("pyproject.toml", "conftest.py"):
        shutil.copy(ROOT / file, copy)
    return copy


def run(checkout: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(str(checkout / root) for root in ROOTS)}
    environment.pop("PYTEST_XDIST_WORKER", None)
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)


def generate(checkout: Path, generator: str | Path, *arguments: str) -> list[Path]:
    """The files that a generator has written."""
    done = run(checkout, sys.executable, checkout / "tools" / generator, *arguments)
    assert done.returncode == 0, done.stderr
    files, _, _ = done.stdout.partition("\n\n")
    return [checkout / line for line in files.splitlines()]


def passes(checkout: Path, *command: str | Path) -> None:
    done = run(checkout, sys.executable, "-m", *command)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def written(checkout: Path) -> dict[str, list[Path]]:
    """What the generators write for each ability, and for a test plan."""
    files = {ability: generate(checkout, "new-driver", name, "--ability", ability) for ability, name in DRIVERS.items()}
    folder = checkout / "testplans"
    assert main(["new", "testplan", "new_subject/warm_swap", "--testplans", str(folder)]) == 0
    return files | {"testplan": [folder / "new_subject" / "test_warm_swap.py"]}


def test_skeletons_are_typed_and_clean(checkout: Path, written: dict[str, list[Path]]) -> None:
    files = [path for paths in written.values() for path in paths]
    passes(checkout, "ruff", "check", "--no-cache", *files)
    passes(checkout, "ruff", "format", "--no-cache", "--check", *files)
    passes(checkout, "mypy", "--config-file", checkout / "pyproject.toml", *files)


def test_skeletons_keep_their_contracts(checkout: Path, written: dict[str, list[Path]]) -> None:
    tests = [path for paths in written.values() for path in paths if path.parent.name == "contracts"]
    assert len(tests) == len(DRIVERS)
    passes(checkout, "pytest", "-q", "-p", "no:cacheprovider", *tests)


def test_nothing_of_the_example_is_left(checkout: Path, written: dict[str, list[Path]]) -> None:
    for path in (path for paths in written.values() for path in paths):
        text = path.read_text(encoding="utf-8")
        assert "skeletons" not in text
        assert "xample" not in text


def test_a_package_of_its_own_is_complete(checkout: Path, tmp_path: Path) -> None:
    for ability, name in DRIVERS.items():
        files = generate(tmp_path, checkout / "tools" / "new-driver", name, "--ability", ability, "--package", ability)
        assert tmp_path / "pyproject.toml" in files
        package = tmp_path / ability
        written = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        kind = {"PowerPort": "pdu", "PhyControl": "phy", "Fabric": "fabric"}.get(ability)
        entries = written.get("entry-points", {}).get("rackloop.drivers", {})
        assert list(entries) == ([f"{kind}.{name}"] if kind else [])
        roots = [package, *(checkout / root for root in ROOTS)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, roots))}
        script = "from importlib.metadata import EntryPoint; import sys; print(EntryPoint('', sys.argv[1], '').load())"
        command = [sys.executable, "-P", "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-c", os.devnull]
        for what in ([*command, "tests"], *([sys.executable, "-P", "-c", script, entry] for entry in entries.values())):
            done = subprocess.run(what, cwd=package, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr


def test_an_address_that_is_missing_gets_one_that_could_be(checkout: Path, written: dict[str, list[Path]]) -> None:
    for ability in ("Fabric", "PhyControl", "PowerPort"):
        registered = next(path for path in written[ability] if path.name == "_registered.py")
        (host,) = re.findall(r"such as (\S+):4001", registered.read_text(encoding="utf-8"))
        assert "_" not in host, "no host is named so"


def test_nothing_is_overwritten(checkout: Path, written: dict[str, list[Path]]) -> None:
    driver = next(path for path in written["Drive"] if path.name == "_driver.py")
    before = driver.read_text(encoding="utf-8")
    done = run(checkout, sys.executable, checkout / "tools" / "new-driver", DRIVERS["Drive"], "--ability", "Drive")
    assert done.returncode == 2
    assert "exist already" in done.stderr
    assert driver.read_text(encoding="utf-8") == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("acme", "--ability", "Powerport"), "did you mean PowerPort?"),
        (("acme", "--ability", "phy_control"), "did you mean PhyControl?"),
        (("acme", "--ability", "Teapot"), "the abilities are BlockDevice, Drive"),
        (("../acme", "--ability", "Drive"), "as acme_strip; got '../acme'"),
        (("class", "--ability", "Drive"), "'class' is a word or a module of Python"),
        (("apc", "--ability", "PowerPort", "--package", "apc"), "Rackloop has a pdu driver 'apc' already"),
        (("socket", "--ability", "Drive", "--package", "socket"), "'socket' is a word or a module of Python"),
    ],
)
def test_bad_input_gets_one_message(checkout: Path, arguments: tuple[str, ...], said: str) -> None:
    done = run(checkout, sys.executable, checkout / "tools" / "new-driver", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_the_generator_explains_itself_before_anything_is_installed(checkout: Path) -> None:
    program = f"""
import runpy, sys
sys.path.insert(0, {str(checkout / "tools")!r})
sys.argv = ["new-driver", "--help"]
runpy.run_path({str(checkout / "tools" / "new-driver")!r}, run_name="__main__")"""
    done = run(checkout, sys.executable, "-I", "-S", "-c", program)
    assert done.returncode == 0, done.stderr
    assert "example: tools/" in done.stdout
