"""The tools of a survey run side by side, and one that does not end keeps nothing from what the others said."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from rackloop.errors import LabError, ToolError
from rackloop_drivers import host_tools
from rackloop_drivers.host_tools._sections import Section, parse_sections
from rackloop_drivers.host_tools._survey import _AT_ONCE

SHELLS = [shell for shell in ("sh", "bash", "dash") if shutil.which(shell)]
SECTIONS = files(host_tools).joinpath("sections.sh").read_text(encoding="utf-8")
#: A tool that begins to print, names its process, and can be ended by nobody who does not kill it.
HANGS = """sh -c 'echo begun; echo "complains $$" >&2; echo $$ >"$0"; kill -STOP $$; echo ended'"""
#: The time for a tool is over as soon as the second one has said all it has to say, and the first has begun.
QUICK = 'sleep() { until [ -e "$said/1002.over" ] && [ -s "$0" ]; do :; done; }'


def surveyed(shell: str, script: str, name: str = "survey", memory: str = "", **variables: str) -> dict[str, Section]:
    sections = SECTIONS.replace("/dev/shm", memory or "/dev/shm")
    argv = [shell, "-c", _AT_ONCE.format(script=f"{sections}\n{script}\nanswer"), name, "60"]
    environment = {**os.environ, **variables}
    done = subprocess.run(argv, check=True, capture_output=True, text=True, env=environment, timeout=60)
    return {f"{each.kind} {each.subject}": each for each in parse_sections(done.stdout, done.stderr)}


@pytest.mark.parametrize("shell", SHELLS)
def test_tools_run_side_by_side(shell: str, tmp_path: Path) -> None:
    """Each waits for the other to have begun."""
    os.mkfifo(tmp_path / "one")
    os.mkfifo(tmp_path / "two")
    first = "sh -c 'echo $0 >$1/one; read other <$1/two; echo met $other'"
    second = "sh -c 'read other <$1/one; echo $0 >$1/two; echo met $other'"
    found = surveyed(shell, f"ask a - {first} first '{tmp_path}'\nask b - {second} second '{tmp_path}'")
    assert [each.answer("srv1", "tool") for each in found.values()] == ["met second\n", "met first\n"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_tool_that_hangs_keeps_nothing_from_what_others_said(shell: str, tmp_path: Path) -> None:
    noted = tmp_path / "process"
    noted.touch()
    script = f"{QUICK}\nask smartctl sda {HANGS} \"$0\"\nask smartctl sdb sh -c 'echo fine; echo so >&2; exit 3'"
    found = surveyed(shell, script, str(noted))
    os.kill(int(noted.read_text()), signal.SIGKILL)
    other = found["smartctl sdb"]
    assert (other.stdout, other.stderr.strip(), other.status) == ("fine\n", "so", 3)
    with pytest.raises(LabError, match="srv1:/dev/sda: smartctl did not end in time; the drive hangs"):
        found["smartctl sda"].answer("srv1", "smartctl")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_tool_that_is_not_there_is_named(shell: str) -> None:
    found = surveyed(shell, "ask smartctl sda /nowhere/smartctl -x")
    with pytest.raises(ToolError, match="smartctl was not found on srv1: install its package smartmontools there"):
        found["smartctl sda"].answer("srv1", "smartctl")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("status", [3, 124, 137])
def test_what_a_tool_that_ended_says_counts_whatever_its_status(shell: str, status: int) -> None:
    found = surveyed(shell, f"ask smartctl sda sh -c 'echo said; exit {status}'")["smartctl sda"]
    assert (found.answer("srv1", "smartctl"), found.status) == ("said\n", status)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_tool_that_is_killed_is_no_tool_that_is_late(shell: str) -> None:
    found = surveyed(shell, "ask smartctl sda sh -c 'kill -KILL $$'\nask smartctl sdb echo fine")
    with pytest.raises(LabError, match="srv1:/dev/sda: smartctl printed nothing"):
        found["smartctl sda"].answer("srv1", "smartctl")
    assert found["smartctl sdb"].answer("srv1", "smartctl") == "fine\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_what_cannot_be_kept_ends_the_survey_and_loses_no_drive_in_silence(shell: str) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        surveyed(shell, 'ask smartctl sda echo fine\nrm -r "$said"\nask smartctl sdb echo fine')


@pytest.mark.parametrize("shell", SHELLS)
def test_answers_come_in_the_order_of_the_questions(shell: str) -> None:
    many = [f"{number:03}" for number in range(24)]
    found = surveyed(shell, "\n".join(f"ask tool {name} echo {name}" for name in many))
    assert [each.stdout for each in found.values()] == [f"{name}\n" for name in many]


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no memory to keep files in")
def test_a_server_whose_disk_is_full_is_surveyed() -> None:
    found = surveyed("sh", "ask tool - echo fine", TMPDIR="/nowhere")
    assert found["tool -"].answer("srv1", "tool") == "fine\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_nobody_sleeps_on_once_all_have_answered(shell: str, tmp_path: Path) -> None:
    asleep, begun = tmp_path / "asleep", tmp_path / "begun"
    os.mkfifo(asleep)
    held = select.poll()
    held.register(os.open(asleep, os.O_RDONLY | os.O_NONBLOCK), 0)
    sleeps = f"sleep() {{ exec sh -c 'echo >\"$0\"; exec sleep 60' '{begun}' 9>'{asleep}'; }}"
    surveyed(shell, f"{sleeps}\nask tool - sh -c 'until [ -s \"$0\" ]; do :; done' '{begun}'")
    assert held.poll(30_000), "nobody holds the pipe any more"


@pytest.mark.parametrize("shell", SHELLS)
def test_nothing_is_left_behind(shell: str) -> None:
    found = surveyed(shell, 'ask tool - echo "$said"')
    place = Path(found["tool -"].stdout.strip())
    assert place.name.startswith("rackloop-said-")
    assert not place.exists()


#: Has the kernel refuse what is written into the first folder, as a file system does that is full.
FULL = """#!/bin/sh
made=$({mktemp} "$@") || exit
echo "$made"
case $made in
{memory}/*) ln -s /dev/full "$made/room" ;;
esac
"""


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("is_full", [True, False])
def test_a_server_without_room_in_its_memory_is_surveyed(shell: str, tmp_path: Path, *, is_full: bool) -> None:
    memory = tmp_path / "memory"
    if is_full:
        memory.mkdir()
    (tmp_path / "mktemp").write_text(FULL.format(mktemp=shutil.which("mktemp"), memory=memory))
    (tmp_path / "mktemp").chmod(0o755)
    disk = tmp_path / "disk"
    old = disk / "rackloop-said-old"
    old.mkdir(parents=True)
    os.utime(old, (0, 0))
    path = f"{tmp_path}:{os.environ['PATH']}"
    found = surveyed(shell, 'ask tool - echo "$said"', memory=str(memory), TMPDIR=str(disk), PATH=path)
    assert Path(found["tool -"].stdout.strip()).parent == disk
    assert [*disk.iterdir(), *(memory.iterdir() if is_full else ())] == []


@pytest.mark.parametrize("shell", SHELLS)
def test_a_server_that_takes_no_file_says_so(shell: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        surveyed(shell, "ask tool - echo fine", memory="/nowhere", TMPDIR="/nowhere/else")
    assert failed.value.stderr == "neither /nowhere nor /nowhere/else takes a file; free some space"


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no memory to keep files in")
def test_what_a_killed_survey_left_an_hour_ago_is_removed(tmp_path: Path) -> None:
    left = [Path(f"/dev/shm/rackloop-said-{tmp_path.parent.name}-{tmp_path.name}-{age}") for age in ("old", "new")]
    for folder in left:
        folder.mkdir()
        (folder / "1001.out").touch()
    an_hour_ago_s = left[0].stat().st_mtime - 3660
    os.utime(left[0], (an_hour_ago_s, an_hour_ago_s))
    surveyed("sh", "ask tool - echo fine")
    assert [folder.exists() for folder in left] == [False, True]
    shutil.rmtree(left[1])
