"""Standard streams that are closed, have lost their reader, or do not take every character."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RACKLOOP: list[str | bytes] = [sys.executable, "-m", "rackloop_cli.main"]
OPEN_AND_SAY = """
import os, sys
from rackloop_cli.shared.standard_streams import prepare_streams
prepare_streams()
mine = os.open("/proc/self/maps", os.O_RDONLY)
os.write(int(sys.argv[1]), " ".join([
    *(os.readlink(f"/proc/self/fd/{number}") for number in range(3)),
    str(mine > 2), sys.stdin.read(), str(os.get_inheritable(0)), str(os.get_inheritable(2)),
]).encode())
"""


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_the_null_device_also_for_programs_that_are_started(closed: str) -> None:
    reading, writing = os.pipe()
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", OPEN_AND_SAY, str(writing)]
    subprocess.run(shell, pass_fds=[writing], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    os.close(writing)
    with os.fdopen(reading) as said:
        streams = said.read().split(" ")
    for number, mark in enumerate(("<&-", ">&-", "2>&-")):
        if mark in closed.split():
            assert streams[number] == "/dev/null"
    assert streams[3:] == ["True", "", "True", "True"]


@pytest.mark.parametrize(
    ("encoding", "printed"),
    [
        ("utf-8:strict", b"\xff \xe2\x94\x81 \\ud800\n"),
        ("ascii", b"? ? ?\n"),
        ("ascii:surrogateescape", b"? ? ?\n"),
    ],
)
def test_standard_output_takes_every_file_name_and_every_character(encoding: str, printed: bytes) -> None:
    code = (
        "from rackloop_cli.shared.standard_streams import prepare_streams\n"
        "prepare_streams()\n"
        "print('\\udcff', '\\u2501', '\\ud800')"
    )
    world = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", code], env=world, capture_output=True, check=True)
    assert done.stdout == printed


def test_a_file_whose_name_is_not_utf_8_is_named_as_it_is(tmp_path: Path) -> None:
    world = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    done = subprocess.run(
        [*RACKLOOP, "new", "test", b"\xff/pull"], env=world, cwd=tmp_path, capture_output=True, check=True
    )
    assert done.stdout.startswith(b"Wrote \xff/test_pull.py.")


@pytest.mark.parametrize("is_unread", [False, True], ids=["full", "unread"])
def test_a_message_that_reaches_nobody_changes_no_status(*, is_unread: bool) -> None:
    reading, writing = os.pipe() if is_unread else (os.open(os.devnull, os.O_RDONLY), os.open("/dev/full", os.O_WRONLY))
    os.close(reading)
    done = subprocess.run([*RACKLOOP, "report", "absent"], stdout=subprocess.PIPE, stderr=writing, check=False)
    os.close(writing)
    assert (done.returncode, done.stdout) == (2, b"")


def test_a_message_for_a_closed_standard_error_may_name_every_file() -> None:
    shell = ["sh", "-c", 'exec "$@" 2>&-', "sh", *RACKLOOP, "report", b"na\xefve"]
    done = subprocess.run(shell, stdout=subprocess.PIPE, check=False)
    assert (done.returncode, done.stdout) == (2, b"")


def test_ctrl_c_is_heard_where_it_ended_who_reads_the_answer() -> None:
    code = """
import signal
from rackloop_cli.shared.interruption import answering_interrupt
try:
    with answering_interrupt():
        signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("heard")
"""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=writing, check=True)
    os.close(writing)
    assert done.stdout == b"heard\n"


def test_output_that_nobody_reads_is_no_product_that_failed() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*RACKLOOP, "--help"], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")
