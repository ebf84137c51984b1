"""What a server's shell makes of a command, and how its beginning and end are found in what it prints."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop_drivers.host._wrapper import NOT_BEGUN, Head, Tail, quoted, told, wrapped

TOKEN = "0123456789abcdef"  # noqa: S105 - marks a command's output, and opens nothing
END = f"\0rackloop-end {TOKEN} ".encode()
SHELLS = [shell for shell in ("dash", "bash", "busybox", "ksh", "zsh") if shutil.which(shell)]


def programs(folder: Path, shell: str, *names: str) -> Path:
    """A folder with these programs alone, and ``shell`` as its sh."""
    path = shutil.which(shell)
    assert path is not None
    (folder / "sh").symlink_to(path)
    for name in names:
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return folder


def run(argv: Sequence[str], folder: Path, stdin: bytes = b"") -> tuple[Head, Tail, bytes, bytes]:
    """Run a wrapped command with the programs of ``folder``; its two ends, and what it printed on both streams."""
    # The folders that the wrapper adds have setsid on no machine.
    done = subprocess.run(
        (str(folder / "sh"), "-c", wrapped(quoted(argv), TOKEN)),
        input=stdin,
        capture_output=True,
        env={"PATH": str(folder), "TMPDIR": str(folder)},
        check=False,
    )
    head, tail, complaints = Head(), Tail(TOKEN), Tail(TOKEN)
    stderr = complaints.strip(done.stderr)
    stdout = tail.strip(head.strip(done.stdout))
    assert complaints.status == tail.status
    return head, tail, stdout, stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_any_shell_of_the_posix_kind_will_do(tmp_path: Path, shell: str) -> None:
    folder = programs(tmp_path, shell, "setsid", "cat", "printf", "sleep")
    head, tail, stdout, stderr = run(("printf", "%s|", "a 'b'", "$HOME", "", "x"), folder)
    assert (tail.status, stdout, stderr) == (0, b"a 'b'|$HOME||x|", b"")
    assert head.pid is not None
    assert run(("cat",), folder, b"\0\xff\n" * 1000)[2] == b"\0\xff\n" * 1000
    # Nothing ends the streams while the sleep holds them: it was ended with the command.
    _, tail, stdout, stderr = run(("sh", "-c", "sleep 1000 & echo out; echo err >&2; exit 7"), folder)
    assert (tail.status, stdout, stderr) == (7, b"out\n", b"err\n")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_missing_program_is_told_by_the_name_in_front(tmp_path: Path, shell: str) -> None:
    _, tail, stdout, stderr = run(("no-such-program",), programs(tmp_path, shell, "setsid"))
    assert (tail.status, stdout) == (127, b"")
    assert stderr.startswith(b"rackloop-exec:")


def test_a_server_without_setsid_ends_the_command_and_names_no_process(tmp_path: Path) -> None:
    head, tail, stdout, stderr = run(("true",), programs(tmp_path, "dash", "cat"))
    assert (head.pid, tail.status, stdout) == (None, 127, b"")
    assert b"setsid" in stderr


@pytest.mark.parametrize("shell", SHELLS)
def test_a_command_over_a_connection_that_was_given_up_is_not_begun(tmp_path: Path, shell: str) -> None:
    folder = programs(tmp_path, shell, "setsid", "cat", "printf", "touch")
    (folder / f"rackloop-gone-{TOKEN}").mkdir()
    head, tail, stdout, stderr = run(("touch", str(folder / "begun")), folder)
    assert (head.pid, tail.status, stdout, stderr) == (None, NOT_BEGUN, b"", b"")
    assert not (folder / "begun").exists()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_command_that_was_killed_as_its_connection_was_given_up_has_no_end(tmp_path: Path, shell: str) -> None:
    folder = programs(tmp_path, shell, "setsid", "cat", "printf", "mkdir")
    killed = ("sh", "-c", 'kill -9 "$$"')
    assert run(killed, folder)[1].status == 137
    given_up = ("sh", "-c", f'mkdir "$TMPDIR/rackloop-gone-{TOKEN}" && kill -9 "$$"')
    assert run(given_up, folder)[1].status is None


def test_what_comes_before_the_command_is_no_output() -> None:
    head = Head()
    assert head.strip(b"Welcome\nrackloop-p") == b""
    assert head.strip(b"id 12") == b""
    assert head.strip(b"34\nout") == b"out"
    assert head.pid == 1234
    assert head.strip(b"rackloop-pid 1\n") == b"rackloop-pid 1\n"


@given(
    output=st.lists(st.sampled_from([b"a", b"\n", b"\0", b"\0rackloop-end ", END[:-1], END[:5], b"0"])).map(b"".join),
    cuts=st.lists(st.integers(0, 400)),
)
def test_the_end_is_found_however_the_output_is_cut(output: bytes, cuts: list[int]) -> None:
    stream = output + END + b"42\n" + b"a daemon prints on"
    tail = Tail(TOKEN)
    bounds = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    found = b"".join(tail.strip(stream[start:end]) for start, end in pairwise(bounds))
    assert (found, tail.status) == (output, 42)


def test_a_whole_line_is_not_held_back() -> None:
    tail = Tail(TOKEN)
    assert tail.strip(b"half") == b"half"
    assert tail.strip(b" a line\n") == b" a line\n"
    assert tail.strip(b"\0") == b""
    assert tail.strip(b"no mark\n") == b"\0no mark\n"


def test_a_script_is_told_by_its_first_line() -> None:
    script = "\nread_drives\nexit 0\n"
    assert told(["sh", "-c", script, "survey", "a drive"]) == "sh -c 'read_drives ...' survey 'a drive'"
