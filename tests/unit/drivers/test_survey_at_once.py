"""What a survey prints is sent when all of it is there, one stream after the other, as it was printed."""

from __future__ import annotations

import shutil
import subprocess
from importlib.resources import files

import pytest

from rackloop_drivers import host_tools
from rackloop_drivers.host_tools._survey import _AT_ONCE

SHELLS = [shell for shell in ("sh", "bash", "dash") if shutil.which(shell)]
SCRIPT = """
wait_s=$1
shift
both() { printf '\\036%s\\n' "$*"; printf '\\036%s\\n' "$*" >&2; }
for each in "$@"; do
    case $each in
    a*) both "$each" ;;
    *) both "other $each" ;;
    esac
    printf '%s\\n' '50% \\n "as it is"'
done
printf 'waited %s' "$wait_s" >&2
exit 3
"""


@pytest.mark.parametrize("shell", SHELLS)
def test_both_streams_and_the_status_are_those_of_the_script(shell: str) -> None:
    argv = [shell, "-c", _AT_ONCE.format(script=SCRIPT), "survey", "10", "a1", "b 2"]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    line = '50% \\n "as it is"\n'
    assert done.stdout == f"\x1ea1\n{line}\x1eother b 2\n{line}".removesuffix("\n")
    assert done.stderr == "\x1ea1\n\x1eother b 2\nwaited 10"
    assert done.returncode == 3


@pytest.mark.parametrize("shell", SHELLS)
def test_nothing_is_sent_before_the_script_has_ended(shell: str) -> None:
    script = "for each in 1 2 3; do echo out$each; echo err$each >&2; done"
    argv = [shell, "-c", _AT_ONCE.format(script=script), "survey"]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.stdout == "out1\nout2\nout3err1\nerr2\nerr3"


@pytest.mark.parametrize("command", [(), ("sh", "-c", "echo $1; exit 3", "besides", "50 % of it")])
def test_a_command_besides_names_no_drive(command: tuple[str, ...]) -> None:
    texts = (files(host_tools).joinpath(name).read_text(encoding="utf-8") for name in ("sections.sh", "health.sh"))
    before, _, _ = "".join(texts).partition("begin boot -")
    script = f'{before}\necho "drives $#"\nif [ -n "$tools" ]; then answer 2>&1; else rm -r "$said"; fi'
    argv = ["sh", "-c", script, "survey", "10", "", "end", *command]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True)
    said = "\x1ebesides -\n50 % of it\n\x1estatus 3\n\x1ebesides -\n" if command else ""
    assert done.stdout == f"drives 0\n{said}"


@pytest.mark.parametrize(
    ("words", "kinds"),
    [((), ("id-ctrl", "id-ns", "smart-log")), (("--identity",), ("id-ctrl", "id-ns")), (("--usage",), ())],
    ids=["whole", "identity", "usage"],
)
def test_a_namespace_is_asked_by_its_own_node(words: tuple[str, ...], kinds: tuple[str, ...]) -> None:
    """With multipath, nvme2n2 can be of the controller nvme1: no controller's name follows from a namespace's."""
    reading, _, _ = files(host_tools).joinpath("survey.sh").read_text(encoding="utf-8").partition("begin by-path -")
    script = f'ask() {{ echo "$@"; }}\n{reading}\nread_drive nvme2n2\nread_drive nvme2c1n2'
    done = subprocess.run(["sh", "-c", script, "survey", *words], check=True, stdout=subprocess.PIPE, text=True)
    asked = [line.split() for line in done.stdout.splitlines()]
    assert [(kind, name, *called[:3]) for kind, name, *called in asked] == [
        (kind, "nvme2n2", "nvme", kind, "/dev/nvme2n2") for kind in kinds
    ]


@pytest.mark.parametrize(("words", "asked"), [((), "smartctl sda smartctl --json=c -x /dev/sda\n"), (("--usage",), "")])
def test_who_uses_a_drive_is_told_without_asking_it(words: tuple[str, ...], asked: str) -> None:
    reading, _, _ = files(host_tools).joinpath("survey.sh").read_text(encoding="utf-8").partition("begin by-path -")
    script = f'ask() {{ echo "$@"; }}\n{reading}\nread_drive sda\necho "listed $nodes, given $*"'
    argv = ["sh", "-c", script, "survey", *words, "/dev/sda"]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True)
    assert done.stdout == f"{asked}listed  /dev/sda, given /dev/sda\n"
