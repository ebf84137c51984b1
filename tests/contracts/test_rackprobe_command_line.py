"""rackprobe refuses what it cannot do in one message, with the exit status that says whose fault it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rackloop.abilities import Completed
from rackloop.clock import Deadline
from rackloop.native import find_binary
from rackloop_drivers.host import LocalExecutor
from tests.deadlines import CLOCK

SUBCOMMANDS = ["write", "verify", "remap", "watch", "swap", "hold", "uevents", "bench"]
CONFIG = '{"targets":[]}\n'


@pytest.fixture
def drive(tmp_path: Path) -> Path:
    path = tmp_path / "drive"
    path.write_bytes(bytes(1 << 16))
    return path


def run(executor: LocalExecutor, *arguments: str, stdin: str = "") -> Completed:
    done = executor.run((str(find_binary("rackprobe")), *arguments), Deadline.after(CLOCK, 30), stdin=stdin)
    assert "panicked" not in done.stderr
    return done


@pytest.mark.parametrize("permission", [[], ["--allow-write=RL000002"], ["--allow-write="]])
@pytest.mark.parametrize("command", [["write"], ["watch", "--write"]], ids=lambda command: command[0])
def test_nothing_is_written_without_permission_for_this_drive(
    executor: LocalExecutor, drive: Path, command: list[str], permission: list[str]
) -> None:
    done = run(executor, *command, str(drive), "--serial=RL000001", *permission)
    assert (done.status, done.stdout) == (2, "")
    assert "--allow-write" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert drive.read_bytes() == bytes(1 << 16)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["verify", "{drive}", "--serial=A", "--sectors=17"], "it has 16 sectors"),
        (["verify", "{drive}", "--serial=A", "--start-lba=18446744073709551615"], "it has 16 sectors"),
        (["verify", "{drive}", "--serial=A", "--sectors=0"], "--sectors"),
        (["verify", "{drive}", "--serial=A", "--block=4097"], "multiple of 4KiB"),
        (["verify", "{drive}", "--serial=A", "--block=1GiB"], "at most 64MiB"),
        (["verify", "{drive}", "--serial=A", "--block=much"], "write it like 4KiB"),
        (["verify", "{drive}", "--serial=A", "--queue-depth=0"], "from 1 to 256"),
        (["verify", "{drive}", "--serial="], "printable ASCII"),
        (["verify", "{drive}", "--serial=" + "x" * 45], "1 to 44"),
        (["verify", "nbds://host/x", "--serial=A"], "nbds is not supported"),
        (["verify", "nbd+unix:///x", "--serial=A"], "socket=PATH"),
        (["swap", "{drive}", "--serial=A", "--reads=1", "--block=8KiB"], "less than one --block"),
        (["remap"], "no remap configuration"),
        (["remap", "--config={drive}.none"], "No such file"),
        (["bench", "--rounds=0"], "--rounds"),
        (["fly"], "unrecognized subcommand"),
        ([], "Usage"),
    ],
    ids=str,
)
def test_bad_input_is_named(executor: LocalExecutor, drive: Path, arguments: list[str], said: str) -> None:
    done = run(executor, *(argument.replace("{drive}", str(drive)) for argument in arguments))
    assert (done.status, done.stdout) == (2, "")
    assert said in done.stderr


def test_an_interval_that_never_ends_is_not_told(executor: LocalExecutor, drive: Path) -> None:
    done = run(executor, "watch", str(drive), "--serial=A", f"--interval-ms={2**64 - 1}", "--duration-ms=1")
    events = [json.loads(line)["event"] for line in done.stdout.splitlines()]
    assert (done.status, events) == (0, ["ready", "result"])


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "{}",
        '{"targets":1}',
        '{"targets":[{"name":"a"}]}',
        '{"targets":[],"pol_us":1}',
        '{"targets":[{"name":"a","target":"/x"},{"name":"a","target":"/x"}]}',
        "\x00\x7f",
    ],
)
def test_a_bad_remap_configuration_is_named(executor: LocalExecutor, line: str) -> None:
    done = run(executor, "remap", stdin=line + "\n")
    assert (done.status, done.stdout) == (2, "")
    assert "first line of standard input" in done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "arm",
        "[]",
        '{"op":"fly"}',
        '{"op":"arm"}',
        '{"op":"arm","id":-1,"target":"a","expect":{"serial":"A","generation":1},"timeout_ms":1}',
        '{"op":"arm","id":1,"target":"a","expect":{"serial":"A"},"timeout_ms":1}',
        '{"op":"quit","now":true}',
    ],
)
def test_a_line_that_is_no_command_does_not_end_a_session(executor: LocalExecutor, line: str) -> None:
    done = run(executor, "remap", stdin=CONFIG + line + '\n\n{"op":"quit"}\n')
    ready, refused = done.stdout.splitlines()
    assert (done.status, done.stderr) == (0, "")
    assert '"event":"ready"' in ready
    assert '"event":"error"' in refused
    assert "is no command" in refused


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("{folder}", "neither a block device nor a file"),
        ("{folder}/none", "No such file"),
        ("nbd+unix:///x?socket={folder}/none", "No such file"),
        ("/dev/null", "neither a block device nor a file"),
    ],
)
def test_a_target_that_fails_is_named(executor: LocalExecutor, tmp_path: Path, target: str, said: str) -> None:
    name = target.replace("{folder}", str(tmp_path))
    done = run(executor, "verify", name, "--serial=A")
    assert (done.status, done.stdout) == (3, "")
    assert done.stderr.startswith(f"rackprobe: {name}: ")
    assert said in done.stderr


def test_data_that_is_not_right_has_a_status_of_its_own(executor: LocalExecutor, drive: Path) -> None:
    assert run(executor, "verify", str(drive), "--serial=A").status == 1
    assert run(executor, "write", str(drive), "--serial=A", "--allow-write=A").status == 0
    assert run(executor, "verify", str(drive), "--serial=A").status == 0


@pytest.mark.parametrize("subcommand", SUBCOMMANDS)
def test_every_subcommand_explains_itself(executor: LocalExecutor, subcommand: str) -> None:
    done = run(executor, subcommand, "--help")
    assert done.status == 0
    assert "Example: " in done.stdout or "For example" in done.stdout or '"op"' in done.stdout


def test_it_tells_its_version(executor: LocalExecutor) -> None:
    assert run(executor, "--version").stdout.startswith("rackprobe ")
